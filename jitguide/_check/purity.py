"""What a body does while JAX traces it and never again: reads the time, draws random numbers, prints, leaks tracers."""

import inspect
import operator
import os
import random
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from datetime import date
from types import FunctionType, GeneratorType
from typing import Any, TypeVar

import numpy as np
from jax import tree

from jitguide._callables import parameters_of
from jitguide._files import owner
from jitguide._jax import has_tracer, is_tracer
from jitguide._text import place

T = TypeVar("T")
_LEAK = "a tracer"  # which `leaks` names
_LARGE = 2**16  # bytes or entries: of a larger array or list, no copy is kept
_LOGGED = ("debug", "info", "warning", "error", "exception", "critical", "log")
_CLOCKS = {v for name, v in vars(time).items() if name.startswith(("time", "perf", "mono", "process_t"))}


def captured(fn: Callable[..., Any]) -> dict[str, Any]:
    """Return what a function takes from around it, and its defaults, by name; methods and callable objects take `self`."""
    inner = inspect.unwrap(fn)
    own = {"self": inner.__self__} if inspect.ismethod(inner) else {}
    if _holds(inner) and inspect.ismethod(call := inner.__call__):
        own, inner = {"self": inner}, call
    try:
        found = inspect.getclosurevars(inner)
    except (TypeError, ValueError):
        return own
    defaults = {p.name: p.default for p in parameters_of(inner) if p.default is not p.empty}
    return {**own, **defaults, **found.globals, **found.nonlocals}


def observed(fn: Callable[..., Any], statics: dict[str, Any], trace: Callable[[], T]) -> tuple[T, list[str]]:
    """Return what `trace` returns, and what the body of `fn` did meanwhile that a compiled call leaves out.

    `statics` are its static arguments, which the body may change as well.
    """
    acts: dict[str, None] = {}

    def notice(frame: Any, event: str, value: Any) -> None:
        caller = frame if event == "c_call" else frame.f_back
        if (
            event in ("c_call", "call")
            and (name := _act(frame, event, value))
            and owner(caller.f_code.co_filename) == "you"
        ):
            acts[f"uses `{name}` at {place(caller.f_code.co_filename, caller.f_lineno)}"] = None

    before, profiler = _states(_within_reach(fn) | statics), sys.getprofile()
    sys.setprofile(notice)
    try:
        result = trace()
    finally:
        sys.setprofile(profiler)
    after = _states(_within_reach(fn) | statics).items()
    new = (name for name, state in after if state != before.get(name) and state != _LEAK)
    return result, [*acts, *(f"changes `{name}`" for name in new)]


def _within_reach(fn: Callable[..., Any], depth: int = 3) -> dict[str, Any]:
    """Return what a function and your functions that it calls take from around them."""
    found = captured(fn)
    for value in list(found.values()) if depth else ():
        inner = inspect.unwrap(value) if callable(value) else value
        if isinstance(inner, FunctionType) and owner(inner.__code__.co_filename) == "you":
            found = _within_reach(inner, depth - 1) | found
    return found


def changed(fn: Callable[..., Any], given: Any, left: Any) -> list[str]:
    """Return the names of arguments whose containers differ: as given, and as a plain call of `fn` left them."""
    try:
        signature = inspect.signature(fn)
        before, after = (signature.bind(*args, **kwargs).arguments for args, kwargs in (given, left))
    except (TypeError, ValueError):
        return []
    pairs = {name: (tree.flatten(value), tree.flatten(after[name])) for name, value in before.items()}
    return [
        name
        for name, ((old, form), (new, other)) in pairs.items()
        if form != other or any(a is not b for a, b in zip(old, new, strict=True))
    ]


def _act(frame: Any, event: str, value: Any) -> str:
    if event == "call":
        module, name = frame.f_globals.get("__name__"), frame.f_code.co_name
        if name == "getrandbits":  # a generator without a seed asks for it, and so does `RandomState(0)`
            calls = frame.f_back.f_code.co_names if frame.f_back else ()
            known = {"randbits": "secrets.randbits", "default_rng": "np.random.default_rng()"}
            return next((known[call] for call in calls if call in known), "")
        if isinstance(frame.f_locals.get("self"), random.SystemRandom):
            module = "secrets"
        drawn = module in ("random", "secrets") and name != "__init__"
        drawn |= (module, name) == ("uuid", "uuid4")
        logged = module == "logging" and name in _LOGGED
        return f"{module}.{name}" if (drawn or logged) and frame.f_back is not None else ""
    owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
    if value in (print, input, open, os.urandom):
        return str(name)
    if name == "write" and owner in (sys.stdout, sys.stderr):
        return "write"
    if inspect.isbuiltin(value) and value in _CLOCKS:
        return f"time.{name}"
    if isinstance(owner, type) and issubclass(owner, date) and name in ("now", "today", "utcnow"):
        return f"{owner.__name__}.{name}"
    return f"random.{name}" if isinstance(owner, random.Random) else ""


def _states(values: dict[str, Any]) -> dict[str, str]:
    """Return as text what a trace can change of values: generators, numbers, lists and arrays, and those in objects."""
    named = dict(values)
    for name, one in values.items():
        if isinstance(one, dict):
            named |= {f"{name}[{key!r}]": value for key, value in one.items()}
        elif _holds(one) or inspect.isclass(one):
            named |= {f"{name}.{key}": value for key, value in vars(one).items()}
    states = {name: _state(value) for name, value in named.items()}
    return states | {"np.random": repr(np.random.get_state())}  # noqa: NPY002 -- the user's, and not used


def _state(value: Any) -> str:
    if isinstance(value, np.random.Generator):
        return str(value.bit_generator.state)
    if isinstance(value, np.random.RandomState):
        return repr(value.get_state())
    if isinstance(value, np.ndarray):
        return str(hash(value.tobytes())) if value.dtype != object and value.nbytes < _LARGE else ""
    if isinstance(value, list | deque | set | bytearray):
        if len(value) >= _LARGE:
            return str(len(value))
        if has_tracer(list(value)):
            return _LEAK
        return repr([one if isinstance(one, int | float | str) else id(one) for one in value])
    if isinstance(value, GeneratorType):
        inside = [_state(one) for one in inspect.getgeneratorlocals(value).values()]
        return f"{value.gi_frame and value.gi_frame.f_lasti} {inside}"
    if isinstance(value, Iterator) and type(value).__module__ in ("builtins", "itertools"):
        return f"{value!r} {operator.length_hint(value)}"  # a count shows its number, other iterators what is left
    return repr(value) if isinstance(value, int | float | str) else ""


def _holds(value: Any) -> bool:
    """Return whether a value is an object with fields, and not a function, a class or a module."""
    other = inspect.isroutine(value) or inspect.isclass(value) or inspect.ismodule(value)
    return hasattr(value, "__dict__") and not other


def leaks(values: dict[str, Any]) -> Iterator[str]:
    """Yield the names of lists, dicts and objects that hold a tracer after a trace."""
    for name, value in values.items():
        inside = vars(value) if _holds(value) else value
        kept = isinstance(inside, list | dict | set | tuple) or is_tracer(inside)
        if kept and not inspect.ismodule(value):
            yield from [name] if has_tracer(list(inside) if isinstance(inside, set) else inside) else []
