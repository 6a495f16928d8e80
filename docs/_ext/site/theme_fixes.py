"""Mends the pages where the theme makes them heavy, or mute to a screen reader.

The theme loads an icon library of 1.5 MB of which it shows a dozen icons: they are drawn in docs/_static/guide.css
instead, and a test of the site sees when the theme begins to use others.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

_ICONS = re.compile(r"\s*<(?:script|link)[^>]*fontawesome\.js[^>]*>(?:</script>)?")
_WORDS = {
    # The summary's own words say what opens.
    '<summary aria-label="Toggle hidden content">': "<summary>",
    # A part of the navigation is opened by an arrow without words.
    '<summary><span class="toctree-toggle"': '<summary aria-label="Pages of this part"><span class="toctree-toggle"',
    # The button's own words say its keys as well.
    'search-button-field search-button__button pst-js-only" title="Search" aria-label="Search"': (
        'search-button-field search-button__button pst-js-only" title="Search"'
    ),
    # What stands beside the text, the logo as well, belongs to a landmark.
    '<div id="pst-primary-sidebar" class="bd-sidebar-primary bd-sidebar">': (
        '<div id="pst-primary-sidebar" class="bd-sidebar-primary bd-sidebar" role="complementary" aria-label="The guide">'
    ),
}


def mended(html: str) -> str:
    """Return a page without the icon library, whose every opener has a name.

    Example:
        >>> mended('<summary aria-label="Toggle hidden content"><p>Show the code</p></summary>')
        '<summary><p>Show the code</p></summary>'
    """
    html = _ICONS.sub("", html)
    for written, better in _WORDS.items():
        html = html.replace(written, better)
    return html


def _mend(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text("utf-8")
        if (better := mended(text)) != text:
            page.write_text(better, "utf-8")
    for script in Path(app.outdir).rglob("fontawesome*"):
        if script.is_file():
            script.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the corrections with Sphinx."""
    app.connect("build-finished", _mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
