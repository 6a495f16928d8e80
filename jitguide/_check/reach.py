"""What a function can reach and change apart from its arguments, and what each of these things is at a moment."""

import inspect
import operator
import queue
import random
import threading
import warnings
from collections import deque
from collections.abc import Callable, Iterator
from contextvars import ContextVar
from functools import cached_property
from itertools import islice
from types import CodeType, FunctionType, GeneratorType, MethodType, ModuleType, SimpleNamespace
from typing import Any

import numpy as np
from jax import tree
from jax.tree_util import keystr

from jitguide._callables import bound_in, closure_of, layers, parameters_of
from jitguide._files import owner
from jitguide._jax import has_tracer, is_tracer
from jitguide._otherwise import otherwise

Held = list[tuple[str, Any]]  # names and values
LEAK = "a tracer"  # how the state of what holds one begins
# What these hold is looked at, although they are Python's.
_OPEN = (SimpleNamespace, threading.local, queue.Queue)
_DEPTH = 3  # of functions that call each other, and of objects in objects
_MOST = 4000  # things that are looked at
_LARGE = 2**16  # bytes or entries: of a larger array or list, no copy is kept


def _taken(fn: Callable[..., Any]) -> tuple[dict[str, Any], set[str]]:
    """Return what a function takes from around it, its defaults and what is bound to it, and all names that it uses.

    Methods and callable objects take `self`.
    """
    args, keywords, inner = tuple[Any, ...](), dict[str, Any](), fn
    for inner in layers(fn):
        bound = bound_in(inner)
        if inspect.ismethod(getattr(inner, "__call__", None)) and not hasattr(inner, "__wrapped__"):  # noqa: B004 -- for its kind
            bound = inner, (inner,), {}
        if bound:
            args, keywords = (*bound[1], *args), {**bound[2], **keywords}
    if not isinstance(inner, FunctionType):
        return keywords, set()
    parameters, names = parameters_of(inner), set(_names(inner.__code__))
    defaults = {p.name: p.default for p in parameters if p.default is not p.empty}
    taken = {name: inner.__globals__[name] for name in names if name in inner.__globals__}
    keywords |= zip((p.name for p in parameters), args, strict=False)
    return {**defaults, **taken, **closure_of(inner), **keywords}, names


def _names(code: CodeType) -> list[str]:
    """Return the names of globals and attributes that a function, or a function inside it, uses."""
    inside = (name for one in code.co_consts if isinstance(one, CodeType) for name in _names(one))
    return [*code.co_names, *inside]


def leaves(values: dict[str, Any]) -> Held:
    """Return name and value of each leaf of values: inside trees and objects, too."""
    inside = (pair for name, value in values.items() for pair in [(name, value), *_inside(name, value)])
    with warnings.catch_warnings(action="ignore"):  # JAX warns of a generator
        pairs = [(place, otherwise(list[Any]())(tree.leaves_with_path)(one)) for place, one in inside]
    return [(f"{place}{keystr(path)}", leaf) for place, found in pairs for path, leaf in found]


def named(held: Held, array: Any, what: str) -> str:
    """Return the name of an array among the leaves `held`; `what` if it is not there."""
    names = [name for name, one in held if one is array] or [n for n, one in held if _became(one, array)]
    return f"`{names[0]}`" if names else what


@otherwise(False)
def _became(leaf: Any, array: Any) -> bool:
    """Return whether an array is what JAX made of one of NumPy."""
    same = isinstance(leaf, np.ndarray) and leaf.shape == array.shape
    return same and np.array_equal(leaf.astype(array.dtype), array)


def within_reach(fn: Callable[..., Any], statics: dict[str, Any]) -> dict[str, Any]:
    """Return what a function takes from around it, its static arguments, and what your functions that it calls take."""
    found, waiting, seen = dict[str, Any](), [(fn, _DEPTH)], set[int]()
    for one, depth in waiting:  # it grows
        held, names = _taken(one)
        held |= statics if one is fn else {}
        found = {name: value for name, value in held.items() if name != "self" or one is fn} | found
        for helper in _called(names, held) if depth else ():
            if (code := id(getattr(helper, "__func__", helper))) not in seen:
                seen.add(code)
                waiting.append((helper, depth - 1))
    return found


@otherwise([])  # a class of yours may refuse
def _called(names: set[str], held: dict[str, Any]) -> list[Any]:
    """Return those of your functions that a function may call: what it holds, and the methods of that by name."""
    owners = [*held.values(), *(one for name, value in held.items() for _, one in _inside(name, value))]
    methods = (
        MethodType(getattr(part, "__func__", part), one)
        for one in owners
        for kind in inspect.getmro(one if inspect.isclass(one) else type(one))
        for name, part in vars(kind).items()
        if name in names and callable(getattr(part, "__func__", part))
    )
    functions = [*held.values(), *methods]
    return [one for one in functions if any(type(f) is FunctionType and is_yours(f) for f in _layers(one))]


