"""Registered dataclasses, and objects behind methods."""

import dataclasses

import jax
import jax.numpy as jnp
import numpy as np
import pytest

STATIC = {"static": True}


def registered(cls):
    if not dataclasses.is_dataclass(cls):
        cls = dataclasses.dataclass(cls)
    return jax.tree_util.register_dataclass(cls)


@pytest.mark.claim(
    "static-field-is-part-of-the-structure",
    "In a registered dataclass a field with the metadata `static` reaches the body as it is, and another "
    "value of it traces again; another value of a data field does not.",
)
def test_static_field_is_part_of_the_structure():
    @registered
    class Scale:
        factor: float
        kind: str = dataclasses.field(metadata=STATIC)

    runs = []
    f = jax.jit(lambda s: runs.append(s.kind) or s.factor * 2)
    f(Scale(1.0, "a")), f(Scale(2.0, "a")), f(Scale(1.0, "b"))
    assert runs == ["a", "b"]


@pytest.mark.wrong_twin("static-field-is-part-of-the-structure")
def test_wrong_twin_static_field_is_a_leaf():
    @registered
    class Scale:
        factor: float
        kind: str = dataclasses.field(metadata=STATIC)

    assert len(jax.tree_util.tree_leaves(Scale(1.0, "a"))) == 2


@pytest.mark.claim(
    "array-in-a-static-field-fails-later",
    "An array in a static field of a registered dataclass passes at the first call; a call with another "
    "array of several elements there raises `ValueError`.",
)
@pytest.mark.parametrize("make", [np.ones, jnp.ones], ids=["NumPy", "JAX"])
def test_array_in_a_static_field_fails_later(make):
    @registered
    class Grid:
        values: float
        points: object = dataclasses.field(metadata=STATIC)

    f = jax.jit(lambda grid: grid.values * 2)
    assert f(Grid(1.0, make(3))) == 2
    with pytest.raises(ValueError, match=r"equality of metadata fields|truth value of an array"):
        f(Grid(1.0, make(3)))


@pytest.mark.claim(
    "constructor-runs-again",
    "A registered dataclass is rebuilt through its constructor on both sides of a jitted call: what "
    "`__post_init__` does to a field is done again each time.",
)
def test_constructor_runs_again():
    @registered
    class Half:
        value: float

        def __post_init__(self):
            self.value = self.value / 2

    half = Half(8.0)
    assert (half.value, jax.jit(lambda h: h)(half).value) == (4, 1)


@pytest.mark.claim(
    "attribute-behind-a-bound-method-is-frozen",
    "`jax.jit(obj.method)` keeps the attributes that the object had while tracing; later changes are "
    "not seen.",
    seeds="S002-82",
)
def test_attribute_behind_a_bound_method_is_frozen():
    class Model:
        scale = 2.0

        def apply(self, x):
            return x * self.scale

    model = Model()
    f = jax.jit(model.apply)
    assert f(1.0) == 2
    model.scale = 10.0
    assert f(1.0) == 2


@pytest.mark.claim(
    "number-of-arguments-is-part-of-the-key",
    "Another number of `*args`, or a keyword of another name in `**kwargs`, traces again.",
)
def test_number_of_arguments_is_part_of_the_key():
    runs = []
    f = jax.jit(lambda *args, **kwargs: runs.append((len(args), sorted(kwargs))) or sum(args))
    f(1.0), f(2.0), f(1.0, 2.0), f(1.0, scale=2.0), f(1.0, offset=2.0), f(3.0, scale=1.0)
    assert runs == [(1, []), (2, []), (1, ["scale"]), (1, ["offset"])]
