"""Interrupts, unusual derivatives, your own kernels, initial values."""

import enum
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse

FOUR = 4  # devices of the experiments that split something


# Running and compiling --------------------------------------------------------------------------------------

INTERRUPTED = """
import signal, threading, time
import jax, jax.numpy as jnp

@jax.jit
def long(steps):
    start = jnp.ones((300, 300))
    return jax.lax.fori_loop(0, steps, lambda i, x: jnp.sin(x @ x) / 2, start).sum()

signal.signal(signal.SIGINT, signal.default_int_handler)  # a background job ignores it
add = jax.jit(lambda x, y: x + y)
one = jnp.float32(1)
add(one, long(2)).block_until_ready()
took = []
for _ in range(3):
    begin = time.perf_counter()
    long(100).block_until_ready()
    took.append(time.perf_counter() - begin)
steps = int(100 * 6 / min(took))  # six seconds at least
result = long(steps)
threading.Timer(0.3, lambda: signal.raise_signal(signal.SIGINT)).start()
try:
    result.block_until_ready()
    print("finished")
except KeyboardInterrupt:
    print("interrupted", result.is_ready())
    print("and computed", float(add(one, result)) == float(result) + 1)
"""


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "interrupt-ends-the-wait-not-the-work",
    "An interrupt while Python waits for a compiled function ends the wait; the function goes on, and what needs its "
    "result waits for it and gets it.",
)
def test_interrupt_ends_the_wait_not_the_work(child):
    assert child(INTERRUPTED).splitlines() == ["interrupted False", "and computed True"]


@functools.partial(jax.jit, static_argnums=1)
def branching(x, n):
    return jnp.sin(x) if n < 2 else branching(x + 1, n - 1) * branching(2 * x, n - 2)


@pytest.mark.claim(
    "inlined-calls-multiply",
    "Of a recursion by inner jitted functions, the StableHLO has one function per level, and the compiled function "
    "grows with the number of calls, which multiplies from level to level.",
)
def test_inlined_calls_multiply():
    functions, lines = [], []
    for levels in (6, 9, 12):
        lowered = branching.lower(1.0, levels)
        functions.append(lowered.as_text().count("func.func"))
        lines.append(len(lowered.compile().as_text().splitlines()))
    assert functions[1] - functions[0] == functions[2] - functions[1] == 3
    assert lines[2] - lines[1] > 2 * (lines[1] - lines[0])


def loss(params, x):
    for name in ("first", "second"):
        x = jnp.tanh(x @ params[name])
    return ((x @ params["trained"]) ** 2).mean()


def trained_only(params, grads):
    return params | {"trained": params["trained"] - 0.1 * grads["trained"]}


@pytest.mark.claim(
    "frozen-gradients-are-dropped-unless-returned",
    "In a jitted step that uses the gradient of one parameter out of three, the products of the other two are dropped: "
    "it computes as much as one that differentiates by that parameter alone, and less than one that returns the "
    "gradients.",
)
def test_frozen_gradients_are_dropped_unless_returned():
    params = {name: jnp.ones((64, 64)) for name in ("first", "second", "trained")}

    def of_all(params, x):
        return trained_only(params, jax.grad(loss)(params, x))

    def of_one(params, x):
        grad = jax.grad(lambda w: loss(params | {"trained": w}, x))(params["trained"])
        return trained_only(params, {"trained": grad})

    def returned(params, x):
        grads = jax.grad(loss)(params, x)
        return trained_only(params, grads), grads

    def products(step):
        return jax.jit(step).lower(params, jnp.ones((64, 64))).compile().as_text().count(" dot(")

    assert products(of_all) == products(of_one) < products(returned)


# Sizes and values -------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "roots-need-strip-zeros-under-jit",
    "`jnp.roots` under jit raises, and works with `strip_zeros=False`; a leading coefficient of 0 then makes a root "
    "`nan`.",
)
def test_roots_need_strip_zeros_under_jit():
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(jnp.roots)(jnp.array([1.0, -3.0, 2.0]))
    roots = jax.jit(functools.partial(jnp.roots, strip_zeros=False))
    np.testing.assert_allclose(sorted(roots(jnp.array([1.0, -3.0, 2.0])).real), [1, 2], rtol=1e-5)
    assert jnp.isnan(roots(jnp.array([0.0, 1.0, -3.0, 2.0]))).sum() == 1


