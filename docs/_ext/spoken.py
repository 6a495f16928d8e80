"""Says to a screen reader what the theme only draws, or says in other words than it shows."""

from __future__ import annotations

from pathlib import Path

from sphinx.application import Sphinx

_WORDS = {
    # The summary's own words say what opens.
    '<summary aria-label="Toggle hidden content">': "<summary>",
    # A part of the navigation is opened by an arrow without words.
    '<summary><span class="toctree-toggle"': '<summary aria-label="Pages of this part"><span class="toctree-toggle"',
}


def spoken(html: str) -> str:
    """Return a page whose every opener has a name.

    Example:
        >>> spoken('<summary aria-label="Toggle hidden content"><p>Show the code</p></summary>')
        '<summary><p>Show the code</p></summary>'
    """
    for drawn, said in _WORDS.items():
        html = html.replace(drawn, said)
    return html


def _mend(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text("utf-8")
        if (mended := spoken(text)) != text:
            page.write_text(mended, "utf-8")


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the correction with Sphinx."""
    app.connect("build-finished", _mend)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
