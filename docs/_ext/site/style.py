"""One style sheet for the site: those of the theme, of the extensions and of the guide, less what no page uses.

The theme's alone has 370 kB for 60 that the pages need. A rule stays if a page or a script names each class and each
id of it; the theme's icon font, which no page shows, goes.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Iterator
from functools import cache
from importlib.metadata import version
from pathlib import Path

from sphinx.application import Sphinx

from _ext import DOCS

FILE = "_static/styles/site.css"
_FIRST = ("basic.css", "styles/pydata-sphinx-theme.css")  # as the theme's own first file imports them
# Text in quotes and addresses, in which braces mean nothing, and what parts rules.
_TOKENS = re.compile(r""""(?:\\.|[^"\\])*"|'(?:\\.|[^'\\])*'|url\((?!["'])[^)]*\)|[{};]""")
_WITH_STYLE = ("html", "dirhtml", "singlehtml")  # a book has its own
_THEMES = ("sphinx", "pydata-sphinx-theme", "sphinx-book-theme", "sphinx-design", "myst-nb")


@cache
def digest() -> str:
    """Return a short digest of all that the style sheet is made of, and of the scripts."""
    files = (path for path in sorted((DOCS / "_static").rglob("*")) if path.suffix in (".css", ".js"))
    own = [path.read_bytes() for path in files]
    parts = [Path(__file__).read_bytes(), *own, *(version(name).encode() for name in _THEMES)]
    return hashlib.sha256(b"".join(parts)).hexdigest()[:8]


def name(_app: Sphinx, _page: str, _template: str, context: dict, _doctree: object) -> None:
    """Tell the template which version of the style sheet a page needs."""
    context["guide_style"] = digest()


def write(app: Sphinx, failure: Exception | None) -> None:
    """Write the style sheet when all pages are written."""
    if failure or app.builder.name not in _WITH_STYLE or getattr(app.builder, "idle", False):
        return
    static = Path(app.outdir, "_static")
    sheets = sorted(app.builder._css_files, key=lambda sheet: sheet.priority)  # type: ignore[attr-defined]
    own = [str(sheet.filename).removeprefix("_static/") for sheet in sheets if sheet.filename]
    texts = [_moved((static / file).read_text("utf-8"), file) for file in dict.fromkeys([*_FIRST, *own])]
    words = used(Path(app.outdir), Path(app.doctreedir, f"{app.builder.name}-style.json"))
    Path(app.outdir, FILE).write_text("\n".join(purged(text, words) for text in texts) + "\n", "utf-8")


def _moved(text: str, file: str) -> str:
    """Return a style sheet whose addresses of files fit the folder of the new one."""
    folder = file.rpartition("/")[0]
    if folder == "styles":
        return text
    return re.sub(r"url\((['\"]?)(?!data:|#|/|['\"])", rf"url(\1../{folder + '/' if folder else ''}", text)


def used(folder: Path, memory: Path) -> set[str]:
    """Return the classes and ids of all pages, and the words of all scripts, which add classes.

    `memory` is a file of those that earlier builds found, so that only newer pages are read.
    """
    known = json.loads(memory.read_text("utf-8")) if memory.exists() else {}
    found = set(known.get(str(folder), ()))
    since = memory.stat().st_mtime_ns if found else 0
    for path in folder.rglob("*.html"):
        if path.stat().st_mtime_ns < since:
            continue
        for value in re.findall(r'\b(?:class|id)="([^"]*)"', path.read_text("utf-8")):
            found |= set(value.split())
    for path in (folder / "_static").rglob("*.js"):
        if path.parent.name != "claims":
            found |= set(re.findall(r"[\w-]+", path.read_text("utf-8", "replace")))
    memory.write_text(json.dumps({str(folder): sorted(found)}), "utf-8")
    return found


def purged(text: str, words: set[str]) -> str:
    r"""Return a style sheet without comments and without the rules that nothing can match.

    Example:
        >>> purged("/* all */ .a, .b > p { x: 1 } @media print { #c { y: 2 } } .a:not(.d) { z: 3 }", {"a"})
        '.a{x: 1}\n.a:not(.d){z: 3}'
    """
    return "\n".join(_kept(re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL), words))


def _kept(text: str, words: set[str]) -> Iterator[str]:
    for head, body in _rules(text):
        if body is None:
            if not head.startswith("@charset"):
                yield f"{head};"
        elif head.startswith(("@media", "@supports", "@container", "@layer")):
            if inner := "\n".join(_kept(body, words)):
                yield f"{head}{{{inner}}}"
        elif head.startswith("@"):
            if "Font Awesome" not in body:
                yield f"{head}{{{_tight(body)}}}"
        elif kept := [one for one in _split(head) if _matches(one, words)]:
            yield f"{','.join(kept)}{{{_tight(body)}}}"


def _rules(text: str) -> Iterator[tuple[str, str | None]]:
    """Yield what stands before each block, and the block; None for a statement without one."""
    start = i = 0
    for place in _TOKENS.finditer(text):
        mark = place.group()
        if place.start() < i or mark not in "{};":
            continue
        head = " ".join(text[start : place.start()].split())
        if mark == "{":
            end = _closing(text, place.end())
            yield head, text[place.end() : end]
            start = i = end + 1
        elif mark == ";":
            if head:
                yield head, None
            start = place.end()


def _closing(text: str, at: int) -> int:
    depth = 1
    for place in _TOKENS.finditer(text, at):
        depth += {"{": 1, "}": -1}.get(place.group(), 0)
        if not depth:
            return place.start()
    return len(text)


def _split(selectors: str) -> list[str]:
    """Return the selectors of a list; a comma within parentheses does not part them.

    Example:
        >>> _split("a, :is(b, c) d")
        ['a', ':is(b, c) d']
    """
    return [
        one.strip() for one in re.findall(r"(?:\((?:[^()]|\([^()]*\))*\)|\[[^\]]*\]|[^,(\[])+", selectors)
    ]


def _matches(selector: str, words: set[str]) -> bool:
    """Return whether each class and each id that a selector asks for is among the words."""
    asked = re.sub(r":(?:not|is|where|has)\((?:[^()]|\((?:[^()]|\([^()]*\))*\))*\)|\[[^\]]*\]", "", selector)
    return all(name.replace("\\", "") in words for name in re.findall(r"[.#]((?:\\.|[\w-])+)", asked))


def _tight(body: str) -> str:
    """Return declarations in one line.

    Example:
        >>> _tight(" margin: 0  1px; color: red; ")
        'margin: 0 1px;color: red'
    """
    return re.sub(r"\s*;\s+", ";", " ".join(body.split())).strip("; ")
