"""What a body does while JAX traces it and never again: reads the time, draws random numbers, prints, leaks tracers."""

from __future__ import annotations

import inspect
import random
import sys
import sysconfig
import time
from collections.abc import Callable, Iterator
from datetime import date
from typing import Any, TypeVar

import numpy as np

from jitguide._jax import has_tracer, is_tracer
from jitguide._text import place

T = TypeVar("T")
_CLOCKS = {
    value for name, value in vars(time).items() if name.startswith(("time", "perf", "mono", "process_t"))
}
_NOT_YOURS = tuple(sysconfig.get_path(name) for name in ("stdlib", "platstdlib", "purelib", "platlib"))


def captured(fn: Callable[..., Any]) -> dict[str, Any]:
    """Return what a function takes from around it, by name."""
    try:
        found = inspect.getclosurevars(inspect.unwrap(fn))
    except (TypeError, ValueError):
        return {}
    return {**found.globals, **found.nonlocals}


def observed(fn: Callable[..., Any], trace: Callable[[], T]) -> tuple[T, list[str]]:
    """Return what `trace` returns, and what the body of `fn` did meanwhile that a compiled call leaves out."""
    acts: dict[str, None] = {}

    def notice(frame: Any, event: str, value: Any) -> None:
        caller = frame if event == "c_call" else frame.f_back
        if event in ("c_call", "call") and (name := _act(frame, event, value)) and _is_yours(caller):
            acts[f"`{name}` at {place(caller.f_code.co_filename, caller.f_lineno)}"] = None

    before, profiler = _random_states(fn), sys.getprofile()
    sys.setprofile(notice)
    try:
        result = trace()
    finally:
        sys.setprofile(profiler)
    acts |= dict.fromkeys(
        f"`{name}`" for name, state in _random_states(fn).items() if state != before.get(name)
    )
    return result, list(acts)


def _act(frame: Any, event: str, value: Any) -> str:
    if event == "call":
        at = frame.f_globals.get("__name__") == "random" and frame.f_back is not None
        return f"random.{frame.f_code.co_name}" if at else ""
    owner, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
    if value in (print, input, open):
        return name
    if inspect.isbuiltin(value) and value in _CLOCKS:
        return f"time.{name}"
    if isinstance(owner, type) and issubclass(owner, date) and name in ("now", "today", "utcnow"):
        return f"{owner.__name__}.{name}"
    return f"random.{name}" if isinstance(owner, random.Random) else ""


def _is_yours(frame: Any) -> bool:
    file = frame.f_code.co_filename
    return not file.startswith((*_NOT_YOURS, "<frozen")) and "jitguide" not in frame.f_globals.get(
        "__name__", ""
    )


def _random_states(fn: Callable[..., Any]) -> dict[str, str]:
    generators = {
        name: value for name, value in captured(fn).items() if isinstance(value, np.random.Generator)
    }
    states = {name: str(generator.bit_generator.state) for name, generator in generators.items()}
    kind, keys, position, *_ = np.random.get_state()  # noqa: NPY002 -- the user's, inspected and not used
    return states | {"np.random": f"{kind} {position} {hash(np.asarray(keys).tobytes())}"}


def leaks(fn: Callable[..., Any]) -> Iterator[str]:
    """Yield the names of captured lists, dicts and objects that hold a tracer after a trace."""
    for name, value in captured(fn).items():
        inside = vars(value) if hasattr(value, "__dict__") and not callable(value) else value
        kept = isinstance(inside, list | dict | set | tuple) or is_tracer(inside)
        if kept and not inspect.ismodule(value):
            yield from [name] if has_tracer(list(inside) if isinstance(inside, set) else inside) else []
