"""Prints, stale values, leaked tracers, objects as arguments."""

import functools
import gc
import inspect
import io
import os
import pdb
import subprocess
import sys
import threading
import time
import weakref
from dataclasses import dataclass, field
from enum import Enum, IntEnum

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

LEAK = jax.errors.UnexpectedTracerError


@jax.jit
def _slow(x):
    return lax.fori_loop(0, 30, lambda i, x: x @ x / 600, x)


# Prints ---------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "debug-print-of-an-f-string-shows-a-tracer",
    "An f-string given to `jax.debug.print` is filled in while tracing: later calls show the same tracer.",
)
def test_debug_print_of_an_f_string_shows_a_tracer(capsys):
    @jax.jit
    def f(x):
        jax.debug.print(f"x is {x}")
        return x + 1

    for value in (np.float32(1), np.float32(2)):
        f(value)
        jax.effects_barrier()
    first, second = capsys.readouterr().out.splitlines()
    assert first == second
    assert "float32[]" in first  # the tracer, in the words of this release


@pytest.mark.claim(
    "debug-print-needs-a-field-for-each-value",
    "A value given to `jax.debug.print` without a field in the text raises `ValueError` while tracing.",
)
def test_debug_print_needs_a_field_for_each_value():
    @jax.jit
    def f(x):
        jax.debug.print("x is", x)
        return x + 1

    with pytest.raises(ValueError, match="Unused positional arguments"):
        f(1.0)


@pytest.mark.measured("how soon the program runs after the call has returned")
@pytest.mark.claim(
    "debug-print-may-come-after-the-call",
    "On a CPU, a call whose input is still being computed returns before its debug print has run; "
    "`jax.effects_barrier()` waits for it.",
)
def test_debug_print_may_come_after_the_call():
    order, returned = [], threading.Event()

    def say(value):
        returned.wait(10)
        order.append("printed")

    @jax.jit
    def report(x):
        jax.debug.callback(say, x[0, 0])
        return x

    x = jnp.ones((600, 600))
    returned.set()
    report(_slow(x))
    jax.effects_barrier()
    orders = []
    for _ in range(10):  # a race with the matrix products: one call in ten proves it
        order.clear()
        returned.clear()
        report(_slow(x))
        order.append("returned")
        returned.set()
        jax.effects_barrier()
        orders.append(list(order))
        if orders[-1] == ["returned", "printed"]:
            break
    assert ["returned", "printed"] in orders


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "waiting-for-the-result-waits-for-its-print",
    "On a CPU, `block_until_ready` on a result waited for the debug print of the program that makes it; "
    "what JAX promises is that `jax.effects_barrier()` waits.",
)
def test_waiting_for_the_result_waits_for_its_print():
    seen = []

    @jax.jit
    def report(x):
        jax.debug.callback(lambda value: (time.sleep(0.05), seen.append(1)), x[0, 0])
        return x

    report(_slow(jnp.ones((500, 500)))).block_until_ready()
    assert seen == [1]


_PROGRAM = """
import os, jax, jax.numpy as jnp
slow = jax.jit(lambda x: jax.lax.fori_loop(0, 30, lambda i, x: x @ x / 600, x))
report = jax.jit(lambda x: jax.debug.print("printed {x}", x=x[0, 0]))
x = jnp.ones((600, 600))
report(slow(x))
jax.effects_barrier()
print(flush=True)
report(slow(x))
"""


@pytest.mark.measured("whether the process ends before its print has run")
@pytest.mark.claim(
    "killed-process-loses-its-prints",
    "A program that ends in the ordinary way still shows its debug prints; one that is killed loses those "
    "that have not run.",
)
def test_killed_process_loses_its_prints():
    environment = {**os.environ, "JAX_PLATFORMS": "cpu"}

    def shown(end):
        command = [sys.executable, "-c", _PROGRAM + end]
        return subprocess.run(command, capture_output=True, text=True, env=environment).stdout

    assert shown("raise SystemExit(1)").split() == ["printed", "1.0"] * 2
    killed = [shown("os._exit(1)").split() for _ in range(3)]
    assert ["printed", "1.0"] in killed  # of two prints, one


@pytest.mark.measured("the runtime orders prints by what they wait for")
@pytest.mark.claim(
    "unordered-debug-prints-may-swap",
    "Prints without `ordered=True` may appear in another order than they are written in.",
)
def test_unordered_debug_prints_may_swap(capsys):
    @jax.jit
    def f(x):
        jax.debug.print("one")
        jax.debug.print("two {x}", x=x)
        jax.debug.print("three")
        return x

    printed = []
    for _ in range(10):  # "may": one call in ten proves it
        f(1.0)
        jax.effects_barrier()
        printed.append(capsys.readouterr().out.split())
    assert any(words != ["one", "two", "1.0", "three"] for words in printed)


