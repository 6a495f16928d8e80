"""The package as a wheel beside the pages, so that readers of a hosted guide can install it without a clone."""

from __future__ import annotations

import hashlib
import posixpath
import subprocess
import sys

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.docutils import SphinxRole

import jitguide
from _ext import ROOT, build

_NAME = f"jitguide-{jitguide.__version__}-py3-none-any.whl"
_CLASS = "guide-wheel"
_BUILD = "import hatchling.build, sys; print(hatchling.build.build_wheel(sys.argv[1]))"


class Wheel(SphinxRole):
    """Code in which `NAME` is the name of the file; the name alone links to it."""

    def run(self) -> tuple[list[nodes.Node], list[nodes.system_message]]:
        """Return the code; `link` makes the links, because only sites of HTML pages have the file."""
        self.env.metadata[self.env.docname][_CLASS] = True
        classes = [_CLASS] if self.text == "NAME" else []
        return [nodes.literal("", self.text.replace("NAME", _NAME), classes=classes)], []


def link(app: Sphinx, doctree: nodes.document, page: str) -> None:
    """Turn the names of the wheel on a page into links."""
    if not build.is_site(app):
        return
    here = posixpath.dirname(app.builder.get_target_uri(page)) or "."
    for name in list(
        doctree.findall(lambda node: _CLASS in getattr(node, "attributes", {}).get("classes", ()))
    ):
        target = posixpath.relpath(_NAME, here)
        name.replace_self(nodes.reference("", "", name.deepcopy(), internal=False, refuri=target))


def write(app: Sphinx, error: Exception | None) -> None:
    """Write the wheel if a page links to it and the package has changed."""
    linked = any(_CLASS in found for found in app.env.metadata.values())
    if error or not linked or not build.is_site(app):
        return
    parts = [path for path in sorted((ROOT / "jitguide").rglob("*")) if path.suffix not in ("", ".pyc")]
    parts += [ROOT / name for name in ("pyproject.toml", "README.md", "LICENSE", "tools/repository.py")]
    digest = hashlib.sha256()
    for path in parts:
        digest.update(str(path.relative_to(ROOT)).encode() + b"\0" + path.read_bytes())
    stamp = app.doctreedir / "wheel.txt"
    known = stamp.read_text("utf-8") if stamp.exists() else ""
    if known == digest.hexdigest() and (app.outdir / _NAME).exists():
        return
    for old in app.outdir.glob("jitguide-*.whl"):
        old.unlink()
    command = [sys.executable, "-c", _BUILD, str(app.outdir)]
    built = subprocess.run(command, cwd=ROOT, check=False, capture_output=True, text=True)
    if built.returncode:
        raise ExtensionError(f"The wheel of jitguide could not be built: {built.stderr.strip()[-500:]}")
    stamp.write_text(digest.hexdigest(), "utf-8")