@pytest.mark.wrong_twin("roots-need-strip-zeros-under-jit")
def test_wrong_twin_a_leading_zero_does_no_harm():
    roots = jax.jit(functools.partial(jnp.roots, strip_zeros=False))
    assert jnp.isfinite(roots(jnp.array([0.0, 1.0, -3.0, 2.0]))).all()


@pytest.mark.claim(
    "unique-fills-with-the-smallest-value",
    "`jnp.unique` with a size that is too large fills with the smallest value, and drops values if it is too small.",
)
@pytest.mark.parametrize("values", [[3, 1, 3, 7], [-2, 5], [4, 4, 4]])
def test_unique_fills_with_the_smallest_value(values):
    distinct = sorted(set(values))
    found = jax.jit(lambda x: jnp.unique(x, size=6))(jnp.array(values))
    assert found.tolist() == distinct + [distinct[0]] * (6 - len(distinct))
    assert jax.jit(lambda x: jnp.unique(x, size=1))(jnp.array(values)).tolist() == distinct[:1]


# Derivatives ------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "integer-leaves-get-float0-gradients",
    "`grad` refuses integers among what it differentiates by; with `allow_int=True` their gradients have the dtype "
    "`float0`, with which JAX does not compute.",
)
@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool"])
def test_integer_leaves_get_float0_gradients(dtype):
    params = {"w": jnp.ones(2), "index": jnp.array([0, 1]).astype(dtype)}

    def energy(params):
        return (params["w"][params["index"].astype(int)] ** 2).sum()

    with pytest.raises(TypeError, match="grad requires real- or complex-valued inputs"):
        jax.grad(energy)(params)
    gradient = jax.grad(energy, allow_int=True)(params)["index"]
    assert gradient.dtype == jax.dtypes.float0
    with pytest.raises(TypeError):
        jnp.ones(2) * gradient


@pytest.mark.claim(
    "gradient-of-a-complex-parameter-is-conjugated",
    "Of a real function of x + iy, `grad` returns df/dx - i df/dy. Of a function with a complex result it raises, "
    "unless `holomorphic=True` is given.",
)
@pytest.mark.parametrize(
    ("function", "dx", "dy"),
    [
        (lambda z: jnp.abs(z) ** 2, lambda x, y: 2 * x, lambda x, y: 2 * y),
        (lambda z: z.imag, lambda x, y: 0, lambda x, y: 1),
        (lambda z: z.real * z.imag, lambda x, y: y, lambda x, y: x),
    ],
    ids=["square of the modulus", "imaginary part", "product"],
)
def test_gradient_of_a_complex_parameter_is_conjugated(function, dx, dy):
    x, y = 1.0, 2.0
    np.testing.assert_allclose(jax.jit(jax.grad(function))(x + 1j * y), dx(x, y) - 1j * dy(x, y), rtol=1e-5)
    with pytest.raises(TypeError, match="holomorphic"):
        jax.grad(lambda z: z * z)(x + 1j * y)
    np.testing.assert_allclose(
        jax.grad(lambda z: z * z, holomorphic=True)(x + 1j * y), 2 * (x + 1j * y), rtol=1e-6
    )


@pytest.mark.claim(
    "ffi-call-needs-rules-for-grad-and-vmap",
    "`jax.ffi.ffi_call` cannot be differentiated, forward or backward, and refuses `vmap` unless it has a "
    "`vmap_method`.",
)
def test_ffi_call_needs_rules_for_grad_and_vmap():
    def call(x, **options):
        return jax.ffi.ffi_call("missing", jax.ShapeDtypeStruct(x.shape, x.dtype), **options)(x)

    x = jnp.ones((2, 3))
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.make_jaxpr(jax.grad(lambda x: call(x).sum()))(x)
    with pytest.raises(ValueError, match="cannot be differentiated"):
        jax.make_jaxpr(lambda x: jax.jvp(call, (x,), (x,)))(x)
    with pytest.raises(NotImplementedError, match="vmap_method"):
        jax.make_jaxpr(jax.vmap(call))(x)
    jax.make_jaxpr(jax.vmap(functools.partial(call, vmap_method="broadcast_all")))(x)


