"""Containers, classes and methods as arguments and results."""

import dataclasses
import functools
from collections import namedtuple

import jax
import jax.numpy as jnp
import pytest

Pair = namedtuple("Pair", "a b")
X = 3.0


@pytest.mark.claim(
    "nested-containers-are-arguments",
    "Dicts, lists, tuples and named tuples, nested at will, are arguments and results: the leaves are "
    "traced, the structure is kept.",
    seeds="S002-16 S002-100",
)
def test_nested_containers_are_arguments():
    tree = {"layers": [{"w": jnp.ones((2, 2)), "b": jnp.zeros(2)}, Pair(jnp.ones(1), (jnp.ones(3),))]}
    doubled = jax.jit(lambda t: jax.tree_util.tree_map(lambda x: x * 2, t))(tree)
    assert jax.tree_util.tree_structure(doubled) == jax.tree_util.tree_structure(tree)
    assert isinstance(doubled["layers"][1], Pair)
    assert (doubled["layers"][0]["w"] == 2).all()


@pytest.mark.claim(
    "parameters-travel-as-one-dict",
    "A dict of parameters is one argument of a jitted affine map; its jaxpr has one input for each array "
    "in it.",
    seeds="S002-45 S002-48 S002-100",
)
def test_parameters_travel_as_one_dict():
    def affine(params, x):
        return x @ params["w"] + params["b"]

    params = {"w": jnp.ones((4, 2)), "b": jnp.ones(2)}
    assert jax.jit(affine)(params, jnp.ones(4)).tolist() == [5, 5]
    jaxpr = jax.make_jaxpr(affine)(params, jnp.ones(4))
    assert [eqn.primitive.name for eqn in jaxpr.eqns][:1] == ["dot_general"]
    assert "add" in str(jaxpr)
    assert len(jaxpr.in_avals) == 3


@pytest.mark.claim("strings-are-refused", "A string anywhere in a traced argument raises `TypeError`.")
def test_strings_are_refused():
    for argument in ({"x": X, "name": "sine"}, [X, ["sine"]], "sine", (X, {"a": ("",)})):
        with pytest.raises(TypeError, match="str"):
            jax.jit(lambda d: 1.0)(argument)


@pytest.mark.claim(
    "dict-keys-may-be-strings",
    "Keys of a dict are structure, not data: strings and numbers serve, as long as they can be sorted.",
)
def test_dict_keys_may_be_strings():
    assert jax.jit(lambda d: d[2] + d[1])({2: X, 1: X}) == 6
    with pytest.raises(ValueError, match="sorting pytree dictionary keys"):
        jax.jit(lambda d: 1)({"a": X, 1: X})


@pytest.mark.claim(
    "dicts-come-back-sorted",
    "A dict returned by a jitted function has its keys in sorted order, also if the body used another order.",
)
def test_dicts_come_back_sorted():
    assert list(jax.jit(lambda x: {"b": x, "a": x})(X)) == ["a", "b"]


@pytest.mark.claim(
    "none-is-an-empty-tree",
    "`None` is a container without leaves: it is not an input of the compiled function, and comes back from it "
    "as `None`.",
)
def test_none_is_an_empty_tree():
    assert jax.tree_util.tree_leaves(None) == []
    assert jax.jit(lambda x: (x, None))(X)[1] is None
    assert jax.jit(lambda x: x)(None) is None
    assert "%arg1" not in jax.jit(lambda x, y: x, keep_unused=True).lower(X, None).as_text()


@pytest.mark.wrong_twin("none-is-an-empty-tree")
def test_wrong_twin_none_is_a_leaf():
    assert len(jax.tree_util.tree_leaves((X, None))) == 2


@pytest.mark.claim(
    "unregistered-class-is-refused",
    "An object of a class that JAX does not know raises `TypeError`, also if it is a dataclass.",
)
def test_unregistered_class_is_refused():
    @dataclasses.dataclass
    class Params:
        w: float

    with pytest.raises(TypeError, match="Params"):
        jax.jit(lambda p: p.w)(Params(X))


@pytest.mark.claim(
    "registered-dataclass-is-a-container",
    "A dataclass registered with `register_dataclass` is a container: data fields are traced, meta fields "
    "are static.",
)
def test_registered_dataclass_is_a_container():
    @dataclasses.dataclass(frozen=True)
    class Scale:
        w: float
        power: int

    jax.tree_util.register_dataclass(Scale, data_fields=["w"], meta_fields=["power"])
    runs = []
    f = jax.jit(lambda s: runs.append(s.power) or s.w**s.power)
    assert [float(f(Scale(w, p))) for w, p in ((2.0, 2), (3.0, 2), (2.0, 3))] == [4, 9, 8]
    assert runs == [2, 3]
    assert all(type(p) is int for p in runs)


