"""Whether two function objects are one function made twice: by their code, and by the values they hold."""

import functools
import types
from collections.abc import Callable
from typing import Any

from jitguide._callables import closure_of, layers

_PLAIN = (bool, int, float, complex, str, bytes, type(None))


def place_of(fun: Callable[..., Any]) -> tuple[Any, ...]:
    """Return where a function comes from: its code, and that of the functions it wraps."""
    codes = [one.__code__ for one in layers(fun) if hasattr(one, "__code__")]
    return tuple((code.co_filename, code.co_firstlineno, hash(code)) for code in codes)


def are_alike(a: Any, b: Any, depth: int = 24) -> bool:
    """Return whether two functions do the same: equal code, and equal values in it, as far as is cheap to tell."""
    if a is b:
        return True
    if type(a) is not type(b) or depth == 0:
        return False
    if isinstance(a, _PLAIN):
        return bool(a == b)
    if isinstance(a, tuple | list):
        return len(a) == len(b) and all(are_alike(x, y, depth - 1) for x, y in zip(a, b, strict=True))
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(are_alike(a[key], b[key], depth - 1) for key in a)
    if isinstance(a, functools.partial):
        return are_alike((a.func, a.args, a.keywords), (b.func, b.args, b.keywords), depth - 1)
    if isinstance(a, types.MethodType):
        return a.__func__ is b.__func__ and a.__self__ is b.__self__
    if isinstance(a, types.FunctionType):
        return a.__code__ == b.__code__ and are_alike(_values(a), _values(b), depth - 1)
    if hasattr(a, "__wrapped__"):  # such as what `flax.nnx.jit` makes
        return are_alike(a.__wrapped__, b.__wrapped__, depth - 1)
    return False  # arrays and the user's own objects: comparing may be expensive, or show nothing


def captured(fun: Any) -> dict[str, Any]:
    """Return the numbers and texts that a function, or one that it wraps, holds in its closure or as a partial."""
    found: dict[str, Any] = {}
    for one in layers(fun):
        if isinstance(one, functools.partial):
            found |= one.keywords
        elif isinstance(one, types.FunctionType):
            found |= closure_of(one)
    return {name: value for name, value in found.items() if isinstance(value, _PLAIN)}


def _values(fun: types.FunctionType) -> tuple[Any, ...]:
    """Return what a function holds in addition to its code."""
    held = closure_of(fun)
    is_bound = len(held) == len(fun.__code__.co_freevars)  # one with a name that is not bound yet is like no other
    return held if is_bound else object(), fun.__defaults__, fun.__kwdefaults__
