"""The engine under a clock of our own, and `compare` with real functions but no word about real times."""

import gc
import json
import time
import warnings
from functools import partial
from html import unescape
from typing import NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import Comparison, Ratio, Timing, compare, watch
from jitguide._timing import engine, machine, queued
from jitguide._timing.comparison import clock_notes, copy_notes, queued_notes
from jitguide._timing.engine import BLOCK, CAP, FEWEST_ROUNDS, ROUNDS, SOONEST, Bench, Measured
from jitguide._timing.inputs import FirstCalls
from jitguide._timing.machine import Busy
from jitguide._timing.statistics import paired_ratio


class Machine:
    """A machine whose time passes only in the functions that it runs."""

    def __init__(self, noise=0.005):
        self.now, self.rng, self.noise = 0.0, np.random.default_rng(0), noise
        self.order = []

    def clock(self):
        return self.now

    def function(self, seconds, name="", slow=lambda now: 1.0):
        def call():
            self.order.append(name)
            factor = np.exp(self.rng.normal(0, self.noise)) if self.noise else 1.0
            self.now += seconds * slow(self.now) * factor

        return call

    def bench(self, *calls, budget=0.5, most=10**9, seed=0, compiles=lambda: 0, fresh=lambda: ((), {})):
        wait = lambda result: result  # noqa: E731
        variants = [call if isinstance(call, tuple) else (call,) for call in calls]
        return Bench(variants, fresh, most, budget, seed, 0.02, self.clock, wait, compiles)

    def ratio(self, first, second, **options):
        measured = measure(self.bench(first, second, **options))
        return paired_ratio(*measured.seconds)


def measure(bench):
    measured = Measured(len(bench.variants))
    engine.measure(bench, measured)
    return measured


def drifting(now):
    return 1 + 3 * now


def interrupted(rng):
    return lambda now: 50.0 if rng.random() < 0.02 else 1.0


def preempted(now):
    return 100.0 if (now % 0.01) < 0.002 else 1.0  # another program has the core 2 ms out of 10


@pytest.mark.parametrize("true", [0.5, 1.0, 1.05])
@pytest.mark.parametrize("trouble", ["none", "drift", "spikes", "preemption"])
def test_the_ratio_survives_what_a_busy_machine_does(true, trouble):
    machine = Machine()
    slow = {
        "none": lambda now: 1.0,
        "drift": drifting,
        "spikes": interrupted(machine.rng),
        "preemption": preempted,
    }[trouble]
    found = machine.ratio(machine.function(true * 50e-6, slow=slow), machine.function(50e-6, slow=slow))
    assert found.value == pytest.approx(true, rel=0.01)
    widened = found.widened(0.005)
    assert widened.low < true < widened.high


def test_one_after_the_other_would_not_survive_the_drift():
    machine = Machine()
    call = machine.function(50e-6, slow=drifting)
    means = []
    for _ in range(2):
        start = machine.now
        for _ in range(2000):
            call()
        means.append(machine.now - start)
    assert means[1] / means[0] > 1.2


def test_blocks_hold_as_many_calls_as_fit_into_a_hundred_microseconds():
    machine = Machine(noise=0)
    measured = measure(machine.bench(machine.function(5e-6), machine.function(3e-3)))
    assert measured.calls_per_block == [round(BLOCK / 5e-6), 1]
    assert measured.seconds[0][0] == pytest.approx([5e-6])


@pytest.mark.parametrize(
    ("microseconds", "counts"),
    [
        ((40, 60, 20, 5), [16, 16, 16, 16]),  # a millisecond for the slowest
        ((40, 300), [2, 2]),  # as many as fit into a hundred microseconds of the fastest
        ((40, 2000, 500), [2, 1, 1]),
        ((2000, 12, 13), [1, 8, 8]),  # alike to each other, though not to the baseline
        ((10, 1.2, 80), [12, 12, 12]),  # both the fast and the slow one are like the baseline
        ((5000, 900), [1, 1]),
    ],
)
def test_functions_of_about_the_same_speed_get_the_same_number_of_calls(microseconds, counts):
    machine = Machine(noise=0)
    calls = [machine.function(number * 1e-6) for number in microseconds]
    assert measure(machine.bench(*calls)).calls_per_block == counts


def test_equal_functions_get_the_same_number_of_calls_though_they_warm_up_in_two_modes_of_speed():
    machine = Machine(noise=0)
    slow_at_first = machine.function(10e-6, slow=lambda now: 7.0 if now < 0.04 else 1.0)
    steady = machine.function(10e-6)
    found = measure(machine.bench(slow_at_first, steady))
    assert found.calls_per_block == [10, 10]


def test_a_colder_first_call_does_not_make_equal_functions_differ():
    machine, last = Machine(noise=0.1), [None]

    def function(name):
        def call():
            cold = 20e-6 if last[0] != name else 0.0
            last[0] = name
            machine.now += 48e-6 * np.exp(machine.rng.normal(0, 0.1)) + cold

        return call

    found = machine.ratio(function("a"), function("b"))
    assert found.value == pytest.approx(1, rel=0.01)