@pytest.mark.claim(
    "tracing-alone-prints-nothing-at-run-time",
    "`make_jaxpr`, `eval_shape`, `lower` and `compile` do not run a `jax.debug.print`: they do not run the "
    "program.",
)
def test_tracing_alone_prints_nothing_at_run_time(capsys):
    f = jax.jit(lambda x: (jax.debug.print("ran {x}", x=x), x + 1)[1])
    jax.make_jaxpr(f)(1.0)
    jax.eval_shape(f, 1.0)
    f.lower(1.0).compile()
    jax.effects_barrier()
    assert capsys.readouterr().out == ""


@pytest.mark.claim(
    "prints-in-branches",
    "Both branches of a `cond` are traced, so a `print` in each shows; `jax.debug.print` shows in the one "
    "that is taken.",
)
def test_prints_in_branches(capsys):
    def branch(name):
        def run(x):
            print("tracing", name)
            jax.debug.print("running " + name)
            return x

        return run

    jax.jit(lambda x: lax.cond(x > 0, branch("yes"), branch("no"), x))(1.0)
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == ["tracing yes", "tracing no", "running yes"]


@pytest.mark.claim(
    "prints-in-loop-bodies",
    "A `print` in the body of `fori_loop` shows a tracer while JAX traces; `jax.debug.print` shows each iteration.",
)
def test_prints_in_loop_bodies(capsys):
    def body(i, x):
        print("tracing", i.shape)
        jax.debug.print("running {i}", i=i)
        return x + 1

    jax.jit(lambda x: lax.fori_loop(0, 3, body, x))(1.0)
    jax.effects_barrier()
    assert capsys.readouterr().out.splitlines() == ["tracing ()", "running 0", "running 1", "running 2"]


@pytest.mark.claim(
    "tracing-error-comes-before-any-debug-print",
    "An error while tracing comes before the `jax.debug.print` of that call has run; an ordinary `print` "
    "before the failing line shows.",
)
def test_tracing_error_comes_before_any_debug_print(capsys):
    @jax.jit
    def f(x):
        print("traced")
        jax.debug.print("ran {x}", x=x)
        return x if x > 0 else -x

    with pytest.raises(jax.errors.TracerBoolConversionError):
        f(1.0)
    jax.effects_barrier()
    assert capsys.readouterr().out == "traced\n"


@pytest.mark.wrong_twin("tracing-error-comes-before-any-debug-print")
def test_wrong_twin_debug_print_comes_before_the_error(capsys):
    @jax.jit
    def f(x):
        jax.debug.print("ran {x}", x=x)
        return x if x > 0 else -x

    with pytest.raises(jax.errors.TracerBoolConversionError):
        f(1.0)
    jax.effects_barrier()
    assert capsys.readouterr().out == "ran 1.0\n"


@pytest.mark.claim(
    "debugger-stops-in-the-trace",
    "Python's debugger stops in the body while tracing, and shows tracers with their shapes.",
)
def test_debugger_stops_in_the_trace():
    said = io.StringIO()

    @jax.jit
    def f(x):
        pdb.Pdb(stdin=io.StringIO("p x\np x.shape\nc\n"), stdout=said, nosigint=True).set_trace()
        return x + 1

    f(np.ones(3, np.float32))
    f(np.zeros(3, np.float32))
    assert said.getvalue().count("float32[3]") == 1
    assert "(3,)" in said.getvalue()


@pytest.mark.claim(
    "trace-shows-whether-a-print-is-left",
    "A function with a debug print in it has an effect in its jaxpr, and one without does not.",
)
def test_trace_shows_whether_a_print_is_left():
    talking = jax.jit(lambda x: (jax.debug.print("{x}", x=x), x + 1)[1])
    assert talking.trace(1.0).jaxpr.effects
    assert not jax.jit(lambda x: x + 1).trace(1.0).jaxpr.effects


@pytest.mark.claim(
    "debug-nans-runs-the-function-again",
    "When `debug_nans` finds a `nan`, JAX runs the function once more, one operation at a time: its debug "
    "prints show twice.",
)
def test_debug_nans_runs_the_function_again():
    seen = []

    @jax.jit
    def f(x):
        jax.debug.callback(lambda value: seen.append(float(value)), x)
        return jnp.log(x)

    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        f(-1.0)
    jax.effects_barrier()
    assert seen == [-1.0, -1.0]


