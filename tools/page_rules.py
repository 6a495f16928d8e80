"""Check the rules that can be read off the source of the pages: `python tools/page_rules.py`.

Needs the standard library only, so that it runs before anything is installed.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import unmarked
import words

_DOCS = Path(__file__).resolve().parents[1] / "docs"
_FENCE = re.compile(r"^(`{3,}|:{3,})(.*)$")
_FILLER = re.compile(r"\b(simply|just|obviously|of course|easily|blazing\w*|powerful)\b", re.IGNORECASE)
_MAGIC = re.compile(r"^\s*[%!]")
_LESSON_MARKS = {"question": "opens with a question", "takeaway": "closes with a takeaway"}
_WIDEST = 78  # columns of code that a page of 1300 pixels shows whole
_CODE = re.compile(r"\{code-cell\}|python")
_FOLDED = re.compile(r"tags: .*(?:hide|remove)-(?:input|cell)")
_MOST_CELLS = 24  # visible ones; beyond that a page is two pages
_HEADING = re.compile(r"^#+ (.*)$", re.MULTILINE)
# A row of a tutorial and a question's place, each on a line of its file.
_PLACES = {
    "sources.json": re.compile(r'"page": "([^"]+)", "heading": ("(?:[^"\\]|\\.)+")'),
    "questions.json": re.compile(r'^ *"([a-z0-9/-]+)#([^"]+)"'),
}


def problems(path: Path) -> list[tuple[int, str]]:
    """Return line and message for each broken rule of one page."""
    found: list[tuple[int, str]] = []
    in_code, shown, visible_cells, marks = "", False, 0, set()
    for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
        fence = _FENCE.match(line)
        if fence and fence[1].startswith("`"):
            if not in_code:
                in_code, shown = fence[1], _CODE.match(fence[2]) is not None
                visible_cells += "{code-cell}" in fence[2]
            elif line.strip() == in_code:
                in_code = ""
        elif fence:
            marks.update(mark for mark in _LESSON_MARKS if f"{{{mark}}}" in fence[2])
        elif in_code:
            if _MAGIC.match(line):
                found.append((number, "a magic or shell line: a copied program cannot contain it."))
            shown = shown and not _FOLDED.search(line)
            if shown and len(line) > _WIDEST and not line.startswith(":"):
                found.append((number, f"{len(line)} columns of code: a page shows {_WIDEST}."))
            visible_cells -= line.strip() in ("tags: [remove-cell]", ":tags: [remove-cell]")
        elif word := _FILLER.search(line):
            found.append((number, f"{word.group()!r}: say it without."))
    if path.parent.name == "learn" and path.name != "index.md":
        found += [
            (1, f"a page of the path {rule}.") for mark, rule in _LESSON_MARKS.items() if mark not in marks
        ]
    found += [
        (line, f"a rule without a mark: cite a claim, link to its source, or narrow it: {sentence}")
        for line, sentence in unmarked.rules(path)
    ]
    if visible_cells > _MOST_CELLS:
        found.append((1, f"{visible_cells} cells: a page has at most {_MOST_CELLS}."))
    return found


def moved(docs: Path = _DOCS) -> Iterator[tuple[Path, int, str]]:
    """Yield the places in docs/_data that name a heading which their page does not have."""
    for name, pattern in _PLACES.items():
        path = docs / "_data" / name
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1):
            for page, named in pattern.findall(line):
                heading = json.loads(named) if named.startswith('"') else named
                if _slug(heading) not in _slugs(docs / f"{page}.md"):
                    yield path, number, f"{page}.md has no heading {heading!r}: was it renamed?"


@cache
def _slugs(page: Path) -> frozenset[str]:
    text = page.read_text("utf-8") if page.exists() else ""
    return frozenset(map(_slug, _HEADING.findall(text)))


def _slug(heading: str) -> str:
    """Return the anchor that MyST gives a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def main() -> int:
    """Print every broken rule of every page; return 1 if there is one."""
    pages = [p for p in sorted(_DOCS.rglob("*.md")) if not {"_build", "_data"} & set(p.parts)]
    broken = [(page, *problem) for page in pages for problem in problems(page)]
    broken += [(path, *problem) for path in words.files() for problem in words.problems(path)]
    broken += moved()
    for page, line, message in broken:
        print(f"{page.relative_to(_DOCS.parent)}:{line}: {message}", file=sys.stderr)
    print(f"page rules: {len(pages)} pages, {len(broken)} problems")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