def states(values: dict[str, Any]) -> dict[str, str]:
    """Return as text what a trace can change of values: generators, numbers, lists and arrays, and those inside them."""
    found: dict[str, str] = {}
    seen: set[int] = set()
    level = dict(values)
    for _ in range(_DEPTH + 1):
        found |= {name: _state(value) for name, value in level.items()}
        seen |= set(map(id, level.values()))
        inside = (one for name, value in level.items() for one in _inside(name, value))
        new = (one for one in inside if id(one[1]) not in seen or _is_plain(one[1]))
        level = dict(islice(new, max(0, _MOST - len(found))))
    return found | {"np.random": repr(np.random.get_state())}  # noqa: NPY002 -- the user's, and not used


@otherwise([])  # a few callables of C have no signature
def changed(fn: Callable[..., Any], given: Any, left: Any) -> list[str]:
    """Return the names of arguments whose containers differ: as given, and as a plain call of `fn` left them."""
    signature = inspect.signature(fn)
    before, after = (signature.bind(*args, **kwargs).arguments for args, kwargs in (given, left))
    pairs = {name: (tree.flatten(value), tree.flatten(after[name])) for name, value in before.items()}
    return [
        name
        for name, ((old, form), (new, other)) in pairs.items()
        if form != other or any(a is not b for a, b in zip(old, new, strict=True))
    ]


@otherwise([])
def _layers(value: Any) -> list[Any]:
    return list(layers(value)) if callable(value) and not inspect.isclass(value) else []


@otherwise([])  # an object of yours, such as a proxy, may raise when it is looked at
def _inside(name: str, value: Any) -> list[tuple[str, Any]]:
    """Return what is inside a dict, or inside an object, a function, a class or a module of yours."""
    if isinstance(value, dict):
        plain = (repr(key) if _is_plain(key) else f"key {i}" for i, key in enumerate(value))
        return [(f"{name}[{key}]", one) for key, one in zip(plain, dict.values(value), strict=True)]
    kind = type(value)
    if _holds(value) and (is_yours(kind) or isinstance(value, _OPEN)):
        cached = {key for c in kind.__mro__ for key, v in vars(c).items() if isinstance(v, cached_property)}
        attributes = _own_attributes(kind) | vars(value)
        return [(f"{name}.{key}", a) for key, a in attributes.items() if key not in cached or is_tracer(a)]
    if is_yours(inspect.unwrap(value) if callable(value) else value):
        return [(f"{name}.{key}", one) for key, one in _own_attributes(value).items()]
    return []


def _own_attributes(owner_of: Any) -> dict[str, Any]:
    return {
        key: value
        for key, value in vars(owner_of).items()
        if not key.startswith("__") and not callable(value) and not isinstance(value, ModuleType)
    }


def is_yours(value: Any) -> bool:
    """Return whether a function, a class or a module is in a file of yours."""
    if isinstance(value, FunctionType):
        return owner(value.__code__.co_filename) == "you"
    if inspect.isclass(value):
        methods = (m for m in vars(value).values() if isinstance(m, FunctionType))
        place = next((m.__code__.co_filename for m in methods), None)
        module = inspect.getmodule(value)
        return owner(place) == "you" if place else is_yours(module)
    if not isinstance(value, ModuleType):
        return False
    return value.__name__ == "__main__" or owner(getattr(value, "__file__", None) or "<frozen") == "you"


def _is_plain(value: Any) -> bool:
    return value is None or isinstance(value, int | float | str)


@otherwise("")
def _state(value: Any) -> str:
    if is_tracer(value):
        return f"{LEAK} {id(value)}"  # one that another function left is not this one's
    for kind, read in _READ:
        if isinstance(value, kind):
            return str(read(value))
    if isinstance(value, np.ndarray):
        return str(hash(value.tobytes())) if value.dtype != object and value.nbytes < _LARGE else ""
    if isinstance(value, list | deque | set | bytearray):
        if len(value) >= _LARGE:
            return str(len(value))
        if has_tracer(list(value)):
            return f"{LEAK} {[*map(id, value)]}"
        return repr([one if isinstance(one, int | float | str) else id(one) for one in value])
    if isinstance(value, tuple) and has_tracer(value):
        return f"{LEAK} {id(value)}"
    if isinstance(value, GeneratorType):
        inside = [_state(one) for one in inspect.getgeneratorlocals(value).values()]
        return f"{value.gi_frame and value.gi_frame.f_lasti} {inside}"
    if isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools"):
        return f"{value!r} {operator.length_hint(value)}"  # a count shows its number, other iterators what is left
    return repr(value) if isinstance(value, int | float | str) else ""


# What shows the state of things that Python does not compare by their state.
_READ: tuple[tuple[Any, Callable[[Any], Any]], ...] = (
    (np.random.Generator, lambda one: one.bit_generator.state),
    (np.random.RandomState, lambda one: one.get_state()),
    (random.Random, lambda one: hash(one.getstate())),
    (ContextVar, lambda one: _state(one.get(None))),
)


def _holds(value: Any) -> bool:
    """Return whether a value is an object with fields, and not a function, a class or a module."""
    other = inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)
    return hasattr(value, "__dict__") and not other
