"""Make the EPUB valid: its readers accept well-formed XML only, and files that its manifest describes."""

from __future__ import annotations

import re
from pathlib import Path

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.builders.epub3 import Epub3Builder

_SVG = "http://www.w3.org/2000/svg"
_ITEM = re.compile(r'<item [^>]*href="([^"]+\.xhtml)"[^>]*?(?= ?/>)')


class GuideEpubBuilder(Epub3Builder):
    """Sphinx's builder, with the drawings of the pages declared in the manifest."""

    def build_content(self) -> None:
        """Write the manifest."""
        super().build_content()
        content = Path(self.outdir, "content.opf")
        content.write_text(with_drawings_declared(content.read_text("utf-8"), Path(self.outdir)), "utf-8")


def with_drawings_declared(content: str, folder: Path) -> str:
    """Return a manifest in which every page with a drawing has the property `svg`."""

    def declared(item: re.Match[str]) -> str:
        drawn = "properties=" not in item[0] and "<svg" in folder.joinpath(item[1]).read_text("utf-8")
        return item[0] + ' properties="svg"' * drawn

    return _ITEM.sub(declared, content)


def well_formed(html: str) -> str:
    """Return HTML as XML: every tag closed, every attribute with a value, drawings with their name space.

    Scripts and drawings for a phone are left out, and so are links to data beside the site, which are not in the book.

    Example:
        >>> well_formed('<details open>a<br><a href="status.json">b</a></details>')
        '<details open="">a<br/>b</details>'
    """
    soup = BeautifulSoup(html, "html5lib")  # knows that SVG's names have capitals
    for drawing in soup.select("svg.phone"):  # the book's readers scale the other one
        drawing.decompose()
    for drawing in soup.find_all("svg"):
        drawing["xmlns"] = _SVG
    for script in soup.find_all("script"):
        script.decompose()
    for link in soup.select('a[href$=".json"]:not([href*=":"])'):
        link.unwrap()
    return soup.body.decode_contents() if soup.body else ""


def close_tags(app: Sphinx, doctree: nodes.document, _page: str) -> None:
    """Make the HTML of a page well-formed."""
    if app.builder.name == "epub":
        for node in list(doctree.findall(nodes.raw)):
            if "html" in node["format"].split():
                node.replace_self(nodes.raw("", well_formed(node.astext()), format="html"))


def leave_out_style(app: Sphinx, _page: str, _template: str, context: dict, _doctree: object) -> None:
    """Leave out MyST-NB's style, which is not copied into books."""
    if app.builder.name == "epub":
        context["css_files"] = [
            style for style in context["css_files"] if "mystnb." not in str(style.filename)
        ]