def test_every_round_holds_each_function_once_in_changing_order():
    machine = Machine()
    measure(machine.bench(*(machine.function(5e-3, name) for name in "abc"), budget=2))
    rounds = [tuple(machine.order[-3 * n : len(machine.order) - 3 * (n - 1)]) for n in range(1, 101)]
    assert all(sorted(order) == ["a", "b", "c"] for order in rounds)
    assert len(set(rounds)) == 6


def test_the_order_follows_from_the_seed():
    orders = []
    for seed in (1, 1, 2):
        machine = Machine()
        measure(machine.bench(machine.function(1e-3, "a"), machine.function(1e-3, "b"), seed=seed))
        orders.append(machine.order)
    assert orders[0] == orders[1] != orders[2]


def test_a_difference_beyond_doubt_ends_early_but_not_before_a_tenth_of_a_second_each():
    machine = Machine()
    measure(machine.bench(machine.function(1e-3), machine.function(3e-3)))
    assert 2 * SOONEST <= machine.now < 2 * SOONEST * 2


@pytest.mark.parametrize(("other", "noise"), [(1e-3, 0.0), (1e-3, 0.05), (1.9e-3, 0.01)])
def test_other_answers_take_the_budget_so_that_a_drift_can_show(other, noise):
    machine = Machine(noise=noise)
    measure(machine.bench(machine.function(1e-3), machine.function(other), budget=0.5))
    assert 2 * 0.5 <= machine.now < 2 * 0.5 * 1.2


def test_three_functions_are_apart_only_if_any_two_are():
    machine = Machine()
    measure(machine.bench(*(machine.function(seconds) for seconds in (1e-3, 3e-3, 3e-3)), budget=0.5))
    assert machine.now >= 3 * 0.5


def test_a_ratio_that_wanders_while_it_is_measured_widens_the_interval():
    machine = Machine()
    wave = lambda now: 1 + 0.05 * np.sin(2 * np.pi * now / 0.7)  # noqa: E731
    found = machine.ratio(machine.function(50e-6, slow=wave), machine.function(50e-6))
    assert found.low < 0.97
    assert found.high > 1.03


def test_two_copies_of_a_function_have_a_place_each_in_every_round():
    machine = Machine(noise=0)
    copies = machine.function(50e-6, "a"), machine.function(60e-6, "a again")
    measured = measure(machine.bench(copies, machine.function(50e-6, "b")))
    assert measured.seconds[0][0] == pytest.approx([50e-6, 60e-6])
    assert measured.seconds[1][0] == pytest.approx([50e-6])


def test_slow_functions_get_a_round_for_each_batch():
    machine = Machine()
    measured = measure(machine.bench(machine.function(0.1), machine.function(0.1)))
    assert measured.rounds == ROUNDS


@pytest.mark.parametrize("takes", [1e-3, 0.02])
@pytest.mark.parametrize(("noise", "times"), [(0.001, 1), (1.5, CAP)])
def test_equal_functions_get_four_times_the_budget_while_the_interval_is_wide(noise, times, takes):
    machine = Machine(noise=noise)
    measure(machine.bench(machine.function(takes), machine.function(takes), budget=0.5))
    assert machine.now == pytest.approx(2 * times * 0.5, rel=0.35)


def test_very_slow_functions_stop_at_four_times_the_budget():
    machine = Machine()
    measured = measure(machine.bench(machine.function(0.6), machine.function(0.6), budget=0.5))
    assert FEWEST_ROUNDS < measured.rounds < ROUNDS
    assert measured.rounds * 0.6 == pytest.approx(CAP * 0.5, abs=0.6)


def test_the_slowest_functions_get_two_rounds_one_place_in_each_and_one_warm_call():
    machine = Machine()
    call, other = machine.function(60), machine.function(1e-4)
    measured = measure(machine.bench((call, call), (other, other)))
    assert measured.rounds == FEWEST_ROUNDS
    assert machine.now < 60 * (FEWEST_ROUNDS + 1) * 1.1
    assert {len(places) for rounds in measured.seconds for places in rounds} == {1}


def test_a_clock_that_stands_still_gives_no_division_by_zero():
    machine = Machine(noise=0)
    ticks = iter(range(10**6))
    standing = machine.bench(machine.function(0.0), machine.function(0.0), budget=1.0, most=100)
    standing.clock = lambda: next(ticks) // 100
    measured = measure(standing)
    assert np.isfinite(paired_ratio(*measured.seconds).value)


def test_arguments_are_made_for_every_call_outside_the_timed_part():
    machine = Machine(noise=0)

    def fresh():
        machine.now += 1e-3
        return (next(numbers),), {}

    numbers, seen = iter(range(10**6)), []

    def call(n):
        seen.append(n)
        machine.now += 1e-5

    measured = measure(machine.bench(call, call, most=4, fresh=fresh))
    assert len(set(seen)) == len(seen)
    assert measured.calls_per_block == [4, 4]
    assert np.max(measured.seconds[0]) == pytest.approx(1e-5)


