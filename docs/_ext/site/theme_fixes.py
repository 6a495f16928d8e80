"""Corrections of the theme and of MyST-NB where a page would be heavy, or mute to a screen reader.

What a template can correct is in docs/_templates/layout.html. The theme's icon library of 1.5 MB is left out: the
dozen icons that it shows are drawn in docs/_static/guide.css, and a test of the site reports when the theme begins
to use others.
"""

from __future__ import annotations

import html
import shutil
from pathlib import Path

from jinja2 import FileSystemBytecodeCache
from myst_nb.sphinx_ import HideCodeCellNode
from myst_nb.sphinx_ext import add_global_html_resources
from sphinx.application import Sphinx
from sphinx.writers.html5 import HTML5Translator


def visit_hidden(translator: HTML5Translator, node: HideCodeCellNode) -> None:
    """Write the summary of a folded cell as MyST-NB does, but without an `aria-label`: its words say what opens."""
    tag = "span" if translator.builder.name == "epub" else "p"  # EPUB forbids a paragraph in a summary
    labels = (
        f'<{tag} class="{state} admonition-title">{html.escape(node[prompt])}</{tag}>\n'
        for state, prompt in (("collapsed", "prompt_show"), ("expanded", "prompt_hide"))
    )
    classes = " ".join(node["classes"])
    translator.body += [f'<details class="admonition hide {classes}">\n<summary>\n', *labels, "</summary>\n"]


def copy_style(app: Sphinx) -> None:
    """Copy MyST-NB's style before the pages are written, whose links hold its digest; MyST-NB copies it after them."""
    if app.builder.format == "html":
        Path(app.outdir, "_static").mkdir(parents=True, exist_ok=True)
        add_global_html_resources(app, None)


def keep_templates(app: Sphinx) -> None:
    """Keep the compiled templates for the next build: those of the theme take longer than a page."""
    environment = getattr(getattr(app.builder, "templates", None), "environment", None)
    if environment is not None:
        Path(app.doctreedir).mkdir(parents=True, exist_ok=True)
        environment.bytecode_cache = FileSystemBytecodeCache(str(app.doctreedir))


def remove_icon_library(app: Sphinx, error: Exception | None) -> None:
    """Remove the theme's icon library from the built site."""
    if error is None and app.builder.format == "html":
        for path in Path(app.outdir).rglob("fontawesome*.*"):
            path.unlink()
        shutil.rmtree(Path(app.outdir, "_static", "vendor"), ignore_errors=True)  # its fonts
