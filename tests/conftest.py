"""Let the tests import the site's extensions as `_ext`, and the tools; set how many examples Hypothesis tries."""

import os
import sys
from pathlib import Path

from hypothesis import settings

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tools")]

# The same examples in every run, so that a failure comes from the change; nothing is written to the folder.
FIXED = settings(deadline=None, derandomize=True, database=None)
settings.register_profile("dev", FIXED, max_examples=25)
settings.register_profile("ci", FIXED, max_examples=600)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