def test_compiling_inside_the_blocks_is_counted_for_the_right_function():
    machine = Machine()
    count = [0]
    steady = machine.function(1e-3)

    def recompiles():
        count[0] += 1
        machine.now += 1e-3

    measured = measure(machine.bench(steady, recompiles, compiles=lambda: count[0]))
    assert measured.compiled == [0, 2 * measured.rounds]  # a call before each block, and one in it


def test_what_making_the_arguments_compiles_is_not_the_functions_doing():
    machine, count = Machine(), [0]

    def fresh():
        count[0] += 1
        return (), {}

    bench = machine.bench(machine.function(1e-3), compiles=lambda: count[0], fresh=fresh)
    assert measure(bench).compiled == [0]


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_is_off_inside_the_blocks_and_then_as_before(was_on):
    machine, states = Machine(), []

    def call():
        states.append(gc.isenabled())
        machine.now += 1e-3

    before = gc.isenabled()
    try:
        (gc.enable if was_on else gc.disable)()
        measured = measure(machine.bench(call))
        assert not any(states[-measured.rounds :])
        assert gc.isenabled() is was_on
    finally:
        (gc.enable if before else gc.disable)()


def test_the_garbage_collector_comes_back_when_a_function_raises():
    machine, calls = Machine(), []

    def call():
        machine.now += 0.01
        calls.append(0)
        if len(calls) > 5:
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        measure(machine.bench(call))
    assert gc.isenabled()


# `compare` itself: everything but the times.


def plain(x):
    return jnp.sin(x) + 1


def quick(variants, *args, **options):
    return compare(variants, *args, **{"budget": 0.01, **options})


def test_a_comparison_holds_what_was_asked_for():
    result = quick({"plain": plain, "jit": jax.jit(plain)}, jnp.ones(3), baseline="jit")
    assert [timing.name for timing in result.timings] == ["plain", "jit"]
    assert result.baseline == "jit"
    assert result.speedup("jit") == Ratio(1.0, 1.0, 1.0)
    assert isinstance(result.control, Ratio)
    assert result.device == jax.devices()[0].device_kind
    for timing in result.timings:
        assert timing.n >= FEWEST_ROUNDS
        assert 0 < timing.low <= timing.median <= timing.high
        assert timing.first_call > 0


def test_one_variant_and_no_control_are_enough():
    result = quick({"only": plain}, jnp.ones(3), control=False)
    assert result.control is None
    assert "itself" not in repr(result)


def test_keyword_arguments_reach_the_variants_also_one_called_variants():
    result = compare({"a": lambda x, *, variants: x * variants}, jnp.ones(3), variants=2, budget=0.01)
    assert result.baseline == "a"


def test_setup_makes_fresh_arguments_so_that_donating_functions_can_be_compared():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where a backend cannot donate, JAX says so
        add = jax.jit(lambda x: x + 1, donate_argnums=0)
        result = quick({"donates": add, "keeps": jax.jit(lambda x: x + 1)}, setup=lambda: jnp.ones(5))
    assert "fresh arguments for every call" in " ".join(repr(result).split())


class State(NamedTuple):
    weight: object
    steps: object


def test_a_named_tuple_of_setup_is_one_argument():
    result = quick({"a": lambda state: state.weight}, setup=lambda: State(jnp.ones(3), jnp.zeros(3)))
    assert result.baseline == "a"


class Box:
    def __init__(self, content):
        self.content = content


@pytest.mark.parametrize(
    ("wrap", "what"),
    [
        (Box, "`Box`, which JAX cannot look into"),
        (lambda y: {"y": y, "box": Box(y)}, "`Box`, which JAX cannot look into"),
        (lambda y: None, "nothing to wait for"),
    ],
)
@pytest.mark.parametrize("check", [None, lambda a, b: True])
def test_a_result_that_cannot_be_waited_for_is_noted(wrap, what, check):
    result = quick({"array": jnp.sin, "kept": lambda x: wrap(jnp.sin(x))}, jnp.ones(3), check=check)
    assert (
        f"'kept' returns {what}: unless it waits itself, its time may be that of starting the work only. Return "
        "the arrays, or wait inside the variant with `jax.block_until_ready`."
    ) in result.notes
    assert "each result waited for" not in repr(result)
    assert not any("'array' returns" in note for note in result.notes)


@pytest.mark.parametrize("value", [1.0, np.ones(3), "text", np.float32(1), (jnp.ones(2), None)])
def test_a_result_that_is_there_at_once_needs_no_note(value):
    result = quick({"a": lambda: value}, check=None)
    assert not any("'a' returns" in note for note in result.notes)
    assert "after warm-up, interleaved, each result waited for" in repr(result)


