"""What is remembered of a watched function: earlier calls, raised calls, other threads, functions made again."""

import functools
import threading
import time

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import _monitoring, watch
from jitguide._watch import cache_model, reasons
from jitguide._watch.cache_model import _are_alike
from jitguide._watch.signature import signature_of

COMPILED, LEFT, HIT = "compiled", "left the fast path", "hit"


def ones(n, dtype=np.float32):
    return jnp.asarray(np.ones(n, dtype))


def power(x, p):
    return x**p


class Dense:
    def __init__(self, k):
        self.k = k

    def __call__(self, x):
        return x * self.k


def test_the_first_call_after_calls_that_were_not_watched_is_not_called_the_first():
    jitted = jax.jit(lambda x: x - 1)
    jitted(ones(3))
    f = watch(jitted)
    f(ones(4))
    assert (f.last.outcome, f.last.reason.kind) == (COMPILED, "not watched then")
    assert f.last.reason.sentence == "`<lambda>` is called in another way than before it was watched"


def test_calls_past_the_watched_object_are_not_forgotten():
    jitted = jax.jit(lambda x: x - 2)
    f = watch(jitted)
    jitted(ones(3))
    f(ones(4))
    assert f.last.reason.kind == "not watched then"


def test_a_first_hit_is_remembered():
    jitted = jax.jit(lambda x: x * 3)
    jitted(ones(3))
    f = watch(jitted)
    for x in (ones(3), ones(3, np.int32), ones(4)):
        f(x)
    assert [c.outcome for c in f.calls] == [HIT, COMPILED, COMPILED]
    assert f.last.reason.sentence == "`x` changed shape, float32[3] → float32[4]"
    assert (f.calls[1].reason.kind, f.calls[1].reason.before) == ("dtype", "float32[3]")


def test_a_first_hit_whose_program_is_cleared_is_known_to_have_been_there():
    jitted = jax.jit(lambda x: x * 4)
    jitted(ones(3))
    f = watch(jitted)
    f(ones(3))
    jax.clear_caches()
    f(ones(3))
    assert f.last.reason.kind == "caches cleared"


def test_the_call_after_one_that_raised_is_not_called_the_first():
    ok = []

    @watch
    @jax.jit
    def mended(x):
        if not ok:
            raise KeyError("k")
        return x

    for _ in range(2):
        with pytest.raises(KeyError):
            mended(ones(3))
    ok.append(1)
    mended(ones(3))
    assert str(mended.last.reason).startswith("This is the first call of `mended` that did not raise: ")
    assert mended.traces == 3


def test_a_program_whose_run_raised_is_compared_with():
    @watch
    @jax.jit
    def log(x):
        return jnp.log(x)

    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        log(-ones(3))
    log(ones(4))
    assert (log.last.reason.kind, log.last.reason.before) == ("shape", "float32[3]")


@pytest.mark.parametrize(
    ("make", "kind"),
    [
        (lambda k: Dense(k), "new function object"),
        (lambda k: functools.partial(power, p=k), "captured value"),
        (lambda k: jax.vmap(power, in_axes=((0, None), (1, None))[k > 2]), "first call"),
        (lambda k: lambda x, *rest: x * k, "captured value"),
    ],
    ids=["object", "partial", "vmap", "closure"],
)
def test_different_functions_of_the_same_code_are_told_by_what_they_hold(make, kind):
    functions = [watch(jax.jit(make(k))) for k in (2.0, 3.0)]
    for f in functions:
        f(
            jnp.ones((2, 2)),
            *([1.0] if f.__name__ == "power" and not hasattr(f.__wrapped__, "keywords") else []),
        )
    assert [f.last.reason.kind for f in functions] == ["first call", kind]


def decorated(fn):
    def inner(x):
        return fn(x)

    return inner


class Step:
    def __init__(self, config):
        self.config = config

    def run(self, x):
        return x * self.config["rate"]


def of_array(array):
    return lambda x: x * array


def of_numpy(array):
    return lambda x: array * x


@pytest.mark.parametrize(
    ("first", "second", "kind", "now"),
    [
        (decorated(jnp.sin), decorated(jnp.cos), "first call", ""),
        (decorated(lambda x: x + 1), decorated(lambda x: x + 2), "first call", ""),
        (Step({"rate": 2}).run, Step({"rate": 2}).run, "new function object", ""),
        (
            of_array(jnp.ones(4)),
            of_array(jnp.zeros(4)),
            "captured value",
            "array=Array([0., 0., 0., 0.], dtype=float32)",
        ),
        (
            of_numpy(np.ones(4)),
            of_numpy(np.ones(4)),
            "captured value",
            "array=another array that prints the same",
        ),
    ],
)
def test_what_two_living_functions_of_one_code_hold_is_named(first, second, kind, now):
    functions = [watch(jax.jit(fn)) for fn in (first, second)]
    for f in functions:
        f(ones(4))
    assert [f.last.reason.kind for f in functions] == ["first call", kind]
    if now:
        assert functions[1].last.reason.now == now


