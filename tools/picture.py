"""Make the picture of the README, light and dark, from the bars of the built front page: `python tools/picture.py`."""

from __future__ import annotations

import re
import sys
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[1]
_THEMES = {"light": 'html[data-theme="light"]', "dark": 'html[data-theme="dark"]'}


def pictures(page: str, style: str) -> dict[str, str]:
    """Return the first figure of a page by theme, with the colours of the style sheet in it."""
    drawing = re.search(r"<svg .*?</svg>", page[page.index('class="guide-figure"') :], re.DOTALL)
    if drawing is None:
        raise ValueError("the page must have a figure; build it first: `nox -s docs -- index`.")
    found = {}
    for theme, selector in _THEMES.items():
        block = style[style.index(selector) :].partition("}")[0]
        colours = dict(re.findall(r"(--guide-figure-\w+): (#\w+);", block))
        text = drawing.group().replace("var(--pst-font-family-base, sans-serif)", "sans-serif")
        text = re.sub(r"var\((--[\w-]+)\)", lambda name: colours[name[1]], text)  # noqa: B023 -- used at once
        found[theme] = text.replace("<svg ", '<svg xmlns="http://www.w3.org/2000/svg" ', 1) + "\n"
    return found


def main() -> int:
    """Write the pictures."""
    page = (_ROOT / "docs" / "_build" / "html" / "index.html").read_text("utf-8")
    style = (_ROOT / "docs" / "_static" / "guide.css").read_text("utf-8")
    for theme, text in pictures(page, style).items():
        (_ROOT / ".github" / f"jit-{theme}.svg").write_text(text, "utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