def test_a_guard_against_transfers_is_about_the_variants_only():
    x = jnp.ones(3)
    with jax.transfer_guard("disallow"):
        result = quick({"sin": jax.jit(jnp.sin), "again": jax.jit(lambda x: jnp.sin(x))}, x)
    assert result.speedup("again").value > 0


def sample(x, seed=0):
    return x + seed


SWALLOWED = (
    "`seed` is an option of `compare`, and 'a', which has a parameter of that name, was called without it. To pass "
    "it on, write `lambda *args: f(*args, seed=...)`."
)


@pytest.mark.parametrize("fn", [sample, jax.jit(sample), partial(sample)])
def test_an_option_that_was_meant_for_the_variant_is_noted(fn):
    assert SWALLOWED in quick({"a": fn}, jnp.ones(3), seed=7).notes


@pytest.mark.parametrize(
    ("fn", "args", "options"),
    [
        (sample, (np.ones(3),), {}),  # nothing was given
        (sample, (np.ones(3), 3), {"seed": 7}),  # the variant has its own
        (lambda x, **seed: x, (np.ones(3),), {"seed": 7}),
        (np.sin, (np.ones(3),), {"seed": 7}),
    ],
)
def test_an_option_that_was_meant_for_compare_is_not_noted(fn, args, options):
    assert not any("is an option of" in note for note in quick({"a": fn}, *args, **options).notes)


def test_an_option_that_the_variant_misses_is_a_hint_at_its_error():
    with pytest.raises(TypeError, match="missing 1 required") as caught:
        compare({"a": lambda x, seed: x + seed}, np.ones(3), seed=7)
    assert caught.value.__notes__[-1] == SWALLOWED


def test_a_variant_that_compiles_at_every_call_gets_a_note():
    def again(x):
        return jax.jit(lambda y: y + 1)(x)

    result = quick({"again": again, "once": jax.jit(lambda y: y + 1)}, jnp.ones(3))
    assert any(note.startswith("'again' compiled ") and "jitguide.watch" in note for note in result.notes)
    assert not any("'once' compiled" in note for note in result.notes)


def test_small_calls_are_set_beside_a_call_that_does_nothing(monkeypatch):
    measured = iter([23e-6, 9e-6, 10e-6])  # the first while another program ran
    monkeypatch.setattr("jitguide._timing.compare.time_alone", lambda *_: next(measured))
    result = quick({"nothing": jax.jit(lambda x: x)}, jnp.ones(()))
    assert "'nothing': a jitted call that returns its argument takes 9.0 µs here." in result.notes


def test_jit_being_off_is_noted():
    with jax.disable_jit():
        result = quick({"jit": jax.jit(plain)}, jnp.ones(3))
    assert "`jax_disable_jit` is on: jitted variants run one operation at a time." in result.notes


def test_numbers_of_numpy_are_numbers():
    result = quick({"a": plain, "b": plain}, jnp.ones(3), budget=np.float32(0.01), check=np.float32(1e-3))
    assert result.speedup("b").value > 0
    text = refused(TypeError, {"a": lambda x: "text"}, jnp.ones(3), check=np.float32(1e-3))
    assert "'a' returns a str at result" in text


def adds(x):
    return x + 1


def adds_in_place(x):
    x += 1
    return x


def test_a_variant_that_changes_its_argument_is_told_of_setup():
    result = quick({"adds": adds, "adds in place": adds_in_place}, np.ones(3))
    assert (
        "'adds in place' changes a NumPy argument in place, so the next call gets other numbers. Where they "
        "matter, pass `setup=lambda: (x.copy(),)`."
    ) in result.notes
    text = refused(ValueError, {"adds in place": adds_in_place, "adds": adds}, np.ones(3))
    assert "pass `setup` if one of them changes its arguments" in text


def test_with_setup_a_variant_may_change_its_argument():
    result = quick({"adds in place": adds_in_place, "adds": adds}, setup=lambda: np.ones(3))
    assert not any("changes" in note for note in result.notes)


def test_a_compiled_program_a_method_and_a_partial_are_variants_like_others():
    class Adder:
        @partial(jax.jit, static_argnums=0)
        def add(self, x):
            return plain(x)

    x = jnp.ones(3)
    compiled = jax.jit(plain).lower(x).compile()
    result = quick({"compiled": compiled, "method": Adder().add, "partial": partial(plain)}, x)
    assert not any("compiled " in note and "programs" in note for note in result.notes)


def test_a_watched_variant_is_timed_with_a_note():
    result = quick({"jit": jax.jit(plain), "watched": watch(jax.jit(plain))}, jnp.ones(3))
    assert result["watched"].copies == 1  # another copy would not be watched
    assert (
        "'watched' is watched, and its time includes the watching. Compare the function given to `watch`."
    ) in result.notes


