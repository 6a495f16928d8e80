"""Comparisons over sizes, and where one variant overtakes another."""

import inspect
import json
import math
from html import unescape
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import Comparison, Scaling, Timing, compare, scaling
from jitguide._timing.comparison import CALL_OVERHEAD, Note, load_notes


def comparison(a, b, noise=0.0, **changes):
    def timing(name, seconds):
        rng = np.random.default_rng(0)
        return Timing(name, tuple(seconds * np.exp(noise * rng.normal(size=40))), 1, 1.0)

    return Comparison((timing("numpy", a), timing("jit", b)), "numpy", None, "cpu", **changes)


def curve(gains):
    """A curve of sizes 10, 100, … at which jit is `gains` times as fast."""
    sizes = tuple(10 ** (i + 1) for i in range(len(gains)))
    return Scaling(sizes, tuple(comparison(1e-3 * gain, 1e-3) for gain in gains))


def test_the_crossing_is_interpolated_on_logarithmic_axes():
    assert curve([0.25, 0.5, 2.0, 4.0]).crossover("numpy", "jit") == pytest.approx(10**2.5)
    assert curve([0.25, 4.0]).crossover("numpy", "jit") == pytest.approx(10**1.5)


def test_a_size_at_which_neither_clearly_wins_does_not_count():
    assert curve([0.5, 1.001, 0.999, 2.0]).crossover("numpy", "jit") == pytest.approx(10**2.5)


@pytest.mark.parametrize("gains", [[2.0, 4.0], [0.5, 0.6], [1.0, 1.0], [2.0, 0.5], [2.0]])
def test_without_a_crossing_there_is_none(gains):
    assert curve(gains).crossover("numpy", "jit") is None


def test_a_crossing_that_does_not_last_is_none():
    assert curve([0.5, 2.0, 0.5]).crossover("numpy", "jit") is None
    assert curve([0.5, 2.0, 0.5, 2.0]).crossover("numpy", "jit") == pytest.approx(10**3.5)


def test_the_order_of_the_names_says_who_wins_below():
    assert curve([2.0, 0.5]).crossover("jit", "numpy") == pytest.approx(10**1.5)


def test_an_unknown_variant_is_refused():
    with pytest.raises(KeyError, match="There is no variant called 'jax'"):
        curve([0.5, 2.0]).crossover("numpy", "jax")


def test_real_functions_are_compared_at_every_size():
    def f(x, y):
        return jnp.sin(x) + y

    found = scaling(
        {"plain": f, "jit": jax.jit(f)}, lambda n: (jnp.ones(n), n), np.array([2, 4]), budget=0.01
    )
    assert found.sizes == (2, 4)
    assert found.names == ("plain", "jit")
    assert [c.baseline for c in found.comparisons] == ["plain", "plain"]


def test_a_single_argument_needs_no_tuple():
    found = scaling({"a": jnp.sin}, jnp.ones, [3], budget=0.01, control=False)
    assert found.comparisons[0].control is None


@pytest.mark.parametrize(
    ("sizes", "kind", "text"),
    [
        ([], ValueError, "`sizes` is empty, so there is nothing to compare. Give at least one size."),
        (5, TypeError, "`sizes` must be a series of numbers, got 5. Write"),
        ("12", TypeError, "`sizes` must be a series of numbers, got '12'. Write"),
        (
            [(2, 3)],
            TypeError,
            "`sizes` must hold numbers, and holds (2, 3). Make the arguments in `make_args`.",
        ),
        ([10, 5], ValueError, "`sizes` must be positive, finite and increasing, got [10, 5]. Sort"),
        ([0, 5], ValueError, "`sizes` must be positive, finite and increasing, got [0, 5]."),
    ],
)
def test_bad_sizes_are_refused_in_a_sentence(sizes, kind, text):
    with pytest.raises(kind) as caught:
        scaling({"a": jnp.sin}, jnp.ones, sizes)
    assert text in str(caught.value)


def test_make_args_must_be_a_function():
    with pytest.raises(TypeError, match="`make_args` must be a function from a size to arguments, got int"):
        scaling({"a": jnp.sin}, 3, [1])


def test_calling_it_inside_a_trace_is_refused():
    with pytest.raises(RuntimeError, match="`scaling` was called inside a function that JAX is tracing"):
        jax.jit(lambda x: scaling({"a": jnp.sin}, jnp.ones, [1]))(1.0)


