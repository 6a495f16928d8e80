"""Compiling ahead of time: lower, compile, export, eval_shape."""

import functools

import jax
import jax.numpy as jnp
import pytest

export = pytest.importorskip("jax.export", reason="not applicable: jax.export is not in this JAX")
X = jnp.arange(3.0)


def jitted(body=lambda x: x * 2, **options):
    runs = []

    def function(*args):
        runs.append(1)
        return body(*args)

    return jax.jit(function, **options), runs


@pytest.mark.claim(
    "eval-shape-runs-nothing",
    "`jax.eval_shape` only traces: it compiles and computes nothing, and gives the shape even of a result "
    "that would not fit in memory.",
    seeds="S002-58",
)
@pytest.mark.hostile("scalar", "empty", "int8", "split", "vmap", "grad", "scan", "jit")
def test_eval_shape_runs_nothing(counted, case):
    x, double = case.array, case.place(lambda x: x * jnp.ones((), x.dtype))
    counted()
    assert jax.eval_shape(double, x).shape == x.shape
    assert not counted()["compiles"]
    big = jax.ShapeDtypeStruct((10**6, 10**6), jnp.float32)
    result = jax.eval_shape(lambda a: {"y": a @ a}, big)
    assert result["y"].shape == (10**6, 10**6)
    assert not counted()["compiles"]


@pytest.mark.claim(
    "eval-shape-leaves-the-trace",
    "`eval_shape` of a jitted function leaves its trace in the cache: the first call does not trace again.",
)
def test_eval_shape_leaves_the_trace():
    f, runs = jitted()
    jax.eval_shape(f, X)
    f(X)
    assert len(runs) == 1


@pytest.mark.claim(
    "lowering-needs-shapes-only",
    "`lower()` takes `ShapeDtypeStruct` in place of arrays, and the call that follows uses the trace and "
    "the program.",
)
def test_lowering_needs_shapes_only(counted):
    f, runs = jitted()
    f.lower(jax.ShapeDtypeStruct(X.shape, X.dtype)).compile()
    counted()
    f(X)
    done = counted()
    assert len(runs) == 1
    assert (done["lowerings"], done["compiles"]) == (0, 0)


@pytest.mark.claim(
    "stages-happen-one-by-one",
    "`trace`, `lower` and `compile` are three steps: `trace` does not lower, and `lower` does not compile.",
)
def test_stages_happen_one_by_one(counted):
    f, runs = jitted()
    if not hasattr(f, "trace"):
        pytest.skip("not applicable: jitted functions have no trace() in this JAX")
    traced = f.trace(X)
    assert (len(runs), counted()["lowerings"]) == (1, 0)
    lowered = traced.lower()
    done = counted()
    assert (done["lowerings"], done["compiles"]) == (1, 0)
    lowered.compile()
    assert counted()["compiles"] == 1


@pytest.mark.claim(
    "compiled-serves-one-signature",
    "A compiled function serves the shapes, dtypes and structure it was compiled for and refuses all others: it "
    "never traces again.",
)
@pytest.mark.parametrize(
    "other", [(jnp.ones(4),), (jnp.ones(3, int),), ([X],), (X, X)], ids=["shape", "dtype", "tree", "count"]
)
def test_compiled_serves_one_signature(other):
    compiled = jax.jit(lambda x: x * 2).lower(X).compile()
    assert compiled(X).tolist() == [0, 2, 4]
    with pytest.raises(TypeError):
        compiled(*other)


@pytest.mark.wrong_twin("compiled-serves-one-signature", raises=TypeError)
def test_wrong_twin_compiled_recompiles_on_demand():
    jax.jit(lambda x: x * 2).lower(X).compile()(jnp.ones(4))


@pytest.mark.claim(
    "compiled-takes-no-static-values",
    "Static values are fixed by `lower()` and are left out when the compiled function is called.",
)
def test_compiled_takes_no_static_values():
    compiled = jax.jit(lambda x, n: x * n, static_argnums=1).lower(X, 2).compile()
    assert compiled(X).tolist() == [0, 2, 4]
    with pytest.raises(TypeError):
        compiled(X, 2)


@pytest.mark.claim(
    "compiled-cannot-be-transformed",
    "A compiled function cannot be differentiated, batched or called inside another jit.",
)
@pytest.mark.parametrize("transform", [jax.grad, jax.vmap, jax.jit])
def test_compiled_cannot_be_transformed(transform):
    compiled = jax.jit(lambda x: x * 2).lower(1.0).compile()
    with pytest.raises(TypeError, match="Cannot apply JAX transformations"):
        transform(lambda x: compiled(x))(X if transform is jax.vmap else 1.0)


@pytest.mark.claim(
    "lowered-text-is-stablehlo",
    "The text of a lowered function is StableHLO; the text of a compiled one is HLO.",
)
def test_lowered_text_is_stablehlo():
    lowered = jax.jit(lambda x: x * 2).lower(X)
    assert "stablehlo.multiply" in lowered.as_text()
    assert lowered.compile().as_text().startswith("HloModule")


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "cost-analysis-counts-a-loop-once",
    "`cost_analysis` counts the body of a loop once and ignores the trip count: a loop of ten matrix products "
    "reports as one.",
)
def test_cost_analysis_counts_a_loop_once():
    def flops(f):
        cost = jax.jit(f).lower(jnp.ones((64, 64))).compile().cost_analysis()
        return (cost[0] if isinstance(cost, list) else cost)["flops"]

    one = flops(lambda m: m @ m)
    loop = flops(lambda m: jax.lax.fori_loop(0, 10, lambda i, c: c @ m, m))
    unrolled = flops(lambda m: functools.reduce(lambda c, _: c @ m, range(10), m))
    assert one <= loop < 1.01 * one
    assert unrolled >= 10 * one


@pytest.mark.claim(
    "exported-program-needs-no-python", "An exported program runs without the Python function that made it."
)
def test_exported_program_needs_no_python():
    f, runs = jitted()
    exported = export.export(f)(X)
    before = len(runs)
    assert exported.call(X).tolist() == [0, 2, 4]
    assert len(runs) == before == 1


@pytest.mark.claim(
    "exported-program-keeps-its-shapes",
    "An exported program refuses other shapes, unless it was exported with symbolic ones.",
)
def test_exported_program_keeps_its_shapes():
    f = jax.jit(lambda x: x.sum())
    with pytest.raises(ValueError, match="Shape mismatch"):
        export.export(f)(X).call(jnp.ones(4))
    (n,) = export.symbolic_shape("n")
    anylength = export.export(f)(jax.ShapeDtypeStruct((n,), jnp.float32))
    assert [float(anylength.call(jnp.ones(k))) for k in (2, 7)] == [2, 7]


@pytest.mark.claim(
    "exported-program-is-for-its-platform", "A program exported for another platform is refused here."
)
def test_exported_program_is_for_its_platform():
    other = "tpu" if jax.default_backend() != "tpu" else "cpu"
    exported = export.export(jax.jit(lambda x: x * 2), platforms=[other])(X)
    with pytest.raises(ValueError, match="exported for platforms"):
        exported.call(X)


@pytest.mark.claim(
    "exported-program-works-inside-jit",
    "Unlike a compiled function, an exported one can be called inside another jitted function.",
)
def test_exported_program_works_inside_jit():
    exported = export.export(jax.jit(lambda x: x * 2))(X)
    assert jax.jit(lambda x: exported.call(x) + 1)(X).tolist() == [1, 3, 5]
