"""Names of older JAX that are gone, and what took their place."""

import importlib

import jax
import numpy as np
import pytest


def _exists(path):
    """Say whether a dotted name can still be had."""
    module, _, name = path.rpartition(".")
    try:
        return hasattr(importlib.import_module(module), name)
    except ImportError:
        return False


@pytest.mark.claim(
    "config-module-is-gone",
    "`from jax.config import config` fails; `jax.config` is the configuration object itself.",
    seeds="S001-04",
)
def test_config_module_is_gone():
    with pytest.raises(ModuleNotFoundError, match="config"):
        importlib.import_module("jax.config")
    assert callable(jax.config.update)


@pytest.mark.wrong_twin("config-module-is-gone", raises=ModuleNotFoundError)
def test_wrong_twin_config_module_can_be_imported():
    assert importlib.import_module("jax.config").config


@pytest.mark.claim(
    "xla-computation-is-gone",
    "`jax.xla_computation` is gone; `jax.jit(f).lower(x).as_text()` shows the program given to XLA.",
    seeds="S001-03 S003-23 S003-30",
)
def test_xla_computation_is_gone():
    assert not hasattr(jax, "xla_computation")
    assert "stablehlo.add" in jax.jit(lambda x: x + 1).lower(2.0).as_text()


@pytest.mark.claim(
    "concrete-array-is-gone",
    "The abstract type `ConcreteArray` is gone: a type carries a shape and a dtype, and not data.",
    seeds="S001-31 S003-17",
)
def test_concrete_array_is_gone():
    assert not hasattr(jax.core, "ConcreteArray")
    aval = jax.make_jaxpr(lambda x: x)(np.ones(3, np.float32)).in_avals[0]
    assert isinstance(aval, jax.core.ShapedArray)
    assert not hasattr(aval, "val")


@pytest.mark.claim(
    "device-array-is-gone",
    "`DeviceArray` is gone: arrays are `jax.Array`, on one device or many.",
    seeds="S001-01",
)
def test_device_array_is_gone():
    assert not _exists("jax.numpy.DeviceArray")
    assert not _exists("jax.interpreters.xla.DeviceArray")
    assert isinstance(jax.numpy.ones(3), jax.Array)
    assert jax.numpy.ndarray is jax.Array


@pytest.mark.claim(
    "abstract-arrays-module-is-gone",
    "`jax.abstract_arrays` is gone with its several levels of abstraction; `jax.core.ShapedArray` remains.",
    seeds="S001-31",
)
def test_abstract_arrays_module_is_gone():
    assert not _exists("jax.abstract_arrays.ShapedArray")
    assert not _exists("jax.core.UnshapedArray")
    assert hasattr(jax.core, "ShapedArray")


@pytest.mark.claim(
    "jit-device-argument-is-deprecated",
    "`jax.jit(f, device=...)` warns that it is deprecated; place the inputs with `jax.device_put` instead.",
    seeds="S001-23",
)
def test_jit_device_argument_is_deprecated():
    with pytest.warns(DeprecationWarning, match="device argument"):
        jax.jit(lambda x: x, device=jax.devices()[0])
    x = jax.device_put(np.ones(3), jax.devices()[0])
    assert jax.jit(lambda x: x + 1)(x).devices() == {jax.devices()[0]}


@pytest.mark.claim(
    "usual-names-are-still-there",
    "`random`, `jit`, `lax`, `vmap`, `pmap`, `grad`, `value_and_grad` can still be imported from `jax`.",
    seeds="S000-34",
)
def test_usual_names_are_still_there():
    for name in ("random", "jit", "lax", "vmap", "pmap", "grad", "value_and_grad"):
        assert hasattr(jax, name)
    assert jax.random.PRNGKey(0).shape == (2,)


@pytest.mark.claim(
    "tree-map-moved",
    "`jax.tree_map` is gone; `jax.tree.map` does its work.",
)
def test_tree_map_moved():
    assert not hasattr(jax, "tree_map")
    assert jax.tree.map(lambda x: x + 1, [1, (2,)]) == [2, (3,)]


@pytest.mark.claim(
    "jaxpr-class-moved",
    "`jax.core.Jaxpr` is gone; the class is `jax.extend.core.Jaxpr`.",
)
def test_jaxpr_class_moved():
    assert not hasattr(jax.core, "Jaxpr")
    assert _exists("jax.extend.core.Jaxpr")


@pytest.mark.claim(
    "old-experimental-modules-are-gone",
    "`jax.experimental` no longer has `host_callback`, `maps`, `loops`, `stax` and `optimizers`.",
)
def test_old_experimental_modules_are_gone():
    for name in ("host_callback", "maps", "loops", "stax", "optimizers"):
        with pytest.raises(ImportError):
            importlib.import_module(f"jax.experimental.{name}")


@pytest.mark.claim(
    "index-update-is-gone",
    "`jax.ops.index_update` is gone; `x.at[i].set(v)` does its work.",
)
def test_index_update_is_gone():
    assert not _exists("jax.ops.index_update")
    assert jax.numpy.zeros(3).at[1].set(5.0).tolist() == [0.0, 5.0, 0.0]


@pytest.mark.claim(
    "jit-options-are-keyword-only",
    "jit takes its options by keyword: a second positional argument raises `TypeError`.",
)
def test_jit_options_are_keyword_only():
    with pytest.raises(TypeError, match="positional"):
        jax.jit(lambda x, n: x, (1,))


@pytest.mark.claim(
    "abstracted-axes-is-gone",
    "`abstracted_axes` is gone from jit: the argument raises `TypeError`.",
)
def test_abstracted_axes_is_gone():
    with pytest.raises(TypeError, match="abstracted_axes"):
        jax.jit(lambda x: x, abstracted_axes={0: "n"})
