"""Side effects and outside state."""

import random

import jax
import jax.numpy as jnp
import numpy as np
import pytest

EXPONENT = 5


def _power(x):
    return x**EXPONENT


@pytest.mark.claim(
    "print-runs-while-tracing-only",
    "A `print` in the body runs while tracing, so you see it on a first call and not on warm ones.",
    seeds="S000-05 S000-09 S000-13 S001-19 S001-20 S003-04 S003-05",
)
def test_print_runs_while_tracing_only(capsys):
    f = jax.jit(lambda x: (print("traced"), x**2)[1])
    f(2), f(4), f(8)
    assert capsys.readouterr().out == "traced\n"


@pytest.mark.wrong_twin("print-runs-while-tracing-only")
def test_wrong_twin_print_runs_at_every_call(capsys):
    f = jax.jit(lambda x: (print("traced"), x**2)[1])
    f(2), f(4), f(8)
    assert capsys.readouterr().out == "traced\n" * 3


@pytest.mark.claim(
    "side-effects-happen-once-per-trace",
    "A side effect is not erased, and is not random: it happens once per trace, and again with the next trace.",
    seeds="S000-09 S000-13 S001-19 S001-24",
)
def test_side_effects_happen_once_per_trace():
    effects = []
    f = jax.jit(lambda x: (effects.append(x.shape), x.sum())[1])
    for length in (3, 3, 4, 3, 5, 4):
        f(np.ones(length))
    assert effects == [(3,), (4,), (5,)]


@pytest.mark.claim(
    "file-is-written-once-per-trace",
    "A file written in the body is written while tracing, not at each call.",
    seeds="S000-12 S000-13",
)
def test_file_is_written_once_per_trace(tmp_path):
    log = tmp_path / "log.txt"

    @jax.jit
    def f(x):
        with log.open("a") as file:
            file.write("called\n")
        return x + 1

    f(1.0), f(2.0), f(3.0)
    assert log.read_text() == "called\n"


@pytest.mark.claim(
    "impure-function-is-accepted",
    "jit does not check for purity: an impure function is traced and run without error or warning.",
    seeds="S001-39",
)
def test_impure_function_is_accepted(recwarn):
    state = {"calls": 0}

    @jax.jit
    def f(x):
        state["calls"] += 1
        return x + state["calls"]

    assert [float(f(v)) for v in (0.0, 0.0, 0.0)] == [1.0, 1.0, 1.0]
    assert (state["calls"], len(recwarn)) == (1, 0)


@pytest.mark.claim(
    "plain-python-reads-the-global-each-time",
    "Without jit a function reads a global at each call: 2 to the power 5, then 10, gives 32 and 1024.",
    seeds="S000-15",
)
def test_plain_python_reads_the_global_each_time(monkeypatch):
    before = _power(2)
    monkeypatch.setitem(globals(), "EXPONENT", 10)
    assert (before, _power(2)) == (32, 1024)


@pytest.mark.claim(
    "global-is-frozen-by-the-trace",
    "The value of a global is frozen by the trace: a change is invisible to later hits.",
    seeds="S000-12 S000-14",
)
def test_global_is_frozen_by_the_trace(monkeypatch):
    f = jax.jit(lambda x: x**EXPONENT)
    assert f(2) == 32
    monkeypatch.setitem(globals(), "EXPONENT", 10)
    assert f(2) == 32


@pytest.mark.wrong_twin("global-is-frozen-by-the-trace")
def test_wrong_twin_global_is_read_at_each_call(monkeypatch):
    f = jax.jit(lambda x: x**EXPONENT)
    f(2)
    monkeypatch.setitem(globals(), "EXPONENT", 10)
    assert f(2) == 1024


@pytest.mark.claim(
    "fresh-wrapper-keeps-the-stale-global",
    "Wrapping the same function in `jax.jit` again does not refresh a global: the cached trace is reused.",
    seeds="S000-16",
)
def test_fresh_wrapper_keeps_the_stale_global(monkeypatch):
    def power(x):
        return x**EXPONENT

    first = jax.jit(power)(2)
    monkeypatch.setitem(globals(), "EXPONENT", 10)
    assert (first, jax.jit(power)(2)) == (32, 32)
    assert (str(first.dtype), first.weak_type) == ("int32", True)


@pytest.mark.claim(
    "new-signature-reads-the-new-global",
    "A call with new shapes or dtypes traces again and so picks up the present value of a global.",
    seeds="S000-14 S000-17",
)
def test_new_signature_reads_the_new_global(monkeypatch):
    f = jax.jit(lambda x: x**EXPONENT)
    assert f(2) == 32
    monkeypatch.setitem(globals(), "EXPONENT", 10)
    assert f(np.full(2, 2.0)).tolist() == [1024.0, 1024.0]
    assert f(2) == 32


