"""Walk, print and rebuild jaxprs: with `_jax`, the only undocumented reads of JAX.

Documented are `eqns`, `invars`, `outvars`, `params`, `primitive` and `consts`. Each other read is a function here.
"""

import functools
import re
from collections.abc import Callable, Iterator, Sequence
from copy import copy
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jitguide._otherwise import otherwise

try:  # not from `jax.extend`, which imports Pallas: 25 ms, and new settings, for which JAX 0.12 compiles all again
    from jax._src import core as _core
    from jax._src import source_info_util as _source_info
except ImportError:
    pass  # the functions below then do as they do without what they read

# Equations that hand on the results of their bodies one by one: an unused result is unused inside too.
# Loops are left out: JAX can remove a carry that only feeds itself, and this walk does not follow that.
_CALLS = {"jit", "closed_call", "remat2", "custom_jvp_call", "cond"}
# Equations through which JAX's checker follows keys, and those whose result is one of several keys.
_HAND_ON = {"jit", "scan", "while", "remat2", "shard_map", "copy", "squeeze", "reshape", "broadcast_in_dim"}
_SELECT = {"cond", "select_n", "dynamic_slice", "gather"}
_SIDES = ("invars", "outvars")  # JAX 0.12 takes constants off a jaxpr that gets other `constvars`
Used = Sequence[bool] | bool  # per result, or for all results
_LINE = re.compile(r"^(.*):(\d+):\d+ \((.*)\)$")
_DEFINED = re.compile(r"^(.*) at (.*):(\d+)$")


def open_jaxpr(jaxpr: Any) -> Any:
    """Return the jaxpr inside a closed one; JAX 0.12 has one class for both."""
    return getattr(jaxpr, "jaxpr", jaxpr)


def is_jaxpr(value: Any) -> bool:
    """Return whether a parameter of an equation is a jaxpr, closed or not."""
    return hasattr(open_jaxpr(value), "eqns")


def bodies(equation: Any) -> list[Any]:
    """Return the jaxprs in an equation's parameters, found by type: parameter names differ by version."""
    values = (v if isinstance(v, tuple | list) else (v,) for v in equation.params.values())
    return [item for items in values for item in items if is_jaxpr(item)]


def equations(jaxpr: Any, _seen: set[int] | None = None) -> Iterator[Any]:
    """Yield each equation of a jaxpr and of those inside it, once each."""
    seen = set() if _seen is None else _seen
    if id(jaxpr) in seen:
        return
    seen.add(id(jaxpr))
    for equation in open_jaxpr(jaxpr).eqns:
        yield equation
        for body in bodies(equation):
            yield from equations(body, seen)


def with_bodies(jaxpr: Any) -> list[Any]:
    """Return a jaxpr and those inside it, each once."""
    inside = (body for equation in equations(jaxpr) for body in bodies(equation))
    return list({id(one): one for one in (jaxpr, *inside)}.values())


def has_loop(jaxpr: Any) -> bool:
    return any(equation.primitive.name in ("scan", "while") for equation in equations(jaxpr))


def coarsest(jaxpr: Any) -> tuple[float, str]:
    """Return the largest rounding of a floating-point dtype inside a jaxpr, and that dtype; 0 and "" without one."""
    dtypes = {getattr(v.aval, "dtype", None) for e in equations(jaxpr) for v in e.outvars} - {None}
    known = [(float(jnp.finfo(d).eps), str(d)) for d in dtypes if jnp.issubdtype(d, jnp.inexact)]
    return max(known, default=(0.0, ""))


def constants(jaxpr: Any) -> list[Any]:
    """Return the arrays that a jaxpr and those inside it captured, each once, the largest first."""
    found = {id(c): c for body in with_bodies(jaxpr) for c in getattr(body, "consts", ())}
    return sorted((c for c in found.values() if hasattr(c, "nbytes")), key=lambda c: -c.nbytes)


