"""What a page does where its text says something of a measurement that a run does not show."""

import re

import pytest
from _ext.execution import kernels, notebooks

FRONT = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\nmeasures: true\n---\n"


def run(source, condition, before="tries = []"):
    """Run a page of two cells, the second with a condition; return the second one and what the page has in `tries`."""
    blocks = [before, f":shows: {condition}\n{source}", "len(tries)"]
    page = FRONT + "\n".join(f"```{{code-cell}}\n{block}\n```\n" for block in blocks)
    notebook = notebooks.read(page)
    notebooks.check(notebook)
    kernels.execute(notebook)
    _, cell, last = notebooks.code_cells(notebook)
    return cell, int(last.outputs[0].data["text/plain"])


def test_a_cell_runs_once_if_it_shows_what_the_text_says():
    cell, tries = run("tries.append(1)\n0.5", "_ < 1")
    assert tries == 1
    assert [output.data["text/plain"] for output in cell.outputs] == ["0.5"]


def test_a_cell_runs_again_until_it_shows_it():
    cell, tries = run("tries.append(1)\nprint(len(tries))", "len(tries) == 2")
    assert tries == 2
    assert [output.text for output in cell.outputs] == ["2\n"]


def test_a_cell_that_never_shows_it_says_so_on_the_page():
    cell, tries = run("tries.append(1)\nprint(len(tries))", "len(tries) < 0")
    assert tries == 3
    printed, otherwise = cell.outputs
    assert printed.text == "3\n"
    assert "in 3 runs, len(tries) < 0 was false" in otherwise.data["text/plain"]
    assert "<code>len(tries) &lt; 0</code>" in otherwise.data["text/html"]


def test_a_condition_over_an_unknown_name_fails_the_page():
    with pytest.raises(
        notebooks.PageError, match=re.escape("`:shows:` says cannot be evaluated: NameError")
    ) as e:
        run("1", "no_such_name > 1")
    assert e.value.line == 10


@pytest.mark.parametrize("condition", ["fast <", "true", "a = 1", "3"])
def test_what_is_no_condition_is_refused(condition):
    with pytest.raises(notebooks.PageError, match=":shows: needs an expression of Python"):
        run("1", condition)
