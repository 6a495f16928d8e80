"""Flags and environment variables."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest

X = jnp.arange(3.0)


def python(code, **environment):
    """A fresh interpreter: its exit status, and what it printed."""
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", **environment}
    done = subprocess.run([sys.executable, "-c", code], env=settings, capture_output=True, text=True)
    return done.returncode, done.stdout.split(), done.stderr


class Setting:
    """An option of `jax.config` for a while."""

    def __init__(self, name, value):
        if name not in jax.config.values:
            pytest.skip(f"not applicable: {name} is not in this JAX")
        self.name, self.value, self.before = name, value, jax.config.values[name]

    def __enter__(self):
        jax.config.update(self.name, self.value)

    def __exit__(self, *_):
        jax.config.update(self.name, self.before)


@pytest.mark.claim(
    "settings-have-an-order",
    "`jax.config.update` beats the environment variable, and a context manager beats both for its block.",
)
def test_settings_have_an_order():
    if not hasattr(jax, "enable_x64"):
        pytest.skip("not applicable: jax.enable_x64 is not in this JAX")
    code = """
import jax
print(jax.config.jax_enable_x64)
jax.config.update("jax_enable_x64", False)
print(jax.config.jax_enable_x64)
with jax.enable_x64(True):
    print(jax.config.jax_enable_x64)