def short_type(value: Any) -> str:
    """Return the type of an array in the way jaxprs write it, such as `f32[2,3]`."""
    short = {"bfloat": "bf", "float": "f", "uint": "u", "int": "i", "complex": "c"}
    name = re.sub(r"^[a-z]+(?=\d)", lambda m: short.get(m[0], m[0]), str(value.dtype))
    return f"{name}[{','.join(map(str, np.shape(value)))}]"


def key_kind(array: Any) -> str:
    """Return whether an array, given itself or by its type, may hold random keys: "typed", "raw" as of `PRNGKey`, or ""."""
    dtype, shape = str(getattr(array, "dtype", "")), tuple(getattr(array, "shape", ()))
    raw = dtype == "uint32" and shape[-1:] in ((2,), (4,))
    return "typed" if dtype.startswith("key<") else "raw" if raw else ""


def liveness(jaxpr: Any, used: Used = True) -> tuple[list[tuple[bool, Used]], set[int]]:
    """Return what in an open jaxpr its results, as far as they are used, or its effects need, as JAX does in lowering.

    That is for each equation whether it has a use, and which results of its bodies do; and the ids of variables.
    """
    flags = [used] * len(jaxpr.outvars) if isinstance(used, bool) else used
    read = {id(v) for v, flag in zip(jaxpr.outvars, flags, strict=True) if flag}
    answer: list[tuple[bool, Used]] = []
    for equation in reversed(jaxpr.eqns):
        outs = [id(v) in read for v in equation.outvars]
        live = any(outs) or bool(getattr(equation, "effects", ()))
        inside = [open_jaxpr(body) for body in bodies(equation)]
        passes = equation.primitive.name in _CALLS and all(len(b.outvars) == len(outs) for b in inside)
        answer.append((live, outs if live and passes else live))
        if not live:
            continue
        if passes and len(inside) == 1 and len(inside[0].invars) == len(equation.invars):
            inner = liveness(inside[0], outs)[1]
            pairs = zip(equation.invars, inside[0].invars, strict=True)
            read.update(id(v) for v, own in pairs if id(own) in inner)
        else:
            read.update(id(v) for v in equation.invars)
    return answer[::-1], read


@otherwise(None)
def uses_a_key_twice(jaxpr: Any) -> bool | None:
    """Return whether a random key is used twice, as JAX's own checker finds. Without it None: `check` adds a note."""
    from jax.experimental.key_reuse import _core as key_reuse

    dtype = jax.eval_shape(jax.random.key, 0).dtype
    typed = functools.partial(_typed, {}, dtype)
    change = functools.partial(_with_known_keys, typed, {*key_reuse.key_reuse_signatures})
    try:
        key_reuse.check_key_reuse_jaxpr(open_jaxpr(rewritten(jaxpr, change, typed)))
    except jax.errors.KeyReuseError:
        return True
    return False


def _typed(twins: dict[Any, Any], dtype: Any, variable: Any) -> Any:
    """Return a variable that may hold raw keys of `PRNGKey`, which are unsigned integers, as one of typed keys."""
    if hasattr(variable, "val") or key_kind(variable.aval) != "raw":
        return variable
    if variable not in twins:
        twins[variable] = copy(variable)
        twins[variable].aval = variable.aval.update(dtype=dtype)
    return twins[variable]


def _with_known_keys(
    typed: Callable[[Any], Any], followed: set[Any], equation: Any, params: dict[str, Any]
) -> list[Any]:
    """Return equations in place of one, so that JAX's checker follows the keys in it; `followed` are its primitives.

    It takes each choice by an index or a branch for one key, and what it doesn't know for a use of all keys and a
    result that is used up. Here their results are new keys. And a raw key becomes a typed key in each use, which it
    takes for another: here it is a typed key from the start, and what computes with its numbers does not use it up.
    """
    from jax._src.random import random_clone_p

    name = equation.primitive.name
    if name in ("random_wrap", "random_unwrap") and not hasattr(equation.invars[0], "val"):
        equation, params, name = equation.replace(primitive=jax.lax.copy_p), {}, "copy"
    inputs = [typed(v) if name in _HAND_ON or name == "cond" else v for v in equation.invars]
    results, clones = [], []
    for variable in equation.outvars:
        result = typed(variable)
        is_new = name in _SELECT or equation.primitive not in followed or result is not variable
        if name not in _HAND_ON and is_new and key_kind(result.aval):
            clones += [equation.replace(primitive=random_clone_p, params={}, invars=[], outvars=[result])]
            result = copy(result)
        results.append(result)
    kept = equation.replace(params=params, invars=inputs, outvars=results)
    return clones if name == "select_n" else [kept, *clones]


