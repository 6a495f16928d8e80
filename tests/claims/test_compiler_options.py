"""Options of XLA: for one function, for the process, tags."""

import os
import subprocess
import sys

import jax
import jax.numpy as jnp
import pytest

# XLA's CPU backend fuses these three operations unless it is told to leave that step out.
COUNT = """
def fusions(options=None):
    f = jax.jit(lambda x: jnp.sin(x) * 2 + jnp.cos(x))
    return f.lower(jnp.ones(1000)).compile(options).as_text().count(" fusion(")
"""
NO_FUSION = "--xla_disable_hlo_passes=fusion"


def printed(code, **environment):
    """What a fresh interpreter prints, as words."""
    settings = {**os.environ, "JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", **environment}
    command = [sys.executable, "-c", f"import os, jax, jax.numpy as jnp\n{COUNT}\n{code}"]
    return subprocess.run(command, env=settings, capture_output=True, text=True, check=True).stdout.split()


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "compiler-option-beats-the-xla-flag",
    "Where `XLA_FLAGS` and the function's compiler options set the same option, the function's value wins.",
)
def test_compiler_option_beats_the_xla_flag():
    code = 'print(fusions(), fusions({"xla_disable_hlo_passes": ""}))'
    without, with_option = map(int, printed(code, XLA_FLAGS=NO_FUSION))
    assert with_option < without


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "xla-flags-are-read-once",
    "`XLA_FLAGS` set in Python after `import jax` counts before the first operation runs, and is ignored silently afterwards.",
)
def test_xla_flags_are_read_once():
    set_it = f'os.environ["XLA_FLAGS"] = "{NO_FUSION}"'
    default = printed("print(fusions())")
    assert printed(f"{set_it}\nprint(fusions())") != default
    assert printed(f"jnp.ones(3) + 1\n{set_it}\nprint(fusions())") == default


@pytest.mark.wrong_twin("xla-flags-are-read-once")
def test_wrong_twin_a_later_value_counts():
    set_it = f'os.environ["XLA_FLAGS"] = "{NO_FUSION}"'
    assert printed(f"jnp.ones(3) + 1\n{set_it}\nprint(fusions())") == printed(f"{set_it}\nprint(fusions())")


@pytest.mark.claim(
    "metadata-context-retraces",
    "Inside `with set_xla_metadata(…)`, a jitted function is traced again, once for each set of tags.",
)
def test_metadata_context_retraces():
    metadata = pytest.importorskip("jax.experimental.xla_metadata", reason="not applicable: not in this JAX")
    traces = []

    @jax.jit
    def f(x):
        traces.append(x.shape)
        return jnp.cos(x)

    x = jnp.ones(3)
    f(x)
    for tag, count in (("a", 2), ("a", 2), ("b", 3)):
        with metadata.set_xla_metadata(part=tag):
            f(x)
        assert len(traces) == count
    f(x)
    assert len(traces) == 3
