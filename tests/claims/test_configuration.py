"""Settings: which are in the key, and what each one does."""

import logging
import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = jnp.ones(4)


def jitted(body=lambda x: x * 2, **options):
    runs = []

    def function(x):
        runs.append(1)
        return body(x)

    return jax.jit(function, **options), runs


def x64():
    """64-bit types for a while, under the name that this JAX has for it."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


def python(code, **environment):
    """What a fresh interpreter prints."""
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    return subprocess.run(
        [sys.executable, "-c", code], env=settings, capture_output=True, text=True, check=True
    ).stdout.split()


@pytest.mark.claim(
    "settings-that-change-programs-are-in-the-key",
    "These settings are part of the key: matrix precision, rank promotion, dtype promotion and 64-bit types "
    "each trace again, and the way back hits.",
    seeds="S002-44 S002-84",
)
@pytest.mark.parametrize(
    "setting",
    [
        lambda: jax.default_matmul_precision("highest"),
        lambda: jax.numpy_rank_promotion("warn"),
        lambda: jax.numpy_dtype_promotion("strict"),
        x64,
    ],
    ids=["matmul", "rank", "dtype", "x64"],
)
def test_settings_that_change_programs_are_in_the_key(setting):
    f, runs = jitted()
    f(X)
    with setting():
        f(X), f(X)
        assert len(runs) == 2
    f(X)
    assert len(runs) == 2


@pytest.mark.claim(
    "debugging-settings-are-not-in-the-key",
    "`debug_nans`, `log_compiles` and transfer guards are not part of the key: a compiled function is used "
    "as it is.",
)
@pytest.mark.parametrize(
    "setting",
    [lambda: jax.debug_nans(True), lambda: jax.log_compiles(True), lambda: jax.transfer_guard("log")],
    ids=["debug_nans", "log_compiles", "transfer_guard"],
)
def test_debugging_settings_are_not_in_the_key(setting):
    f, runs = jitted()
    f(X)
    with setting():
        f(X)
    assert len(runs) == 1


@pytest.mark.claim(
    "random-implementation-goes-stale",
    "The default random implementation is not part of the key: a cached function that makes a key inside "
    "keeps the old kind.",
)
def test_random_implementation_goes_stale():
    f = jax.jit(lambda: jax.random.key(0))
    before = f().dtype
    with jax.default_prng_impl("rbg"):
        assert jax.random.key(0).dtype != before
        assert f().dtype == before


@pytest.mark.wrong_twin("random-implementation-goes-stale")
def test_wrong_twin_random_implementation_is_in_the_key():
    f = jax.jit(lambda: jax.random.key(0))
    f()
    with jax.default_prng_impl("rbg"):
        assert f().dtype == jax.random.key(0).dtype


@pytest.mark.claim(
    "random-options-go-stale",
    "`jax_enable_custom_prng` and `jax_high_dynamic_range_gumbel` are not part of the key: a cached function "
    "keeps the old kind of key, and the old numbers.",
)
def test_random_options_go_stale():
    key = jax.random.key(0)
    seen = {
        "jax_enable_custom_prng": jax.jit(lambda: jax.random.PRNGKey(0)),
        "jax_high_dynamic_range_gumbel": jax.jit(lambda: jax.random.gumbel(key)),
    }
    for option in seen.keys() & jax.config.values.keys():
        f, default = seen[option], jax.config.values[option]
        before = str(f())
        try:
            jax.config.update(option, not default)
            assert str(f()) == before
            f.clear_cache()
            jax.clear_caches()
            assert str(f()) != before
        finally:
            jax.config.update(option, default)
            jax.clear_caches()


@pytest.mark.claim(
    "matmul-precision-is-in-the-jaxpr",
    "`default_matmul_precision` is written into a matrix product that is traced under it without a "
    "precision of its own.",
)
def test_matmul_precision_is_in_the_jaxpr():
    with jax.default_matmul_precision("highest"):
        assert "HIGHEST" in str(jax.make_jaxpr(lambda x: x @ x)(jnp.ones((2, 2))))
    assert "HIGHEST" not in str(jax.make_jaxpr(lambda x: x @ x)(jnp.ones((2, 2))))


@pytest.mark.claim(
    "x64-changes-what-numpy-brings",
    "The same NumPy `float64` array gives `float32` normally and `float64` while 64-bit types are on.",
)
def test_x64_changes_what_numpy_brings():
    f, _ = jitted()
    x = np.ones(2)
    with x64():
        assert f(x).dtype == jnp.float64
    assert f(x).dtype == jnp.float32


@pytest.mark.claim(
    "debug-nans-raises",
    "Under `debug_nans` a jitted function that returns `nan` raises `FloatingPointError`.",
)
def test_debug_nans_raises():
    f = jax.jit(jnp.log)
    assert jnp.isnan(f(-1.0))
    with jax.debug_nans(True), pytest.raises(FloatingPointError, match="nan"):
        f(-1.0)


@pytest.mark.claim(
    "debug-nans-checks-results-only",
    "`debug_nans` checks what a jitted function returns: a `nan` that is masked inside is not reported.",
)
def test_debug_nans_checks_results_only():
    with jax.debug_nans(True):
        assert jax.jit(lambda x: jnp.where(x > 0, jnp.log(x), 0.0))(-1.0) == 0


@pytest.mark.claim(
    "rank-promotion-can-raise",
    "`numpy_rank_promotion('raise')` refuses to broadcast arrays of different rank in arithmetic, but not a scalar.",
)
def test_rank_promotion_can_raise():
    with jax.numpy_rank_promotion("raise"):
        with pytest.raises(ValueError, match="rank_promotion"):
            jax.jit(jnp.add)(jnp.ones((2, 2)), jnp.ones(2))
        assert jax.jit(jnp.add)(jnp.ones((2, 2)), jnp.ones(())).shape == (2, 2)


@pytest.mark.claim(
    "dtype-promotion-can-be-refused",
    "`numpy_dtype_promotion('strict')` refuses to mix dtypes; a Python number of the same kind is still taken.",
)
def test_dtype_promotion_can_be_refused():
    with jax.numpy_dtype_promotion("strict"):
        with pytest.raises(Exception, match="promotion"):
            jax.jit(jnp.add)(jnp.ones(2), jnp.ones(2, jnp.int32))
        assert jax.jit(lambda x: x + 2.0)(jnp.ones(2))[0] == 3


@pytest.mark.claim(
    "no-tracing-refuses-new-signatures",
    "`jax.no_tracing` lets compiled functions run and raises as soon as one would be traced.",
)
def test_no_tracing_refuses_new_signatures():
    if not hasattr(jax, "no_tracing"):
        pytest.skip("not applicable: jax.no_tracing is not in this JAX")
    f, runs = jitted()
    f(X)
    with jax.no_tracing():
        f(X)
        with pytest.raises(RuntimeError, match="no_tracing"):
            f(np.ones(7))
    assert len(runs) == 1


@pytest.mark.claim(
    "no-tracing-refuses-calls-off-the-fast-path",
    "`jax.no_tracing` also refuses a call that leaves the fast path and traces nothing, such as the first one with "
    "a NumPy array after one with a JAX array.",
)
def test_no_tracing_refuses_calls_off_the_fast_path():
    if not hasattr(jax, "no_tracing"):
        pytest.skip("not applicable: jax.no_tracing is not in this JAX")
    refused, runs = jitted()
    allowed, runs_allowed = jitted()
    values = np.asarray(X)
    refused(X), allowed(X)
    with jax.no_tracing(), pytest.raises(RuntimeError, match="no_tracing"):
        refused(values)
    allowed(values)
    assert len(runs) == len(runs_allowed) == 1


@pytest.mark.claim(
    "transfer-guard-refuses-numpy-arguments",
    "`transfer_guard('disallow')` refuses a NumPy argument, whose copy to the device is implicit, and takes "
    "what `device_put` brought.",
)
def test_transfer_guard_refuses_numpy_arguments():
    f, _ = jitted()
    with jax.transfer_guard("disallow"):
        f(jax.device_put(np.ones(4, np.float32)))
        with pytest.raises(Exception, match="Disallowed host-to-device transfer"):
            f(np.ones(4, np.float32))


@pytest.mark.claim(
    "log-compiles-is-silent-on-hits",
    "`log_compiles` logs a warning when a function is compiled, and is silent on a hit.",
)
def test_log_compiles_is_silent_on_hits(caplog):
    f, _ = jitted()
    with jax.log_compiles(True), caplog.at_level(logging.WARNING):
        f(X)
        assert any("Compiling" in r.getMessage() for r in caplog.records)
        caplog.clear()
        f(X)
        assert not caplog.records


@pytest.mark.claim(
    "explain-cache-misses-overlooks-recompiles",
    "`explain_cache_misses` names what differed when a function is traced again, and is silent when it is "
    "compiled again without a trace.",
)
def test_explain_cache_misses_overlooks_recompiles(caplog, counted):
    if not hasattr(jax, "explain_cache_misses"):
        pytest.skip("not applicable: jax.explain_cache_misses is not in this JAX")
    f, _ = jitted()
    longer = jnp.ones(5)
    committed = jax.device_put(longer, next(iter(longer.devices())))
    f(X)
    with jax.explain_cache_misses(True), caplog.at_level(logging.WARNING):
        f(longer)
        assert "[5]" in caplog.text  # the shapes, now and before, in the words of this release
        assert "[4]" in caplog.text
        caplog.clear()
        counted()
        f(committed)
        assert counted()["compiles"] == 1
        assert not caplog.records


@pytest.mark.claim(
    "environment-variables-set-flags",
    "Most flags can be set before JAX starts by an environment variable of the same name in capitals.",
)
def test_environment_variables_set_flags():
    assert python("import jax; print(jax.numpy.ones(2).dtype)", JAX_ENABLE_X64="1") == ["float64"]


@pytest.mark.claim(
    "some-options-ignore-the-environment",
    "The options `jax_transfer_guard_…` for one direction, `jax_cpu_enable_async_dispatch` and those for the "
    "visible devices ignore the environment silently; `JAX_TRANSFER_GUARD` works.",
)
def test_some_options_ignore_the_environment():
    values = {f"jax_{kind}_visible_devices": "0" for kind in ("cuda", "rocm", "oneapi")}
    values["jax_cpu_enable_async_dispatch"] = "0"
    for direction in ("host_to_device", "device_to_host", "device_to_device"):
        values[f"jax_transfer_guard_{direction}"] = "disallow"
    values = {name: value for name, value in values.items() if name in jax.config.values}
    code = f"import jax; print(*[jax.config.values[name] for name in {list(values)}])"
    assert python(code, **{name.upper(): value for name, value in values.items()}) == python(code)
    code = "import jax; print(jax.config.values['jax_transfer_guard'])"
    assert python(code, JAX_TRANSFER_GUARD="disallow") == ["disallow"]


@pytest.mark.wrong_twin("some-options-ignore-the-environment")
def test_wrong_twin_one_direction_of_the_guard_listens():
    code = "import jax; print(jax.config.values['jax_transfer_guard_host_to_device'])"
    assert python(code, JAX_TRANSFER_GUARD_HOST_TO_DEVICE="disallow") == ["disallow"]


@pytest.mark.claim(
    "persistent-cache-saves-compiling-only",
    "With the persistent cache a second process traces and lowers again, and takes the executable from disk.",
)
def test_persistent_cache_saves_compiling_only(tmp_path):
    code = """
import jax, numpy as np
seen, runs = [], []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))
jax.monitoring.register_event_duration_secs_listener(lambda event, *_, **__: seen.append(event))
jax.jit(lambda x: runs.append(1) or x * 2)(np.ones(3))
names = "/jax/compilation_cache/cache_hits", "/jax/core/compile/jaxpr_to_mlir_module_duration"
print(len(runs), *[seen.count(name) for name in names])
"""
    settings = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    assert python(code, **settings) == ["1", "0", "1"]
    assert any(tmp_path.iterdir())
    assert python(code, **settings) == ["1", "1", "1"]
