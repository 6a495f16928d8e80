"""A signature holds what jit looks at, in words, and nothing that would keep an array alive."""

import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide._text import show
from jitguide._watch.signature import Leaf, signature_of


def base(x, n=2, *rest, flag=False, **more):
    return x


def spelled(fn, *args, **kwargs):
    return str(signature_of(fn, args, kwargs))


def test_a_signature_reads_like_a_call():
    fn = jax.jit(base, static_argnames=("n", "flag"))
    x = jnp.zeros((2, 3))
    assert spelled(fn, x) == "x: float32[2,3]"
    assert spelled(fn, x, 3) == "x: float32[2,3], n = 3 (static)"
    assert spelled(fn, 1.0, flag=True) == "x: float32[] (Python float), flag = True (static)"
    assert spelled(fn, {"a": x, "b": 1}) == "x: {['a']: float32[2,3], ['b']: int32[]}"
    assert spelled(fn, list(range(5))) == "x: {[0]: int32[], [1]: int32[], [2]: int32[], … 5 leaves}"


def test_rest_arguments_have_a_path():
    assert list(signature_of(jax.jit(base), (1.0, 2.0, 3.0, 4.0), {"other": 5.0}).arguments) == [
        "x",
        "n",
        "rest[0]",
        "rest[1]",
        "other",
    ]


@pytest.mark.parametrize("number", [1, -1])
def test_static_argnums_are_counted_from_both_ends(number):
    fn = jax.jit(lambda x, n: x, static_argnums=number)
    assert signature_of(fn, (1.0, 2), {}).arguments["n"].static
    assert not signature_of(fn, (1.0, 2), {}).arguments["x"].static


def test_a_static_number_beyond_the_named_parameters_is_found():
    fn = jax.jit(lambda x, *rest: x, static_argnums=2)
    assert signature_of(fn, (1.0, 2.0, "a"), {}).arguments["rest[1]"].static


def test_defaults_that_were_left_out_are_known():
    assert signature_of(jax.jit(base), (1.0,), {}).defaults == {"n": 2, "flag": False}


@pytest.mark.parametrize(
    ("value", "origin", "weak"),
    [
        (1.0, "Python float", True),
        (True, "Python bool", False),
        (np.float32(1), "NumPy array", False),
        (np.ones(2), "NumPy array", False),
        (jnp.float32(1), "jax.Array", False),
    ],
)
def test_a_leaf_knows_where_it_comes_from(value, origin, weak):
    (leaf,) = signature_of(jax.jit(base), (value,), {}).arguments["x"].leaves
    assert (leaf.origin, leaf.weak) == (origin, weak)
    assert isinstance(leaf, Leaf)


def test_a_donated_array_has_the_signature_it_had():
    fn = jax.jit(lambda x: x + 1, donate_argnums=0)
    x = jnp.zeros((2, 3))
    before = str(signature_of(fn, (x,), {}))
    fn(x)
    assert x.is_deleted()
    assert str(signature_of(fn, (x,), {})) == before


def test_a_signature_keeps_no_array_alive():
    x = jnp.zeros(3)
    alive = weakref.ref(x)
    kept = signature_of(jax.jit(base), (x, {"a": x}), {})
    del x
    gc.collect()
    assert alive() is None
    assert kept.arguments


def test_a_callable_without_a_signature_gets_numbered_arguments():
    class Opaque:
        __signature__ = "none"

        def __call__(self, *args):
            return args

    assert list(signature_of(Opaque(), (1.0, 2.0), {}).arguments) == ["argument[0]", "argument[1]"]


def test_values_are_shown_without_addresses_and_cut():
    class Broken:
        def __repr__(self):
            raise ValueError

    assert show(object()) == "<object object>"
    assert show(functools.partial(len)).startswith("functools.partial(<built-in function len>)")
    assert show(base) == "`base`"
    assert show(Broken()) == "a Broken"
    assert len(show("a" * 1000)) == 48
    assert show(np.zeros((2, 2))) == "array([[0., 0.], [0., 0.]])"