# Values that are not seen ---------------------------------------------------------------------------------


@pytest.mark.claim(
    "whatever-python-reads-is-frozen",
    "What the body reads with Python is frozen: an attribute, a dict entry, an environment variable, a clock.",
)
def test_whatever_python_reads_is_frozen(monkeypatch):
    class Settings:
        scale = 2.0

    settings, table = Settings(), {"scale": 2.0}
    monkeypatch.setenv("SCALE_OF_THIS_TEST", "2.0")

    def scale_now():
        return float(os.environ["SCALE_OF_THIS_TEST"])

    functions = [
        jax.jit(lambda x: x * settings.scale),
        jax.jit(lambda x: x * table["scale"]),
        jax.jit(lambda x: x * scale_now()),
    ]
    clock = jax.jit(lambda x: x + time.perf_counter())
    before = [float(f(1.0)) for f in functions]
    first = clock(0.0)
    settings.scale = table["scale"] = 9.0
    monkeypatch.setenv("SCALE_OF_THIS_TEST", "9.0")
    assert before == [float(f(1.0)) for f in functions] == [2.0, 2.0, 2.0]
    assert clock(0.0) == first


@pytest.mark.claim(
    "default-value-is-frozen-while-left-out",
    "A default that is left out is a constant of the program: changing the default object is not seen.",
)
def test_default_value_is_frozen_while_left_out():
    scales = [2.0]

    @jax.jit
    def f(x, scales=scales):
        return x * scales[0]

    before = f(1.0)
    scales[0] = 9.0
    assert (before, f(1.0), f(1.0, scales)) == (2.0, 2.0, 9.0)


@pytest.mark.measured("whether Python writes before the program reads")
@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "numpy-argument-changed-too-early",
    "On a CPU a program may read a NumPy argument after the call has returned: what is written into the array "
    "too early is in the result, also behind `device_put`. A copy, or waiting for the result, prevents it.",
)
def test_numpy_argument_changed_too_early():
    raw = np.zeros(4 * 1024 + 64, np.uint8)
    start = -raw.ctypes.data % 64  # memory that is aligned so is used as it is
    buffer = raw[start : start + 4 * 1024].view(np.float32)

    @jax.jit
    def late_sum(x):
        return (x * _slow(jnp.ones((600, 600)))[0, 0]).sum()

    def total(prepare, wait=lambda result: None):
        buffer[:] = 1
        result = late_sum(prepare(buffer))
        wait(result)
        buffer[:] = 5
        return float(result)

    late_sum(buffer).block_until_ready()
    # Each try is a race: Python writes within microseconds, the program reads after 30 matrix products, some
    # 0.2 s later. Ten tries, for a machine that may stop Python for as long.
    for prepare in (lambda buffer: buffer, jax.device_put):
        assert 5 * 1024 in (total(prepare) for _ in range(10))
    assert total(np.copy) == total(jnp.array) == total(lambda buffer: buffer, jax.block_until_ready) == 1024


class _ByContent:
    def __init__(self, factor):
        self.factor = factor

    def __eq__(self, other):
        return isinstance(other, _ByContent) and self.factor == other.factor

    def __hash__(self):
        return hash(self.factor)


@pytest.mark.claim(
    "hash-by-content-does-not-allow-changes",
    "A static object whose hash follows its content and that is changed in place gives the old result on "
    "some versions of JAX and the new one on others; an object of its own for each content gives the new "
    "result on both.",
)
def test_hash_by_content_does_not_allow_changes():
    f = jax.jit(lambda x, s: x * s.factor, static_argnames="s")
    s = _ByContent(2.0)
    f(1.0, s=s)
    s.factor = 10.0
    changed = [float(f(1.0, s=s)), float(f(1.0, s=_ByContent(10.0)))]
    assert changed in ([2.0, 2.0], [10.0, 10.0])

    g = jax.jit(lambda x, s: x + s.factor, static_argnames="s")
    assert [float(g(1.0, s=_ByContent(v))) for v in (2.0, 10.0, 2.0)] == [3.0, 11.0, 3.0]


@pytest.mark.claim(
    "plain-dataclass-is-refused-as-static",
    "An instance of a plain `@dataclass` cannot be hashed, so it is refused as a static argument with a `ValueError`.",
)
def test_plain_dataclass_is_refused_as_static():
    @dataclass
    class Settings:
        factor: float = 2.0

    f = jax.jit(lambda x, settings: x * settings.factor, static_argnames="settings")
    with pytest.raises(ValueError, match="Non-hashable static arguments"):
        f(1.0, settings=Settings())


