"""Reads the Python blocks of the built site: what their buttons copy, and what the page shows below them."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import jax
from _ext.programs.compare_outputs import Expected
from _ext.programs.runner import Outcome
from bs4 import BeautifulSoup, Tag

BOUNDARY = "# --- this block"
_HEADER = re.compile(
    r'# From "(?P<title>.+)" \((?P<page>[^)]+)\), JAX (?P<jax>[\w.]+)\. Needs: (?P<needs>.+)\.'
)
_FAILS = "# Meant to fail: "
# jaxlib and SciPy come with JAX.
_PACKAGES = {"jax", "jaxlib", "numpy", "jitguide", "matplotlib", "scipy", "equinox", "flax", "optax", "orbax"}
_STARTED = {"pytest"}  # what a program may need for another one that it writes and starts
_MACHINERY = ("myst_nb", "glue(", "get_ipython", "%matplotlib")
_NOT_COPIED = (".linenos", ".gp", ".go")  # as docs/_static/program.js leaves out
_NOT_PYTHON = {
    f"highlight-{name}" for name in ("bash", "console", "shell", "sh", "toml", "text", "yaml", "json")
}


@dataclass(frozen=True)
class Block:
    """One block: page, running number, the text that each button copies, and what the page shows.

    Attributes:
        whole: Whether it is a program as it stands, without a second button.
        only_class: Whether only the class of its error is compared.
        entry: Whether it stands in the error index.
    """

    page: str
    number: int
    own: str
    program: str
    expected: Expected = field(default_factory=Expected)
    whole: bool = False
    only_class: bool = False
    entry: bool = False

    @property
    def name(self) -> str:
        """Page and number, as it is told to people."""
        return f"{self.page}, block {self.number}"

    @property
    def begins(self) -> int:
        """Line with which the block begins in its program."""
        lines = self.program.splitlines()
        return lines.index(BOUNDARY) + 1 if BOUNDARY in lines else 1

    def value_lines(self, run: Outcome) -> tuple[str, ...]:
        """Return the shown value of a run in the form in which the page shows it."""
        if self.expected.shown and self.expected.shown[0] == _HTML:
            return _lines(BeautifulSoup(run.html or "", "html.parser"))
        return tuple((run.plain or "").splitlines())


_HTML = "shown as HTML:"


def of_site(html: Path, only: str = "") -> list[Block]:
    """Return every block of the site that must run as copied: not the fragments in its text."""
    selector, found = _with_button(html), []
    for path in sorted(html.rglob("*.html")):
        page = path.relative_to(html).with_suffix("").as_posix()
        if "_static" not in path.parts and only in page:
            soup = BeautifulSoup(path.read_text("utf-8"), "html.parser")
            texts = [text for text in soup.select(selector) if not _NOT_PYTHON & _classes(text)]
            found += [Block(page, i, **_block(text)) for i, text in enumerate(texts, 1)]
    return found


def _with_button(html: Path) -> str:
    """Return the selector by which the site's own script finds these blocks."""
    script = html / "_static" / "program.js"
    named = re.search(r'BLOCKS =\s*"([^"]+)"', script.read_text("utf-8") if script.exists() else "")
    return named[1] if named else "div.cell_input div.highlight pre"


def _classes(text: Tag) -> set[str]:
    return {name for parent in text.parents for name in parent.get("class", [])}


def _block(text: Tag) -> dict:
    about: dict = {"own": _copied(text), "program": ""}
    cell, kind = text.find_parent(class_="cell"), text.find_parent(class_=["error-example", "error-repair"])
    if cell:
        return about | {"program": _program(text.find_parent(class_="cell_input")), **_below(cell)}
    if kind:
        program = _program(text.find_parent("div", class_="highlight").parent)
        # The entry names one class; an example may raise another of its kind, and its program says which.
        fails = "error-example" in kind["class"] and _names_an_error(kind)
        error = (_said(program) or ["no word of it"])[0] if fails else None
        return about | {
            "program": program,
            "expected": Expected(error=error),
            "only_class": True,
            "entry": True,
        }
    return about | {"program": about["own"] + "\n", "whole": True, "only_class": True}


def _copied(text: Tag) -> str:
    """Return what the ordinary button copies: the text less numbers and prompts, and less one line break."""
    for part in text.select(", ".join(_NOT_COPIED)):
        part.extract()
    return text.get_text().removesuffix("\n")


def _program(before: Tag) -> str:
    """Return the text that the button "Program" copies, which stands behind the block."""
    place = before.find_next_sibling()
    return place.select_one("pre").get_text() if place and "program" in place.get("class", []) else ""


def _names_an_error(block: Tag) -> bool:
    """Return whether the entry around a block is about an error, whose class then stands alone below its title."""
    first = block.find_parent("section").find("p")
    named = first.select_one("code")
    return bool(named) and first.get_text() == named.get_text()