# Several devices --------------------------------------------------------------------------------------------

SHARDED = """
import jax, jax.numpy as jnp
from jax.sharding import Mesh, NamedSharding, PartitionSpec as P
import numpy as np

rows = NamedSharding(Mesh(np.array(jax.devices()), ("rows",)), P("rows"))

def init(key):
    return jax.random.normal(key, (1024, 256))

def needed(**options):
    lowered = jax.jit(init, **options).lower(jax.random.PRNGKey(0))
    memory = lowered.compile().memory_analysis()
    return memory.output_size_in_bytes + memory.temp_size_in_bytes

made = jax.jit(init, out_shardings=rows)(jax.random.PRNGKey(0))
print({shard.data.shape for shard in made.addressable_shards})
print(round(needed() / needed(out_shardings=rows), 1))
"""


@pytest.mark.claim(
    "initialization-in-jit-makes-shards",
    "Random initial values from a jitted function with `out_shardings` are made in parts: each of four devices needs a "
    "quarter of the memory, temporaries included.",
)
def test_initialization_in_jit_makes_shards(child):
    assert child(SHARDED, devices=FOUR).splitlines() == ["{(256, 256)}", "4.0"]


DRAWN = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
try:
    shard_map = jax.shard_map
except AttributeError:
    from jax.experimental.shard_map import shard_map

mesh = Mesh(np.array(jax.devices()), ("rows",))
draw = lambda key: jax.random.normal(key, (1,))
own = lambda key: draw(jax.random.fold_in(key, jax.lax.axis_index("rows")))
key = jax.random.PRNGKey(0)
for function, specs, keys in (
    (draw, P(), key),
    (own, P(), key),
    (lambda keys: draw(keys[0]), P("rows"), jax.random.split(key, len(jax.devices()))),
):
    drawn = shard_map(function, mesh=mesh, in_specs=specs, out_specs=P("rows"))(keys)
    print(len(set(drawn.tolist())))