def test_a_comparison_while_jax_checks_for_leaks_compiles_no_more_than_else():
    with jax.checking_leaks():
        result = quick({"jit": jax.jit(plain), "plain": plain}, jnp.ones(3))
    assert not any("times inside the measured blocks" in note for note in result.notes)


def refused(kind, *args, **options):
    with pytest.raises(kind) as caught:
        compare(*args, **options)
    return str(caught.value)


@pytest.mark.parametrize(
    ("variants", "options", "kind", "text"),
    [
        ([plain], {}, TypeError, "`variants` must be a mapping from names to functions, got list."),
        ({}, {}, ValueError, "`variants` is empty, so there is nothing to time. Give at least one function."),
        (
            {1: plain},
            {},
            TypeError,
            "`variants` must have text as keys, got 1 of type int. Write '1' in its",
        ),
        (
            {"a": 3},
            {},
            TypeError,
            "`variants['a']` must be a function, got int, which cannot be called.",
        ),
        (
            {"a": plain},
            {"baseline": "b"},
            ValueError,
            "`baseline` is 'b', which is not among the variants. Use one",
        ),
        (
            {"a": plain},
            {"baseline": ["a"]},
            ValueError,
            "`baseline` is ['a'], which is not among the variants. Use one of 'a'.",
        ),
        (
            {"a": plain},
            {"budget": np.complex64(1)},
            TypeError,
            "`budget` must be a number of seconds, got",
        ),
        (
            {"a": plain},
            {"budget": 0},
            ValueError,
            "`budget` must be a positive number of seconds, got 0. Leave",
        ),
        (
            {"a": plain},
            {"budget": float("nan")},
            ValueError,
            "`budget` must be a positive number of seconds,",
        ),
        (
            {"a": plain},
            {"budget": "1"},
            TypeError,
            "`budget` must be a number of seconds, got '1'. Leave it",
        ),
        (
            {"a": plain},
            {"check": "x"},
            TypeError,
            "`check` must be a relative tolerance such as 1e-3, a function",
        ),
        (
            {"a": plain},
            {"setup": 1},
            TypeError,
            "`setup` must be a function that returns the arguments of one",
        ),
        (
            {"a": plain},
            {"setup": tuple},
            ValueError,
            "`setup` makes the positional arguments, and 1 came after",
        ),
    ],
)
def test_bad_arguments_are_refused_in_a_sentence(variants, options, kind, text):
    assert text in refused(kind, variants, jnp.ones(3), **options)


def test_variants_that_disagree_are_not_timed():
    text = refused(ValueError, {"a": plain, "b": lambda x: plain(x) + 1}, jnp.ones(3))
    assert text.startswith("The variants 'a' and 'b' disagree at result[0]: 1.8")


def test_a_disagreement_is_an_error_of_a_class_that_you_know():
    with pytest.raises(ValueError, match="disagree at result") as error:
        compare({"a": plain, "b": lambda x: plain(x) + 1}, jnp.ones(3))
    assert error.type is ValueError


def product(x, w):
    return x @ w


def half_product(x, w):
    return (x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16)).astype(jnp.float32)


MATRICES = [jax.random.normal(jax.random.key(i), (32, 32)) for i in range(2)]


@pytest.mark.parametrize("baseline", ["full", "half"])
@pytest.mark.parametrize("wrap", [jax.jit, lambda fn: fn, lambda fn: partial(jax.jit(fn))])
def test_a_variant_that_computes_in_half_precision_agrees_with_a_note(wrap, baseline):
    variants = {"full": jax.jit(product), "half": wrap(half_product)}
    result = compare(variants, *MATRICES, baseline=baseline, budget=0.01)
    (note,) = [note for note in result.notes if "agreement" in note]
    assert "within the 0.062 that is allowed as one of them computes in bfloat16" in note


def test_half_precision_inside_hides_no_wrong_result():
    wrong = {"full": product, "half": lambda x, w: half_product(x, w) * 1.5}
    assert "disagree at result" in refused(ValueError, wrong, *MATRICES)
    eight = {
        "full": product,
        "8 bits": lambda x, w: 1.5 * product(x, w).astype("float8_e4m3fn").astype(x.dtype),
    }
    assert "disagree at result" in refused(ValueError, eight, *MATRICES)
    beside = {"full": product, "other": lambda x, w: np.asarray(product(x, w)) * 1.01}
    assert "disagree at result" in refused(ValueError, beside, *MATRICES)


def test_a_tolerance_that_you_give_is_kept_in_half_precision():
    both = {"full": product, "half": half_product}
    assert "relative difference of 0.0001" in refused(ValueError, both, *MATRICES, check=1e-4)


def test_the_baseline_is_the_one_to_agree_with():
    variants = {"a": plain, "b": lambda x: plain(x) + 1}
    assert refused(ValueError, variants, jnp.ones(3), baseline="b").startswith("The variants 'b' and 'a'")