@pytest.mark.claim("named-tuple-needs-no-registration", "A `NamedTuple` works as it is.")
def test_named_tuple_needs_no_registration():
    result = jax.jit(lambda p: Pair(p.b, p.a))(Pair(1.0, 2.0))
    assert isinstance(result, Pair)
    assert (result.a, result.b) == (2, 1)


@pytest.mark.claim(
    "jit-on-a-method-traces-self",
    "Using jit on a method makes `self` a traced argument: an object that JAX does not know is refused.",
)
def test_jit_on_a_method_traces_self():
    class Model:
        @jax.jit
        def apply(self, x):
            return x

    with pytest.raises(TypeError, match="Model"):
        Model().apply(X)


@pytest.mark.claim(
    "static-self-does-not-see-changes",
    "With `self` static, an attribute changed after the first call is not seen: the object still has the "
    "same hash.",
    seeds="S002-82",
)
def test_static_self_does_not_see_changes():
    class Model:
        scale = 2.0

        @functools.partial(jax.jit, static_argnums=0)
        def apply(self, x):
            return x * self.scale

    model = Model()
    assert model.apply(X) == 6
    model.scale = 10.0
    assert model.apply(X) == 6


@pytest.mark.claim(
    "registered-self-sees-changes",
    "With the class registered as a container, `self` is data: a changed attribute is seen and nothing is "
    "traced again.",
    seeds="S002-82",
)
def test_registered_self_sees_changes():
    runs = []

    @jax.tree_util.register_pytree_node_class
    class Model:
        def __init__(self, scale):
            self.scale = scale

        @jax.jit
        def apply(self, x):
            runs.append(1)
            return x * self.scale

        def tree_flatten(self):
            return (self.scale,), None

        @classmethod
        def tree_unflatten(cls, _, children):
            return cls(*children)

    model = Model(2.0)
    assert model.apply(X) == 6
    model.scale = 10.0
    assert model.apply(X) == 30
    assert len(runs) == 1


@pytest.mark.claim(
    "results-must-be-arrays",
    "A result that is not an array, a number or a container of them raises `TypeError`.",
)
@pytest.mark.parametrize(
    "result", ["done", b"done", object(), {1, 2}, len], ids=lambda result: type(result).__name__
)
def test_results_must_be_arrays(result):
    with pytest.raises(TypeError, match="JAX type"):
        jax.jit(lambda x: result)(X)
    with pytest.raises(TypeError, match="JAX type"):
        jax.jit(lambda x: {"a": [x, result]})(X)


@pytest.mark.claim(
    "gradient-has-the-structure-of-its-argument",
    "`value_and_grad` of a loss gives the value and a gradient with the structure of the parameters, leaf "
    "by leaf.",
    seeds="S002-17 S002-100",
)
def test_gradient_has_the_structure_of_its_argument():
    params = {"w": jnp.ones(2), "b": (jnp.zeros(()),)}
    loss = jax.jit(jax.value_and_grad(lambda p: (p["w"] ** 2).sum() + 3 * p["b"][0]))
    value, gradient = loss(params)
    assert value == 2
    assert gradient["w"].tolist() == [2, 2]
    assert gradient["b"][0] == 3


@pytest.mark.claim(
    "aux-values-come-with-the-gradient",
    "With `has_aux=True` the differentiated function may return extra values, such as a dict, next to the "
    "loss.",
    seeds="S002-17",
)
def test_aux_values_come_with_the_gradient():
    f = jax.jit(jax.value_and_grad(lambda x: (x**2, {"cube": x**3}), has_aux=True))
    (value, aux), gradient = f(X)
    assert (value, aux["cube"], gradient) == (9, 27, 6)


@pytest.mark.claim(
    "derivatives-nest",
    "`grad` of `grad` is the second derivative, and one jit around both compiles once.",
    seeds="S002-101 S002-17",
)
def test_derivatives_nest():
    assert jax.jit(jax.grad(jax.grad(lambda x: x**3)))(2.0) == 12


@pytest.mark.claim(
    "static-field-mixes-number-types",
    "In a static field `2` and `2.0` count as equal, and share the program of the first.",
)
def test_static_field_mixes_number_types():
    @dataclasses.dataclass(frozen=True)
    class Scale:
        w: jax.Array
        power: float

    jax.tree_util.register_dataclass(Scale, data_fields=["w"], meta_fields=["power"])
    f = jax.jit(lambda scale: scale.w * scale.power)
    assert [f(Scale(jnp.arange(2), power)).dtype for power in (2, 2.0)] == ["int32", "int32"]
