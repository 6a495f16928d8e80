"""Arguments: traced axes, unhashable settings, annotations, classes."""

import dataclasses
import typing
from types import MappingProxyType

import jax
import jax.numpy as jnp
import numpy as np
import pytest

REFUSED = (
    TypeError,
    ValueError,
)  # TracerIntegerConversionError and ConcretizationTypeError are both TypeErrors


@pytest.mark.claim(
    "axis-must-be-static",
    "A traced `axis` or `keepdims` of a reduction such as `jnp.sum` raises an error; static, a number or a tuple works.",
)
def test_axis_must_be_static():
    x = jnp.ones((3, 4))

    def total(x, axis, keepdims=False):
        return jnp.sum(x, axis=axis, keepdims=keepdims)

    for axis in (0, (0,), (0, 1)):
        with pytest.raises(REFUSED):
            jax.jit(total)(x, axis)
        static = jax.jit(total, static_argnums=(1, 2))
        assert static(x, axis, True).shape == np.ones((3, 4)).sum(axis, keepdims=True).shape
    with pytest.raises(REFUSED):
        jax.jit(total, static_argnums=1)(x, 0, True)
    with pytest.raises(REFUSED):
        jax.jit(lambda x, axis: jnp.argmax(x, axis=axis))(x, 0)


@pytest.mark.wrong_twin("axis-must-be-static", raises=TypeError)
def test_wrong_twin_axis_may_be_traced():
    assert jax.jit(lambda x, axis: jnp.sum(x, axis=axis))(jnp.ones((3, 4)), 0).shape == (4,)


@dataclasses.dataclass(frozen=True)
class Frozen:
    content: object


class Named(typing.NamedTuple):
    content: object


@pytest.mark.claim(
    "frozen-object-with-a-list-is-unhashable",
    "A frozen dataclass or a named tuple hashes its fields, so it can't be static with a list, dict or array in a "
    "field; with a tuple it can.",
)
def test_frozen_object_with_a_list_is_unhashable():
    f = jax.jit(lambda x, settings: x * len(settings.content), static_argnums=1)
    for cls in (Frozen, Named):
        for content in ([1, 2], {"a": 1}, np.ones(2), jnp.ones(2), (1, [2])):
            with pytest.raises(ValueError, match=r"[Nn]on-hashable static arg"):
                f(2.0, cls(content))
        assert f(2.0, cls((1, 2))) == 4


@pytest.mark.claim(
    "state-cannot-be-static",
    "A container of arrays, such as the state of a training step, can't be static, registered or not; traced it works.",
)
def test_state_cannot_be_static():
    def total(state):
        return sum(leaf.sum() for leaf in jax.tree_util.tree_leaves(state))

    @dataclasses.dataclass(frozen=True)
    class State:
        weights: object

    jax.tree_util.register_dataclass(State, data_fields=["weights"], meta_fields=[])
    weights = jnp.ones(2)
    for state in ({"w": weights}, [weights], (weights,), Named(weights), State(weights)):
        with pytest.raises(ValueError, match=r"[Nn]on-hashable static arg"):
            jax.jit(total, static_argnums=0)(state)
        assert jax.jit(total)(state) == 2
    key = jax.random.PRNGKey(0)
    with pytest.raises(ValueError, match=r"[Nn]on-hashable static arg"):
        jax.jit(jax.random.uniform, static_argnums=0)(key)
    assert 0 <= jax.jit(jax.random.uniform)(key) < 1


@pytest.mark.claim(
    "annotation-makes-nothing-static",
    "An annotation doesn't make an argument static: jit traces a parameter annotated `bool`, `Literal`, `Final` or "
    "`Annotated`.",
)
def test_annotation_makes_nothing_static():
    kinds = (bool, typing.Literal[True], typing.Final[bool], typing.Annotated[bool, "static"])
    for kind in kinds:

        def signed(x, negative):
            return -x if negative else x

        signed.__annotations__["negative"] = kind
        with pytest.raises(jax.errors.TracerBoolConversionError):
            jax.jit(signed)(1.0, True)
        assert jax.jit(signed, static_argnums=1)(1.0, True) == -1


@pytest.mark.claim(
    "register-dataclass-passes-fields-by-keyword",
    "`register_dataclass` rebuilds an object by calling its class with the fields as keywords, so an `__init__` "
    "with other parameters raises `TypeError`.",
)
def test_register_dataclass_passes_fields_by_keyword():
    @dataclasses.dataclass
    class Angle:
        degrees: object

        def __init__(self, turns):
            self.degrees = 360 * turns

    jax.tree_util.register_dataclass(Angle, data_fields=["degrees"], meta_fields=[])
    with pytest.raises(TypeError, match=r"unexpected keyword argument .?degrees"):
        jax.jit(lambda angle: angle.degrees)(Angle(0.25))


@pytest.mark.claim(
    "dict-subclass-is-refused",
    "JAX refuses a mapping that it doesn't know as an argument, even a subclass of `dict`; `dict(x)`, or a "
    "registered class, works.",
)
def test_dict_subclass_is_refused():
    class Parameters(dict):
        pass

    def double(parameters):
        return 2 * parameters["w"]

    for make in (Parameters, MappingProxyType):
        with pytest.raises(TypeError):
            jax.jit(double)(make({"w": 1.5}))
        assert jax.jit(double)(dict(make({"w": 1.5}))) == 3
    jax.tree_util.register_pytree_node(
        Parameters,
        lambda p: (tuple(p.values()), tuple(p)),
        lambda keys, values: Parameters(zip(keys, values, strict=True)),
    )
    assert jax.jit(double)(Parameters(w=1.5)) == 3