def test_variants_that_return_no_arrays_are_not_timed():
    assert "'a' returns nothing to compare: None." in refused(TypeError, {"a": lambda x: None}, jnp.ones(3))
    assert "returns a object at result, which" in refused(TypeError, {"a": lambda x: object()}, jnp.ones(3))


def test_a_variant_that_raises_keeps_its_error_and_is_named_in_a_note():
    with pytest.raises(ZeroDivisionError) as caught:
        compare({"fine": plain, "broken": lambda x: 1 / 0}, jnp.ones(3))
    assert caught.value.__notes__ == [
        "The variant 'broken' raised this in its first call. Call it alone with the same arguments until it "
        "works, then compare."
    ]


def test_deleted_arguments_are_refused_with_their_path():
    gone = jnp.ones(3)
    gone.delete()
    text = refused(ValueError, {"a": lambda x, *, w: x}, jnp.ones(3), w={"k": gone})
    assert text.startswith(
        "The argument kwargs['w']['k'] was deleted before the measurement began, most likely"
    )
    assert text.endswith("or pass `setup`, which makes fresh ones for every call.")


def gives_away(tree, *, buffer):
    result = tree["x"] + buffer
    jax.tree.map(lambda leaf: leaf.delete(), (tree, buffer))  # what donation does, on every backend
    return result


@pytest.mark.parametrize("with_setup", [True, False])
def test_what_a_variant_donates_is_copied_for_every_call(with_setup):
    tree, buffer = {"x": jnp.ones(3)}, jnp.ones(3)
    variants = {"keeps": lambda tree, *, buffer: tree["x"] + buffer, "donates": gives_away}
    if with_setup:
        result = quick(variants, setup=lambda: tree, buffer=buffer)
    else:
        result = quick(variants, tree, buffer=buffer)
    assert not tree["x"].is_deleted()
    assert not buffer.is_deleted()
    assert "fresh arguments for every call" in " ".join(repr(result).split())


def test_an_object_whose_arrays_a_variant_replaces_is_copied_for_every_call():
    def moves_on(state):
        state["x"] = state["x"] + 1
        return state["x"]

    state = {"x": jnp.ones(3)}
    result = quick({"a": moves_on, "b": jax.jit(lambda state: state["x"] + 1)}, state)
    assert (state["x"] == 1).all()
    assert "fresh arguments for every call" in " ".join(repr(result).split())


def test_large_arguments_that_a_variant_donates_are_made_one_call_at_a_time():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where a backend cannot donate, JAX says so
        result = quick({"a": jax.jit(lambda x: x + 1, donate_argnums=0)}, jnp.ones(2**23))
    assert result["a"].calls_per_block <= 2


def test_a_jitted_variant_has_a_second_compiled_copy_and_another_function_has_not():
    traces = []

    @jax.jit
    def jitted(x):
        traces.append(x)
        return plain(x)

    result = quick({"jit": jitted, "calls it": lambda x: jitted(x)}, jnp.ones(3))
    assert len(traces) == 2
    assert [timing.copies for timing in result.timings] == [2, 1]
    assert [timing.places for timing in result.timings] == [2, 2]
    assert "baseline against a second compiled copy" in repr(result).replace("\n ", "")


@pytest.mark.parametrize("kind", ["partial", "method"])
def test_a_second_copy_keeps_what_is_bound_to_the_first(kind):
    class Scale:
        @partial(jax.jit, static_argnums=0)
        def times(self, x):
            return 3 * x

    bound = {"partial": partial(jax.jit(lambda a, x: a * x), 3), "method": Scale().times}[kind]
    result = quick({"bound": bound, "plain": lambda x: 3 * x}, jnp.ones(3))
    assert result["bound"].copies == 2


def test_a_result_may_hold_functions():
    quick({name: lambda x: {"y": x + 1, "activation": jnp.tanh} for name in "ab"}, jnp.ones(3))


def test_jitted_functions_of_libraries_are_compared_with_second_copies_of_them():
    eqx, nnx = pytest.importorskip("equinox"), pytest.importorskip("flax.nnx")
    mlp = eqx.nn.MLP(3, 1, 4, 1, key=jax.random.key(0))
    result = quick({name: eqx.filter_jit(lambda m, x: (m, m(x))) for name in "ab"}, mlp, jnp.ones(3))
    assert {timing.copies for timing in result.timings} == {2}

    def update(model, x):
        model.kernel[...] = model.kernel[...] + 1
        return model(x)

    model = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
    before = model.kernel[...].sum()
    result = quick({name: nnx.jit(lambda m, x: update(m, x)) for name in "ab"}, model, jnp.ones(3))
    assert {timing.copies for timing in result.timings} == {2}
    assert model.kernel[...].sum() == before


def test_one_object_under_two_names_counts_twice():
    machine = Machine()
    call = machine.function(1e-3)
    measure(machine.bench(call, call, budget=0.5))
    assert machine.now >= 2 * 0.5