@pytest.mark.claim(
    "clear-cache-reads-the-new-global",
    "`f.clear_cache()` on a jitted function makes the next call trace again, and so read the new values of "
    "globals.",
    seeds="S000-14",
)
def test_clear_cache_reads_the_new_global(monkeypatch):
    f = jax.jit(lambda x: x**EXPONENT)
    f(2)
    monkeypatch.setitem(globals(), "EXPONENT", 10)
    f.clear_cache()
    assert f(2) == 1024


@pytest.mark.claim(
    "argument-instead-of-global-is-fresh",
    "State passed as an argument is read at each call, without a new trace.",
    seeds="S000-14",
)
def test_argument_instead_of_global_is_fresh():
    runs = []
    f = jax.jit(lambda x, exponent: (runs.append(1), x**exponent)[1])
    assert (f(2, 5), f(2, 10)) == (32, 1024)
    assert len(runs) == 1


@pytest.mark.claim(
    "closure-variable-is-frozen-too",
    "A variable of an enclosing function is frozen by the trace just as a global is.",
    seeds="S000-12",
)
def test_closure_variable_is_frozen_too():
    scale = 2.0

    @jax.jit
    def f(x):
        return x * scale

    before = f(1.0)
    scale = 3.0
    assert (before, f(1.0)) == (2.0, 2.0)


@pytest.mark.claim(
    "numpy-array-of-a-closure-is-frozen",
    "A NumPy array used from outside is copied into a program when it is lowered: changing it in place "
    "later does not change that program, but the next one that the same trace gives has the new numbers.",
)
def test_numpy_array_of_a_closure_is_frozen():
    table = np.ones(3, np.float32)
    f = jax.jit(lambda x: x + table)
    assert f(1.0).tolist() == [2.0, 2.0, 2.0]
    table[:] = 100
    assert f(1.0).tolist() == [2.0, 2.0, 2.0]
    committed = jax.device_put(1.0, jax.devices()[0])  # another program of the same trace
    assert f(committed).tolist() == [101.0, 101.0, 101.0]


@pytest.mark.claim(
    "numpy-random-number-is-frozen",
    "A number drawn in the body with NumPy or `random` is drawn while tracing, and each later call repeats it.",
    seeds="S000-12",
)
def test_numpy_random_number_is_frozen():
    rng = np.random.default_rng(0)
    for draw in (rng.normal, np.random.random, random.random, random.Random(0).random):
        f = jax.jit(lambda x, draw=draw: x + draw())
        first = f(0.0)
        assert [float(f(0.0)) for _ in range(3)] == [float(first)] * 3
        assert f(np.float32(0)) != first


@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")  # has its own claim
@pytest.mark.claim(
    "iterator-argument-is-refused",
    "An iterator as argument of a jitted function is refused with a `TypeError`, before the body runs.",
    seeds="S000-18 S000-20",
)
def test_iterator_argument_is_refused():
    runs = []
    f = jax.jit(lambda xs: (runs.append(1), jnp.array([x**2 for x in xs]).sum())[1])
    for _ in range(2):
        with pytest.raises(TypeError, match="list_iterator"):
            f(iter([0.0, 1.0, 2.0]))
    assert runs == []


@pytest.mark.claim(
    "iterator-argument-is-about-to-fail-earlier",
    "An iterator argument now also warns that flattening one will become an error of its own.",
    seeds="S000-18",
)
def test_iterator_argument_is_about_to_fail_earlier():
    with pytest.warns(DeprecationWarning, match="will become an error"), pytest.raises(TypeError):
        jax.jit(lambda xs: xs)(iter([0.0]))


@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")  # has its own claim
@pytest.mark.claim(
    "not-a-valid-jax-type-is-said-of-results",
    "“Not a valid JAX type” is now said of a bad result; a bad argument cannot be read as an abstract array.",
    seeds="S000-20",
)
def test_not_a_valid_jax_type_is_said_of_results():
    with pytest.raises(TypeError, match="as an abstract array"):
        jax.jit(lambda xs: xs)(iter([0.0]))
    with pytest.raises(TypeError, match="not a valid JAX type"):
        jax.jit(lambda x: "done")(1.0)


