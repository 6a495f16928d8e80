"""Two registered dataclasses that JAX cannot tell apart."""

import dataclasses

import jax
import jax.numpy as jnp
import pytest


def registered(cls):
    cls = dataclasses.dataclass(cls)
    data = [f.name for f in dataclasses.fields(cls) if not f.metadata.get("static")]
    meta = [f.name for f in dataclasses.fields(cls) if f.metadata.get("static")]
    return jax.tree_util.register_dataclass(cls, data_fields=data, meta_fields=meta) or cls


@registered
class Train:
    a: object


@registered
class Eval:
    a: object


@registered
class Marked:
    a: object
    kind: str = dataclasses.field(default="eval", metadata={"static": True})


@registered
class MarkedToo:
    a: object
    sort: str = dataclasses.field(default="eval", metadata={"static": True})


SINCE_0_10 = jax.__version_info__ >= (0, 10)


def tree(value):
    return jax.tree_util.tree_structure(value)


def mix_ups(other, functions=2000):
    """Return of how many functions JAX takes the trace for `Train` when it is called with the other class."""
    found, kept = 0, []
    for _ in range(functions):
        f = jax.jit(lambda s: s.a * (2 if isinstance(s, Train) else 3))
        kept.append(f)  # a new function may get the place of one that is gone
        jaxprs = [jax.make_jaxpr(f)(cls(jnp.ones(2))) for cls in (Train, other)]
        found += str(jaxprs[0]) == str(jaxprs[1])
    return found


@pytest.mark.claim(
    "dataclasses-of-two-classes-have-equal-trees",
    "Since JAX 0.10, the trees of two classes are equal if `register_dataclass` registered both, with as many "
    "data fields and equal values in static ones. The names of the fields don't count; another static value does.",
)
def test_dataclasses_of_two_classes_have_equal_trees():
    assert (tree(Train(1.0)) == tree(Eval(1.0))) == SINCE_0_10
    assert (tree([Train(1.0)]) == tree([Eval(1.0)])) == SINCE_0_10

    @registered
    class Renamed:
        b: object

    assert (tree(Train(1.0)) == tree(Renamed(1.0))) == SINCE_0_10
    assert tree(Train(1.0)) != tree(Marked(1.0))
    assert (tree(Marked(1.0)) == tree(MarkedToo(1.0))) == SINCE_0_10
    assert tree(Marked(1.0)) != tree(MarkedToo(1.0, sort="train"))


@pytest.mark.wrong_twin("dataclasses-of-two-classes-have-equal-trees")
def test_wrong_twin_a_static_field_does_not_tell_them_apart():
    assert tree(Train(1.0)) == tree(Marked(1.0))


@pytest.mark.claim(
    "cond-loops-and-compiled-functions-mix-up-dataclasses",
    "Since JAX 0.10, `lax.cond` gives the result of two such classes the class of the true branch, also where the other "
    "one runs; a `scan` lets its carry change the class; and a compiled function runs its program for the other class.",
)
def test_cond_loops_and_compiled_functions_mix_up_dataclasses():
    def chosen():
        return jax.lax.cond(False, lambda: Train(1.0), lambda: Eval(2.0))

    def carried():
        return jax.lax.scan(lambda carry, _: (Eval(2.0), None), Train(1.0), None, length=2)[0]

    def compiled():
        f = jax.jit(lambda s: Train(s.a * (2 if isinstance(s, Train) else 3)))
        return f.lower(Train(1.0)).compile()(Eval(1.0))

    for function, cls in ((chosen, Train), (jax.jit(chosen), Train), (carried, Eval), (compiled, Train)):
        if SINCE_0_10:
            result = function()
            assert (type(result), float(result.a)) == (cls, 2)
        else:
            with pytest.raises(TypeError, match=r"structure|pytree"):
                function()


@pytest.mark.measured("where the objects lie in memory, of which JAX makes hashes")
@pytest.mark.claim(
    "jit-may-take-one-dataclass-for-another",
    "In JAX 0.10, a jitted function that was called with one such class may run that program for the other one, "
    "without an error: about one function in a hundred. Static fields with different values prevent it.",
)
def test_jit_may_take_one_dataclass_for_another():
    assert (mix_ups(Eval) > 0) == ((0, 10) <= jax.__version_info__ < (0, 11))
    assert mix_ups(Marked) == 0