@dataclass(frozen=True)
class _Factor:
    value: float


@pytest.mark.claim(
    "frozen-dataclass-mixes-number-types",
    "Frozen dataclasses with `2` and with `2.0` are equal, and so are tuples, so as static arguments they share the "
    "program of the first; `2` and `2.0` themselves do not.",
)
def test_frozen_dataclass_mixes_number_types():
    f = jax.jit(lambda x, factor: x * factor.value, static_argnames="factor")
    assert [f(jnp.arange(2), factor=_Factor(v)).dtype for v in (2, 2.0)] == ["int32", "int32"]
    g = jax.jit(lambda x, factors: x * factors[0], static_argnames="factors")
    assert [g(jnp.arange(2), factors=(v,)).dtype for v in (2, 2.0)] == ["int32", "int32"]
    h = jax.jit(lambda x, factor: x * factor, static_argnames="factor")
    assert [h(jnp.arange(2), factor=v).dtype for v in (2, 2.0)] == ["int32", "float32"]


@pytest.mark.wrong_twin("frozen-dataclass-mixes-number-types")
def test_wrong_twin_frozen_dataclass_keeps_number_types_apart():
    f = jax.jit(lambda x, factor: x * factor.value, static_argnames="factor")
    assert [f(jnp.arange(2), factor=_Factor(v)).dtype for v in (2, 2.0)] == ["int32", "float32"]


@pytest.mark.claim(
    "user-context-puts-a-value-into-the-key",
    "A value set with `jax.make_user_context` is part of the key: a new one traces again, one seen before hits.",
)
def test_user_context_puts_a_value_into_the_key():
    mode, runs = jax.make_user_context("slow"), []

    @jax.jit
    def f(x):
        runs.append(mode.value)
        return x * (2 if mode.value == "fast" else 1)

    results = [float(f(1.0))]
    for name in ("fast", "slow", "fast"):
        with mode(name):
            results.append(float(f(1.0)))
    assert results == [1.0, 2.0, 1.0, 2.0]
    assert runs == ["slow", "fast"]


@pytest.mark.claim(
    "scan-over-stacked-batches-sees-each",
    "`scan` over a stacked array of batches sees each batch, in one trace for the whole loop.",
)
def test_scan_over_stacked_batches_sees_each():
    runs = []

    @jax.jit
    def total(batches):
        def step(carry, batch):
            runs.append(1)
            return carry + batch.sum(), None

        return lax.scan(step, jnp.float32(0), batches)[0]

    assert total(np.float32([[1, 2], [30, 40], [500, 600]])) == 1173
    assert len(runs) == 1


# Leaks ----------------------------------------------------------------------------------------------------


def _leaked():
    kept = []
    jax.jit(lambda x: (kept.append(x * 2), x)[1])(np.float32(1))
    return kept[0]


@pytest.mark.claim(
    "leaked-tracer-has-many-errors",
    "What a leaked tracer raises depends on the use: arithmetic, `jnp` and `if` raise "
    "`UnexpectedTracerError`, `np.array` raises `TracerArrayConversionError`, `float` raises "
    "`ConcretizationTypeError`, and a number format `TypeError`.",
)
def test_leaked_tracer_has_many_errors():
    tracer = _leaked()
    for use in (lambda: tracer + 1, lambda: jnp.sin(tracer), lambda: bool(tracer > 0)):
        with pytest.raises(LEAK):
            use()
    with pytest.raises(jax.errors.TracerArrayConversionError):
        np.array(tracer)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        float(tracer)
    with pytest.raises(TypeError, match="format"):
        f"{tracer:.2f}"


@pytest.mark.claim(
    "leak-message-names-the-line",
    "The message of `UnexpectedTracerError` names the line on which the leaked value was made.",
)
def test_leak_message_names_the_line():
    with pytest.raises(LEAK) as caught:
        _leaked() + 1
    line = inspect.getsourcelines(_leaked)[1] + 2
    assert f"test_howto_state.py:{line}:" in str(caught.value)


@pytest.mark.claim(
    "cache-filled-inside-a-trace-leaks",
    "A function with `lru_cache` that makes an array is filled with a tracer if its first call happens inside "
    "a trace; later uses raise `UnexpectedTracerError`.",
)
def test_cache_filled_inside_a_trace_leaks():
    @functools.lru_cache
    def table(n):
        return jnp.arange(n) * 2.0

    f = jax.jit(lambda x: x + table(3))
    assert f(1.0).tolist() == [1.0, 3.0, 5.0]
    assert isinstance(table(3), jax.core.Tracer)
    with pytest.raises(LEAK):
        table(3) + 1
    with pytest.raises(LEAK):
        jax.jit(lambda x: x * table(3))(1.0)