def test_the_views_name_the_winner_of_each_size():
    text = repr(curve([0.5, 1.0, 2.0]))
    assert text.splitlines() == [
        "size   numpy     jit  fastest",
        "  10  500 µs  1.0 ms  numpy",
        " 100  1.0 ms  1.0 ms  no clear winner",
        "1000  2.0 ms  1.0 ms  jit",
        "medians, after warm-up, interleaved, each result waited for, at least 40 rounds",
    ]
    assert "no clear winner" in curve([1.0])._repr_html_()
    assert len(json.loads(json.dumps(curve([0.5, 2.0]).to_dict()))["comparisons"]) == 2


def test_the_notes_of_the_comparisons_stand_below_with_their_sizes():
    compiled, off = "'jit' compiled 30 programs.", "`jax_disable_jit` is on."
    busy = "Other programs kept {}0.8 cores busy: trust the ratios more than the times."
    found = Scaling(
        (10, 100, 1000),
        (
            comparison(1, 2, notes=(compiled, off), busy_cores=0.1),
            comparison(1, 2, notes=(compiled, off, *load_notes(0.8)), busy_cores=0.8),
            comparison(
                1,
                2,
                notes=("Only 4.", off, Note("'jit' is near nothing.", CALL_OVERHEAD)),
                _method=("after warm-up", "interleaved", "one call per block"),
            ),
        ),
    )
    assert found.notes == (
        "Sizes 10, 100: 'jit' compiled 30 programs.",
        "`jax_disable_jit` is on.",
        "Size 1000: Only 4.",
        busy.format("up to "),
    )
    below = [*found.notes, "medians, after warm-up, interleaved, at least 40 rounds"]
    assert " ".join(repr(found).split()).endswith(" ".join(below))
    assert all(unescape(line) in unescape(found._repr_html_()) for line in below)


def test_a_variant_that_compiles_at_every_call_gets_a_note_at_every_size():
    again = {"again": lambda x: jax.jit(lambda y: y + 1)(x)}
    notes = scaling(again, jnp.ones, [1, 2], budget=0.01).notes
    assert any("'again' compiled " in note for note in notes)


class State(NamedTuple):
    weight: object
    steps: object


def test_a_named_tuple_is_one_argument():
    found = scaling({"a": lambda state: state.weight}, lambda n: State(jnp.ones(n), n), [3], budget=0.01)
    assert found.names == ("a",)


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("budgt", "no option 'budgt'. Use those of `compare`: baseline"),
        ("setup", "Make fresh arguments in `make_args`"),
    ],
)
def test_an_option_that_cannot_work_is_refused(option, text):
    with pytest.raises(TypeError, match=text):
        scaling({"a": jnp.sin}, jnp.ones, [10], **{option: 1})


def test_every_other_option_of_compare_is_one_of_scaling():
    options = {p.name for p in inspect.signature(compare).parameters.values() if p.kind is p.KEYWORD_ONLY}
    with pytest.raises(TypeError) as refused:
        scaling({"a": jnp.sin}, jnp.ones, [10], budgt=1)
    listed = str(refused.value).partition("Use those of `compare`: ")[2].partition(";")[0]
    assert {*listed.split(", "), "setup"} == options


@pytest.mark.parametrize("sizes", [[10, math.nan], [math.nan], [math.nan, 10], [10, math.inf]])
def test_a_size_that_cannot_be_is_refused_before_it_reaches_the_arguments(sizes):
    with pytest.raises(ValueError, match="`sizes` must be positive, finite and increasing, got"):
        scaling({"a": jnp.sin}, jnp.ones, sizes)


def test_long_names_leave_the_table_in_eighty_columns():
    long = "the polynomial by Horner's rule, in one jitted function, on the device"
    variants = {"a\x1b[31mred\nname": jnp.sin, long: jnp.cos, "plain": jnp.tan}
    text = repr(scaling(variants, jnp.ones, [3, 1000], budget=0.001, check=None))
    assert max(map(len, text.splitlines())) <= 80
    assert "\x1b" not in text
    assert "red name" in text.splitlines()[0]
    assert "\n1000  " in text  # numbers are whole
