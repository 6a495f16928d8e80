"""Takes a script of 1.5 MB off every page: the theme loads an icon library of which it shows a dozen icons.

The icons are drawn in docs/_static/guide.css instead. A test of the site sees when the theme begins to use others.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

_SCRIPT = re.compile(r"\s*<(?:script|link)[^>]*fontawesome\.js[^>]*>(?:</script>)?")


def _lighten(app: Sphinx, error: Exception | None) -> None:
    if error is not None or app.builder.format != "html":
        return
    for page in Path(app.outdir).rglob("*.html"):
        text = page.read_text("utf-8")
        if "fontawesome.js" in text:
            page.write_text(_SCRIPT.sub("", text), "utf-8")
    for script in Path(app.outdir).rglob("fontawesome*"):
        if script.is_file():
            script.unlink()


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the correction with Sphinx."""
    app.connect("build-finished", _lighten)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
