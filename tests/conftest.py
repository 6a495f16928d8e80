"""Let the tests import the site's extensions as `_ext`, and the tools; set how many examples Hypothesis tries."""

import gc
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import settings

ROOT = Path(__file__).parents[1]
sys.path[:0] = [str(ROOT / "docs"), str(ROOT / "tools")]

# JAX makes many objects that stay: with Python's own threshold, looking for garbage among them takes an eighth of the time.
gc.set_threshold(100_000, 20, 100)

# What a measurement must hold in a test, it holds with a fifth of the time too. Programs that tests start inherit it.
os.environ.setdefault("JITGUIDE_BUDGET_SCALE", "0.2")

# The same examples in every run, so that a failure comes from the change; nothing is written to the folder.
FIXED = settings(deadline=None, derandomize=True, database=None)
settings.register_profile("dev", FIXED, max_examples=25)
settings.register_profile("ci", FIXED, max_examples=600)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "dev"))


def pytest_addoption(parser):
    parser.addoption(
        "--recorded-claims", action="store_true", help="leave out claims that are recorded on this JAX"
    )


def pytest_report_header(config):
    if config.getoption("--recorded-claims"):
        count = len(_recorded_claims().current())
        return f"{count} claims are recorded on this JAX and unchanged: left out, `nox -s tests -- --claims` runs them"
    return None


def pytest_collection_modifyitems(config, items):
    if config.getoption("--recorded-claims"):
        items[:], left_out = _recorded_claims().split(items)
        config.hook.pytest_deselected(items=left_out)


def _recorded_claims():
    sys.path.append(str(ROOT / "tests" / "claims"))
    return importlib.import_module("recorded")


@pytest.fixture(scope="session")
def sphinx():
    """Return a function that runs Sphinx with these arguments, and returns its exit code and what it printed."""
    program = str(ROOT / "tests" / "minisites" / "builds.py")
    with subprocess.Popen(
        [sys.executable, program],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={**os.environ, "NO_COLOR": "1"},
    ) as server:

        def build(*arguments):
            print(json.dumps([str(argument) for argument in arguments]), file=server.stdin, flush=True)
            return json.loads(server.stdout.readline())

        yield build


@pytest.fixture(autouse=True)
def _coverage_goes_on():
    """Give the trace function back: a debugger that a test starts takes it from the measurement of coverage."""
    before = sys.gettrace()
    yield
    if sys.gettrace() is not before:
        sys.settrace(before)
