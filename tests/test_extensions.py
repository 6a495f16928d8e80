"""The examples in the docstrings of the site's extensions run."""

import doctest
import importlib
from pathlib import Path

import pytest

EXTENSIONS = Path(__file__).parents[1] / "docs" / "_ext"
NAMES = sorted(path.stem for path in EXTENSIONS.glob("[a-z]*.py"))


@pytest.mark.parametrize("name", NAMES)
def test_the_examples_run(name):
    result = doctest.testmod(
        importlib.import_module(f"_ext.{name}"), optionflags=doctest.NORMALIZE_WHITESPACE
    )
    assert result.failed == 0