@pytest.mark.claim(
    "cache-of-values-is-safe",
    "The cache is safe if it is filled outside, or made with NumPy, or under `jax.ensure_compile_time_eval()`.",
)
def test_cache_of_values_is_safe():
    @functools.lru_cache
    def outside(n):
        return jnp.arange(n) * 2.0

    @functools.lru_cache
    def with_numpy(n):
        return np.arange(n) * 2.0

    @functools.lru_cache
    def computed(n):
        with jax.ensure_compile_time_eval():
            return jnp.arange(n) * 2.0

    outside(3)
    for table in (outside, with_numpy, computed):
        assert jax.jit(lambda x, table=table: x + table(3))(1.0).tolist() == [1.0, 3.0, 5.0]
        assert not isinstance(table(3), jax.core.Tracer)


@pytest.mark.claim(
    "trace-that-took-in-a-leak-keeps-failing",
    "A function that met a leaked tracer keeps failing after the leak is gone: its trace is cached with the "
    "tracer in it, until `clear_cache()`.",
)
def test_trace_that_took_in_a_leak_keeps_failing():
    runs, table = [], [_leaked()]

    @jax.jit
    def f(x):
        runs.append(1)
        return x + table[0]

    for _ in range(2):
        with pytest.raises(LEAK):
            f(1.0)
    table[0] = 5.0
    with pytest.raises(LEAK):
        f(1.0)
    assert len(runs) == 1
    f.clear_cache()
    assert f(1.0) == 6.0


@pytest.mark.claim(
    "value-kept-from-a-scan-body-raises",
    "A value kept from the body of a `scan` raises when it is used outside the body, also within the same "
    "jitted function.",
)
def test_value_kept_from_a_scan_body_raises():
    @jax.jit
    def f(xs):
        kept = []

        def body(total, x):
            kept.append(total + x)
            return total + x, None

        total, _ = lax.scan(body, jnp.float32(0), xs)
        return total + kept[0]

    with pytest.raises(LEAK):
        f(jnp.arange(3.0))


@pytest.mark.claim(
    "checking-leaks-overlooks-cached-calls",
    "`jax.checking_leaks()` checks traces: a call that hits the cache is not checked.",
)
def test_checking_leaks_overlooks_cached_calls():
    kept = []

    @jax.jit
    def f(x):
        kept.append(x * 2)
        return x

    f(1.0)
    with jax.checking_leaks():
        assert f(1.0) == 1.0
    f.clear_cache()
    with jax.checking_leaks(), pytest.raises(Exception, match="Leaked"):
        f(1.0)


@pytest.mark.claim(
    "checking-leaks-names-the-holder",
    "The message of `jax.checking_leaks()` names what holds the tracer, such as a list of a module.",
)
def test_checking_leaks_names_the_holder():
    class Model:
        pass

    model = Model()

    @jax.jit
    def f(x):
        model.last_loss = x * 2
        return x

    with jax.checking_leaks(), pytest.raises(Exception, match="last_loss"):
        f(1.0)


@pytest.mark.claim(
    "disable-jit-stores-numbers",
    "Under `jax.disable_jit()`, without `vmap` or `grad` around it, the body stores numbers outside, at "
    "each call.",
)
def test_disable_jit_stores_numbers():
    kept = []
    f = jax.jit(lambda x: (kept.append(x * 2), x)[1])
    with jax.disable_jit():
        f(1.0), f(2.0)
    assert [float(v) for v in kept] == [2.0, 4.0]


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weights"], meta_fields=[])
@dataclass
class _Model:
    weights: jax.Array

    @functools.cached_property
    def norm(self):
        computed.append(1)
        return jnp.sqrt((self.weights**2).sum())


computed = []


@pytest.mark.claim(
    "cached-property-does-not-cross-jit",
    "A `cached_property` of a registered class is not a leaf: it is computed again in each trace, and what "
    "is cached there stays there.",
)
def test_cached_property_does_not_cross_jit():
    computed.clear()
    model = _Model(jnp.ones(4))
    assert (float(model.norm), len(computed)) == (2.0, 1)
    passed = jax.jit(lambda m: (m.norm + m.norm, m)[1])(model)
    assert len(computed) == 2
    assert "norm" in vars(model)
    assert "norm" not in vars(passed)


