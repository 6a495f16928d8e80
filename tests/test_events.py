"""A trace counts when the body ran: after a failed trace as well, and not when JAX only looked it up."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import _monitoring, assert_traces, watch


def x3():
    return jnp.asarray(np.ones(3, np.float32))


def failing_twice():
    runs = []

    @jax.jit
    def fails_twice(x):
        runs.append(1)
        if len(runs) < 3:
            raise KeyError("k")
        return x

    return fails_twice, runs


def test_each_trace_of_a_call_that_fails_at_first_is_counted():
    f, runs = failing_twice()
    x = x3()
    with watch() as seen:
        for _ in range(2):
            with pytest.raises(KeyError):
                f(x)
        f(x)
    assert len(runs) == seen.count("trace", f) == 3


def test_a_failed_trace_outside_of_the_block_is_known_inside():
    f, _ = failing_twice()
    x = x3()
    for _ in range(2):
        with pytest.raises(KeyError):
            f(x)
    with assert_traces(1, of=f):
        f(x)
    with assert_traces(0, of=f):
        f(x)


def test_an_exception_that_is_being_handled_is_not_that_of_the_trace():
    jitted, x = jax.jit(lambda x: x * 12), x3()
    jitted.lower(x)
    before = list(_monitoring._local.begun)
    try:
        raise KeyError("k")
    except KeyError:
        with assert_traces(0, of="<lambda>"):
            jitted(x)
    assert _monitoring._local.begun == before


@pytest.mark.parametrize("name", ["f", "<unnamed function>"])
def test_work_is_counted_by_name_in_all_threads(name):
    before = _monitoring.WORK.get(name, 0)
    _monitoring._on_duration("/jax/core/compile/backend_compile_duration", 0.1, fun_name=f"jit({name})")
    assert _monitoring.WORK.get(name, 0) == before + 1


def test_a_read_that_nobody_recorded_does_not_make_a_read_of_the_next_compile():
    compiled = "/jax/core/compile/backend_compile_duration"
    _monitoring._on_event("/jax/compilation_cache/cache_hits")
    _monitoring._on_duration(compiled, 0.1, fun_name="jit(before)")
    with _monitoring.recording() as events:
        _monitoring._on_duration(compiled, 0.1, fun_name="jit(now)")
    assert [(e.phase, e.function) for e in events] == [("compile", "now")]


@jax.jit
def inner(x):  # as `jnp.inner` is called too
    return x * 2


def test_a_function_of_yours_with_a_name_of_jax_is_yours():
    x = jnp.ones(7)
    with watch() as seen:
        inner(x)
        jnp.cbrt(x)
    assert {event.function: event.yours for event in seen.events} == {"inner": True, "cbrt": False}
    first_words = {line.split()[0] for line in str(seen).splitlines() if line.strip()}
    assert {"inner", "operations"} <= first_words
