"""Sphinx settings of the guide. Unusual ones carry their reason."""

import atexit
import doctest
import gc
import os
import re
import sys
from pathlib import Path
from urllib.parse import urlsplit

_HERE = Path(__file__).resolve().parent
sys.path[:0] = [str(_HERE), str(_HERE.parent / "tools")]  # for docs/_ext and tools/repository.py

import repository  # noqa: E402
from _ext import build  # noqa: E402

# Sphinx makes millions of objects and keeps them: looking for garbage among them is a fifth of a small build.
gc.set_threshold(200_000, 20, 100)
atexit.register(gc.freeze)

build.start_jax()  # while Sphinx starts; a build without changes needs nothing else of JAX

project = "The JIT guide"
author = "The JIT guide's authors"
copyright = "2026, The JIT guide's authors"
# Read, not imported: with JAX behind it, that would be a third of the time of a build without changes.
version = release = re.search(
    r'__version__ = "(.+)"', (_HERE.parent / "jitguide/__init__.py").read_text("utf-8")
)[1]
language = "en"

extensions = [
    "_ext.unused",  # before MyST-NB, which it keeps from a slow import
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.doctest",
    "sphinx.ext.intersphinx",
    "sphinx.ext.napoleon",
    "sphinx_design",
    "notfound.extension",
    "_ext.execution",
    "_ext.programs",
    "_ext.claims",
    "_ext.directives",
    "_ext.downloads",
    "_ext.site",
]

# Pages ------------------------------------------------------------------------------------------------------
exclude_patterns = ["_build", "_ext", "_ipython", "_data", "_templates"]
nb_execution_mode = "off"  # _ext.execution runs the pages; MyST-NB only renders them
nb_custom_formats = {".md": ["_ext.execution.read", {}, False]}
guide_store = os.environ.get("JITGUIDE_STORE", str(_HERE.parent / "build" / "execution"))
nb_render_error_lexer = "text"  # the build keeps the message only, which no traceback lexer understands
nb_merge_streams = True  # one block for what a cell prints
nb_code_prompt_show = "Show the code"
nb_code_prompt_hide = "Hide the code"
nb_render_markdown_format = "myst"
myst_enable_extensions = ["colon_fence", "deflist", "attrs_inline", "attrs_block", "substitution"]
myst_heading_anchors = 3
suppress_warnings = []  # nothing is suppressed: every warning is an error

# References -------------------------------------------------------------------------------------------------
nitpicky = True
nitpick_ignore_regex = [
    (
        r"py:.*",
        r"(jax|jaxlib|numpy|np|matplotlib|collections|contextlib|types|typing)\b.*",
    ),  # their docs own those names
    (r"py:.*", r"jitguide\._.*"),  # parts of results, described where they stand
    (r"py:.*", r"(optional|callable|Axes|Callable|Mapping|Sequence|Any|T)"),  # words of annotations
]
# The inventory is a list of the names that the guide links to: the build is the same online and offline.
intersphinx_mapping = {"jax": ("https://docs.jax.dev/en/latest/", "_data/jax.inv")}
autodoc_typehints = "none"  # signatures show the annotations already
autodoc_member_order = "bysource"
linkcheck_timeout = 15
linkcheck_retries = 2
linkcheck_workers = 4

doctest_default_flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE  # as in the package's own tests

# Books ------------------------------------------------------------------------------------------------------
epub_show_urls = "no"
# For browsers. Readers of books have fonts of their own.
epub_exclude_files = [
    "search.xhtml",
    "status.json",  # of the build before, as is the next
    ".buildinfo.bak",
    "_static/search/minisearch.LICENSE.txt",
    *(f"_static/fonts/{name}" for name in ("inter.woff2", "OFL.txt")),
]

# Looks ------------------------------------------------------------------------------------------------------
html_theme = "sphinx_book_theme"
html_title = "JAX jit guide"  # ends the title of every page: people search for "JAX"
html_static_path = ["_static"]
templates_path = ["_templates"]
html_css_files = ["guide.css", "chart.css", "cheat-sheet.css"]
epub_css_files = [*html_css_files, "book.css"]
html_sidebars = {
    "**": ["head.html", "sbt-sidebar-nav.html"],
}
html_logo = "_static/logo.svg"
html_favicon = "_static/logo.svg"
html_show_sourcelink = False
html_copy_source = False
html_last_updated_fmt = None
# The address of the repository, set in pyproject.toml or not yet; its branch gh-pages holds the published site.
guide_repository = repository.address()
html_baseurl = os.environ.get("READTHEDOCS_CANONICAL_URL") or repository.site(guide_repository)
html_context = {"guide_repository": guide_repository}  # for "Report an error on this page"
html_theme_options = {
    "use_download_button": False,
    "use_fullscreen_button": False,
    "article_header_start": ["toggle-primary-sidebar.html", "home-link.html"],
    "navbar_start": [],  # the sidebar holds logo and search; a second bar on top would repeat them
    "navbar_center": [],
    "navbar_end": [],
    "navbar_persistent": [],
    "show_navbar_depth": 1,
    "show_toc_level": 2,
    "secondary_sidebar_items": {"**": ["page-toc.html", "take-away.html"], "index": []},
    "collapse_navbar": True,
    "toc_title": "On this page",
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
    "logo": {"text": "JAX jit guide", "alt_text": "JAX jit guide, home"},
}
# A page that is missing may be missing at any depth, so its links begin with the address of the site.
notfound_urls_prefix = urlsplit(html_baseurl).path or "/"
notfound_context = {
    "title": "Page not found",
    "pagetitle": "Page not found",  # the printed page's heading
    "body": f"""
<h1>Page not found</h1>
<p>Nothing has this address. The page may have moved.</p>
<ul>
<li><a href="{notfound_urls_prefix}index.html">The start of the guide</a></li>
<li><a href="{notfound_urls_prefix}howto/index.html">When something goes wrong: find what you see</a></li>
<li><a href="{notfound_urls_prefix}search.html">Search</a></li>
</ul>
""",
}