def test_a_variant_that_raises_later_is_named_and_what_was_measured_is_kept():
    end = time.perf_counter() + 0.5

    def breaks(x):
        if time.perf_counter() > end:
            raise OSError("The disk is full.")
        return x

    with pytest.raises(OSError, match=r"The disk is full\.") as caught:
        compare({"fine": lambda x: x, "breaks": breaks}, 1.0, budget=5)
    first, second = caught.value.__notes__
    assert first.startswith("The variant 'breaks' raised this after ")
    assert second.startswith("Measured before:\nvariant ")


@pytest.mark.parametrize("transform", [jax.jit, jax.vmap, jax.grad])
def test_calling_it_inside_a_trace_is_refused(transform):
    def inner(x):
        compare({"a": plain}, x)
        return x

    with pytest.raises(RuntimeError, match="`compare` was called inside a function that JAX is tracing"):
        transform(inner)(jnp.ones(3) if transform is jax.vmap else 1.0)


# The views, of a comparison made by hand.


def test_the_warm_up_goes_on_while_the_clock_of_a_gpu_rises():
    machine = Machine()
    clocks = iter([300, 900, 1900, 1910, 1905, 1700])
    bench = machine.bench(machine.function(1e-3))
    bench.megahertz = lambda: next(clocks)
    measured = measure(bench)
    assert measured.megahertz == [1905, 1700], "three warm-ups, then once before and once after the rounds"


def test_a_clock_that_rises_without_end_does_not_keep_the_warm_up():
    machine, reading = Machine(), iter(range(1, 10**6))
    bench = machine.bench(machine.function(1e-3))
    bench.megahertz = lambda: 2 ** min(next(reading), 1000)
    measure(bench)
    assert machine.now < engine.SETTLED_AFTER + 1


def test_a_clock_that_changed_is_told():
    assert clock_notes(()) == clock_notes((1980, 1850)) == []
    (note,) = clock_notes((1980, 1410))
    assert note.startswith("The GPU's clock went from 1980 to 1410 MHz: ")


def test_calls_without_a_wait_between_are_timed(monkeypatch):
    """Results of the first are there 200 µs after the call, those of the second at once."""
    machine = Machine(noise=0)
    monkeypatch.setattr(queued, "perf_counter", machine.clock)
    monkeypatch.setattr(queued.jax, "block_until_ready", lambda result: machine.function(result)())
    taken = {"late": (1e-6, 2e-4), "now": (1e-4, 0), "long": (2e-3, 0)}  # of the call, and of the wait

    def call(seconds, wait):
        machine.function(seconds)()
        return wait

    measured = Measured(3)
    measured.seconds = [[[sum(both)]] for both in taken.values()]
    calls = {name: [partial(call, *both)] for name, both in taken.items()}
    first = FirstCalls({}, "", (), True, lambda: ((), {}), 10**9)
    found = queued.time_queued(calls, first, measured, 0.5)
    assert found == pytest.approx({"late": 1e-6 + 2e-4 / 10, "now": 1e-4})
    assert 0.1 < machine.now < 0.11, "a tenth of the budget of each"


def test_a_call_that_is_shorter_without_a_wait_is_told():
    timings = [
        Timing(name, (1e-4,) * 20, 1, 1.0, queued=q) for name, q in (("f", 3e-5), ("g", 9e-5), ("h", None))
    ]
    assert queued_notes(timings) == ["With one wait after many calls, 'f' takes 30 µs a call, 'g' 90 µs."]
    assert queued_notes(timings[1:]) == []


def test_long_calls_and_those_that_need_much_memory_are_not_queued():
    big = jax.ShapeDtypeStruct((2**24,), "float32")
    setup = lambda: jnp.ones(big.shape)  # noqa: E731
    slow = lambda x: time.sleep(2e-3) or x  # noqa: E731
    assert compare({"f": slow}, jnp.ones(3), budget=0.02)["f"].queued is None
    assert compare({"f": lambda x: x}, setup=setup, budget=0.02)["f"].queued is None
    assert compare({"f": lambda x: [object()]}, jnp.ones(3), budget=0.02, check=None)["f"].queued is None


def by_hand(**changes):
    slow = Timing("one <by> one", (1e-3,) * 20, 1, 0.25)
    fast = Timing("jit", (1e-4,) * 20, 1, 0.5)
    fields = {"timings": (slow, fast), "baseline": "one <by> one", "control": Ratio(1.002, 0.99, 1.01)}
    return Comparison(**{**fields, "device": "cpu", "busy_cores": 0.0, "notes": ("A note.",), **changes})


def test_the_table_reads_well_in_a_terminal():
    assert repr(by_hand()).splitlines() == [
        "variant       time (10–90 %)       speedup (95 %)       verdict",
        "one <by> one  1.0 ms (1.0–1.0 ms)  ×1                   baseline",
        "jit           100 µs (100–100 µs)  ×10.00 (9.88–10.12)  faster",
        "A note.",
        "after warm-up, interleaved, each result waited for, 20 rounds; baseline against",
        "  itself 1.002 (should be 1)",
    ]


