"""How a page is read as a notebook, and what is refused."""

import pytest
from _ext.execution import notebooks

FRONT = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\n---\n"


def page(*blocks):
    return FRONT + "\n\n".join(("# Title", *blocks)) + "\n"


def cell(source, *options):
    return "```{code-cell}\n" + "".join(f"{o}\n" for o in options) + source + "\n```"


def test_cells_come_in_order_with_their_lines():
    notebook = notebooks.read(page(cell("a = 1"), "Text.", cell("b = 2")))
    first, second = notebooks.code_cells(notebook)
    assert (first.source, second.source) == ("a = 1", "b = 2")
    text = page(cell("a = 1"), "Text.", cell("b = 2")).splitlines()
    assert text[notebooks.line_of(notebook, second) - 1] == "```{code-cell}"


def test_a_solution_is_folded():
    (only,) = notebooks.code_cells(notebooks.read(page(cell("1", ":tags: [solution]"))))
    assert "hide-cell" in only.metadata["tags"]
    assert only.metadata["mystnb"]["code_prompt_show"] == "Show a solution"


def test_the_key_changes_with_code_options_and_environment_only():
    def key(text, fingerprint="e1"):
        return notebooks.key(notebooks.read(text), fingerprint)

    assert key(page(cell("1"))) == key(page("Other prose.", cell("1")))
    assert key(page(cell("1"))) != key(page(cell("2")))
    assert key(page(cell("1"))) != key(page(cell("1", ":alt: x")))
    assert key(page(cell("1"))) != key(page(cell("1")), "e2")


@pytest.mark.parametrize(
    ("option", "message"),
    [
        (":tags: [raises-exception]", "names no error class"),
        (":raises: ValueError", "add `:tags: \\[raises-exception\\]`"),
    ],
)
def test_half_a_mark_of_an_expected_error_is_refused(option, message):
    with pytest.raises(notebooks.PageError, match=message):
        notebooks.check(notebooks.read(page(cell("1/0", option))))