"""


@pytest.mark.claim(
    "replicated-key-repeats-in-each-shard",
    "In a `shard_map` over four devices, a replicated key draws one number four times; with the index folded in, or "
    "with a key for each shard, four numbers.",
)
def test_replicated_key_repeats_in_each_shard(child):
    assert child(DRAWN, devices=FOUR).splitlines() == ["1", "4", "4"]


# Decompositions, sparse arrays, enums, class methods ----------------------------------------------------------

INDEFINITE = jnp.array([[1.0, 2.0], [2.0, 1.0]])


@pytest.mark.claim(
    "failed-cholesky-is-nan",
    "`jnp.linalg.cholesky` of a matrix that is not positive definite gives NaN instead of an error, with and without jit.",
)
def test_failed_cholesky_is_nan():
    for cholesky in (jnp.linalg.cholesky, jax.jit(jnp.linalg.cholesky)):
        assert jnp.isnan(cholesky(INDEFINITE)).any()
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.cholesky(np.asarray(INDEFINITE))


@pytest.mark.claim(
    "inverse-of-a-singular-matrix-is-infinite",
    "`jnp.linalg.inv` of [[1, 2], [2, 4]] gives infinities without NaN, with and without jit, where NumPy raises "
    "`LinAlgError`.",
)
def test_inverse_of_a_singular_matrix_is_infinite():
    singular = np.array([[1, 2], [2, 4]], np.float32)
    for inverse in (jnp.linalg.inv, jax.jit(jnp.linalg.inv)):
        assert jnp.isinf(inverse(singular)).all()
    with pytest.raises(np.linalg.LinAlgError):
        np.linalg.inv(singular)


@pytest.mark.claim(
    "check-raises-outside-jit",
    "Outside jit, a `checkify.check` without `checkify` raises at run time, also under `disable_jit`.",
)
def test_check_raises_outside_jit():
    from jax.experimental import checkify

    def root(x):
        checkify.check(x >= 0, "x is negative")
        return jnp.sqrt(x)

    assert root(jnp.float32(4)) == 2
    with pytest.raises(ValueError, match="x is negative"):
        root(jnp.float32(-4))
    with jax.disable_jit(), pytest.raises(ValueError, match="x is negative"):
        jax.jit(root)(jnp.float32(-4))


@pytest.mark.claim(
    "fromdense-needs-a-size-under-jit",
    "Under jit, `BCOO.fromdense` raises unless `nse` gives the number of elements; with too small an `nse`, elements are "
    "lost without an error.",
)
def test_fromdense_needs_a_size_under_jit():
    def total(nse):
        return jax.jit(lambda x: sparse.BCOO.fromdense(x, nse=nse).todense().sum())

    with pytest.raises(jax.errors.ConcretizationTypeError):
        total(None)(jnp.eye(3))
    assert [float(total(nse)(jnp.eye(3))) for nse in (3, 4, 2)] == [3, 3, 2]


@pytest.mark.claim(
    "sparse-product-reserves-the-worst-case",
    "The product of two `BCOO` matrices of 80 elements each, both diagonal, reserves room for 6,400.",
)
def test_sparse_product_reserves_the_worst_case():
    diagonal = sparse.BCOO.fromdense(jnp.eye(80))
    assert diagonal.nse == 80
    assert (diagonal @ diagonal).nse == 6400
    product = jax.jit(lambda a: (a @ a).sum_duplicates(nse=80))(diagonal)
    assert product.nse == 80
    np.testing.assert_array_equal(product.todense(), np.eye(80))


class Colour(enum.IntEnum):
    RED = 0
    BLUE = 1


@pytest.mark.claim(
    "enum-of-a-tracer-raises",
    "A traced value can't be made a member of an `IntEnum`, but it can be compared with one.",
)
def test_enum_of_a_tracer_raises():
    with pytest.raises((ValueError, jax.errors.ConcretizationTypeError)):
        jax.jit(lambda code: Colour(code))(1)
    brightness = jax.jit(lambda code: jnp.where(code == Colour.BLUE, 2.0, 3.0))
    assert (brightness(Colour.BLUE), brightness(Colour.RED)) == (2, 3)


class Scaled:
    factor = 3.0

    @classmethod
    @functools.partial(jax.jit, static_argnums=0)
    def scale(cls, x):
        return x * cls.factor

    @staticmethod
    @jax.jit
    def double(x):
        return 2 * x


@pytest.mark.claim(
    "classmethod-stands-above-jit",
    "`@classmethod` above `@jax.jit` with `static_argnums=0` works, and so does `@staticmethod` above `@jax.jit`; in the "
    "other order, both raise.",
)
def test_classmethod_stands_above_jit():
    assert Scaled.scale(2.0) == 6
    assert Scaled.double(2.0) == Scaled().double(2.0) == 4
    for kind in (classmethod, staticmethod):
        with pytest.raises(TypeError):
            jax.jit(kind(lambda x: x))


@pytest.mark.claim(
    "inner-jit-returns-tracers",
    "A Python number that passes through an inner jitted function comes back as a tracer, which can't set a shape.",
)
def test_inner_jit_returns_tracers():
    def add_one(n):
        return n + 1

    def zeros(helper):
        return jax.jit(lambda n: jnp.zeros(helper(n)), static_argnums=0)

    assert zeros(add_one)(3).shape == (4,)
    with pytest.raises((TypeError, jax.errors.ConcretizationTypeError)):
        zeros(jax.jit(add_one))(3)


@jax.tree_util.register_pytree_node_class
class Tagged:
    def __init__(self, values, tag):
        self.values, self.tag = values, tag

    def tree_flatten(self):
        return (self.values,), self.tag

    @classmethod
    def tree_unflatten(cls, tag, children):
        return cls(children[0], tag)


@pytest.mark.claim(
    "in-axes-of-a-class-need-its-static-data",
    "An `in_axes` that is an object of a registered class must have the static data of the argument, or `vmap` raises; an "
    "integer does for the whole object.",
)
def test_in_axes_of_a_class_need_its_static_data():
    def sums(axes):
        return jax.vmap(lambda tagged: tagged.values.sum(), in_axes=(axes,))(Tagged(jnp.ones((3, 2)), "x"))

    for axes in (0, Tagged(0, "x")):
        np.testing.assert_array_equal(sums(axes), [2, 2, 2])
    with pytest.raises(ValueError, match="tree prefix"):
        sums(Tagged(0, "other"))