print(jax.config.jax_enable_x64)
"""
    assert python(code, JAX_ENABLE_X64="1")[1] == ["True", "False", "True", "False"]


@pytest.mark.claim(
    "misspelt-variable-is-ignored",
    "An environment variable with a misspelt name is ignored silently; `jax.config.update` with one raises "
    "`AttributeError`, and a value that cannot be read raises `ValueError` at import.",
)
def test_misspelt_variable_is_ignored():
    code = "import jax; print(jax.config.jax_enable_x64)"
    assert python(code, JAX_ENABLE_X46="1")[:2] == (0, ["False"])
    assert "ValueError" in python(code, JAX_ENABLE_X64="maybe")[2]
    with pytest.raises(AttributeError, match="Unrecognized config option"):
        jax.config.update("jax_enable_x46", True)


@pytest.mark.wrong_twin("misspelt-variable-is-ignored")
def test_wrong_twin_a_misspelt_variable_raises():
    assert python("import jax", JAX_ENABLE_X46="1")[0] != 0


@pytest.mark.claim(
    "unknown-xla-flag-ends-the-process",
    "An unknown name in `XLA_FLAGS` ends the process when the first operation runs, without a Python exception.",
)
def test_unknown_xla_flag_ends_the_process():
    code = "import jax\nprint('imported', flush=True)\ntry:\n    jax.devices()\nexcept Exception:\n    print('caught')"
    status, printed, errors = python(code, XLA_FLAGS="--xla_no_such_flag=1")
    assert status != 0
    assert printed == ["imported"]
    assert "Unknown flag" in errors


@pytest.mark.claim(
    "device-count-option-beats-the-xla-flag",
    "`XLA_FLAGS=--xla_force_host_platform_device_count` still makes several CPU devices; where "
    "`JAX_NUM_CPU_DEVICES` is set too, that one counts.",
)
def test_device_count_option_beats_the_xla_flag():
    code = "import jax; print(len(jax.devices()))"
    flag = {"XLA_FLAGS": "--xla_force_host_platform_device_count=4"}
    assert python(code, **flag)[1] == ["4"]
    if "jax_num_cpu_devices" in jax.config.values:
        assert python(code, **flag, JAX_NUM_CPU_DEVICES="3")[1] == ["3"]


@pytest.mark.claim(
    "explicit-64-bit-types-can-be-errors",
    "`jax_explicit_x64_dtypes` turns the warning about `float64` into an error, or lets `float64` through while "
    "64-bit types are off.",
)
def test_explicit_64_bit_types_can_be_errors():
    with Setting("jax_explicit_x64_dtypes", "error"), pytest.raises(ValueError, match="float64"):
        jnp.ones(3, "float64")
    with Setting("jax_explicit_x64_dtypes", "allow"):
        assert jnp.ones(3, "float64").dtype == "float64"


@pytest.mark.claim(
    "debug-infs-raises",
    "Under `debug_infs` a jitted function that returns `inf` raises `FloatingPointError`.",
)
def test_debug_infs_raises():
    f = jax.jit(lambda x: 1.0 / x)
    assert jnp.isinf(f(X[0]))
    with jax.debug_infs(True), pytest.raises(FloatingPointError, match="inf"):
        f(X[0])


@pytest.mark.claim(
    "static-indices-can-be-checked",
    "`jax_check_static_indices` makes a read with a plain index out of range raise `IndexError`; a traced index "
    "and a write stay silent.",
)
def test_static_indices_can_be_checked():
    with Setting("jax_check_static_indices", True):
        with pytest.raises(IndexError, match="out of bounds"):
            jax.jit(lambda x: x[10])(X)
        assert jax.jit(lambda x, i: x[i])(X, 10) == 2
        assert jax.jit(lambda x: x.at[10].set(9.0))(X).tolist() == X.tolist()


@pytest.mark.wrong_twin("static-indices-can-be-checked", raises=pytest.fail.Exception)
def test_wrong_twin_static_indices_are_checked_anyway():
    with pytest.raises(IndexError):
        jax.jit(lambda x: x[10])(X)


@pytest.mark.claim(
    "no-execution-still-compiles",
    "Under `jax_no_execution` a call traces and compiles, and raises `RuntimeError` instead of running.",
)
def test_no_execution_still_compiles(counted):
    f = jax.jit(lambda x: x * 2.5)
    with Setting("jax_no_execution", True):
        counted()
        with pytest.raises(RuntimeError, match="no_execution"):
            f(X)
        done = counted()
        assert (done["traces"] >= 1, done["lowerings"], done["compiles"]) == (True, 1, 1)


@pytest.mark.claim(
    "dump-ir-writes-files",
    "`jax_dump_ir_to` writes a file for each function that is lowered, in the forms that "
    "`jax_dump_ir_modes` names; a hit does not.",
)
def test_dump_ir_writes_files(tmp_path):
    f = jax.jit(lambda x: jnp.sin(x) + 0.25)
    with Setting("jax_dump_ir_to", str(tmp_path)), Setting("jax_dump_ir_modes", "stablehlo,jaxpr"):
        f(X)
        files = sorted(path.name.rpartition(".")[2] for path in tmp_path.iterdir())
        assert files == ["mlir", "txt"]
        f(X)
        assert len(list(tmp_path.iterdir())) == 2


@pytest.mark.claim(
    "optimization-level-does-not-recompile",
    "`jax_optimization_level` does not reach a function that is warm: it keeps the program that it has; "
    "`compiler_options` of the function compile again.",
)
def test_optimization_level_does_not_recompile(counted):
    def double(x):
        return x * 2

    warm = jax.jit(double)
    warm(X)
    with Setting("jax_optimization_level", "O1"):
        counted()
        warm(X)
        assert not counted()
    jax.jit(double, compiler_options={"xla_backend_optimization_level": 1})(X)
    assert counted()["compiles"] == 1


@pytest.mark.claim(
    "compile-effort-does-not-reach-warm-functions",
    "`jax_disable_most_optimizations` counts when a program is compiled: a function that is warm keeps its "
    "program.",
)
def test_compile_effort_does_not_reach_warm_functions(counted):
    f = jax.jit(lambda x: x * 2)
    f(X)
    with Setting("jax_disable_most_optimizations", True):
        counted()
        f(X)
        assert not counted()


@pytest.mark.claim(
    "compiler-options-are-xla-flags-for-one-function",
    "`compiler_options` takes XLA's options without their dashes for one function, and an unknown one raises.",
)
def test_compiler_options_are_xla_flags_for_one_function():
    options = {"xla_backend_optimization_level": 0}
    assert np.allclose(jax.jit(lambda x: x * 3, compiler_options=options)(X), X * 3)
    with pytest.raises(Exception, match="No such compile option"):
        jax.jit(lambda x: x * 3, compiler_options={"xla_no_such_flag": 0})(X)
