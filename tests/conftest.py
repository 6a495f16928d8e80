"""Let the tests import the site's extensions as `_ext`, and the tools."""

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tools")]
