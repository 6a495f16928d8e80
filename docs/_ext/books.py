"""Makes what pages hold for browsers fit for an EPUB, whose readers accept well-formed XML only."""

from __future__ import annotations

from bs4 import BeautifulSoup
from docutils import nodes
from sphinx.application import Sphinx

_SVG = "http://www.w3.org/2000/svg"


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the extension with Sphinx."""
    app.connect("doctree-resolved", _mend)
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
