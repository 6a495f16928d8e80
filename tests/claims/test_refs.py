"""Mutable arrays: jax.new_ref."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

pytestmark = pytest.mark.skipif(
    not hasattr(jax, "new_ref"), reason="not applicable: this release has no jax.new_ref"
)


@pytest.mark.claim(
    "ref-argument-changes-for-the-caller",
    "A jitted function that writes to a `Ref` argument changes it for the caller, at each call, in one trace.",
)
def test_ref_argument_changes_for_the_caller():
    traces = []

    @jax.jit
    def count(ref):
        traces.append(1)
        ref[...] += 1

    for ref in (jax.new_ref(jnp.int32(0)), jax.new_ref(jnp.int32(0))):
        for _ in range(3):
            count(ref)
        assert ref[...] == 3
    assert len(traces) == 1


@pytest.mark.claim(
    "ref-outside-is-read-at-each-call",
    "A `Ref` that a jitted function reads from outside is not frozen by the trace: each call reads its present value.",
)
@pytest.mark.hostile("scalar", "empty", "matrix", "uniform", "bfloat16", "int8")
def test_ref_outside_is_read_at_each_call(case):
    ref = jax.new_ref(case.array)
    read = jax.jit(lambda: ref[...] + 1)
    np.testing.assert_array_equal(read(), case.array + 1)
    ref[...] = case.array + case.array
    np.testing.assert_array_equal(read(), case.array + case.array + 1)


@pytest.mark.wrong_twin("ref-outside-is-read-at-each-call")
def test_wrong_twin_ref_outside_is_frozen():
    ref = jax.new_ref(jnp.zeros(3))
    read = jax.jit(lambda: ref[...] + 1)
    before = read()
    ref[...] = jnp.full(3, 5.0)
    np.testing.assert_array_equal(read(), before)


@pytest.mark.claim(
    "ref-index-out-of-range-is-moved-inside",
    "Under jit, a traced index beyond the end of a `Ref` reads the last entry, and a write there overwrites it.",
)
def test_ref_index_out_of_range_is_moved_inside():
    @jax.jit
    def read_and_write(ref, i):
        value = ref[i]
        ref[i] = jnp.float32(9.0)
        return value

    ref = jax.new_ref(jnp.arange(3.0))
    assert read_and_write(ref, 7) == 2
    assert ref[...].tolist() == [0, 1, 9]


@pytest.mark.claim(
    "new-ref-copies-the-array", "`jax.new_ref(x)` leaves `x` as it is: later writes do not reach it."
)
def test_new_ref_copies_the_array():
    x = jnp.ones(1000)
    ref = jax.new_ref(x)
    ref[0] = 5.0
    assert (x[0], ref[0]) == (1, 5)


@pytest.mark.claim(
    "ref-result-is-refused", "A jitted function cannot return a `Ref`: it raises `ValueError`."
)
def test_ref_result_is_refused():
    with pytest.raises(ValueError, match="cannot be returned"):
        jax.jit(jax.new_ref)(jnp.ones(2))


@pytest.mark.claim(
    "ref-passed-twice-is-refused",
    "Passing one `Ref` as two arguments of a jitted function raises `ValueError`.",
)
def test_ref_passed_twice_is_refused():
    ref = jax.new_ref(jnp.ones(2))
    with pytest.raises(ValueError, match="only one reference"):
        jax.jit(lambda a, b: a[...] + b[...])(ref, ref)


@pytest.mark.claim(
    "ref-write-needs-shape-and-dtype",
    "A write to a `Ref` is not broadcast: a scalar into `ref[...]` of an array raises `ValueError`.",
)
def test_ref_write_needs_shape_and_dtype():
    ref = jax.new_ref(jnp.ones(3))
    with pytest.raises(ValueError, match="shape"):
        ref[...] = 0.0
    ref[...] = jnp.zeros(3)
    assert ref[...].tolist() == [0, 0, 0]


@pytest.mark.claim(
    "ref-accumulates-in-a-scan",
    "The body of a `scan` or of a `fori_loop` may write to a `Ref` from outside it, also under `grad` and `vmap`.",
)
def test_ref_accumulates_in_a_scan():
    def by_scan(x):
        ref = jax.new_ref(jnp.zeros_like(x))

        def body(carry, _):
            ref[...] += x * x
            return carry, None

        lax.scan(body, 0, length=3)
        return jax.freeze(ref)

    def by_fori(x):
        ref = jax.new_ref(jnp.zeros_like(x))

        def body(_, carry):
            ref[...] += x * x
            return carry

        lax.fori_loop(0, 3, body, 0)
        return jax.freeze(ref)

    for function in (by_scan, by_fori):
        assert jax.jit(function)(2.0) == 12
        assert jax.jit(jax.grad(function))(2.0) == 12
        assert jax.jit(jax.vmap(function))(jnp.arange(3.0)).tolist() == [0, 3, 12]


@pytest.mark.claim(
    "gradient-through-a-ref-outside-raises",
    "A function that writes a differentiated value to a `Ref` that it did not make or take cannot be differentiated.",
)
def test_gradient_through_a_ref_outside_raises():
    ref = jax.new_ref(jnp.zeros(3))

    def loss(x):
        ref[...] = x * 2
        return jnp.sum(ref[...])

    with pytest.raises(Exception, match="differentiated value"):
        jax.grad(loss)(jnp.ones(3))


def copied(function, dtype=jnp.float32):
    """Return the bytes that a jitted function of a large `Ref` needs besides it."""
    ref = jax.new_ref(jnp.zeros(100_000, dtype))
    return jax.jit(function).lower(ref).compile().memory_analysis().temp_size_in_bytes


@pytest.mark.claim(
    "ref-write-alone-copies-nothing",
    "A jitted function that adds to an element of a `float32`, integer or complex `Ref`, once or in a loop, and "
    "returns nothing makes no copy of it.",
)
@pytest.mark.hostile("int8", "complex")
def test_ref_write_alone_copies_nothing(case):
    def once(ref):
        ref[0] += 1

    def loop(ref):
        lax.fori_loop(0, 100, lambda i, c: (ref.__setitem__(i, ref[i] + 1), c)[1], 0)

    for function in (once, loop):
        assert copied(function, case.array.dtype) < 10_000


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "returned-element-of-a-ref-may-copy-it",
    "On a CPU, a function that adds to an element of a `Ref` and also returns the new element copies the whole array.",
)
def test_returned_element_of_a_ref_may_copy_it():
    def both(ref):
        new = ref[0] + 1.0
        ref[0] = new
        return new

    assert copied(both) >= 400_000


def steps_until_written(ref):
    def step(i):
        ref[...] = jnp.int32(1)
        return i + 1

    return lax.while_loop(lambda i: (i < 5) & (ref[...] == 0), step, 0)


@pytest.mark.claim(
    "condition-of-a-while-loop-does-not-see-writes-to-a-ref",
    "Under jit, the condition of `lax.while_loop` reads a `Ref` as it was before the loop, and not what the body wrote to it.",
)
def test_condition_of_a_while_loop_does_not_see_writes_to_a_ref():
    ref = jax.new_ref(jnp.int32(0))
    assert jax.jit(steps_until_written)(ref) == 5  # had the condition seen the 1, it would have been one step
    assert ref[...] == 1


@pytest.mark.wrong_twin("condition-of-a-while-loop-does-not-see-writes-to-a-ref")
def test_wrong_twin_the_condition_sees_the_write():
    assert jax.jit(steps_until_written)(jax.new_ref(jnp.int32(0))) == 1


@pytest.mark.claim(
    "checkpoint-writes-to-a-ref-twice",
    "The gradient of a function under `jax.checkpoint` writes to a ref twice, once in the forward pass and once in the "
    "recomputation; without `jax.checkpoint` once.",
)
@pytest.mark.parametrize("wrap", [jax.jit, lambda f: f])
def test_checkpoint_writes_to_a_ref_twice(wrap):
    for change, writes in ((lambda f: f, 1), (jax.checkpoint, 2)):
        calls = jax.new_ref(jnp.int32(0))

        @change
        def f(x, calls=calls):
            calls[...] += 1
            return jnp.sin(jnp.sin(x))

        wrap(jax.grad(f))(1.0)
        assert calls[...] == writes


@pytest.mark.claim(
    "error-at-run-time-loses-a-ref",
    "If a callback in a jitted function raises, a ref that the function got is deleted; an error during tracing leaves it.",
)
def test_error_at_run_time_loses_a_ref():
    def fails(x):
        raise ValueError("in the callback")

    @jax.jit
    def at_run_time(ref, x):
        ref[...] += 1.0
        return jax.pure_callback(fails, x, x)

    @jax.jit
    def while_tracing(ref, x):
        ref[...] += 1.0
        raise ValueError("while tracing")

    kept, lost = jax.new_ref(jnp.zeros(())), jax.new_ref(jnp.zeros(()))
    with pytest.raises(ValueError, match="while tracing"):
        while_tracing(kept, jnp.ones(3))
    assert kept[...] == 0
    with pytest.raises(Exception, match="in the callback"):
        jax.block_until_ready(at_run_time(lost, jnp.ones(3)))
    with pytest.raises(RuntimeError, match="deleted"):
        jax.block_until_ready(lost[...])
