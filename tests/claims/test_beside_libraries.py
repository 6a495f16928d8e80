"""Libraries built on JAX: rebuilt objects, copied functions, exports."""

import copy

import jax
import jax.numpy as jnp
import numpy as np
import pytest

FOUR = 4  # devices of the experiments that split something
NUMBER = jax.ShapeDtypeStruct((), jnp.float32)


# Classes that are pytrees ----------------------------------------------------------------------------------


class Sorted:
    """Sorts its attributes by their values' types, as some libraries do: arrays are leaves, the rest is static."""

    def __init__(self, **attributes):
        self.__dict__.update(attributes)


def _flatten(thing):
    arrays = {k: v for k, v in vars(thing).items() if isinstance(v, jax.Array)}
    rest = tuple((k, v) for k, v in vars(thing).items() if k not in arrays)
    return tuple(arrays.values()), (tuple(arrays), rest)


def _rebuild(static, leaves):
    names, rest = static
    return Sorted(**dict(zip(names, leaves, strict=True)), **dict(rest))


jax.tree_util.register_pytree_node(Sorted, _flatten, _rebuild)


class Pair:
    """Says by name which attribute is a leaf."""

    def __init__(self, weights, count):
        self.weights, self.count = weights, count


jax.tree_util.register_pytree_node(
    Pair, lambda p: ((p.weights,), p.count), lambda count, leaves: Pair(*leaves, count)
)


@pytest.mark.claim(
    "lowering-rebuilds-a-class-from-descriptions",
    "`lower` rebuilds a class from objects that describe its arrays, so a class whose `flatten` looks for arrays by their "
    "type has another structure there, and the compiled function refuses it; one that goes by name is accepted.",
)
def test_lowering_rebuilds_a_class_from_descriptions():
    jitted = jax.jit(lambda thing: thing.weights + 1)
    by_type = Sorted(weights=jnp.zeros(3), count=2)
    assert float(jitted(by_type)[0]) == 1
    with pytest.raises(TypeError, match="pytree"):
        jitted.lower(by_type).compile()(by_type)
    by_name = Pair(jnp.zeros(3), 2)
    assert float(jitted.lower(by_name).compile()(by_name)[0]) == 1


class Holder:
    """Keeps a method of its own among its static data."""

    def __init__(self, scale):
        self.scale = scale
        self.apply = self._apply

    def _apply(self, x):
        return self.scale * x


def _holder(static, leaves):
    holder = object.__new__(Holder)
    (holder.scale,), (holder.apply,) = leaves, static
    return holder


jax.tree_util.register_pytree_node(Holder, lambda h: ((h.scale,), (h.apply,)), _holder)


@pytest.mark.claim(
    "method-in-static-data-keeps-a-tracer",
    "Of an object that a jitted function returns, the leaves become arrays; a bound method or closure in its static data "
    "still holds a tracer, and raises `UnexpectedTracerError` when it is called.",
)
def test_method_in_static_data_keeps_a_tracer():
    holder = jax.jit(lambda scale: Holder(2 * scale))(1.5)
    assert float(holder.scale) == 3
    assert float(holder._apply(1.0)) == 3
    with pytest.raises(jax.errors.UnexpectedTracerError):
        holder.apply(1.0)


# Functions -------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "copied-jitted-function-is-another-static-value",
    "`copy.deepcopy` of a jitted function makes another object, which is not equal to it; a call of the copy finds what is "
    "compiled, and as a static argument each copy compiles again.",
)
def test_copied_jitted_function_is_another_static_value(counted):
    add_one = jax.jit(lambda x: x + 1)
    apply = jax.jit(lambda function, x: function(x), static_argnums=0)
    x = jnp.float32(1)
    add_one(x), apply(add_one, x)
    twin = copy.deepcopy(add_one)
    assert twin is not add_one
    assert twin != add_one
    counted()
    assert float(twin(x)) == 2
    assert not counted()["compiles"]
    for _ in range(2):
        apply(copy.deepcopy(add_one), x)
        assert counted()["compiles"] == 1
    apply(add_one, x)
    assert not counted()["compiles"]


@pytest.mark.wrong_twin("copied-jitted-function-is-another-static-value")
def test_wrong_twin_a_copy_is_equal():
    function = jax.jit(jnp.sin)
    assert copy.deepcopy(function) == function


@pytest.mark.claim(
    "jit-leaves-the-function-as-it-is",
    "`jax.jit(f)` is another function; `f` itself still runs its body in Python at each call.",
)
def test_jit_leaves_the_function_as_it_is():
    runs = []

    def double(x):
        runs.append(x)
        return 2 * x

    fast = jax.jit(double)
    for _ in range(3):
        fast(1.0)
    assert len(runs) == 1
    for _ in range(3):
        double(1.0)
    assert len(runs) == 4


