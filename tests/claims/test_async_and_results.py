"""Results, and waiting for them."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.measured("how soon the work is done")
@pytest.mark.claim(
    "call-returns-before-the-work-is-done",
    "A jitted call may return before its result is computed; `block_until_ready` waits for it.",
    seeds="S001-06",
)
def test_call_returns_before_the_work_is_done():
    f = jax.jit(lambda a: a @ a @ a @ a)
    a = jax.device_put(np.ones((1500, 1500), np.float32))
    f(a).block_until_ready()
    results = []
    for _ in range(10):  # "may": one call in ten that was not ready proves it, also on a busy machine
        results.append(f(a))
        if not results[-1].is_ready():
            break
        results.pop()
    assert results
    assert results[-1].block_until_ready().is_ready()


@pytest.mark.claim(
    "block-until-ready-returns-its-argument",
    "`block_until_ready` gives back the same array, and `jax.block_until_ready` takes a tree of results.",
    seeds="S001-05 S001-06",
)
def test_block_until_ready_returns_its_argument():
    x = jax.jit(lambda x: x + 1)(np.ones(3))
    assert x.block_until_ready() is x
    tree = {"a": x, "b": [x * 2, 3]}
    assert jax.block_until_ready(tree)["b"][1] == 3


@pytest.mark.claim(
    "result-of-a-python-number-is-weak",
    "A result computed from Python numbers alone stays weakly typed: `2 ** 5` under jit is a weak int32.",
    seeds="S000-16 S003-09",
)
def test_result_of_a_python_number_is_weak():
    result = jax.jit(lambda x: x**5)(2)
    assert (int(result), str(result.dtype), result.weak_type) == (32, "int32", True)
    assert not jax.jit(lambda x: x**5)(np.int32(2)).weak_type


@pytest.mark.claim(
    "two-jitted-functions-two-programs",
    "Two functions jitted separately are two executables; one jitted function doing both is one.",
    seeds="S001-05 S001-25 S001-26",
)
def test_two_jitted_functions_two_programs(counted):
    def product(a, b):
        return jnp.matmul(a, b)

    def relu(x):
        return jnp.maximum(0.0, x)

    def both(a, b):
        c = product(a, b)
        return c, relu(c)

    a, b = np.ones((4, 5), np.float32), -np.ones((5, 6), np.float32)
    counted()
    separate = jax.jit(relu)(jax.jit(product)(a, b))
    assert counted()["compiles"] == 2
    c, together = jax.jit(both)(a, b)
    assert counted()["compiles"] == 1
    assert (c.shape, float(separate.sum()), float(together.sum())) == ((4, 6), 0.0, 0.0)


@pytest.mark.claim(
    "splitting-a-used-key-is-key-reuse",
    "Drawing from a key and then splitting that same key is key reuse; JAX's check raises `KeyReuseError`.",
    seeds="S001-05",
)
def test_splitting_a_used_key_is_key_reuse():
    with jax.debug_key_reuse(True):
        key = jax.random.key(0)
        assert jax.random.normal(key, [2, 3], dtype=jnp.float32).shape == (2, 3)
        with pytest.raises(jax.errors.KeyReuseError):
            jax.random.split(key)
        fresh = jax.random.split(jax.random.key(0))
        assert jax.random.normal(fresh[0], [2, 3]).shape == (2, 3)


@pytest.mark.wrong_twin("two-jitted-functions-two-programs")
def test_wrong_twin_two_jitted_functions_are_one_program(counted):
    double, increment = jax.jit(lambda x: x * 2), jax.jit(lambda x: x + 1)
    x = np.float32(1)
    counted()
    increment(double(x))
    assert counted()["compiles"] == 1


SYNCHRONOUS = """
import jax
import jax.numpy as jnp

jax.config.update("jax_cpu_enable_async_dispatch", False)
f = jax.jit(lambda a: a @ a @ a @ a)
a = jnp.ones((1000, 1000))
f(a).block_until_ready()
print(all(f(a).is_ready() for _ in range(10)))
"""


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "without-async-dispatch-a-call-waits",
    "With `jax_cpu_enable_async_dispatch` off, a call on a CPU returns when its result is ready.",
)
def test_without_async_dispatch_a_call_waits(child):
    assert child(SYNCHRONOUS) == "True\n"
