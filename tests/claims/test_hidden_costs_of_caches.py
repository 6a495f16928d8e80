"""What caches keep: names of scopes on disk, globals outside jit."""

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


def scaled(x):
    return x * rate


def scaled_in_a_loop(_, x):
    return x * rate


def scaled_once(counted):
    return counted[0] + 1, counted[1] * rate


def below_one(counted):
    return counted[0] < 1


# Each takes a function of this module, whose trace JAX keeps.
TAKERS = {
    "scan": lambda x: jax.lax.scan(times_rate, x, None, length=1)[0],
    "fori_loop": lambda x: jax.lax.fori_loop(0, 1, scaled_in_a_loop, x),
    "while_loop": lambda x: jax.lax.while_loop(below_one, scaled_once, (0, x))[1],
    "cond": lambda x: jax.lax.cond(x > 0, scaled, scaled, x),
    "switch": lambda x: jax.lax.switch(jnp.int32(x), [scaled, scaled, scaled], x),
    "checkpoint": lambda x: jax.checkpoint(scaled)(x),
}


@pytest.mark.claim(
    "loop-body-keeps-the-old-global-in-jit",
    "A function of a module that is handed to `scan`, `fori_loop`, `while_loop`, `cond`, `switch` or `jax.checkpoint` "
    "in a jitted function keeps the global that it read, after `f.clear_cache()` and in a second jitted function, "
    "until `jax.clear_caches()`.",
)
def test_loop_body_keeps_the_old_global_in_jit(monkeypatch):
    for taker in TAKERS.values():
        jax.clear_caches()
        with monkeypatch.context() as patched:
            first, second = jax.jit(lambda x, f=taker: f(x)), jax.jit(lambda x, f=taker: -f(x))
            assert float(first(2.0)) == 2.0
            patched.setitem(globals(), "rate", 3.0)
            first.clear_cache()
            assert (float(first(2.0)), float(second(2.0))) == (2.0, -2.0)
            jax.clear_caches()
            assert (float(first(2.0)), float(second(2.0))) == (6.0, -6.0)
    jax.clear_caches()


@pytest.mark.wrong_twin("loop-body-keeps-the-old-global-in-jit")
def test_wrong_twin_clearing_the_function_clears_its_loop_body(monkeypatch):
    jax.clear_caches()
    first = jax.jit(lambda x: TAKERS["scan"](x))
    assert float(first(2.0)) == 2.0
    monkeypatch.setitem(globals(), "rate", 3.0)
    first.clear_cache()
    assert float(first(2.0)) == 6.0