def test_the_same_function_made_twice_is_called_remade_while_both_live():
    def only_here(x, p):
        return x * p

    functions = [watch(jax.jit(functools.partial(only_here, p=7))) for _ in range(2)]
    for f in functions:
        f(ones(3))
    assert [f.last.reason.kind for f in functions] == ["first call", "new function object"]
    assert "from the same code as one before: " in str(functions[1].last.reason)


def test_a_living_function_keeps_its_history_when_its_neighbour_is_watched():
    one, other = (jax.jit(lambda x, k=k: x * k) for k in (1, 2))
    kept = []
    for n in (3, 4):
        for fn in (one, other):
            kept.append(watch(fn))
            kept[-1](ones(n))
    assert [w.last.reason.kind for w in kept] == ["first call", "captured value", "shape", "shape"]


def test_places_do_not_grow_with_functions_that_are_gone():
    for _ in range(5):
        f = watch(jax.jit(lambda x: x * 11))
    assert len(cache_model._places[cache_model._place_of(f.__wrapped__)]) <= 3


def test_many_kinds_of_calls_do_not_fill_the_memory():
    f = jax.jit(power, static_argnums=1)
    kinds = [signature_of(f, (1.0, n), {}) for n in range(120)]
    history = cache_model.History()
    for _ in range(2):
        for kind in kinds:
            history.learn(cache_model.Work("f", kind, reasons.TRACE, history.count))
        history.forget()
    assert history.count == 2 * len(kinds)
    assert len(history._forgotten) == cache_model._MAX_KNOWN
    history.learn(cache_model.Work("f", kinds[0], reasons.TRACE, history.count))
    assert len(history._known) == 1
    assert not history.is_slow(kinds[0])


@pytest.mark.parametrize(
    ("a", "b", "alike"),
    [
        (functools.partial(power, p=2), functools.partial(power, p=2), True),
        (functools.partial(power, p=2), functools.partial(power, p=3), False),
        (jax.grad(power), jax.grad(power), True),
        (jax.grad(power), jax.grad(power, argnums=1), False),
        (Dense(1).__call__, Dense(1).__call__, True),
        (jax.vmap(lambda x: [x]), jax.vmap(lambda x: {"a": x}), False),
        (power, watch, False),
    ],
)
def test_functions_are_alike_if_they_hold_the_same_values(a, b, alike):
    assert _are_alike(a, b) is alike
    assert _are_alike(a, a)


def test_a_function_with_a_name_that_is_not_bound_yet_is_one_made_again():
    def make():
        def early():
            return late

        yield early
        late = 1
        yield late

    one, other = next(make()), next(make())
    assert _are_alike(one, other)


def with_slow_kind():
    @watch
    @functools.partial(jax.jit, static_argnums=1)
    def talks(x, aloud):
        if aloud:
            jax.debug.callback(lambda v: None, x)
        return x + 1

    return talks


def test_a_kind_of_call_without_a_fast_path_does_not_make_other_hits_slow(monkeypatch):
    f = with_slow_kind()
    for n in (3, 4):
        f(ones(n), None)
    f(ones(3), 1)
    for aloud, n in ((None, 3), (None, 3), (1, 3), (1, 3)):
        f(ones(n), aloud)
    signatures = []
    monkeypatch.setattr("jitguide._watch.watch.signature_of", lambda *_: signatures.append(1))
    f(ones(3), None)
    assert f.last.outcome == HIT
    f(ones(3), 1)
    assert (f.last.outcome, f.last.reason.kind) == (LEFT, "no fast path")
    assert signatures == []


def test_cleared_caches_take_the_slow_kinds_with_them():
    f = with_slow_kind()
    f(ones(3), 1)
    assert f._history.has_slow
    f.clear_cache()
    assert not f._history.has_slow
    for _ in range(2):
        f(ones(3), 1)
    assert (f.last.outcome, f.last.reason.kind) == (LEFT, "no fast path")


def test_a_call_that_waited_for_another_thread_is_no_hit():
    @watch
    @jax.jit
    def slow_to_trace(x):
        begun.set()
        about_to_call.wait(10)
        time.sleep(0.3)
        return x + 1

    begun, about_to_call, x = threading.Event(), threading.Event(), ones(3)
    first = threading.Thread(target=slow_to_trace, args=(x,))
    first.start()
    begun.wait(10)
    about_to_call.set()
    slow_to_trace(x)
    first.join()
    assert sorted(c.outcome for c in slow_to_trace.calls) == [COMPILED, LEFT]
    assert {c.reason.kind for c in slow_to_trace.calls} == {"first call", "other thread"}
    slow_to_trace(x)
    assert slow_to_trace.last.outcome == HIT


def test_a_hit_while_another_thread_compiles_another_kind_stays_a_hit():
    f = watch(jax.jit(lambda x: x + 9))
    f(ones(3))
    jitted, compiled = f._jitted, "/jax/core/compile/backend_compile_duration"

    def beside_a_compile(x):
        event = (compiled, 0.1)
        other = threading.Thread(
            target=_monitoring._on_duration, args=event, kwargs={"fun_name": "jit(<lambda>)"}
        )
        other.start(), other.join()
        return jitted(x)

    f._jitted = beside_a_compile
    f(ones(3))
    assert (f.last.outcome, len(f._history._known)) == (HIT, 1)
