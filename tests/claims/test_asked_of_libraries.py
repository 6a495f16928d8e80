"""Keys that compare hashes, loop bounds from NumPy, imports, int4."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


class Shift:
    def __init__(self, by):
        self.by = by

    def __hash__(self):
        return hash((self.by,))

    def __eq__(self, other):
        return hash(self) == hash(other)


class ShiftByValue(Shift):
    __hash__ = Shift.__hash__

    def __eq__(self, other):
        return self.by == other.by


@pytest.mark.claim(
    "eq-by-hash-runs-another-function",
    "If the `__eq__` of a static value compares hashes, jit runs the function compiled for another value of that hash, "
    "such as −1 and −2 in Python, without an error; comparing the values avoids it.",
)
def test_eq_by_hash_runs_another_function():
    add = jax.jit(lambda x, shift: x + shift.by, static_argnums=1)
    assert hash(-1) == hash(-2)
    assert [add(0.0, Shift(-1)), add(0.0, Shift(-2))] == [-1, -1]
    assert [add(0.0, ShiftByValue(-1)), add(0.0, ShiftByValue(-2))] == [-1, -2]


@pytest.mark.wrong_twin("eq-by-hash-runs-another-function")
def test_wrong_twin_a_key_that_compares_hashes_is_safe():
    add = jax.jit(lambda x, shift: x + shift.by, static_argnums=1)
    assert [add(0.0, Shift(-1)), add(0.0, Shift(-2))] == [-1, -2]


@pytest.mark.claim(
    "loop-bound-from-numpy-wraps",
    "With 64-bit types off, a traced loop bound of `np.int64(2**32 + 5)` runs 5 iterations, without an error; the Python "
    "number raises `OverflowError`.",
)
def test_loop_bound_from_numpy_wraps():
    count = jax.jit(lambda steps: lax.fori_loop(0, steps, lambda i, total: total + 1, 0))
    assert count(np.int64(2**32 + 5)) == 5
    with pytest.raises(OverflowError):
        count(2**32 + 5)


@pytest.mark.claim(
    "reduce-function-cannot-use-a-tracer-from-outside",
    "The function of `jax.lax.reduce` raises an error if it uses a tracer from outside; the same function works in "
    "`jax.lax.associative_scan`, whose last result is the reduction.",
)
def test_reduce_function_cannot_use_a_tracer_from_outside():
    x = jnp.array([2.0, 5.0, 1.0])

    def combine_for(sharpness):
        return lambda a, b: jnp.logaddexp(sharpness * a, sharpness * b) / sharpness

    reduced = jax.jit(lambda x, s: lax.reduce(x, -jnp.inf, combine_for(s), (0,)))
    with pytest.raises((NotImplementedError, AssertionError), match=r"close over Tracers|Traced|JitTracer"):
        reduced(x, 2.0)
    scanned = jax.jit(lambda x, s: lax.associative_scan(combine_for(s), x)[-1])
    assert np.allclose(scanned(x, 2.0), jax.nn.logsumexp(2 * x) / 2, atol=1e-4)


@pytest.mark.claim(
    "vjp-function-crosses-jit",
    "A jitted function can return the pullback of `jax.vjp`, and another jitted function can take it; both compile once "
    "for equal shapes.",
)
def test_vjp_function_crosses_jit():
    traces = []

    def loss(w, x):
        traces.append("forward")
        return jnp.sum(jnp.tanh(x @ w))

    @jax.jit
    def backward(pullback, cotangent):
        traces.append("backward")
        return pullback(cotangent)

    forward = jax.jit(lambda w, x: jax.vjp(loss, w, x))
    w, x = jnp.ones((3, 3)), jnp.ones((2, 3))
    for scale in (1.0, 2.0):
        value, pullback = forward(scale * w, x)
        grads = backward(pullback, jnp.ones_like(value))
        assert sorted(traces) == ["backward", "forward"]
        for got, right in zip(
            grads, jax.grad(lambda w, x: jnp.sum(jnp.tanh(x @ w)), (0, 1))(scale * w, x), strict=True
        ):
            assert np.allclose(got, right, atol=1e-5)


IMPORTED = {
    "harmless": "f = jax.jit(lambda x: 2 * x); s = jax.ShapeDtypeStruct((3,), 'float32'); jax.eval_shape(f, s); jnp.finfo('float32')",
    "default": "def f(x, fill=jnp.array(0.0)): return x + fill",
    "constant": "ONE = jnp.float32(1)",
}


@pytest.mark.claim(
    "import-with-an-array-default-starts-jax",
    "A module whose function has `jnp.array(0.0)` as a default starts JAX's backend when it is imported, which "
    "`JAX_PLATFORMS=none` turns into an error; `jax.jit`, `eval_shape` and `jnp.finfo` start nothing.",
)
@pytest.mark.parametrize(("module", "starts"), [("harmless", False), ("default", True), ("constant", True)])
def test_import_with_an_array_default_starts_jax(module, starts):
    program = f"import jax, jax.numpy as jnp\n{IMPORTED[module]}"
    env = {**os.environ, "JAX_PLATFORMS": "none"}
    done = subprocess.run(
        [sys.executable, "-c", program], env=env, capture_output=True, text=True, timeout=100
    )
    assert (done.returncode != 0) is starts, done.stderr
    assert ("none" in done.stderr) is starts


@pytest.mark.claim(
    "int4-nbytes-counts-a-byte-an-element",
    "`nbytes` of an `int4` array counts a byte for each element, but the compiled function takes half of that; its sum "
    "raises `Invalid integer data type 'V'` unless you pass a dtype.",
)
@pytest.mark.platform("cpu")
def test_int4_nbytes_counts_a_byte_an_element():
    weights = jnp.ones((1000, 1000), "int4")
    use = jax.jit(lambda w: w.astype(jnp.float32).sum())
    assert weights.nbytes == 1_000_000
    assert use.lower(weights).compile().memory_analysis().argument_size_in_bytes == 500_000
    with pytest.raises(ValueError, match="Invalid integer data type 'V'"):
        weights.sum()
    assert jnp.sum(weights, dtype=jnp.int32) == 1_000_000
