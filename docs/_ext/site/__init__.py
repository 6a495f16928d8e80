"""What concerns the site as a whole: its search, its style sheet, its metadata, and corrections of its theme."""

from __future__ import annotations

from myst_nb.sphinx_ import HideCodeCellNode, depart_HideCellInput
from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from _ext import build

from . import metadata, scripts, search_index, strict, style, theme_fixes, updates


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the search and the corrections with Sphinx."""
    app.add_node(HideCodeCellNode, override=True, html=(theme_fixes.visit_hidden, depart_HideCellInput))
    app.connect("builder-inited", search_index.replace_search)
    app.connect("builder-inited", theme_fixes.copy_style)
    app.connect("builder-inited", theme_fixes.keep_templates)
    app.connect("doctree-read", search_index.note, priority=900)  # after all that changes a page
    app.connect("build-finished", search_index.write)
    app.connect("build-finished", theme_fixes.remove_icon_library)
    app.connect("html-page-context", metadata.tell)
    app.connect("html-page-context", metadata.name_neighbours)
    app.connect("html-page-context", scripts.add)
    app.connect("html-page-context", strict.offer)
    app.connect("html-page-context", style.name)
    app.connect("build-finished", style.write, priority=900)  # after all that writes files
    app.add_builder(updates.SiteBuilder, override=True)
    app.add_config_value("guide_preview", False, "", [bool, str])
    found = updates.Updates(app)
    app.connect("env-get-outdated", found.broken)
    app.connect("env-updated", found.outdated, priority=900)  # after all that brings facts
    app.connect("html-page-context", found.show)
    app.connect("build-finished", found.finish)
    # With other rows, the pages that an earlier build has read are read again.
    return {"env_version": search_index.VERSION, **build.PARALLEL_SAFE}
