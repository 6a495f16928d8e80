"""What the guide says of each option of JAX holds: every option is listed once, and every verdict is run."""

import contextlib
import re
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import pytest
from _ext.directives import flags

PAGE = Path(__file__).parents[1] / "docs" / "reference" / "flags.md"
OPTIONS = {
    name: option
    for group, names in flags.decisions().items()
    if group != "waived"
    for name, option in names.items()
}
HERE = [name for name in OPTIONS if name in jax.config.values]
# Values other than the default, where flipping a boolean or taking the next number makes no sense.
VALUES = {
    "jax_default_prng_impl": "rbg",
    "jax_default_matmul_precision": "highest",
    "jax_explicit_x64_dtypes": "error",
    "jax_legacy_prng_key": "error",
    "jax_logging_level": "ERROR",
    "jax_memory_fitting_level": "O1",
    "jax_numpy_dtype_promotion": "strict",
    "jax_numpy_rank_promotion": "raise",
    "jax_optimization_level": "O1",
    "jax_persistent_cache_enable_xla_caches": "none",
    "jax_traceback_filtering": "off",
    "jax_transfer_guard": "disallow",
    "jax_transfer_guard_device_to_device": "disallow",
    "jax_transfer_guard_device_to_host": "disallow",
    "jax_transfer_guard_host_to_device": "disallow",
    "jax_debug_log_modules": "jax.nothing",
    "jax_dump_ir_modes": "jaxpr",
}


def other(name, before, folder):
    """A value of the option that is not the one it has."""
    if name == "jax_default_device":
        return jax.devices()[0]
    if name in VALUES:
        return VALUES[name]
    if isinstance(before, bool):
        return not before
    return str(folder) if before in (None, "") else before + 1


@contextlib.contextmanager
def changed(name, folder):
    before = jax.config.values[name]
    jax.config.update(name, other(name, before, folder))
    try:
        yield
    finally:
        jax.config.update(name, before)


@pytest.mark.parametrize("name", [n for n in HERE if OPTIONS[n]["key"] in ("traces again", "no", "stale")])
def test_a_warm_function_does_what_the_table_says(name, tmp_path):
    runs = []
    f = jax.jit(lambda x: runs.append(1) or x * 2)
    x = jnp.ones(3)
    f(x)
    entries = f._cache_size()
    with changed(name, tmp_path):
        f(x)
    again, left = len(runs) - 1, f._cache_size() - entries
    expected = {"traces again": (1, 1), "no": (0, 0), "stale": (0, 1)}[OPTIONS[name]["key"]]
    assert (again, left) == expected
    f(x)
    assert len(runs) == 1 + again, "the way back is a hit"


def test_every_option_of_jax_is_listed_once():
    assert set(jax.config.values) - set(flags.listed()) == set()
    assert {name: count for name, count in Counter(flags.listed()).items() if count > 1} == {}


def test_an_option_that_is_not_listed_is_told(monkeypatch):
    told = []
    monkeypatch.setattr(flags.build, "options", lambda: ["jax_enable_x64", "jax_brand_new"])
    monkeypatch.setattr(flags._log, "warning", lambda text, *args, **_: told.append(text % args))
    flags.check(None)
    assert len(told) == 1
    assert "jax_brand_new" in told[0]


def test_defaults_are_those_of_jax_and_not_of_the_environment(monkeypatch):
    flags.defaults.cache_clear()
    monkeypatch.setenv("JAX_ENABLE_X64", "1")
    assert flags.defaults()["jax_enable_x64"] is False
    flags.defaults.cache_clear()


@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_is_shown_by_a_cell_or_by_a_claim_or_says_why_not(name):
    cells = "".join(re.findall(r"```{code-cell}(.*?)```", PAGE.read_text("utf-8"), re.DOTALL))
    does = OPTIONS[name]["does"]
    assert name in cells or "{claim}" in does or OPTIONS[name].get("unseen", "").endswith(".")