def rewritten(
    jaxpr: Any,
    change: Callable[[Any, dict[str, Any]], list[Any]],
    variable: Callable[[Any], Any] = lambda one: one,
) -> Any:
    """Return a jaxpr with `change(equation, params)` in place of each equation, whose bodies in `params` are rewritten.

    `variable` changes the inputs and results of each jaxpr.

    One object in gives one object out: a function that is called twice must stay one function in the StableHLO.
    This and the two below raise where JAX lacks what they need: `stages` then links by source line and adds a note.
    """
    done: dict[int, Any] = {}

    def made(value: Any) -> Any:
        if isinstance(value, tuple | list):
            items = [made(item) for item in value]
            if all(new is item for new, item in zip(items, value, strict=True)):
                return value
            return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
        if not is_jaxpr(value):
            return value
        if id(value) not in done:
            inner = open_jaxpr(value)
            if inner is value:
                pairs = [(e, {name: made(param) for name, param in e.params.items()}) for e in inner.eqns]
                sides = {side: [*map(variable, getattr(value, side))] for side in _SIDES}
                done[id(value)] = value.replace(
                    eqns=[one for pair in pairs for one in change(*pair)], **sides
                )
            else:
                done[id(value)] = value.replace(jaxpr=made(inner))
        return done[id(value)]

    return made(jaxpr)


@otherwise(None)
def text_of(jaxpr: Any) -> str:
    """Return a jaxpr with the name stack of each equation. Without them, `stages` adds a note."""
    return str(open_jaxpr(jaxpr).pretty_print(source_info=False, name_stack=True, use_color=False))


@otherwise(("", ""))
def definition(jaxpr: Any) -> tuple[str, str]:
    """Return name and file of the function that was traced. Without them, its body stands on the line of its call."""
    match = _DEFINED.match(open_jaxpr(jaxpr).debug_info.func_src_info or "")
    return (match[1], match[2]) if match else ("", "")


def argument_names(jaxpr: Any, count: int) -> list[str]:
    """Return the names of `count` arguments, such as `params['w']`. Without them, "argument 0" and so on."""
    names = getattr(getattr(open_jaxpr(jaxpr), "debug_info", None), "arg_names", None) or ()
    return list(map(str, names)) if len(names) == count else [f"argument {i}" for i in range(count)]


@otherwise("")
def name_stack(equation: Any) -> str:
    """Return the scopes and transformations around an equation.

    Without it, `stages` shows no direction, and `check` takes a gradient for an update.
    """
    return str(equation.source_info.name_stack)


@otherwise(())
def lines_of(equation: Any) -> list[tuple[str, int]]:
    """Return file and line of the calls outside JAX that made an equation, outermost first.

    Without them, `stages` adds a note and `check` names no line.
    """
    text = _source_info.summarize(equation.source_info, num_frames=50)
    return [(match[1], int(match[2])) for row in text.splitlines() if (match := _LINE.match(row))]


@otherwise(())
def code_of(equation: Any) -> list[tuple[Any, int]]:
    """Return code and offset of the calls that made an equation, innermost first. Without them, `check` adds a note."""
    return list(zip(*equation.source_info.traceback.raw_frames(), strict=True))


def in_scope(equation: Any, scope: str, params: dict[str, Any]) -> Any:
    """Return an equation with other parameters, inside one more scope of its name stack."""
    info = equation.source_info
    return equation.replace(params=params, source_info=info.replace(name_stack=info.name_stack.extend(scope)))


def as_function(jaxpr: Any) -> Callable[..., Any]:
    """Return a jaxpr as a function of its flat arguments."""
    function: Callable[..., Any] = _core.jaxpr_as_fun(jaxpr)
    return function
