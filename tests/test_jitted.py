"""A function that is not jitted is refused with advice that works; and which files are yours."""

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
