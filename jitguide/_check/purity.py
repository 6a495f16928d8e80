"""What a body does while JAX traces it and never again: reads the time, draws random numbers, prints, leaks tracers."""

import inspect
import os
import random
import sys
import time
from collections.abc import Callable
from datetime import date
from typing import Any, TypeVar

from jitguide._check.reach import LEAK, Held, leaves, states, within_reach
from jitguide._files import owner
from jitguide._text import place

T = TypeVar("T")
_ENVIRONMENTS = [getattr(os, name) for name in ("environ", "environb") if hasattr(os, name)]
_SHARED = vars(random)["random"].__self__  # the generator that the functions of `random` share
_RANDOM = ("{'bit_generator'", "('MT19937'")  # how the states of NumPy's generators begin
_LOGGED = ("debug", "info", "warning", "error", "exception", "critical", "log")
_FILES = ("read_text", "read_bytes", "write_text", "write_bytes")
_TIMES = {v for k, v in vars(time).items() if k.startswith(("time", "perf", "mono", "process_t", "sleep"))}
# Functions that change the world outside or read it, by the package of their module; all of them are written in Python.
_EFFECTS = {
    "logging": _LOGGED,
    "pathlib": (*_FILES, "open", "unlink", "mkdir", "touch", "rename"),
    "numpy": ("load", "loadtxt", "genfromtxt", "save", "savez", "savez_compressed", "savetxt"),
    "jax": ("update",),  # of `jax.config`
    "os": ("getenv", "getenvb", "makedirs"),
}


def observed(
    fn: Callable[..., Any], statics: dict[str, Any], trace: Callable[[], T]
) -> tuple[T, list[str], list[str], Held]:
    """Return what `trace` returns, what the body of `fn` did meanwhile that a compiled call leaves out, and its leaks.

    `statics` are its static arguments, which the body may change as well. A leak is the name of what holds a tracer
    after the trace. The last result is what the function held before it.
    """
    acts: dict[str, None] = {}

    def notice(frame: Any, event: str, value: Any) -> None:
        if event not in ("c_call", "call") or not (name := _act(frame, event, value)):
            return
        caller = frame if event == "c_call" else frame.f_back
        if owner(caller.f_code.co_filename) == "you":
            acts[f"uses `{name}` at {place(caller.f_code.co_filename, caller.f_lineno)}"] = None

    around, profiler = within_reach(fn, statics), sys.getprofile()
    before, held = states(around), leaves(around)
    sys.setprofile(notice)
    try:
        result = trace()
    finally:
        sys.setprofile(profiler)
    after = states(within_reach(fn, statics))
    # What is gone is last, and has no state.
    new = {name: after.get(name, "") for name in {**after, **before} if after.get(name) != before.get(name)}
    leaks = [name for name, state in new.items() if state.startswith(LEAK)]
    done = {
        name: "draws from" if new[name].startswith(_RANDOM) else "changes"
        for name in new
        if name not in leaks
    }
    return result, [*acts, *(f"{what} `{name}`" for name, what in done.items())], leaks, held


def _act(frame: Any, event: str, value: Any) -> str:
    if event == "call":
        return _python_act(frame) if frame.f_back is not None else ""
    own, name = getattr(value, "__self__", None), getattr(value, "__name__", "")
    if value in (print, input, open, os.urandom):
        return str(name)
    if name == "write" and own in (sys.stdout, sys.stderr):
        return "write"
    if inspect.isbuiltin(value) and value in _TIMES:
        return f"time.{name}"
    if isinstance(own, type) and issubclass(own, date) and name in ("now", "today", "utcnow"):
        return f"{own.__name__}.{name}"
    return f"random.{name}" if own is _SHARED else ""


def _python_act(frame: Any) -> str:
    """Return what a call of a function in Python does to the world or takes from it, or ""."""
    module, name = frame.f_globals.get("__name__", ""), frame.f_code.co_name
    if name == "getrandbits":  # a generator without a seed asks for it, and so does `RandomState(0)`
        calls = frame.f_back.f_code.co_names
        known = {"randbits": "secrets.randbits", "default_rng": "np.random.default_rng()"}
        return next((known[call] for call in calls if call in known), "")
    own = frame.f_locals.get("self")
    if any(own is environment for environment in _ENVIRONMENTS):
        return "os.environ"
    if isinstance(own, random.SystemRandom):
        module = "secrets"
    drawn = (module == "secrets" and name != "__init__") or (module == "random" and own is _SHARED)
    if drawn or (module, name) == ("uuid", "uuid4"):
        return f"{module}.{name}"
    package = module.partition(".")[0]
    if name not in _EFFECTS.get(package, ()) or (package == "jax" and module != "jax._src.config"):
        return ""
    return "jax.config.update" if package == "jax" else f"{package}.{name}"