@pytest.mark.claim(
    "cached-property-of-an-outside-object-leaks",
    "A `cached_property` of an object from outside, first read inside a trace, keeps a tracer.",
)
def test_cached_property_of_an_outside_object_leaks():
    model = _Model(jnp.ones(4))
    assert jax.jit(lambda x: x * model.norm)(1.0) == 2.0
    assert isinstance(model.norm, jax.core.Tracer)
    with pytest.raises(LEAK):
        model.norm + 1


# Methods and classes --------------------------------------------------------------------------------------


@pytest.mark.claim(
    "static-self-keeps-the-object-alive",
    "An object that was a static argument is kept alive by the cache, with its arrays, until "
    "`jax.clear_caches()`; a registered one is not kept.",
)
def test_static_self_keeps_the_object_alive():
    class Static:
        @functools.partial(jax.jit, static_argnames="self")
        def double(self, x):
            return 2 * x

    @jax.tree_util.register_dataclass
    @dataclass
    class Registered:
        weights: jax.Array

        @jax.jit
        def double(self, x):
            return 2 * x

    def is_kept(thing):
        thing.double(1.0)
        ghost = weakref.ref(thing)
        del thing
        gc.collect()
        return ghost

    kept, freed = is_kept(Static()), is_kept(Registered(jnp.ones(3)))
    assert (kept() is None, freed() is None) == (False, True)
    Static.double.clear_cache()
    gc.collect()
    assert kept() is not None
    jax.clear_caches()
    gc.collect()
    assert kept() is None


@jax.tree_util.register_pytree_node_class
class _Halved:
    def __init__(self, theta):
        self.theta = theta // 2

    def tree_flatten(self):
        return (self.theta,), None

    @classmethod
    def tree_unflatten(cls, _, leaves):
        return cls(*leaves)


@pytest.mark.claim(
    "unflatten-that-calls-init-runs-it-again",
    "If `tree_unflatten` calls `__init__`, its arithmetic runs again on the way in and on the way out.",
)
def test_unflatten_that_calls_init_runs_it_again():
    angle = _Halved(100.0)
    inside = jax.jit(lambda a: a.theta)(angle)
    assert (angle.theta, float(inside), float(jax.jit(lambda a: a)(angle).theta)) == (50.0, 25.0, 12.0)


@pytest.mark.claim(
    "unflatten-without-init-keeps-values",
    "A `tree_unflatten` that fills a bare object in place of calling `__init__` gives back what went in.",
)
def test_unflatten_without_init_keeps_values():
    @jax.tree_util.register_pytree_node_class
    class Angle(_Halved):
        @classmethod
        def tree_unflatten(cls, _, leaves):
            angle = object.__new__(cls)
            (angle.theta,) = leaves
            return angle

    angle = Angle(100.0)
    inside = jax.jit(lambda a: a.theta)(angle)
    assert (angle.theta, float(inside), float(jax.jit(lambda a: a)(angle).theta)) == (50.0, 50.0, 50.0)


@pytest.mark.claim(
    "unflatten-gets-more-than-arrays",
    "JAX also rebuilds registered objects from things other than arrays: tracers, shapes, axis numbers and `None`.",
)
def test_unflatten_gets_more_than_arrays():
    seen = []

    @jax.tree_util.register_dataclass
    @dataclass
    class Box:
        w: jax.Array

        def __post_init__(self):
            seen.append(type(self.w))

    box = Box(jnp.ones((3, 2)))
    seen.clear()
    jax.jit(lambda b: b)(box)
    assert any(issubclass(kind, jax.core.Tracer) for kind in seen)
    jax.eval_shape(lambda b: b, box)
    assert jax.ShapeDtypeStruct in seen
    jax.vmap(lambda b: b.w.sum(), in_axes=(Box(0),))(box)
    assert int in seen
    jax.tree.map(lambda _: None, box)
    assert type(None) in seen


@pytest.mark.claim(
    "validation-in-the-constructor-breaks-vmap",
    "A registered class that checks shapes in its constructor works under jit and fails under `vmap`.",
)
def test_validation_in_the_constructor_breaks_vmap():
    @jax.tree_util.register_dataclass
    @dataclass
    class Table:
        w: jax.Array

        def __post_init__(self):
            if self.w.ndim != 2:
                raise ValueError(f"a table has two axes, this has {self.w.ndim}")

    table = Table(jnp.ones((3, 2)))
    assert jax.jit(lambda t: t.w.sum())(table) == 6
    with pytest.raises((ValueError, AttributeError), match=r"two axes, this has 1|no attribute 'ndim'"):
        jax.vmap(lambda t: t.w.sum())(table)


