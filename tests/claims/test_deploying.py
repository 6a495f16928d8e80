"""From process to process: persistent cache, compiled functions, exports."""

import jax
import jax.numpy as jnp
import pytest

STEP = """
import jax, numpy as np
seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))

def step(x):
    return x * 2 + 1

jax.jit(step)(np.ones(3, np.float32))
print(seen.count("/jax/compilation_cache/cache_hits"))
"""


def _cache(folder, **settings):
    return {
        "JAX_COMPILATION_CACHE_DIR": str(folder),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        **settings,
    }


@pytest.mark.claim(
    "xla-flags-are-in-the-persistent-cache-key",
    "A flag of `XLA_FLAGS` that changes how the compiler works is part of the persistent cache's key; `--xla_dump_to` is not.",
)
def test_xla_flags_are_in_the_persistent_cache_key(child, tmp_path):
    def hits(flags):
        return int(child(STEP, **_cache(tmp_path / "cache", XLA_FLAGS=flags)).split()[-1])

    assert hits("") == 0
    assert hits("") == 1
    assert hits(f"--xla_dump_to={tmp_path / 'dump'}") == 1
    assert hits("--xla_backend_optimization_level=1") == 0
    assert hits("--xla_backend_optimization_level=1") == 1


@pytest.mark.wrong_twin("xla-flags-are-in-the-persistent-cache-key")
def test_wrong_twin_xla_flags_share_an_entry(child, tmp_path):
    child(STEP, **_cache(tmp_path))
    assert child(STEP, **_cache(tmp_path, XLA_FLAGS="--xla_backend_optimization_level=1")).split()[-1] == "1"


LOGGED = """
import jax, io, logging, numpy as np
log = io.StringIO()
logging.getLogger("jax").addHandler(logging.StreamHandler(log))
jax.config.update("jax_explain_cache_misses", True)
jax.config.update("jax_log_compiles", True)

def step(x):
    return x * 2 + 1

jax.jit(step)(np.ones(3, np.float32))
lines = [line.lower() for line in log.getvalue().splitlines() if "step" in line]
for word in ("persistent compilation cache miss", "not writing", "persistent compilation cache hit"):
    print(sum(word in line for line in lines))
"""


@pytest.mark.claim(
    "log-names-the-persistent-cache",
    "With `jax_explain_cache_misses` the log tells a miss of the persistent cache and why an entry was not written; with "
    "`jax_log_compiles` it tells a hit.",
)
def test_log_names_the_persistent_cache(child, tmp_path):
    def counts(**settings):
        return [int(n) for n in child(LOGGED, **(_cache(tmp_path) | settings)).split()]

    assert counts(JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS="60") == [1, 1, 0]
    assert counts() == [1, 0, 0]
    assert counts() == [0, 0, 1]


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "cost-analysis-counts-a-product",
    "On a CPU, `cost_analysis()` of a lowered and of a compiled function is a dict, whose `flops` for a product of two "
    "matrices of n rows and columns is 2n³.",
)
def test_cost_analysis_counts_a_product():
    n = 64
    shape = jax.ShapeDtypeStruct((n, n), jnp.float32)
    lowered = jax.jit(jnp.matmul).lower(shape, shape)
    assert lowered.cost_analysis()["flops"] == 2 * n**3
    assert lowered.compile().cost_analysis()["flops"] == 2 * n**3


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "cost-analysis-counts-a-loop-body-once",
    "On a CPU, `cost_analysis()` counts the body of a `scan` or `fori_loop` once, with known and with unknown number of "
    "iterations.",
)
def test_cost_analysis_counts_a_loop_body_once():
    n = 64
    shape = jax.ShapeDtypeStruct((n, n), jnp.float32)

    def scanned(x):
        return jax.lax.scan(lambda c, _: (c @ x, None), x, length=10)[0]

    def repeated(x, times):
        return jax.lax.fori_loop(0, times, lambda i, c: c @ x, x)

    for lowered in (jax.jit(scanned).lower(shape), jax.jit(repeated).lower(shape, 10)):
        for stage in (lowered, lowered.compile()):
            assert 1 <= stage.cost_analysis()["flops"] / (2 * n**3) < 1.1


