"""The site's own Sphinx extensions, in folders by what they do to a page."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
DATA = DOCS / "_data"
