"""The rule of `check` for arguments whose values do not reach the result."""

import contextlib
import dis
import warnings
from collections.abc import Iterator
from typing import Any

import jax
import jax.numpy as jnp

from jitguide._arguments import Arguments
from jitguide._callables import fresh_jit, layers
from jitguide._check.findings import Finding, finding
from jitguide._jaxprs import key_kind, liveness, open_jaxpr
from jitguide._watch.signature import Argument, Signature


def unused(
    fn: Any, signature: Signature, traced: Any, call: Arguments | None, notes: list[str]
) -> Iterator[Finding]:
    """Find arguments that do not reach the result, though they hold arrays.

    Those that the function deletes or calls unused are meant. If only the type of one is read, that is a note;
    `call` is None if the body must not be traced again.
    """
    jaxpr = open_jaxpr(traced.jaxpr)
    _, used = liveness(jaxpr)
    if len(jaxpr.invars) != sum(len(argument.leaves) for argument in signature.traced):
        return  # a tracer that an earlier trace left is an input, too
    variables = iter(jaxpr.invars)
    for argument in signature.traced:
        own = [next(variables) for _ in argument.leaves]
        if not own or any(id(v) in used for v in own) or _is_meant(fn, argument.name):
            continue
        if call is not None and _gives_its_type(fn, signature, argument, traced, call):
            notes.append(
                f"Only the shape and dtype of `{argument.name}` are read: its values do not reach the result."
            )
            continue
        yield finding(
            "unused argument",
            f"`{argument.name}` is not used: its value does not reach the result.",
            "Use it, or remove it. A global or a default may stand in its place.",
        )


def _is_meant(fn: Any, name: str) -> bool:
    """Return whether a function says that it does not need an argument: by its name, or by `del`."""
    if name.startswith("_") or "unused" in name:
        return True
    code = (one.__code__ for one in layers(fn) if hasattr(one, "__code__"))
    steps = (step for one in code for step in dis.get_instructions(one))
    return any(step.opname.startswith("DELETE_") and step.argval == name for step in steps)


def _gives_its_type(fn: Any, signature: Signature, argument: Argument, traced: Any, call: Arguments) -> bool:
    """Return whether the result has another type, or an error comes, if an argument has another shape or dtype.

    The body is traced for that. A key of random numbers is never there for its shape.
    """
    args, kwargs = [*call[0]], dict(call[1])
    given: Any = kwargs if argument.keyword else args
    place: Any = argument.name if argument.keyword else list(signature.arguments).index(argument.name)
    if any(key_kind(leaf.aval) for leaf in argument.leaves):
        return False
    value, others = given[place], list[Any]()
    for number in range(3):
        with contextlib.suppress(Exception), warnings.catch_warnings(action="ignore"):
            given[place] = jax.tree.map(lambda leaf: _others(leaf)[number], value)  # noqa: B023 -- called at once
            others.append(_types(fresh_jit(fn)[0].trace(*args, **kwargs).out_info))
            if others[-1] != _types(traced.out_info):
                return True
    return len(others) < 2  # of the three


def _others(leaf: Any) -> list[jax.ShapeDtypeStruct]:
    """Return what is longer along the last dimension of an array, along the first, and of another dtype."""
    kind = jax.typeof(leaf)
    shape, dtype = kind.shape or (0,), kind.dtype
    short = jnp.int8 if not jnp.issubdtype(dtype, jnp.inexact) else jnp.float16
    kinds = [((*shape[:-1], shape[-1] + 1), dtype), ((shape[0] + 1, *shape[1:]), dtype), (kind.shape, short)]
    return [jax.ShapeDtypeStruct(*one) for one in kinds]


def _types(out: Any) -> tuple[Any, list[Any]]:
    leaves, structure = jax.tree.flatten(out)
    return structure, [(one.shape, one.dtype) for one in leaves]
