"""Where JAX lacks what `watch` reads besides its documented names, a call is less well explained, never wrong."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import _jax, _monitoring, assert_compiles, watch
from jitguide._watch import watch as watch_module

COMPILED, HIT = "compiled", "hit"


def ones(n):
    return jnp.asarray(np.ones(n, np.float32))


def twice():
    def twice(x):
        return x * 2

    return jax.jit(twice)


def tagged():
    def tagged(x, tag):
        return x + 1

    return jax.jit(tagged, static_argnums=1)


class Public:
    """A jitted function with the documented attributes of one only."""

    def __init__(self, jitted):
        self.jitted, self.__wrapped__, self.__name__ = jitted, jitted.__wrapped__, jitted.__name__
        self.lower, self.trace, self.eval_shape = jitted.lower, jitted.trace, jitted.eval_shape

    def __call__(self, *args):
        return self.jitted(*args)


@pytest.fixture
def untested_events(monkeypatch):
    """Forget that the events were tested, so that the next call tests them."""
    monkeypatch.setattr(_monitoring, "_verdict", None)


@pytest.fixture
def renamed_events(monkeypatch, untested_events):
    """Give the events of JAX other names."""
    monkeypatch.setattr(_jax, "PHASES", {})


def test_without_private_names_events_still_count():
    f = watch(Public(twice()))
    for x in (1.0, 2.0, 3, np.float32(3)):
        f(x)
    assert [c.outcome for c in f.calls] == [COMPILED, HIT, COMPILED, COMPILED]


def test_a_static_number_is_an_unknown_reason_with_a_note_where_jax_does_not_tell():
    f = watch(Public(tagged()))
    f(1.0, 2)
    f(1.0, 3)
    assert f.last.reason.kind == "unknown"
    assert _jax.NO_OPTIONS in " ".join(repr(f).split())


def test_what_jax_cannot_trace_is_taken_as_static():
    f = watch(Public(tagged()))
    f(1.0, "a")
    f(1.0, "b")
    assert str(f.last.reason).startswith("Static `tag` changed, 'a' → 'b'")


def test_a_first_use_where_tracing_is_forbidden_is_not_counted_and_later_ones_are(untested_events):
    jitted = twice()
    jitted(ones(3))
    f = watch(jitted)
    with jax.no_tracing():
        f(ones(3))
    f(ones(4))
    assert [c.outcome for c in f.calls] == ["not counted", COMPILED]


def test_a_removed_listener_is_noticed_and_replaced():
    f = watch(twice())
    f(ones(1))
    jax.monitoring.unregister_event_duration_listener(_monitoring._on_duration)
    f(ones(2))
    assert f.last.outcome == "not counted"
    assert "not counted" in repr(f)
    with pytest.raises(AssertionError, match="not counted"):
        f.assert_compiles(2)
    f(ones(3))
    assert f.last.outcome == COMPILED
    begun = len(_monitoring._local.begun)
    f(ones(4))
    assert len(_monitoring._local.begun) == begun, "the listener for what begins is there twice"


def test_events_with_other_names_make_calls_not_counted_rather_than_hits(renamed_events):
    f = watch(twice())
    f(1.0)
    assert f.last.outcome == "not counted"
    with watch() as seen:
        f(2)
    with pytest.raises(RuntimeError, match="nothing was counted"):
        _ = seen.compiles
    with pytest.raises(AssertionError, match="nothing was counted"), assert_compiles(1):
        f(2)
    assert "nothing was counted" in repr(seen)


def test_an_error_without_counted_events_does_not_say_what_was_made(renamed_events):
    f = watch(jax.jit(jnp.log))
    with jax.debug_nans(True), pytest.raises(FloatingPointError):
        f(-ones(3))
    assert f.last.reason.advice.startswith("whether a program was made is not known")


def test_a_fault_in_our_own_signature_never_reaches_the_reader(monkeypatch):
    def fail(*_):
        raise RuntimeError("ours")

    monkeypatch.setattr(watch_module, "signature_of", fail)
    f = watch(twice())
    assert f(2.0) == 4.0
    assert (f.last.outcome, f.last.reason) == (COMPILED, None)
