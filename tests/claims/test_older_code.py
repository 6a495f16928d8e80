"""Names and arguments of older JAX, and what they are today."""

import importlib
import warnings

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.claim(
    "pjit-warns-and-is-jit",
    "`jax.experimental.pjit.pjit` warns that it is deprecated and works like `jax.jit`; `in_axis_resources` raises "
    "`TypeError`.",
)
def test_pjit_warns_and_is_jit():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        pjit = importlib.import_module("jax.experimental.pjit").pjit
        assert pjit(lambda x: x + 1)(1.0) == 2.0
    assert any(issubclass(warning.category, DeprecationWarning) for warning in caught)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(TypeError, match="in_axis_resources"):
            pjit(lambda x: x, in_axis_resources=None)


NONE = """
import warnings
import jax, jax.numpy as jnp, numpy as np
warnings.simplefilter("ignore")
from jax.experimental.pjit import pjit

mesh = jax.sharding.Mesh(np.array(jax.devices()), ("data",))
spec = jax.sharding.PartitionSpec("data")
x = jax.device_put(jnp.arange(8.0), jax.sharding.NamedSharding(mesh, spec))
with mesh:
    by_pjit = pjit(lambda x: x * 2, out_shardings=None)(x)
    by_jit = jax.jit(lambda x: x * 2, out_shardings=None)(x)
print(by_pjit.sharding.is_fully_replicated, by_jit.sharding.spec == spec)
"""


@pytest.mark.claim(
    "none-replicates-in-pjit",
    "Under `with mesh:`, `out_shardings=None` makes the result of `pjit` replicated, and leaves that of `jax.jit` split.",
)
def test_none_replicates_in_pjit(child):
    assert child(NONE, devices=4).split() == ["True", "True"]


@pytest.mark.wrong_twin("pjit-warns-and-is-jit", raises=TypeError)
def test_wrong_twin_pjit_takes_axis_resources():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        importlib.import_module("jax.experimental.pjit").pjit(lambda x: x, in_axis_resources=None)


@pytest.mark.claim(
    "shard-map-checks-by-check-vma",
    "`jax.shard_map` takes `check_vma`; `check_rep` raises `TypeError`. The old import from `jax.experimental.shard_map` "
    "warns that it is deprecated.",
)
def test_shard_map_checks_by_check_vma():
    mesh = jax.sharding.Mesh(np.array(jax.devices()[:1]), ("i",))
    specs = {"mesh": mesh, "in_specs": jax.sharding.PartitionSpec("i")}
    specs["out_specs"] = jax.sharding.PartitionSpec("i")
    mapped = jax.shard_map(lambda x: x + 1, **specs, check_vma=False)
    np.testing.assert_array_equal(mapped(jnp.ones(2)), [2, 2])
    with pytest.raises(TypeError, match="check_rep"):
        jax.shard_map(lambda x: x, **specs, check_rep=False)
    with pytest.warns(DeprecationWarning, match="deprecated"):
        importlib.import_module("jax.experimental.shard_map").shard_map  # noqa: B018 -- the read warns


SHARD_MAP = """
import jax, jax.numpy as jnp
mesh = jax.make_mesh((2,), ("i",))
double = jax.shard_map(lambda x: x * 2, mesh=mesh, in_specs=jax.P("i"), out_specs=jax.P("i"))
x = jnp.arange(4.0)
try:
    print(double(x).sum())
except ValueError as error:
    print("refused" if "in_specs" in str(error) else error)
print(double(jax.device_put(x, jax.NamedSharding(mesh, jax.P("i")))).sum())
auto = jax.make_mesh((2,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
print(jax.shard_map(lambda x: x * 2, mesh=auto, in_specs=jax.P("i"), out_specs=jax.P("i"))(x).sum())
"""


@pytest.mark.claim(
    "shard-map-on-an-explicit-mesh-wants-placed-inputs",
    "On a mesh of `jax.make_mesh`, whose axes are explicit, `shard_map` raises `ValueError` for an input that is "
    "split differently from `in_specs`; placed by `device_put`, or on a mesh with automatic axes, it works.",
)
def test_shard_map_on_an_explicit_mesh_wants_placed_inputs(child):
    assert child(SHARD_MAP, devices=2).split() == ["refused", "12.0", "12.0"]


@pytest.mark.claim(
    "device-put-replicated-is-gone",
    "`jax.device_put_replicated` and `jax.device_put_sharded` are gone; `jax.device_put` with a sharding does their work.",
)
def test_device_put_replicated_is_gone():
    for name in ("device_put_replicated", "device_put_sharded"):
        with pytest.raises(AttributeError):
            getattr(jax, name)
    mesh = jax.sharding.Mesh(np.array(jax.devices()), ("i",))
    sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec())
    assert jax.device_put(jnp.ones(3), sharding).sharding.is_fully_replicated


@pytest.mark.claim(
    "xla-extension-is-gone",
    "`jax.lib.xla_extension`, `jax.lib.xla_bridge` and `jaxlib.xla_extension` are gone; errors of the compiler are "
    "`jax.errors.JaxRuntimeError`, a `RuntimeError`.",
)
def test_xla_extension_is_gone():
    for name in ("jax.lib.xla_extension", "jax.lib.xla_bridge", "jaxlib.xla_extension"):
        with pytest.raises(ImportError):
            importlib.import_module(name)
    assert issubclass(jax.errors.JaxRuntimeError, RuntimeError)
    with pytest.raises(jax.errors.JaxRuntimeError):
        jax.jit(lambda x: x, compiler_options={"no_such_option": 1})(1.0)


@pytest.mark.claim(
    "array-device-is-an-attribute",
    "`x.device` of an array is an attribute: `x.device()` raises `TypeError`.",
)
def test_array_device_is_an_attribute():
    x = jnp.ones(2)
    assert x.device in jax.devices()
    with pytest.raises(TypeError, match="not callable"):
        x.device()
