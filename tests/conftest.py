"""Lets the tests import the site's extensions as `_ext`."""

import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))
