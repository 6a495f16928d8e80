"""Files to take away: each page as Markdown, notebook and Python file, the site as EPUB, PDF and llms.txt, and the package."""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from _ext import build

from . import cheat_sheet_pdf, epub, llms_txt, page_files, wheel


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register what writes the files with Sphinx."""
    app.setup_extension("sphinx_markdown_builder")
    app.add_config_value("guide_repository", "", "html", [str])
    app.add_config_value("guide_branch", "gh-pages", "html", [str])
    app.connect("html-page-context", page_files.write)
    # The PDF comes after the page's other files are listed.
    app.connect("html-page-context", cheat_sheet_pdf.write, priority=600)
    app.add_builder(epub.GuideEpubBuilder, override=True)
    app.connect("doctree-resolved", epub.close_tags)
    app.connect("html-page-context", epub.leave_out_style)
    app.connect("doctree-read", llms_txt.note, priority=900)  # after all that changes a page
    app.connect("build-finished", llms_txt.write)
    app.add_role("wheel", wheel.Wheel())
    app.connect("doctree-resolved", wheel.link)
    app.connect("build-finished", wheel.write)
    return build.PARALLEL_SAFE