def test_a_long_name_is_cut_so_that_the_table_fits_a_terminal():
    timings = (Timing("x" * 60, (1e-3,) * 20, 1, 0.2), Timing("y" * 60, (0.2,) * 20, 1, 0.2))
    result = by_hand(timings=timings, baseline="x" * 60)
    assert max(map(len, repr(result).splitlines())) <= 80
    assert "x" * 60 in result._repr_html_()


def test_the_html_is_escaped_and_says_the_same():
    html = by_hand()._repr_html_()
    assert "one &lt;by&gt; one" in html
    assert "<script" not in html
    for cell in ("faster", "A note.", "baseline against itself 1.002 (should be 1)"):
        assert cell in unescape(html)


def test_the_dictionary_is_json_with_one_flat_record_for_each_variant():
    found = json.loads(json.dumps(by_hand().to_dict()))
    slow, fast = found["records"]
    assert (slow["variant"], slow["verdict"], fast["verdict"]) == ("one <by> one", "same", "faster")
    assert fast["speedup"] == pytest.approx(10)
    assert fast["speedup_low"] < 10 < fast["speedup_high"]
    assert fast["first_call"] == 0.5
    assert not any(isinstance(value, (list, dict)) for value in slow.values())


def with_copies(apart):
    rounds = (1e-4, 1e-4 * apart) * 20
    timings = (Timing("f", rounds, 1, 0.1, 2, 2), Timing("g", (1e-4,) * 40, 1, 0.1, 2, 2))
    return by_hand(timings=timings, baseline="f", notes=tuple(copy_notes(timings)))


def test_copies_that_differ_widen_every_interval_and_are_named():
    sure, unsure = with_copies(1.001), with_copies(1.15)
    assert sure.verdict("g") == "same"
    assert unsure.speedup("g").value == pytest.approx(1.07, abs=0.005)
    assert unsure.verdict("g") == "cannot tell"
    assert sure.notes == ()
    assert unsure.notes == (
        "Two compiled copies of 'f' differ by 15%, so two variants may differ as much by chance. The intervals "
        "allow for it.",
    )


def test_no_winner_is_named_against_the_fastest_tenth_of_the_blocks():
    slower = ((1e-4,) * 2 + (3e-4,) * 8) * 6  # other work hits it in most blocks
    result = by_hand(timings=(Timing("a", (1.2e-4,) * 60, 1, 0.1), Timing("b", slower, 1, 0.1)), baseline="a")
    assert result.speedup("b").high < 0.5
    assert result.verdict("b") == "cannot tell"
    assert "By its typical block 'b' is slower than 'a', by its fastest tenth it is not." in repr(result)


def test_any_two_variants_can_be_set_against_each_other():
    result = by_hand()
    assert result.speedup("one <by> one", over="jit").value == pytest.approx(0.1)
    assert result.verdict("one <by> one", over="jit") == "slower"


def test_an_unknown_variant_is_refused_with_the_known_ones():
    with pytest.raises(
        KeyError, match=r"There is no variant called 'jitted'. Use one of 'one <by> one', 'jit'"
    ):
        by_hand().speedup("jitted")


def test_the_rest_of_the_machine_is_what_this_program_did_not_use():
    before, after = Busy(10.0, 5.0, 100.0), Busy(12.0, 6.0, 104.0)
    assert before.cores_since(after) == 1.5
    assert before.cores_since(Busy(12.0, 6.0, None)) is None
    assert Busy(10.0, 5.0, 100.0).cores_since(Busy(12.0, 8.0, 100.0)) == 0


def test_where_the_system_does_not_tell_the_load_is_unknown(monkeypatch, tmp_path):
    monkeypatch.setattr(machine, "_STAT", tmp_path / "missing")
    assert Busy.now().cores_since() is None
    (tmp_path / "odd").write_text("cpu x y\n")
    monkeypatch.setattr(machine, "_STAT", tmp_path / "odd")
    assert Busy.now().cores_since() is None


def test_the_environment_scales_every_budget(monkeypatch):
    monkeypatch.setenv("JITGUIDE_BUDGET_SCALE", "0.01")
    slow = jax.jit(lambda x: x + 1)
    brief = compare({"a": slow, "b": slow}, jnp.ones(3), budget=0.5)
    monkeypatch.setenv("JITGUIDE_BUDGET_SCALE", "1")
    assert brief["a"].n < compare({"a": slow, "b": slow}, jnp.ones(3), budget=0.5)["a"].n


@pytest.mark.parametrize("scale", ["0", "-1", "inf", "nan", "half"])
def test_a_scale_that_is_not_a_positive_number_is_refused(monkeypatch, scale):
    monkeypatch.setenv("JITGUIDE_BUDGET_SCALE", scale)
    with pytest.raises(ValueError, match=r"JITGUIDE_BUDGET_SCALE must be a positive number, got '"):
        compare({"a": abs}, -1)
