"""The table of the cache key: a handful of its rows, and that the experiment can tell them apart."""

import functools
import json
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

from jitguide.demos import cache_key
from jitguide.demos.cache_key import Change, Changes, counted, pairs
from jitguide.demos.cache_key.surroundings import SETTINGS

HIT = (True, 0, 0, 0)
LEFT = (False, 0, 0, 0)
ALL = (False, 1, 1, 1)


@functools.cache
def table_of(group):
    return cache_key.run(group)


def rows_of(group):
    rows = {row.what: row for row in table_of(group).rows}
    return {what: (r.fast, r.traces, r.lowerings, r.compiles) for what, r in rows.items()}


@pytest.mark.parametrize(
    ("group", "expected"),
    [
        (
            "shapes",
            {"the same array again": HIT, "float32[4] → float32[2,2]": ALL, "back to float32[4]": HIT},
        ),
        (
            "sources",
            {"JAX array → NumPy array of float32": LEFT, "another NumPy array of float32": HIT},
        ),
        ("scalars", {"3.0 → 4.0": HIT, "3.0 → True": ALL, "strong float32[] → weak float32[]": ALL}),
        ("containers", {"dict in another order": HIT, "OrderedDict in another order": ALL}),
        ("statics", {"2 → 2": HIT, "2 → 2.0": ALL, "frozen dataclass → an equal one": HIT}),
        ("conventions", {"static n: f(x, 2) → f(x, n=2)": ALL, "static n: f(n=2, x=x)": HIT}),
        ("functions", {"jax.jit(f) written again": HIT, "jax.jit(f, compiler_options=…)": (False, 0, 0, 1)}),
        ("places", {"uncommitted → committed to the same device": (False, 0, 1, 1)}),
        ("settings", {"jax.debug_nans(True)": HIT, "jax.enable_x64(True)": ALL, "no setting": HIT}),
        ("transformations", {"jit(grad(f)), called again": HIT, "grad(jit(f)), called again": LEFT}),
        ("stages", {"new f: f.trace(x)": (None, 1, 0, 0), "f(x), the first call": LEFT}),
        (
            "processes",
            {
                "the same call from another thread": HIT,
                "the same, called a fourth time": LEFT,
                "the same, after f.clear_cache() and one call": HIT,
            },
        ),
    ],
)
def test_rows_of_the_table(group, expected):
    rows = rows_of(group)
    assert {what: rows[what] for what in expected} == expected


def test_every_row_of_a_group_has_a_name_of_its_own():
    for group in cache_key.GROUPS:
        table = table_of(group)
        names = [row.what for row in table.rows]
        assert len(set(names)) == len(names), group
        assert table.title


def test_several_devices_add_rows():
    program = "import json; from jitguide.demos import cache_key; print(json.dumps(cache_key.run('places').to_dict()))"
    environment = {**os.environ, "JAX_PLATFORMS": "cpu", "JAX_NUM_CPU_DEVICES": "4"}
    run = subprocess.run(
        [sys.executable, "-c", program], env=environment, capture_output=True, text=True, check=True
    )
    rows = {row.pop("what"): tuple(row.values()) for row in json.loads(run.stdout)["rows"]}
    assert rows["committed to another device"] == (False, 0, 0, 1)
    assert rows["copied to four devices"] == (False, 0, 1, 1)
    assert rows["split over four devices"] == ALL
    assert rows["back to one device"] == HIT


def test_every_public_setting_is_in_the_table():
    State = pytest.importorskip("jax._src.config").State  # noqa: N806 - a class; private, as no list is public
    settings = {name for name in dir(jax) if isinstance(getattr(jax, name), State)}
    in_directions = {name for name in settings if name.startswith("transfer_guard_")}
    elsewhere = {"default_device", "no_tracing", "no_execution"}
    assert settings - in_directions - elsewhere <= set(SETTINGS)


def test_no_value_of_a_setting_is_its_default():
    for name, value in SETTINGS.items():
        assert getattr(getattr(jax, name), "value", None) != value


def test_a_first_call_and_a_second_one_are_told_apart():
    table, f, x = Changes("two calls"), jax.jit(counted(jnp.sin)), jnp.ones(3)
    table.see("first", f, x)
    table.see("second", f, x)
    assert table.rows == [Change("first", False, 1, 1, 1), Change("second", True, 0, 0, 0)]
    assert table.counts() == {"traces, lowers, compiles": 1, "hit": 1}


def test_the_profiler_of_the_caller_is_given_back():
    def profiler(*_):
        return None

    before = sys.getprofile()
    sys.setprofile(profiler)
    try:
        Changes().see("call", jax.jit(counted(jnp.sin)), 1.0)
        assert sys.getprofile() is profiler
    finally:
        sys.setprofile(before)


def test_an_error_of_the_call_reaches_the_caller_and_adds_no_row():
    table = Changes()
    with pytest.raises(ZeroDivisionError):
        table.see("fails", jax.jit(lambda x: x / (1 // 0)), 1.0)
    assert table.rows == []


def test_both_forms_of_the_table_hold_the_same_and_escape_it():
    table = Changes("A <title>")
    table.rows = [Change("<b>", True, 0, 0, 0), Change("two", None, 1, 0, 2)]
    assert repr(table).splitlines()[-1].split() == ["two", "1", "–", "2"]
    html = table._repr_html_()
    assert "&lt;b&gt;" in html
    assert "A &lt;title&gt;" in html
    assert "<b>" not in html


def test_work_is_said_in_words():
    words = {
        (True, 0, 0, 0): "hit",
        (None, 0, 0, 0): "hit",
        (False, 0, 0, 0): "leaves the fast path",
        (False, 0, 0, 1): "compiles",
        (False, 0, 1, 1): "lowers, compiles",
        (None, 1, 0, 0): "traces",
    }
    assert {key: Change("", *key).work for key in words} == words


@pytest.mark.parametrize(
    ("first", "second", "kind"),
    [
        ("f(1.0)", "f(2.0)", "hit"),
        ("f(1.0)", "f(1)", "trace"),
        ("f(1.0)", "f(jnp.float32(1.0))", "trace"),
        ("f(jnp.ones(4))", "f(np.ones(4))  # float64", "path"),
        ("f(jnp.ones(4))", "f(jax.device_put(jnp.ones(4), jax.devices()[0]))", "compile"),
        ("f([1.0, 2.0])", "f((1.0, 2.0))", "trace"),
    ],
)
def test_a_pair_of_calls_is_shown_with_what_jax_did(first, second, kind):
    shown = pairs.run([first, second])
    assert shown.kinds()["hit"] >= 2  # the same call again
    data = json.loads(shown._repr_html_().partition('json">')[2].partition("</script>")[0])
    assert data["names"] == [first, second]
    assert data["found"][1][0] == kind
    assert bool(data["reasons"][data["found"][1][1]]) == (kind != "hit")
