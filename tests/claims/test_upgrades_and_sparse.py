"""After an upgrade; convolutions, sparse products, Bessel functions."""

import importlib
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.experimental import sparse
from jax.scipy import signal

# Slow operations --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["full", "same", "valid"])
@pytest.mark.parametrize("shapes", [((50,), (9,)), ((20, 30), (5, 7)), ((6, 7, 8), (3, 3, 3))])
@pytest.mark.claim(
    "convolve-is-direct-unless-asked",
    "By default, `jax.scipy.signal.convolve` is compiled without an FFT; with `method='fft'`, as with `fftconvolve`, it "
    "runs an FFT and gives the same result up to rounding.",
)
def test_convolve_is_direct_unless_asked(shapes, mode):
    data, kernel = (jax.random.normal(jax.random.key(i), shape) for i, shape in enumerate(shapes))

    def by_fft(data, kernel):
        return signal.convolve(data, kernel, mode, method="fft")

    def direct(data, kernel):
        return signal.convolve(data, kernel, mode)

    def fftconvolve(data, kernel):
        return signal.fftconvolve(data, kernel, mode)

    assert "fft(" not in compiled(direct, data, kernel).as_text()
    for other in (by_fft, fftconvolve):
        assert "fft(" in compiled(other, data, kernel).as_text()
        np.testing.assert_allclose(other(data, kernel), direct(data, kernel), atol=1e-4)


def compiled(function, *args):
    return jax.jit(function).lower(*args).compile()


def temporaries(function, *args):
    return compiled(function, *args).memory_analysis().temp_size_in_bytes


def product(matrix, dense):
    return matrix @ dense


def both(size, share):
    random = np.random.default_rng(0)
    stored = random.random((size, size)) < share
    coup = sparse.BCOO.fromdense((random.normal(size=(size, size)) * stored).astype(np.float32))
    return coup, sparse.BCSR.from_bcoo(coup)


@pytest.mark.platform("cpu")
@pytest.mark.parametrize(("size", "share"), [(200, 0.05), (500, 0.1), (1000, 0.01)])
@pytest.mark.claim(
    "bcoo-product-grows-with-columns",
    "On a CPU, the temporaries of a `float32` product of a `BCOO` matrix and a dense matrix grow by `nse` numbers with "
    "each further column, and those of a `BCSR` product stay at zero; the two agree up to rounding.",
)
def test_bcoo_product_grows_with_columns(size, share):
    coup, csr = both(size, share)
    needed = [temporaries(product, coup, jnp.ones((size, columns))) for columns in (8, 16, 64)]
    assert needed[1] - needed[0] == pytest.approx(8 * coup.nse * 4, rel=0.02)
    assert needed[2] - needed[1] == pytest.approx(48 * coup.nse * 4, rel=0.02)
    assert [temporaries(product, csr, jnp.ones((size, columns))) for columns in (1, 8, 64)] == [0, 0, 0]
    dense = jax.random.normal(jax.random.key(0), (size, 5))
    np.testing.assert_allclose(csr @ dense, coup @ dense, atol=1e-4)


