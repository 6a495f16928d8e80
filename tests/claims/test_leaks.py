"""Tracers that outlive their trace."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

LEAK = jax.errors.UnexpectedTracerError


@pytest.mark.claim(
    "using-a-leaked-tracer-raises",
    "Computing with a tracer that escaped from its jitted function raises `UnexpectedTracerError`.",
    seeds="S001-21",
)
@pytest.mark.hostile("scalar", "empty", "int8", "complex", "split", "jit", "vmap", "scan", "second call")
def test_using_a_leaked_tracer_raises(case):
    kept = []
    f = jax.jit(lambda x: (kept.append(x + x), x)[1])
    case.place(f)(case.array)
    with pytest.raises(LEAK, match="side effect"):
        kept[0] + 1


@pytest.mark.claim(
    "leaking-itself-raises-nothing",
    "Storing a tracer outside raises nothing; it can even be printed, and shows a type instead of a number.",
    seeds="S001-21",
)
def test_leaking_itself_raises_nothing():
    kept = []
    f = jax.jit(lambda x: (kept.append(x), x * 2)[1])
    assert f(1.0) == 2
    assert "float32[]" in repr(kept[0])
    assert kept[0].shape == ()


@pytest.mark.wrong_twin("leaking-itself-raises-nothing", raises=jax.errors.ConcretizationTypeError)
def test_wrong_twin_leaking_stores_a_number():
    kept = []
    jax.jit(lambda x: (kept.append(x), x * 2)[1])(1.0)
    assert float(kept[0]) == 1.0


@pytest.mark.claim(
    "attribute-of-self-leaks-too",
    "Storing a traced value on an object is a leak: the next use of the attribute outside raises.",
    seeds="S000-12",
)
def test_attribute_of_self_leaks_too():
    class Model:
        last = None

    model = Model()

    @jax.jit
    def f(x):
        model.last = x * 2
        return model.last + 1

    assert f(1.0) == 3
    with pytest.raises(LEAK, match="side effect"):
        jnp.sin(model.last)


@pytest.mark.claim(
    "leak-into-a-later-trace-raises",
    "A tracer kept from one trace cannot be used in the next one.",
)
def test_leak_into_a_later_trace_raises():
    total = [0.0]

    @jax.jit
    def f(x):
        total[0] = total[0] + x.sum()
        return total[0]

    assert f(np.ones(3)) == 3
    with pytest.raises(LEAK, match="side effect"):
        f(np.ones(4))


@pytest.mark.claim(
    "returning-the-value-repairs-the-leak",
    "Returning the value instead of storing it gives the caller a number at each call.",
)
def test_returning_the_value_repairs_the_leak():
    kept = []
    f = jax.jit(lambda x: (x * 2, x + 1))
    for value in (1.0, 2.0):
        doubled, _ = f(value)
        kept.append(doubled)
    assert [float(v) for v in kept] == [2.0, 4.0]


@pytest.mark.claim(
    "array-iterator-in-a-loop-body-leaks",
    "Pulling `next()` of an array's iterator inside a `fori_loop` body raises `UnexpectedTracerError`.",
    seeds="S000-23 S000-24",
)
def test_array_iterator_in_a_loop_body_leaks():
    numbers = iter(jnp.arange(3.0))
    with pytest.raises(LEAK, match="side effect"):
        lax.fori_loop(0, 3, lambda i, total: total + next(numbers) ** 2, 0)


@pytest.mark.claim(
    "list-iterator-in-a-loop-body-is-silently-wrong",
    "With an iterator of Python numbers, the same `fori_loop` raises nothing and repeats one element.",
    seeds="S000-23",
)
def test_list_iterator_in_a_loop_body_is_silently_wrong():
    numbers = iter([1.0, 10.0, 100.0])
    result = lax.fori_loop(0, 3, lambda i, total: total + next(numbers), 0.0)
    assert result != 111
    assert result in (3.0, 30.0)


@pytest.mark.claim(
    "indexing-replaces-the-iterator",
    "`fori_loop` over three indices sums the squares of an array, also from a Python int 0 as start.",
    seeds="S000-22",
)
def test_indexing_replaces_the_iterator():
    x = np.arange(3.0, dtype=np.float32)
    result = lax.fori_loop(0, 3, lambda i, total: total + jnp.asarray(x)[i] ** 2, 0)
    assert (float(result), str(result.dtype)) == (5.0, "float32")


@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")  # is a claim of test_purity
@pytest.mark.claim(
    "iterator-argument-and-iterator-in-a-loop-differ",
    "An iterator argument raises plain `TypeError`, one in a loop body `UnexpectedTracerError`, a subclass.",
    seeds="S000-24",
)
def test_iterator_argument_and_iterator_in_a_loop_differ():
    with pytest.raises(TypeError) as refused:
        jax.jit(lambda xs: xs)(iter([1.0]))
    assert type(refused.value) is TypeError
    assert issubclass(LEAK, TypeError)


@pytest.mark.claim(
    "checking-leaks-raises-at-the-leak",
    "Under `jax.checking_leaks()` the jitted call that leaks raises, not the later use.",
)
def test_checking_leaks_raises_at_the_leak():
    kept = []

    def f(x):
        kept.append(x * 2)
        return x

    with jax.checking_leaks(), pytest.raises(Exception, match="Leaked"):
        jax.jit(f)(1.0)


@pytest.mark.claim(
    "leak-from-vmap-raises",
    "A tracer stored outside by a function under `vmap` raises when it is used there.",
)
def test_leak_from_vmap_raises():
    kept = []
    jax.vmap(lambda x: (kept.append(x * 2), x)[1])(np.ones(3))
    with pytest.raises(LEAK, match="side effect"):
        kept[0] + 1


@pytest.mark.claim(
    "leak-message-names-the-function",
    "The `UnexpectedTracerError` names the function that was traced.",
)
def test_leak_message_names_the_function():
    kept = []

    def forgetful(x):
        kept.append(x * 2)
        return x

    jax.jit(forgetful)(1.0)
    with pytest.raises(LEAK, match="forgetful"):
        kept[0] + 1


@pytest.mark.claim(
    "tracer-cannot-be-hashed",
    "A tracer cannot be a dictionary key or an argument of a function with `lru_cache`: it is not hashable.",
)
def test_tracer_cannot_be_hashed():
    cached = functools.lru_cache(lambda x: x + 1)
    with pytest.raises(TypeError, match="unhashable"):
        jax.jit(lambda x: {x: 1}[x])(1.0)
    with pytest.raises(TypeError, match="unhashable"):
        jax.jit(cached)(1.0)


@pytest.mark.claim(
    "numpy-table-widens-the-result",
    "A `float64` table of NumPy times a `bfloat16` array gives `float32`; the weakly typed one of "
    "`jnp.arange(n) * 2.0` gives `bfloat16`.",
)
def test_numpy_table_widens_the_result():
    x = jnp.ones(3, jnp.bfloat16)
    assert jax.jit(lambda x: x * (np.arange(3) * 2.0))(x).dtype == jnp.float32
    assert jax.jit(lambda x: x * (jnp.arange(3) * 2.0))(x).dtype == jnp.bfloat16
