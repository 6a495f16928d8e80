"""A function that is not jitted, and a name that jit does not hold static, are refused with advice that works."""

import functools

import jax
import pytest

from jitguide import watch
from jitguide._files import owner


class Dense:
    def __call__(self, x):
        return x


def power(x, p):
    return x**p


@pytest.mark.parametrize(("fn", "kind"), [(Dense(), "Dense"), (functools.partial(power, p=2), "partial")])
def test_an_object_without_a_name_is_not_confused_with_its_class(fn, kind):
    with pytest.raises(TypeError) as caught:
        watch(fn)
    assert str(caught.value) == (
        f"watch(fn) needs a jitted function, and `fn`, an object of type {kind}, is not jitted. "
        "Write watch(jax.jit(fn))."
    )
    assert watch(jax.jit(fn))(2.0) in (2.0, 4.0)


def test_a_static_name_that_is_no_parameter_is_refused():
    with pytest.raises(ValueError, match="holds 'typo', and the parameters of the function are `x`, `p`"):
        watch(jax.jit(power), static="typo")


def test_a_static_name_that_jit_traces_is_refused():
    with pytest.raises(ValueError, match="holds 'p', and jit traces it"):
        watch(jax.jit(power), static="p")
    with pytest.raises(ValueError, match="holds 'p', and jit traces it"):
        watch(watch(jax.jit(power)), static="p")


def test_static_names_that_jit_knows_are_accepted():
    watch(jax.jit(power, static_argnums=1), static=["p"])
    watch(jax.jit(lambda x, **more: x, static_argnames="n"), static="n")
    watch(jax.jit(lambda x, *rest: x, static_argnums=2), static="rest[1]")


@pytest.mark.parametrize(
    ("file", "installed"),
    [
        (
            "/home/me/.local/lib/python3.11/site-packages/jax/_src/dispatch.py",
            True,
        ),  # not of this environment
        ("/usr/lib/python3/dist-packages/numpy/random/mtrand.py", True),
        (jax.__file__, True),
        (functools.__file__, True),
        ("<frozen importlib._bootstrap>", True),
        (__file__, False),
        ("/home/me/packages/train.py", False),
        ("<stdin>", False),
    ],
)
def test_what_is_installed_anywhere_is_not_yours(file, installed):
    assert (owner(file) != "you") is installed