def _below(cell: Tag) -> dict:
    """Return what the page shows below a cell, as far as a program has to do the same."""
    if "tag_remove-output" in cell["class"]:
        return {"only_class": True}
    printed = "".join(o.get_text() for o in cell.select("div.output.stream"))
    stderr = "".join(o.get_text() for o in cell.select("div.output.stderr"))
    told = "".join(o.get_text() for o in cell.select("div.output.traceback"))
    error, message = None, ""
    if told:
        error, _, message = re.sub(r"^line \d+: [^\n]*\n\n", "", told).partition(": ")
    values = [o for o in cell.select("div.output.text_html") if not o.select_one(".guide-figure")]
    shown = (_HTML, *(line for value in values for line in _lines(value))) if values else None
    plain = cell.select("div.output.text_plain")
    if plain:
        shown = tuple(plain[0].get_text().splitlines())
    expected = Expected(printed, stderr, error and error.strip(), message.rstrip("\n"), shown)
    return {"expected": expected}


def _lines(soup: Tag) -> tuple[str, ...]:
    """Return the text of a value shown as HTML, a row of a table in a line."""
    for part in soup.select("style, script"):
        part.extract()
    for row in soup.select("tr"):
        row.string = "  ".join(" ".join(cell.stripped_strings) for cell in row.select("th, td"))
    mark = (_HTML,) if isinstance(soup, BeautifulSoup) else ()
    return (*mark, *soup.stripped_strings)


def problems(found: list[Block], sources: Path | None) -> dict[str, list[str]]:
    """Return what can be seen to be wrong without running anything, by the names of the blocks."""
    wrong: dict[str, list[str]] = {}
    for i, block in enumerate(found):
        earlier = [other for other in found[:i] if other.page == block.page]
        if told := [*_about(block, earlier)]:
            wrong[block.name] = told
    for page in {b.page for b in found}:
        path = sources / f"{page}.md" if sources else None
        if path and path.exists():
            cells = [b for b in found if b.page == page and not b.whole and not b.entry]
            sources_of_cells = list(_cells(path.read_text("utf-8")))
            if len(cells) != len(sources_of_cells):
                told = f"{len(cells)} cells on the page, {len(sources_of_cells)} in its source"
                wrong.setdefault(page, []).append(told)
            for block, source in zip(cells, sources_of_cells, strict=False):
                if block.own != source:
                    told = "the copy button copies another text than the source's"
                    wrong.setdefault(block.name, []).append(told)
    return wrong


def _about(block: Block, earlier: list[Block]) -> Iterator[str]:
    if block.whole:
        return
    if not block.program:
        yield "it has no program"
        return
    yield from _first_lines(block)
    yield from (f"the program contains {word!r}" for word in _MACHINERY if word in block.program)
    kept, _, code = block.program.rpartition(BOUNDARY + "\n")
    if not _is_own(ast.parse(code).body, ast.parse(block.own).body):
        yield "the program does not end with the block itself"
    if not block.entry:
        lines = iter("\n".join(other.own for other in earlier).splitlines())
        for line in (
            text
            for text in kept.splitlines()[1:]
            if text and not re.match(r"# (Meant|Prints|The blocks before)|from |import ", text)
        ):
            if line not in lines:  # an iterator: what was passed is gone, so the order counts
                yield f"the program has the line {line!r}, which no earlier block has at that place"
                return


def _first_lines(block: Block) -> Iterator[str]:
    header = _HEADER.match(block.program)
    if not header or header["page"] != block.page or header["jax"] != jax.__version__:
        yield f"the first line names not this page and JAX {jax.__version__}: {block.program.splitlines()[0]}"
        return
    imported = set()
    for node in ast.walk(ast.parse(block.program)):
        names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
        names += [node.module] if isinstance(node, ast.ImportFrom) else []
        imported |= {name.partition(".")[0] for name in names}
    needs = {*header["needs"].split(", ")} - {"Python alone"}
    if not needs <= _PACKAGES | _STARTED or not imported & _PACKAGES <= needs:
        yield f"it says that it needs {', '.join(sorted(needs))}, and imports {', '.join(sorted(imported))}"
    says = _said(block.program)
    if says != ([block.expected.error] if block.expected.error else []):
        yield f"it says that it is meant to fail with {says}, and the page shows {block.expected.error}"


def _said(program: str) -> list[str]:
    """Return the error classes that the first lines of a program announce."""
    lines = program.splitlines()[:4]
    return [line.removeprefix(_FAILS).rstrip(".") for line in lines if line.startswith(_FAILS)]


def _is_own(program: list[ast.stmt], own: list[ast.stmt]) -> bool:
    """Return whether statements are those of the block; a shown value is printed, a figure is shown."""
    given, wanted = [ast.dump(s) for s in program], [ast.dump(s) for s in own]
    ends = [ast.dump(s) for s in ast.parse("import matplotlib.pyplot as plt\nplt.show()").body]
    while given and given[-1] in ends and len(given) > len(wanted):
        given.pop()
    if given and wanted and given != wanted:
        match program[len(wanted) - 1], own[-1]:
            case ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[one])), ast.Expr(value=other):
                return given[:-1] == wanted[:-1] and ast.dump(one) == ast.dump(other)
    return given == wanted


def _cells(text: str) -> Iterator[str]:
    """Return the code of the visible cells of a page's source."""
    for cell in re.finditer(r"^(`{3,})\{code-cell\}[^\n]*\n(.*?)^\1\s*$", text, re.DOTALL | re.MULTILINE):
        options = re.match(r"(?::[\w-]+:[^\n]*\n)*", cell[2])[0]
        if not re.search(r"remove-(cell|input)", options):
            yield cell[2][len(options) :].strip("\n")
