"""Lets the tests import the site's extensions as `_ext`, and says how many examples Hypothesis tries."""

import os
import sys
from pathlib import Path

from hypothesis import settings

sys.path.insert(0, str(Path(__file__).parents[1] / "docs"))

# The same examples in every run, so that a failure is one of the change; nothing is written to the folder.
FIXED = settings(deadline=None, derandomize=True, database=None)
settings.register_profile("dev", FIXED, max_examples=25)
settings.register_profile("ci", FIXED, max_examples=600)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))