@pytest.mark.claim(
    "list-argument-is-traced-element-by-element",
    "A Python list as argument works: each element is traced, and the list itself stays a Python list.",
    seeds="S000-19",
)
def test_list_argument_is_traced_element_by_element():
    seen = []

    @jax.jit
    def f(xs):
        seen.append((type(xs), all(isinstance(x, jax.core.Tracer) for x in xs)))
        return jnp.array([x**2 for x in xs]).sum()

    assert f([0.0, 1.0, 2.0]) == 5
    assert seen == [(list, True)]


@pytest.mark.claim(
    "local-accumulator-is-fine",
    "Rebinding a local variable in a Python loop is pure: sums over lists of 3 and 5 numbers are right.",
    seeds="S000-25",
)
def test_local_accumulator_is_fine():
    runs = []

    @jax.jit
    def f(xs):
        runs.append(len(xs))
        total = 0
        for x in xs:
            total += x**2
        return total

    short, long = f([0.0, 1.0, 2.0]), f([0.0, 1.0, 2.0, 3.0, 4.0])
    assert (short, long) == (5.0, 30.0)
    assert short.weak_type
    assert long.weak_type
    assert runs == [3, 5]


@pytest.mark.claim(
    "changing-a-list-argument-stays-inside",
    "The body gets a rebuilt list: appending to a list argument does not change the caller's list.",
)
def test_changing_a_list_argument_stays_inside():
    @jax.jit
    def f(xs):
        xs.append(10.0)
        return sum(xs)

    mine = [1.0, 2.0]
    assert (f(mine), f(mine)) == (13.0, 13.0)
    assert mine == [1.0, 2.0]


@pytest.mark.claim(
    "outer-iterator-advances-while-tracing-only",
    "`next()` on an iterator from outside advances while tracing: hits repeat the first element.",
    seeds="S000-12",
)
def test_outer_iterator_advances_while_tracing_only():
    numbers = iter([1.0, 10.0, 100.0])
    f = jax.jit(lambda x: x + next(numbers))
    assert [float(f(0.0)) for _ in range(3)] == [1.0, 1.0, 1.0]
    assert next(numbers) == 10.0


@pytest.mark.claim(
    "append-stores-one-tracer-per-trace",
    "Appending to an outer list stores one tracer per trace, and not a number.",
    seeds="S001-21 S001-24",
)
def test_append_stores_one_tracer_per_trace():
    kept = []
    f = jax.jit(lambda x: (kept.append(x**2), x**2)[1])
    f(4), f(8), f(16)
    assert [isinstance(y, jax.core.Tracer) for y in kept] == [True]
    f(4.0)
    assert [isinstance(y, jax.core.Tracer) for y in kept] == [True, True]


@pytest.mark.claim(
    "debug-print-runs-at-every-call",
    "`jax.debug.print` in the body prints the values at every call.",
    seeds="S000-13",
)
@pytest.mark.hostile(
    "scalar", "empty", "bfloat16", "complex", "vmap", "grad", "scan", "disable_jit", "bound method"
)
def test_debug_print_runs_at_every_call(capsys, case):
    @jax.jit
    def f(x):
        jax.debug.print("x is {x}", x=x)
        return x + x

    x, called = case.array, case.place(f)
    printed = []
    for _ in range(3):
        called(x)
        jax.effects_barrier()
        printed.append(sorted(capsys.readouterr().out.splitlines()))
    assert printed[0] == printed[1] == printed[2] != []
    if case.name != "vmap":
        assert f"x is {x}" in printed[0]


@pytest.mark.claim(
    "debug-callback-gets-values",
    "`jax.debug.callback` calls your Python function with values at every call of the jitted function.",
)
@pytest.mark.hostile("scalar", "empty", "int8", "complex", "jit", "vmap", "grad", "scan", "disable_jit")
def test_debug_callback_gets_values(case):
    got = []

    @jax.jit
    def f(x):
        jax.debug.callback(lambda v: got.append(np.asarray(v)), x)
        return x + x

    x, called = case.array, case.place(f)
    counts = []
    for _ in range(2):
        called(x)
        jax.effects_barrier()
        counts.append(len(got))
    assert counts[1] == 2 * counts[0] > 0
    if case.name != "vmap":
        assert all((value == np.asarray(x)).all() for value in got)


@pytest.mark.claim(
    "try-except-sees-tracing-errors-only",
    "`try` in the body catches what tracing raises; bad numbers at run time raise nothing there.",
)
def test_try_except_sees_tracing_errors_only():
    @jax.jit
    def f(x):
        try:
            return 1.0 / x
        except ZeroDivisionError:
            return jnp.float32(-1)

    assert np.isinf(f(0.0))
