"""Validate the arguments of `check`: the function, its options and the example calls."""

import dataclasses
import inspect
from collections.abc import Callable, Iterator, Mapping, MappingView
from typing import Any

import jax
import numpy as np

from jitguide._callables import parameters_of
from jitguide._check import reach
from jitguide._check.rules import is_hashable
from jitguide._jax import jit_options
from jitguide._monitoring import shown_name
from jitguide._text import show
from jitguide._watch.signature import Argument, Signature, signature_of


def taken_as_options(fn: Callable[..., Any], calls: Any, run: Any) -> list[str]:
    """Return a note for each option given that is a parameter of the function as well."""
    parameters = {parameter.name for parameter in parameters_of(fn)}
    given = {"calls": not (isinstance(calls, tuple) and not calls), "run": run is not True}
    notes = [
        f"`{name}` is an option of `check` and did not reach the function. To pass one on, check "
        f"`jax.jit(functools.partial(f, {name}=...))`."
        for name, is_given in given.items()
        if is_given and name in parameters
    ]
    if not isinstance(run, bool):
        text = f"`run` must be True or False, got {show(run)} of type {type(run).__name__}."
        raise TypeError(" ".join([text, *notes[-1:]]))
    return notes


def validated(calls: Any) -> list[tuple[Any, ...]]:
    """Return the example calls as tuples of positional arguments."""
    for call in calls if isinstance(calls, list | tuple) else (calls,):
        if not isinstance(call, list | tuple):
            raise TypeError(
                "`calls` must be a list of example calls, each a tuple of positional arguments, got "
                f"{show(call)} of type {type(call).__name__}. Write `calls=[(x,), (y,)]`."
            )
    return [tuple(call) for call in calls]


def signature(
    fn: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], taken: list[str]
) -> Signature:
    """Return the signature of an example call, after testing that JAX can trace its arguments."""
    name = shown_name(fn)
    try:
        inspect.signature(fn).bind(*args, **kwargs)
    except TypeError as error:
        remedy = " ".join(taken) or "Pass example arguments after the function, as in a call of it."
        text = f"check(fn, ...) cannot call `{name}` with these arguments: {error}. {remedy}"
        raise TypeError(text) from None
    signature = signature_of(fn, args, kwargs)
    for argument in signature.arguments.values():
        if argument.static and not argument.declared and jit_options(fn) is not None:
            choice = option("static", fn, signature, argument.name)
            raise TypeError(f"check(fn, ...) cannot trace `{name}`: {_untraceable(argument, choice)}")
    return signature


def _untraceable(argument: Argument, choice: str) -> str:
    """Return why an argument cannot be traced, and what to do; `choice` is the option that makes it static."""
    where, value = _refused(argument.value)
    why = "isn't an array, a number or a tree of them"
    hashed = "" if is_hashable(argument.value) else "a tuple or a frozen dataclass and "
    static = f"make it {hashed}static with `{choice}`."
    if where:
        static = f"take it out of `{argument.name}`, and pass it as a static argument of its own."
    remedy = f"Pass {'a dict made of it' if isinstance(value, Mapping) else 'an array'}, or {static}"
    if isinstance(value, Iterator | MappingView):
        remedy = "Pass a list made of it."
    elif dataclasses.is_dataclass(value) or reach.is_yours(type(value)):
        how = "dataclass" if dataclasses.is_dataclass(value) else "pytree_node_class"
        register = f"Register its class with `jax.tree_util.register_{how}`, so that its fields are traced."
        remedy = f"{register} If it has no arrays, {static}"
    if isinstance(argument.value, int):
        bits = 64 if jax.config.jax_enable_x64 else 32
        x64 = ", or set `jax_enable_x64`" if bits == 32 else ""
        why, remedy = f"doesn't fit into {bits} bits", f"Pass a float{x64}."
    if conversion := _conversion(argument.value):
        why = "JAX refuses in a first call, and may misread in a later one"
        remedy = f"Convert it before the call: `{argument.name}.{conversion}`."
    kind = type(value).__name__
    return f"argument `{argument.name}{where}` is {show(value)} of type {kind}, which {why}. {remedy}"


def _refused(value: Any) -> tuple[str, Any]:
    """Return the path and the value of the first leaf that JAX cannot trace, such as a string in a dict."""
    traced = (jax.Array, np.ndarray, np.generic, int, float, complex)
    leaves = jax.tree_util.tree_leaves_with_path(value)
    found = ((jax.tree_util.keystr(path), leaf) for path, leaf in leaves if not isinstance(leaf, traced))
    return next(found, ("", value))


def _conversion(value: Any) -> str:
    """Return how to convert an array of NumPy with a mask or another byte order; empty for other values."""
    if isinstance(value, np.ma.MaskedArray):
        return "filled(0)"
    if isinstance(value, np.ndarray) and not value.dtype.isnative:
        return f"astype({value.dtype.newbyteorder('=').name!r})"
    return ""


def option(kind: str, fn: Callable[..., Any], signature: Signature, name: str) -> str:
    """Return the option of jit that picks an argument, "static" or "donate": by name where jit can."""
    parameter = next((p for p in parameters_of(fn) if p.name == name), None)
    unnamed = parameter is None or parameter.kind is parameter.POSITIONAL_ONLY
    if unnamed and not signature.arguments[name].keyword:
        return f"{kind}_argnums={list(signature.arguments).index(name)}"
    return f"{kind}_argnames={name!r}"