@pytest.mark.wrong_twin("bcoo-product-grows-with-columns")
def test_wrong_twin_bcoo_product_needs_the_same_for_more_columns():
    coup, _ = both(200, 0.05)
    assert temporaries(product, coup, jnp.ones((200, 8))) == temporaries(product, coup, jnp.ones((200, 64)))


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "bcsr-saves-no-memory-in-a-gradient",
    "On a CPU, a gradient of a `BCSR` product, its `vmap` over columns, and a product in `float16` need temporaries of at "
    "least `nse` times the number of columns, as with `BCOO`; mapped over the columns by `jax.lax.map`, a `BCOO` product "
    "and its gradient need a quarter of that at most.",
)
def test_bcsr_saves_no_memory_in_a_gradient():
    coup, csr = both(500, 0.1)
    dense = jnp.ones((500, 64))
    table = coup.nse * 64 * 4

    def by_values(data, dense):
        return (sparse.BCSR((data, csr.indices, csr.indptr), shape=csr.shape) @ dense**2).sum()

    def by_columns(dense, matrix):
        return (jax.lax.map(lambda column: matrix @ column, dense.T).T ** 2).sum()

    assert temporaries(jax.grad(by_values), csr.data, dense) >= table
    assert temporaries(jax.grad(lambda dense, m: ((m @ dense) ** 2).sum()), dense, csr) >= table
    assert temporaries(jax.vmap(product, (None, 1), 1), csr, dense) >= table
    half = sparse.BCSR((csr.data.astype(jnp.float16), csr.indices, csr.indptr), shape=csr.shape)
    with pytest.warns(sparse.util.SparseEfficiencyWarning, match="float16"):
        assert temporaries(product, half, dense.astype(jnp.float16)) >= table / 2
    assert temporaries(by_columns, dense, coup) <= table / 4
    assert temporaries(jax.grad(by_columns), dense, coup) <= table / 4


def bessel_j(n, x, points):
    t = (jnp.arange(points) + 0.5) * (jnp.pi / points)
    return jnp.mean(jnp.cos(n * t - x * jnp.sin(t)))


def bessel_reference(n, x):
    t = (np.arange(5000) + 0.5) * (np.pi / 5000)
    return np.mean(np.cos(n * t - x * np.sin(t)))


@pytest.mark.parametrize("n", [0, 1, 5, 100, 200])
@pytest.mark.claim(
    "bessel-integral-needs-half-of-x-plus-n",
    "The mean of Bessel's integral over (|x| + n) / 2 + 20 points or more is accurate to 1e-5 in `float32`, for the orders "
    "and arguments up to 200 that were tried; 100 points for n = x = 100 give an error of 0.1.",
)
def test_bessel_integral_needs_half_of_x_plus_n(n):
    for x in (0.0, 0.1, 10.0, 100.0, 200.0, -7.0):
        enough = int(np.ceil((abs(x) + n) / 2 + 20))
        for points in (enough, enough + 1, 2 * enough):
            np.testing.assert_allclose(bessel_j(n, x, points), bessel_reference(n, x), atol=1e-5)
    assert 0.05 < abs(bessel_j(100, 100.0, 100) - bessel_reference(100, 100.0)) < 0.15


# Upgrades ---------------------------------------------------------------------------------------------------


@pytest.mark.claim(
    "old-names-of-upgrades-are-gone",
    "`jax.tree_leaves`, `jax.tree_flatten`, `jax.tree_unflatten`, `jax.tree_structure`, `jax.core.ClosedJaxpr`, "
    "`jax.core.jaxpr_as_fun`, `jax.core.trace_state_clean`, `jax.sharding.PmapSharding`, `jax.random.PRNGKeyArray`, "
    "`jax.experimental.disable_x64` and `jax.util` are gone; `jax.tree.leaves` and its family, `jax.extend.core` and "
    "`jax.enable_x64(False)` do their work.",
)
def test_old_names_of_upgrades_are_gone():
    gone = "tree_leaves tree_flatten tree_unflatten tree_structure core.ClosedJaxpr core.jaxpr_as_fun "
    gone += "core.trace_state_clean sharding.PmapSharding random.PRNGKeyArray experimental.disable_x64"
    for name in gone.split():
        *modules, last = name.split(".")
        module = importlib.import_module(".".join(["jax", *modules]))
        assert not hasattr(module, last), name
    with pytest.raises(ModuleNotFoundError):
        importlib.import_module("jax.util")

    tree = {"a": 1.0, "b": [2.0, 3.0]}
    leaves, structure = jax.tree.flatten(tree)
    assert leaves == jax.tree.leaves(tree)
    assert structure == jax.tree.structure(tree)
    assert jax.tree.unflatten(structure, leaves) == tree
    core = importlib.import_module("jax.extend.core")
    closed = jax.make_jaxpr(jnp.sin)(1.0)
    assert isinstance(closed, core.ClosedJaxpr)
    np.testing.assert_allclose(core.jaxpr_as_fun(closed)(1.0)[0], np.sin(1.0), rtol=1e-6)
    with jax.enable_x64(True), jax.enable_x64(False):
        assert jnp.arange(2.0).dtype == jnp.float32


