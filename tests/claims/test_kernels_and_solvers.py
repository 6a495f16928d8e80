"""Kernels, primitives, solvers, Bessel functions."""

import contextvars
import functools
import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.ad_checkpoint import checkpoint_name

ON_EIGHT_DEVICES = """
import json
import jax, jax.numpy as jnp
from jax.sharding import AxisType, NamedSharding, PartitionSpec as P

mesh = jax.make_mesh((8,), ("data",), axis_types=(AxisType.Auto,))
split = NamedSharding(mesh, P("data"))


def gathers(function, *args):
    return "all-gather" in jax.jit(function).lower(*args).compile().as_text()


"""

MICRO_BATCHES = """
def summed(parts_of):
    def loss(w, x):
        return jnp.mean(jnp.tanh(x @ w) ** 2)

    def grads(w, x):
        add = lambda total, part: (total + jax.grad(loss)(w, part), None)
        return jax.lax.scan(add, jnp.zeros_like(w), parts_of(x))[0] / 8

    return grads


neighbours = summed(lambda x: x.reshape(8, -1, 64))
from_all = summed(lambda x: x.reshape(-1, 8, 64).swapaxes(0, 1))
w = jax.device_put(jnp.ones((64, 32)) / 64, NamedSharding(mesh, P()))
x = jax.device_put(jax.random.normal(jax.random.key(0), (1024, 64)), split)
same = bool(jnp.allclose(jax.jit(neighbours)(w, x), jax.jit(from_all)(w, x), atol=1e-6))
print(json.dumps([gathers(neighbours, w, x), gathers(from_all, w, x), same]))
"""

FOREIGN_CALL = """
def factors(x):
    b, n, _ = x.shape
    out = tuple(
        jax.ShapeDtypeStruct(shape, dtype)
        for shape, dtype in (((b, n, n), jnp.float32), ((b, n), jnp.int32), ((b,), jnp.int32))
    )
    return jax.ffi.ffi_call("lapack_sgetrf_ffi", out)(x)[0]


x = jax.device_put(jnp.broadcast_to(jnp.eye(4), (8, 4, 4)), split)
local = jax.shard_map(factors, mesh=mesh, in_specs=P("data"), out_specs=P("data"))
print(json.dumps([gathers(factors, x), gathers(local, x)]))
"""


@pytest.mark.claim(
    "micro-batches-of-neighbouring-rows-are-gathered",
    "A scan over micro-batches of a batch split on Auto axes gathers it if neighbouring rows form a micro-batch, and "
    "not if rows of different devices do; the gradient is the same.",
)
def test_micro_batches_of_neighbouring_rows_are_gathered(child):
    printed = child(ON_EIGHT_DEVICES + MICRO_BATCHES, devices=8)
    assert json.loads(printed) == [True, False, True]


@pytest.mark.claim(
    "foreign-call-gathers-a-split-array",
    "A `jax.ffi.ffi_call` on a split batch gathers the whole batch; inside `jax.shard_map` it doesn't.",
)
def test_foreign_call_gathers_a_split_array(child):
    assert json.loads(child(ON_EIGHT_DEVICES + FOREIGN_CALL, devices=8)) == [True, False]


@pytest.mark.claim(
    "bessel-jn-is-nan-for-small-float32",
    "`jax.scipy.special.bessel_jn` with its default `n_iter` is NaN at 0.1 and at 1 in float32, and the mean of "
    "Bessel's integral over 100 points is right there.",
)
def test_bessel_jn_is_nan_for_small_float32():
    x = jnp.array([0.1, 1.0, 50.0])
    assert np.isnan(jax.jit(lambda x: jax.scipy.special.bessel_jn(x, v=0))(x)[0, :2]).all()
    values, slopes = jax.jit(jax.vmap(jax.value_and_grad(lambda x: bessel_j(0, x))))(x)
    np.testing.assert_allclose(values, [0.99750156, 0.76519769, 0.05581233], atol=1e-6)
    np.testing.assert_allclose(slopes, [-0.04993753, -0.44005059, 0.09751183], atol=1e-6)


def bessel_j(n, x, points=100):
    t = (jnp.arange(points) + 0.5) * (jnp.pi / points)
    return jnp.mean(jnp.cos(n * t - x * jnp.sin(t)))


@pytest.mark.wrong_twin("bessel-jn-is-nan-for-small-float32")
def test_wrong_twin_bessels_integral_needs_few_points():
    assert np.allclose(bessel_j(0, 50.0, points=20), 0.05581233, atol=1e-3)


@pytest.mark.claim(
    "context-variable-is-frozen",
    "A jitted function reads a `contextvars.ContextVar` while tracing, so that a later value changes nothing until "
    "`clear_cache()`.",
)
def test_context_variable_is_frozen():
    rules = contextvars.ContextVar("rules", default=1.0)

    def scale(x):
        return x * rules.get()

    scaled = jax.jit(scale)
    assert scaled(1.0) == 1
    token = rules.set(5.0)
    assert (scaled(1.0), jax.jit(scale)(1.0)) == (1, 1)
    scaled.clear_cache()
    assert scaled(1.0) == 5
    rules.reset(token)