@pytest.mark.claim(
    "jit-keeps-name-doc-and-signature",
    "A jitted function keeps name, docstring, annotations and signature, and `__wrapped__` is the original.",
)
def test_jit_keeps_name_doc_and_signature():
    def area(r: float, n: int = 2) -> float:
        """Return an area."""
        return r * n

    for jitted in (jax.jit(area), jax.jit(static_argnames="n")(area)):
        assert (jitted.__name__, jitted.__doc__) == ("area", "Return an area.")
        assert inspect.signature(jitted) == inspect.signature(area)
        assert jitted.__annotations__ == area.__annotations__
        assert jitted.__wrapped__ is area


@pytest.mark.claim(
    "jit-is-annotated-without-the-parameters",
    "`jax.jit` is annotated to return a `JitWrapped`, whose call takes `*args, **kwargs`: a type checker does "
    "not see your parameters.",
)
def test_jit_is_annotated_without_the_parameters():
    assert "JitWrapped" in str(inspect.signature(jax.jit).return_annotation)
    kinds = [p.kind for p in inspect.signature(jax.stages.Wrapped.__call__).parameters.values()]
    assert kinds[1:] == [inspect.Parameter.VAR_POSITIONAL, inspect.Parameter.VAR_KEYWORD]


# Structured arguments -------------------------------------------------------------------------------------


@pytest.mark.claim(
    "refused-argument-is-named-by-its-path",
    "The error about an argument that is not an array names its path, such as `options['mode']`.",
)
def test_refused_argument_is_named_by_its_path():
    f = jax.jit(lambda options: options["x"])
    with pytest.raises(TypeError, match=r"options\['mode'\]"):
        f({"x": 1.0, "mode": "train"})


@pytest.mark.claim(
    "function-argument-is-refused",
    "A function passed as a traced argument raises `TypeError`, whether it is jitted or not.",
)
def test_function_argument_is_refused():
    apply = jax.jit(lambda fn, x: fn(x))
    for fn in (abs, lambda x: x, jnp.sin):
        with pytest.raises(TypeError, match="as an abstract array"):
            apply(fn, 1.0)


@pytest.mark.claim(
    "static-dict-is-refused",
    "A dict as a static argument raises `ValueError`, since it cannot be hashed; a tuple of its items is "
    "taken.",
)
def test_static_dict_is_refused():
    f = jax.jit(lambda x, options: x * dict(options)["scale"], static_argnames="options")
    with pytest.raises(ValueError, match="Non-hashable"):
        f(1.0, options={"scale": 3.0})
    assert f(1.0, options=(("scale", 3.0),)) == 3.0


@pytest.mark.claim(
    "enum-is-refused-and-int-enum-is-traced",
    "A member of an `Enum` is refused as a traced argument; one of an `IntEnum` is a number, and is traced.",
)
def test_enum_is_refused_and_int_enum_is_traced():
    class Mode(Enum):
        TRAIN = 1

    class Level(IntEnum):
        LOW = 1

    f = jax.jit(lambda x: x)
    with pytest.raises(TypeError, match="as an abstract array"):
        f(Mode.TRAIN)
    assert f(Level.LOW) == 1
    assert (
        jax.jit(lambda x, mode: x if mode is Mode.TRAIN else -x, static_argnames="mode")(3.0, mode=Mode.TRAIN)
        == 3
    )


@pytest.mark.claim(
    "register-dataclass-goes-on-top",
    "`register_dataclass` must stand above `@dataclass`: below it raises `TypeError`.",
)
def test_register_dataclass_goes_on_top():
    parameters = inspect.signature(jax.tree_util.register_dataclass).parameters
    if parameters["data_fields"].default is inspect.Parameter.empty:
        pytest.skip("not applicable: register_dataclass is no decorator in this JAX")
    with pytest.raises(TypeError, match="not a dataclass"):

        @dataclass
        @jax.tree_util.register_dataclass
        class Wrong:
            x: float


@pytest.mark.claim(
    "tree-static-marks-a-static-field",
    "`jax.tree.static()` marks a field of a registered dataclass as static, as the metadata `static` does.",
)
def test_tree_static_marks_a_static_field():
    @jax.tree_util.register_dataclass
    @dataclass
    class One:
        x: float
        mode: str = jax.tree.static(default="a")

    @jax.tree_util.register_dataclass
    @dataclass
    class Two:
        x: float
        mode: str = field(default="a", metadata={"static": True})

    for kind in (One, Two):
        assert jax.tree.leaves(kind(1.0)) == [1.0]
        assert jax.jit(lambda d: d)(kind(1.0)).mode == "a"


