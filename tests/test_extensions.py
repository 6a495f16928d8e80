"""The examples in the docstrings of the site's extensions run."""

import doctest
import importlib
from pathlib import Path

import pytest

DOCS = Path(__file__).parents[1] / "docs"
STARTED_BY_PATH = ("cli", "server")
MODULES = sorted(
    ".".join(path.relative_to(DOCS).with_suffix("").parts).removesuffix(".__init__")
    for path in (DOCS / "_ext").rglob("*.py")
    if path.stem not in STARTED_BY_PATH
)


@pytest.mark.parametrize("name", MODULES)
def test_the_examples_run(name):
    result = doctest.testmod(importlib.import_module(name), optionflags=doctest.NORMALIZE_WHITESPACE)
    assert result.failed == 0


def test_there_are_examples():
    modules = map(importlib.import_module, MODULES)
    assert sum(bool(test.examples) for m in modules for test in doctest.DocTestFinder().find(m)) > 30