def forward_runs(name_the_residual):
    """Count how often the forward rule of a `custom_vjp` runs under `jax.checkpoint` that saves by name."""
    runs = []

    def kernel(x):
        runs.append(x)
        return np.asarray(x)

    @jax.custom_vjp
    def attention(x):
        return jnp.sin(x)

    def forward(x):
        hidden = jax.pure_callback(kernel, jax.ShapeDtypeStruct(x.shape, x.dtype), x)
        residual = jnp.exp(hidden)
        if name_the_residual:
            residual = checkpoint_name(residual, "attn")
        return checkpoint_name(jnp.sin(hidden), "attn"), (x, residual)

    attention.defvjp(forward, lambda saved, g: (jnp.cos(saved[0]) * g + saved[1],))
    policy = jax.checkpoint_policies.save_only_these_names("attn")
    loss = jax.checkpoint(attention, policy=policy)
    jax.block_until_ready(jax.jit(jax.grad(lambda x: (loss(x) ** 2).sum()))(jnp.ones(3)))
    return len(runs)


@pytest.mark.claim(
    "forward-rule-runs-once-if-its-residuals-are-named",
    "Under a `jax.checkpoint` that saves by name, the forward rule of a `custom_vjp` runs twice if its output alone "
    "is named, and once if its computed residual is named as well.",
)
def test_forward_rule_runs_once_if_its_residuals_are_named():
    assert (forward_runs(False), forward_runs(True)) == (2, 1)


def with_fixed_ends(x, **promise):
    ends = np.array([0, -1]) % x.size
    return (2 * x - 0.5 * jnp.roll(x, 1)).at[ends].set(x[ends], **promise)


def total_of(solver, operator):
    return lambda b: solver(operator, b)[0].sum()


@pytest.mark.claim(
    "bicgstab-transposes-its-operator",
    "`bicgstab` and `gmres` raise for an operator with `.at[].set`, also without `grad`, and work with "
    "`unique_indices=True` or `jnp.where`; `cg` doesn't raise, but its gradient is wrong for an operator that isn't "
    "symmetric.",
)
def test_bicgstab_transposes_its_operator():
    solvers, b = jax.scipy.sparse.linalg, jnp.ones(6)
    on_boundary = np.arange(6) % 5 == 0

    def promised(x):
        return with_fixed_ends(x, unique_indices=True)

    def selected(x):
        return jnp.where(on_boundary, x, 2 * x - 0.5 * jnp.roll(x, 1))

    right = np.linalg.solve(np.asarray(jax.jacfwd(selected)(b)).T, np.ones(6))
    for solver in (solvers.bicgstab, solvers.gmres):
        with pytest.raises(NotImplementedError, match="unique_indices"):
            jax.jit(lambda b, solver=solver: solver(with_fixed_ends, b)[0])(b)
        for operator in (promised, selected):
            np.testing.assert_allclose(jax.grad(total_of(solver, operator))(b), right, atol=1e-4)
    assert not np.allclose(jax.grad(total_of(solvers.cg, selected))(b), right, atol=1e-2)


@pytest.mark.claim(
    "primitive-needs-a-rule-for-each-transformation",
    "A new primitive works without jit by its `def_impl`, and raises under jit, `grad` and `vmap` until it has a rule "
    "for each.",
)
def test_primitive_needs_a_rule_for_each_transformation():
    core = pytest.importorskip("jax.extend.core")
    from jax.interpreters import ad, batching, mlir

    twice_p, x = core.Primitive("twice"), jnp.arange(3.0)
    twice_p.def_impl(lambda x: 2 * x)
    twice_p.def_abstract_eval(lambda x: x)
    assert twice_p.bind(1.5) == 3
    with pytest.raises(NotImplementedError, match="MLIR translation rule"):
        jax.jit(twice_p.bind)(1.5)
    with pytest.raises(NotImplementedError, match="Differentiation rule"):
        jax.grad(twice_p.bind)(1.5)
    with pytest.raises(NotImplementedError, match="Batching rule"):
        jax.vmap(twice_p.bind)(x)
    mlir.register_lowering(twice_p, mlir.lower_fun(lambda x: 2 * x, multiple_results=False))
    ad.defjvp(twice_p, lambda g, x: 2 * g)
    batching.primitive_batchers[twice_p] = lambda args, dims: (twice_p.bind(*args), dims[0])
    assert jax.jit(jax.vmap(jax.grad(twice_p.bind)))(x).tolist() == [2, 2, 2]
    assert jax.jit(jax.vmap(twice_p.bind))(x).tolist() == [0, 2, 4]


@pytest.mark.claim(
    "pallas-kernel-reads-a-number-bound-by-partial",
    "A Pallas kernel uses the new number when `functools.partial` binds another one, also in a call without jit.",
)
def test_pallas_kernel_reads_a_number_bound_by_partial():
    pallas = pytest.importorskip("jax.experimental.pallas")

    def kernel(x_ref, out_ref, *, gain):
        out_ref[...] = x_ref[...] * gain

    def amplify(x, gain):
        bound = functools.partial(kernel, gain=gain)
        out = jax.ShapeDtypeStruct(x.shape, x.dtype)
        return pallas.pallas_call(bound, out_shape=out, interpret=True)(x)

    assert [amplify(jnp.ones(8), gain)[0] for gain in (1.0, 5.0)] == [1, 5]
    jitted = [jax.jit(lambda x, gain=gain: amplify(x, gain)) for gain in (2.0, 3.0)]
    assert [amplified(jnp.ones(8))[0] for amplified in jitted] == [2, 3]
