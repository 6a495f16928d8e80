"""Makes what pages hold for browsers fit for an EPUB, whose readers accept well-formed XML only."""

from __future__ import annotations

import re
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.application import Sphinx

_SVG = "http://www.w3.org/2000/svg"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("doctree-resolved", _mend)
    app.connect("builder-inited", _mend_pages_at_the_end)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def _mend(app: Sphinx, doctree: nodes.document, _page: str) -> None:
    if app.builder.name != "epub":
        return
    for node in list(doctree.findall(nodes.raw)):
        if "html" in node["format"].split():
            node.replace_self(nodes.raw("", well_formed(node.astext()), format="html"))


def well_formed(html: str) -> str:
    """Return HTML as XML: every tag closed, every attribute with a value, drawings with their name space.

    Example:
        >>> well_formed("<details open>a<br>b</details>")
        '<details open="">a<br/>b</details>'
    """
    soup = BeautifulSoup(html, "html5lib")  # knows that SVG's names have capitals
    for drawing in soup.find_all("svg"):
        drawing["xmlns"] = _SVG
    for script in soup.find_all("script"):
        script.decompose()
    return soup.body.decode_contents()


def _mend_pages_at_the_end(app: Sphinx) -> None:
    """Mend the written pages before the list of the book's files is made, and that list after."""
    if app.builder.name != "epub":
        return
    folder, write_list = Path(app.outdir), app.builder.build_content

    def build_content() -> None:
        for page in folder.rglob("*.xhtml"):
            page.write_text(mended(page.read_text("utf-8")), "utf-8")
        write_list()
        content = folder / "content.opf"
        content.write_text(_with_drawings_declared(content.read_text("utf-8"), folder), "utf-8")

    app.builder.build_content = build_content


# MyST-NB's style is not copied into books; data beside the site is not in them; and a summary holds no paragraph.
_STYLE_OF_MYST_NB = re.compile(r"\s*<link [^>]*/mystnb\.[^>]*>")
_DATA_LINK = re.compile(r'<a [^>]*href="[^":]*\.json"[^>]*>(.*?)</a>')
_SUMMARY = re.compile(r"<summary.*?</summary>", re.DOTALL)
_ITEM = re.compile(r'<item [^>]*href="([^"]+\.xhtml)"[^>]*?(?= ?/>)')


def mended(page: str) -> str:
    """Return a page of the book without what the rules of EPUB forbid.

    Example:
        >>> mended('<summary><p class="expanded">Hide</p></summary><a href="status.json">data</a>')
        '<summary><span class="expanded">Hide</span></summary>data'
    """
    page = _DATA_LINK.sub(r"\1", _STYLE_OF_MYST_NB.sub("", page))
    return _SUMMARY.sub(lambda found: re.sub(r"(</?)p(?=[ >])", r"\1span", found[0]), page)


def _with_drawings_declared(content: str, folder: Path) -> str:
    def declared(item: re.Match) -> str:
        drawn = "properties=" not in item[0] and "<svg" in folder.joinpath(item[1]).read_text("utf-8")
        return item[0] + ' properties="svg"' * drawn

    return _ITEM.sub(declared, content)