# Callbacks -------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "callback-cannot-use-a-traced-value-of-its-surroundings",
    "A `pure_callback` whose Python function reads a traced value of the jitted function around it raises at the call; as an "
    "argument of the callback the value arrives.",
)
def test_callback_cannot_use_a_traced_value_of_its_surroundings(capfd):
    @jax.jit
    def from_outside(x, scale):
        return jax.pure_callback(lambda a: np.asarray(a) * np.asarray(scale), NUMBER, x)

    @jax.jit
    def as_argument(x, scale):
        return jax.pure_callback(lambda a, s: np.asarray(a) * np.asarray(s), NUMBER, x, scale)

    assert float(as_argument(1.5, 2.0)) == 3
    with pytest.raises(Exception, match="Tracer"):
        jax.block_until_ready(from_outside(1.5, 2.0))
    capfd.readouterr()  # JAX logs the error as well


PRINTED = """
import jax, jax.numpy as jnp, numpy as np
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
x = jax.device_put(jnp.arange(8.0), split)

def whole(x):
    jax.debug.print("{x}", x=x)
    return 2 * x

def total(x):
    jax.debug.print("{x}", x=x.sum())
    return 2 * x

for function in (whole, total):
    print("all-gather" in jax.jit(function).lower(x).compile().as_text())
"""


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "debug-print-of-a-split-array-gathers-it",
    "`jax.debug.print` of an array that is split over devices makes XLA gather it; printing its sum does not.",
)
def test_debug_print_of_a_split_array_gathers_it(child):
    assert child(PRINTED, devices=FOUR).splitlines() == ["True", "False"]


# Shapes and numbers ----------------------------------------------------------------------------------------


@pytest.mark.claim(
    "mask-indexing-outside-jit-compiles-for-each-count",
    "Without jit, `x[mask]` compiles for each new number of selected elements; a reduction with `where=mask` "
    "does not, nor does NumPy's indexing of `np.asarray(x)`.",
)
def test_mask_indexing_outside_jit_compiles_for_each_count(counted):
    x = jnp.arange(16.0)
    masks = [jnp.arange(16) < n for n in (3, 5, 7, 9)]
    x[masks[0]].sum(), x.sum(where=masks[0])
    counted()
    for mask in masks[1:]:
        x[mask].sum()
        assert counted()["compiles"]
    for mask in masks[1:]:
        x.sum(where=mask), np.asarray(x)[np.asarray(mask)].sum()
    assert not counted()["compiles"]


@pytest.mark.claim(
    "float16-has-no-number-as-small-as-the-usual-epsilon",
    "1e-8 is 0 in `float16`, and is not in `bfloat16`, so 0 / (0 + 1e-8) is `nan` in the first and 0 in the second.",
)
def test_float16_has_no_number_as_small_as_the_usual_epsilon():
    ratio = jax.jit(lambda x: x / (jnp.sqrt(x) + 1e-8))
    assert jnp.float16(1e-8) == 0
    assert jnp.isnan(ratio(jnp.float16(0)))
    assert ratio(jnp.bfloat16(0)) == 0


@pytest.mark.claim(
    "square-of-a-small-float16-is-zero",
    "The mean of squares that Adam keeps is 0 in `float16` after a gradient of 0.001, so that its update is infinite; in `bfloat16` "
    "it is finite.",
)
def test_square_of_a_small_float16_is_zero():
    @jax.jit
    def new_state(gradient):  # of Adam, with its usual settings
        return 0.1 * gradient, 0.001 * gradient**2

    @jax.jit
    def update(mean, mean_of_squares):  # before the learning rate
        return (mean / 0.1) / (jnp.sqrt(mean_of_squares / 0.001) + 1e-8)

    assert new_state(jnp.float16(0.001))[1] == 0
    assert jnp.isinf(update(*new_state(jnp.float16(0.001))))
    assert jnp.isfinite(update(*new_state(jnp.bfloat16(0.001))))


# Exports ---------------------------------------------------------------------------------------------------

EXPORTED = """
import jax, jax.numpy as jnp, numpy as np
from jax import export
mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
split = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
shape = jax.ShapeDtypeStruct((16,), jnp.float32)
x = jnp.arange(16.0)
for_one = export.export(jax.jit(jnp.cumsum))(shape)
for_four = export.export(jax.jit(jnp.cumsum, in_shardings=split))(shape)
print(for_one.nr_devices, for_four.nr_devices)
for exported in (for_one, for_four):
    print(bool((jax.jit(exported.call)(jax.device_put(x, split)) == jnp.cumsum(x)).all()))
try:
    jax.jit(for_four.call)(x)
except ValueError as error:
    print("refused", "devices" in str(error))
"""


@pytest.mark.claim(
    "export-with-shardings-needs-as-many-devices",
    "A function that was exported for one device also runs on arrays that are split over four; one that was exported with "
    "shardings over four devices raises `ValueError` on one.",
)
def test_export_with_shardings_needs_as_many_devices(child):
    assert child(EXPORTED, devices=FOUR).splitlines() == ["1 4", "True", "True", "refused True"]
