"""What concerns the site as a whole: its search, and corrections of its theme."""

from __future__ import annotations

from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from _ext import build

from . import search_index, theme_fixes


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the search and the corrections with Sphinx."""
    app.add_node(HideCodeCellNode, override=True, html=(theme_fixes.visit_hidden, depart_HideCellInput))
    app.connect("builder-inited", search_index.replace_search)
    app.connect("build-finished", search_index.write)
    app.connect("build-finished", theme_fixes.remove_icon_library)
    return build.PARALLEL_SAFE
