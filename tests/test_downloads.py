"""The files that a page gives away: what stands in them, and that they run."""

import subprocess
import sys

import jupytext
import nbformat
import pytest
from _ext.downloads import epub, llms_txt, markdown, page_files
from docutils import nodes
from docutils.utils import new_document
from nbformat import v4


def cell(source, outputs=(), **metadata):
    return v4.new_code_cell(source, outputs=list(outputs), metadata=metadata)


STREAM = v4.new_output("stream", text="2.0\n")
ERROR = v4.new_output("error", ename="ValueError", evalue="too bad", traceback=["long"])
FIGURE = v4.new_output(
    "display_data",
    {"text/plain": "<Figure size 1x1>", "text/html": "<svg></svg>", "image/png": "aWNo"},
)
SHOWN = [
    "# A page\n\nSee [another](other.md) and [JAX](https://docs.jax.dev).",
    cell("x = 1.0\nprint(x + x)", [STREAM]),
    cell('y = 1\nint("a")', [ERROR], tags=["raises-exception"], raises="ValueError"),
    cell("draw()", [FIGURE], alt="A line.", caption="Rising: a_b."),
]


def test_markdown_has_code_outputs_and_the_text_of_figures():
    text = page_files.as_markdown(SHOWN)
    assert "```python\nx = 1.0\nprint(x + x)\n```\n\n```text\n2.0\n```" in text
    assert "```text\nValueError: too bad\n```" in text
    assert "*Rising: a_b:* A line." in text
    assert "<Figure" not in text


def test_the_notebook_with_outputs_shows_them_without_the_site():
    made = page_files.notebook(SHOWN, "learn/a", outputs=True)
    nbformat.validate(made)
    assert made.cells[1].outputs[0].text == "2.0\n"
    assert made.cells[2].metadata.tags == ["raises-exception"]
    picture, caption = made.cells[3].outputs
    assert picture.data == {"image/png": "aWNo", "text/plain": "A line."}  # no drawing, which viewers drop
    assert picture.metadata["image/png"].alt == "A line."
    assert caption.data == {"text/markdown": "*Rising: a\\_b.*"}
    assert "See another and [JAX](https://docs.jax.dev)." in made.cells[0].source


@pytest.mark.parametrize("tag", ["remove-input", "hide-input"])
def test_code_of_a_figure_that_the_page_hides_is_folded_or_left_out(tag):
    hidden = cell("draw()", [FIGURE], alt="A line.", caption="Rising.", tags=[tag])
    assert page_files.as_markdown([hidden]) == "*Rising:* A line.\n"
    for outputs in (True, False):
        made = page_files.notebook([hidden], "learn/a", outputs=outputs)
        assert made.cells[0].source == "draw()", "the notebook has to run"
        assert made.cells[0].metadata.jupyter.source_hidden
        nbformat.validate(made)


def test_code_that_the_page_folds_but_that_draws_nothing_is_shown():
    assert "count()" in page_files.as_markdown([cell("count()", [], tags=["hide-input"])])


def test_the_notebook_to_run_has_none():
    made = page_files.notebook(SHOWN, "learn/a", outputs=False)
    nbformat.validate(made)
    assert not any(c.get("outputs") for c in made.cells)


def test_a_configured_repository_comes_with_a_cell_that_installs():
    made = page_files.notebook(SHOWN, "learn/a", "someone/guide", outputs=False)
    assert "github.com/someone/guide" in made.cells[0].source
    assert "pip" not in page_files.notebook(SHOWN, "learn/a", outputs=False).cells[1].source
    assert set(page_files.launch_links("someone/guide", "gh-pages", "learn/a")) == {"Colab", "Binder"}


def test_the_same_page_gives_the_same_file():
    first, second = (nbformat.writes(page_files.notebook(SHOWN, "learn/a", outputs=True)) for _ in range(2))
    assert first == second


def test_the_python_file_runs_through_what_is_meant_to_fail(tmp_path):
    file = tmp_path / "page.py"
    file.write_text(jupytext.writes(page_files._as_script(SHOWN[:3]), fmt="py:percent"), encoding="utf-8")
    done = subprocess.run([sys.executable, file], capture_output=True, text=True, check=True)
    assert done.stdout.startswith("2.0\nValueError: invalid literal")
    assert "# meant to fail: ValueError" in file.read_text("utf-8")


def test_a_decorator_belongs_to_the_statement_that_fails():
    kept, last = page_files._split_last("a = 1\n@deco\ndef f():\n    pass")
    assert (kept, last[0]) == (["a = 1"], "@deco")


@pytest.mark.parametrize(
    ("html", "xml"),
    [
        ("<details open>a<br>b</details>", '<details open="">a<br/>b</details>'),
        ("a &nbsp;&lt;", "a \N{NO-BREAK SPACE}&lt;"),
        ("<p>x<script>1</script></p>", "<p>x</p>"),
        ('<a href="status.json">x</a>', "x"),
        ('<a href="https://a.org/b.json">x</a>', '<a href="https://a.org/b.json">x</a>'),
    ],
)
def test_books_get_well_formed_html(html, xml):
    assert epub.well_formed(html) == xml


def test_a_drawing_in_a_book_keeps_the_case_of_its_names():
    assert 'viewBox="0 0 1 1" xmlns="http://www.w3.org/2000/svg"' in epub.well_formed(
        '<svg viewBox="0 0 1 1"></svg>'
    )


def test_gaps_of_left_out_marks_are_closed():
    assert markdown._tidy("It is so . And so , too .") == "It is so. And so, too."
    assert markdown._tidy("> **Question**\n\n> Why?") == "> **Question**\n>\n> Why?"


def test_code_keeps_its_spaces():
    fenced = "```python\nrows = x[start : start + 3]\n```"
    assert (
        markdown._tidy(f"So .\n\n{fenced}\n\nAnd `x[a : b] .` .") == f"So.\n\n{fenced}\n\nAnd `x[a : b] .`."
    )
    document = new_document("page")
    run = nodes.literal("", "pip install -e .")
    document += nodes.paragraph("", "", nodes.Text("Run "), run, nodes.Text(" here ."))
    assert llms_txt._summary(document) == "Run pip install -e . here."


def test_the_summary_of_a_page_is_a_line_or_two():
    document = new_document("page")
    document += nodes.section("", nodes.title(text="T"), nodes.paragraph(text="One. Two? " + "Three " * 60))
    assert llms_txt._summary(document) == "One. Two?"


def test_books_declare_their_drawings(tmp_path):
    (tmp_path / "a.xhtml").write_text("<svg/>")
    (tmp_path / "b.xhtml").write_text("<p/>")
    items = '<item href="{}" id="1" />'
    content = epub.with_drawings_declared(items.format("a.xhtml") + items.format("b.xhtml"), tmp_path)
    assert content == '<item href="a.xhtml" id="1" properties="svg" />' + items.format("b.xhtml")
