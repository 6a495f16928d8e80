"""Instances that attack a general sentence: unusual arrays, and unusual places to call a function from.

A claim whose sentence speaks of all, any or none names at least two of them::

    @pytest.mark.claim("dtype-is-a-key", "A call with any other dtype traces again.")
    @pytest.mark.hostile("scalar", "empty", "vmap")
    def test_dtype_is_a_key(case): ...

The test runs once with the friendly case, a `float32` vector in a plain call, and once with each of those named.
"""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


class CannotRun(Exception):  # noqa: N818 -- says of an experiment what happened to it
    """The experiment could not be set up, which says nothing about its claim."""


def x64():
    """Turn 64-bit types on for a while, under the name that this JAX has for it."""
    if hasattr(jax, "enable_x64"):
        return jax.enable_x64(True)
    from jax.experimental import enable_x64

    return enable_x64()


def _float64():
    with x64():
        return jnp.arange(1.0, 5.0, dtype=jnp.float64)


def _split():
    """An array over all devices, of which there must be several."""
    devices = jax.devices()
    if len(devices) < 2:
        pytest.skip("not applicable: this process has one device only")
    mesh = jax.sharding.Mesh(np.array(devices), ("i",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("i"))
    return jax.device_put(jnp.arange(2.0 * len(devices)), sharding)


ARRAYS = {
    "scalar": lambda: jnp.asarray(2.5, jnp.float32),
    "empty": lambda: jnp.zeros((0,)),
    "matrix": lambda: jnp.arange(1.0, 7.0).reshape(2, 3),
    "uniform": lambda: jnp.zeros(4),
    "bfloat16": lambda: jnp.arange(1, 5).astype(jnp.bfloat16),
    "int8": lambda: jnp.arange(1, 5).astype(jnp.int8),
    "bool": lambda: jnp.array([True, False, True, True]),
    "complex": lambda: jnp.arange(1, 5) * (1 + 1j),
    "x64": _float64,
    "numpy": lambda: np.arange(1, 5, dtype=np.float32),
    "committed": lambda: jax.device_put(jnp.arange(1.0, 5.0), jax.devices()[-1]),
    "split": _split,
}


def _bound(f):
    class Owner:
        def method(self, *args):
            return f(*args)

    return Owner().method


def _twice(f):
    return lambda *args: (f(*args), f(*args))[1]


def _without_jit(f):
    def call(*args):
        with jax.disable_jit():
            return f(*args)

    return call


def _stepped(f):
    """Call f in the body of a scan, with its arguments in the carry."""
    return lambda *args: jax.tree_util.tree_map(
        lambda steps: steps[0], jax.lax.scan(lambda c, _: (c, f(*c)), args, None, length=2)[1]
    )


def _batched(f):
    """Call f under vmap, on a batch of two of its arguments."""
    return lambda *args: jax.tree_util.tree_map(
        lambda rows: rows[0], jax.vmap(f)(*[jnp.stack([jnp.asarray(a)] * 2) for a in args])
    )


def _differentiated(f):
    """Call f under a derivative with respect to its first argument."""
    return lambda *args: jax.vjp(f, *args)[0]


PLACES = {
    "jit": jax.jit,
    "vmap": _batched,
    "grad": _differentiated,
    "scan": _stepped,
    "disable_jit": _without_jit,
    "second call": _twice,
    "bound method": _bound,
}


class Case:
    """One instance: an array to work on, and a place to call from; friendly unless it is named otherwise."""

    def __init__(self, name):
        self.name = name

    @property
    def array(self):
        """The array of the case, made anew at every use."""
        return ARRAYS.get(self.name, lambda: jnp.arange(1.0, 5.0))()

    def place(self, f):
        """Return the function that calls f from the place of the case."""
        return PLACES.get(self.name, lambda f: f)(f)


def parametrize(metafunc):
    """Run a test that is marked `hostile` with the friendly case and with each one named."""
    if marker := metafunc.definition.get_closest_marker("hostile"):
        if len(marker.args) < 2 or (unknown := {*marker.args} - {*ARRAYS, *PLACES}):
            raise pytest.UsageError(
                f"{metafunc.definition.nodeid}: `hostile` names two or more of {[*ARRAYS, *PLACES]}, got {marker.args}."
                + (f" Unknown: {sorted(unknown)}." if len(marker.args) >= 2 else "")
            )
        metafunc.parametrize(
            "case", [Case(name) for name in ("friendly", *marker.args)], ids=lambda case: case.name
        )
