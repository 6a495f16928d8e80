"""What a cache keeps that you no longer see: names of scopes on disk, and globals outside jit."""

import jax
import jax.numpy as jnp
import pytest

SCOPED = """
import re
import jax, jax.numpy as jnp
seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))

@jax.jit
def step(x):
    with jax.named_scope("NAME"):
        return jnp.sin(x) @ x

text = step.lower(jnp.ones((3, 3))).compile().as_text()
print(*sorted(set(re.findall(r"kitchen|garden", text))), seen.count("/jax/compilation_cache/cache_hits") > 0)
"""


def names_and_hit(child, folder, name, **settings):
    cache = {"JAX_COMPILATION_CACHE_DIR": str(folder), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    return child(SCOPED.replace("NAME", name), **cache, **settings).split()


@pytest.mark.claim(
    "renamed-scope-hits-the-persistent-cache",
    "With another name of a `jax.named_scope`, a function is found in the persistent cache, and the compiled text "
    "has the old name.",
)
def test_renamed_scope_hits_the_persistent_cache(child, tmp_path):
    assert names_and_hit(child, tmp_path, "kitchen")[0] == "kitchen"
    assert names_and_hit(child, tmp_path, "garden") == ["kitchen", "True"]


@pytest.mark.wrong_twin("renamed-scope-hits-the-persistent-cache")
def test_wrong_twin_renamed_scope_is_in_the_text(child, tmp_path):
    names_and_hit(child, tmp_path, "kitchen")
    assert names_and_hit(child, tmp_path, "garden")[0] == "garden"


@pytest.mark.claim(
    "metadata-in-the-key-shows-the-renamed-scope",
    "With `JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY=1`, a function whose scope was renamed compiles again, and "
    "the compiled text has the new name.",
)
def test_metadata_in_the_key_shows_the_renamed_scope(child, tmp_path):
    metadata = {"JAX_COMPILATION_CACHE_INCLUDE_METADATA_IN_KEY": "1"}
    assert names_and_hit(child, tmp_path, "kitchen", **metadata)[0] == "kitchen"
    assert names_and_hit(child, tmp_path, "garden", **metadata)[0] == "garden"


rate = 1.0


def times_rate(total, x):
    return total * rate, x


@pytest.mark.claim(
    "scan-outside-jit-keeps-the-old-global",
    "Outside jit, a second `lax.scan` of the same function keeps the global that the first one read, until "
    "`jax.clear_caches()`.",
)
def test_scan_outside_jit_keeps_the_old_global(monkeypatch):
    def run():
        return float(jax.lax.scan(times_rate, 2.0, jnp.ones(3))[0])

    jax.clear_caches()
    before = run()
    monkeypatch.setitem(globals(), "rate", 3.0)
    assert (before, run()) == (2.0, 2.0)
    jax.clear_caches()
    assert run() == 54.0
    jax.clear_caches()