@pytest.mark.claim(
    "compiled-error-names-the-place",
    "A compiled function called with another structure or another dtype raises `TypeError`, which names the place in the "
    "argument and both types.",
)
def test_compiled_error_names_the_place():
    compiled = jax.jit(lambda p: p["w"] * 2).lower({"w": jnp.ones(3)}).compile()
    with pytest.raises(TypeError, match=r"(?s)float32\[3\].*int32\[3\]") as error:
        compiled({"w": jnp.ones(3, jnp.int32)})
    assert "'w'" in str(error.value)
    with pytest.raises(TypeError, match="pytree"):
        compiled({"v": jnp.ones(3)})


def _export():
    return pytest.importorskip("jax.export", reason="not applicable: this release has no jax.export")


SHAPE = jax.ShapeDtypeStruct((3,), jnp.float32)


@pytest.mark.claim(
    "export-holds-several-platforms",
    "An export for several platforms is made on a machine without them, as one program that runs on the platform it is "
    "called on.",
)
def test_export_holds_several_platforms():
    export = _export()
    platforms = ("cpu", "cuda", "tpu")
    exported = export.export(jax.jit(jnp.sin), platforms=platforms)(SHAPE)
    assert exported.platforms == platforms
    assert exported.call(jnp.zeros(3)).shape == (3,)


@pytest.mark.claim(
    "export-calling-convention-can-be-lowered",
    "An export has the newest calling convention that this JAX knows; `jax_export_calling_convention_version` lowers it, and "
    "a number below the smallest supported one raises `ValueError`.",
)
def test_export_calling_convention_can_be_lowered():
    export = _export()
    newest = export.maximum_supported_calling_convention_version
    oldest = export.minimum_supported_calling_convention_version
    before = jax.config.jax_export_calling_convention_version

    def version():
        return export.export(jax.jit(jnp.sin))(SHAPE).calling_convention_version

    assert version() == newest
    try:
        jax.config.update("jax_export_calling_convention_version", oldest)
        assert version() == oldest
        jax.config.update("jax_export_calling_convention_version", oldest - 1)
        with pytest.raises(ValueError, match="version"):
            version()
    finally:
        jax.config.update("jax_export_calling_convention_version", before)


@pytest.mark.claim(
    "export-refuses-host-callbacks",
    "An export of a function with `pure_callback` or `jax.debug.print` raises `NotImplementedError`.",
)
def test_export_refuses_host_callbacks():
    export = _export()

    def calls_back(x):
        return jax.pure_callback(lambda a: a, SHAPE, x)

    def prints(x):
        jax.debug.print("{}", x)
        return x

    for function in (calls_back, prints):
        with pytest.raises(NotImplementedError, match="callback"):
            export.export(jax.jit(function))(SHAPE)


@pytest.mark.claim(
    "export-refuses-unknown-custom-calls",
    "An export of a function with a custom call that JAX does not promise to keep raises `ValueError`; "
    "`DisabledSafetyCheck.custom_call(name)` lets it through.",
)
def test_export_refuses_unknown_custom_calls():
    export = _export()
    if not hasattr(jax, "ffi"):
        pytest.skip("not applicable: this release has no jax.ffi")
    kernel = jax.jit(lambda x: jax.ffi.ffi_call("my_kernel", SHAPE)(x))
    with pytest.raises(ValueError, match="custom call"):
        export.export(kernel)(SHAPE)
    allowed = [export.DisabledSafetyCheck.custom_call("my_kernel")]
    assert "my_kernel" in str(export.export(kernel, disabled_checks=allowed)(SHAPE).mlir_module())