@pytest.mark.claim(
    "old-call-forms-raise",
    "`jnp.reshape(x, newshape=…)` raises `TypeError`, `jnp.array([None])` raises `ValueError`, `compiled.cost_analysis()[0]` "
    "raises `KeyError`, and the settings `jax_pmap_shmap_merge`, `jax_spmd_mode`, `jax_array` and "
    "`jax_cpu_enable_gloo_collectives` are not recognized.",
)
def test_old_call_forms_raise():
    x = jnp.ones(4)
    with pytest.raises(TypeError, match="newshape"):
        jnp.reshape(x, newshape=(2, 2))
    assert jnp.reshape(x, (2, 2)).shape == (2, 2)
    with pytest.raises(ValueError, match="None is not a valid value"):
        jnp.array([1.0, None])
    assert jnp.isnan(jnp.array([1.0, jnp.nan])[1])
    cost = compiled(jnp.matmul, jnp.ones((4, 4)), jnp.ones((4, 4))).cost_analysis()
    with pytest.raises(KeyError):
        cost[0]
    assert cost["flops"] > 0
    for name in ("pmap_shmap_merge", "spmd_mode", "array", "cpu_enable_gloo_collectives"):
        with pytest.raises(AttributeError, match="Unrecognized config option"):
            jax.config.update(f"jax_{name}", False)


PMAPPED = """
import jax, jax.numpy as jnp
compiles = []
jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: compiles.append(event))
y = jax.pmap(lambda x: x + 1)(jnp.ones((2, 7)))
compiles.clear()
shard = y.addressable_shards[0].data
print(shard.shape, len(shard.devices()), sum("backend_compile" in event for event in compiles))
first = y[0]
print(first.shape, len(first.devices()), sum("backend_compile" in event for event in compiles) > 0)
"""


@pytest.mark.claim(
    "indexing-a-pmap-result-computes-on-its-devices",
    "`y[0]` of a result of `pmap` over two devices compiles an operation, and its result is on both devices; "
    "`y.addressable_shards[0].data` compiles nothing, is on one device, and keeps the leading axis, of length 1.",
)
def test_indexing_a_pmap_result_computes_on_its_devices(child):
    assert child(PMAPPED, devices=2).splitlines() == ["(1, 7) 1 0", "(7,) 2 True"]


# Coverage ---------------------------------------------------------------------------------------------------


def lines_of(file, call):
    """Run a call, and return the lines of the file that Python ran, as a tool for coverage sees them."""
    seen, before = set(), sys.gettrace()

    def trace(frame, event, _):
        if frame.f_code.co_filename != file:
            return None
        if event == "line":
            seen.add(frame.f_lineno)
        return trace

    sys.settrace(trace)
    try:
        call()
    finally:
        sys.settrace(before)
    return seen


def branching(x):
    y = jnp.sin(x)
    return jax.lax.cond(
        x.sum() > 0,
        lambda: y + 1,
        lambda: y - 1,
    )


@pytest.mark.parametrize("transform", [lambda f: f, jax.vmap, jax.checkpoint])
@pytest.mark.claim(
    "line-tracing-sees-both-branches-at-the-first-call",
    "Python's line tracing, by which coverage is measured, sees the body of a jitted function and both branches of its "
    "`cond` in the call that traces, and not in a later one.",
)
def test_line_tracing_sees_both_branches_at_the_first_call(transform):
    jitted, x = jax.jit(transform(branching)), jnp.ones((2, 3))
    file, start = branching.__code__.co_filename, branching.__code__.co_firstlineno
    body = {start + 1, start + 4, start + 5}
    assert body <= lines_of(file, lambda: jitted(x))
    assert not body & lines_of(file, lambda: jitted(x))