def _grid():
    @jax.tree_util.register_dataclass
    @dataclass
    class Grid:
        values: jax.Array
        points: np.ndarray = field(metadata={"static": True})

    return Grid, jax.jit(lambda grid: grid.values.sum() + grid.points.sum())


@pytest.mark.claim(
    "static-field-array-is-compared-by-identity-first",
    "The same array in a static field passes again, and if it is changed in place the old result comes back.",
)
def test_static_field_array_is_compared_by_identity_first():
    grid, total = _grid()
    points = np.ones(2)
    before = total(grid(jnp.ones(2), points))
    points[:] = 100
    assert (before, total(grid(jnp.ones(2), points))) == (4.0, 4.0)


@pytest.mark.claim(
    "static-field-array-fails-with-ambiguous-truth",
    "The error about metadata fields is caused by NumPy's: the truth value of an array is ambiguous.",
)
def test_static_field_array_fails_with_ambiguous_truth():
    grid, total = _grid()
    total(grid(jnp.ones(2), np.ones(2)))
    with pytest.raises(ValueError, match=r"metadata fields|truth value of an array") as caught:
        total(grid(jnp.ones(2), np.ones(2)))
    assert "truth value of an array" in f"{caught.value} {caught.value.__cause__}"


@pytest.mark.claim(
    "static-field-may-be-a-list",
    "A static field of a registered dataclass does not need a hash: a list is accepted, an equal list "
    "hits, and a list that was changed in place gives the old result.",
)
def test_static_field_may_be_a_list():
    @jax.tree_util.register_dataclass
    @dataclass
    class Layer:
        x: float
        factors: list = field(metadata={"static": True})

    runs, factors = [], [2.0]
    f = jax.jit(lambda layer: runs.append(1) or layer.x * layer.factors[0])
    assert (f(Layer(1.0, factors)), f(Layer(1.0, [2.0]))) == (2.0, 2.0)
    factors[0] = 9.0
    assert f(Layer(1.0, factors)) == 2.0
    assert len(runs) == 1


@pytest.mark.claim(
    "result-error-names-type-and-place",
    "The error about a result that is not an array names its type and its place in the result.",
)
def test_result_error_names_type_and_place():
    f = jax.jit(lambda x: {"value": x, "mode": "train"})
    with pytest.raises(TypeError, match=r"<class 'str'>") as caught:
        f(1.0)
    assert "['mode']" in str(caught.value)


@pytest.mark.claim(
    "python-numbers-come-back-weak",
    "A Python int or float in a result comes back as a weakly typed array, a bool as a bool array, and "
    "`None` as `None`.",
)
def test_python_numbers_come_back_weak():
    result = jax.jit(lambda x: (x.shape[0], 1.5, True, None))(jnp.ones(3))
    types = [(str(v.dtype), v.weak_type) for v in result[:3]]
    assert types == [("int32", True), ("float32", True), ("bool", False)]
    assert result[3] is None


@pytest.mark.claim(
    "static-field-comes-back-as-it-was",
    "A string in a static field of a registered dataclass may be part of a result, and comes back unchanged.",
)
def test_static_field_comes_back_as_it_was():
    @jax.tree_util.register_dataclass
    @dataclass
    class Result:
        value: jax.Array
        unit: str = field(metadata={"static": True})

    result = jax.jit(lambda x: Result(2 * x, "metre"))(1.0)
    assert (float(result.value), result.unit) == (2.0, "metre")


@pytest.mark.wrong_twin("static-field-comes-back-as-it-was", raises=TypeError)
def test_wrong_twin_plain_string_comes_back():
    assert jax.jit(lambda x: (2 * x, "metre"))(1.0)[1] == "metre"


@pytest.mark.wrong_twin("whatever-python-reads-is-frozen")
def test_wrong_twin_dict_entry_is_read_each_time():
    table = {"scale": 2.0}
    f = jax.jit(lambda x: x * table["scale"])
    f(1.0)
    table["scale"] = 9.0
    assert f(1.0) == 9.0


@pytest.mark.wrong_twin("static-self-keeps-the-object-alive")
def test_wrong_twin_static_object_is_freed():
    class Thing:
        pass

    thing = Thing()
    jax.jit(lambda x, t: x, static_argnums=1)(1.0, thing)
    ghost = weakref.ref(thing)
    del thing
    gc.collect()
    assert ghost() is None


@pytest.mark.wrong_twin("cached-property-does-not-cross-jit")
def test_wrong_twin_cached_property_is_carried_along():
    computed.clear()
    model = _Model(jnp.ones(4))
    assert model.norm == 2.0
    jax.jit(lambda m: m.norm)(model)
    assert len(computed) == 1
