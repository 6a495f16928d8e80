"""The public surface: complete, importable, documented."""

import importlib
import re
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest

import jitguide

TESTS = Path(__file__).parent
API_PAGE = TESTS.parent / "docs" / "reference" / "api.md"


@pytest.mark.parametrize("name", jitguide.__all__)
def test_every_public_name_is_there_and_documented(name):
    value = getattr(jitguide, name)
    assert value.__doc__, f"{name} has no docstring"
    assert "Example:" in value.__doc__ or isinstance(value, type)
    assert name in dir(jitguide)


def test_an_unknown_name_is_told_with_the_known_ones():
    with pytest.raises(AttributeError, match=r"has no attribute 'compares'; it has .*compare"):
        _ = jitguide.compares


def test_type_checkers_see_the_same_names():
    source = importlib.import_module("pathlib").Path(jitguide.__file__).read_text()
    block = source.split("if TYPE_CHECKING:")[1].split("__version__")[0]
    assert sorted(n for n in jitguide.__all__ if f" {n} as {n}" in block) == jitguide.__all__


def test_importing_the_package_imports_no_instrument():
    program = "import sys, jitguide; print(*sys.modules)"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    imported = {name for name in run.stdout.split() if name.startswith("jitguide.")}
    assert {name for name in imported if name.count(".") > 1} == set()  # the instruments are in folders


def test_the_api_page_documents_every_public_name_once_and_no_other():
    documented = defaultdict(list)
    module = ""
    for directive, name in re.findall(r"^\.\. (\w+):: ([\w.]+)$", API_PAGE.read_text("utf-8"), re.MULTILINE):
        if directive == "currentmodule":
            module = name
        else:
            documented[module].append(name)
    assert sorted(documented.pop("jitguide")) == jitguide.__all__
    for name, names in documented.items():
        assert sorted(names) == sorted(importlib.import_module(name).__all__)


def test_a_very_long_name_leaves_each_result_in_eighty_columns():
    def f(x):
        return jnp.sin(x) + 1

    f.__name__ = f.__qualname__ = "a_name_" + 90 * "x"
    x, jitted = jnp.ones(8), jax.jit(f)
    watched = jitguide.watch(jitted)
    watched(x), watched(jnp.ones(9)), watched(x.astype(int))
    with jitguide.watch() as block:
        jax.jit(f)(x)
    names = {f.__name__: jitted, "b": f}
    results = [
        watched,
        block,
        jitguide.check(jitted, x),
        jitguide.stages(jitted, x),
        jitguide.phases(jitted, x),
        jitguide.roofline(jitted, x),
        jitguide.compare(names, x, budget=0.05),
        jitguide.scaling(names, lambda n: (jnp.ones(n),), [8, 16], budget=0.05),
    ]
    assert [line for result in results for line in repr(result).splitlines() if len(line) > 80] == []
    assert "a_name_xx" in repr(watched)
