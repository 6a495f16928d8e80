"""Which equations of a jaxpr have a use: the same backward walk that JAX does before it lowers."""

from collections.abc import Sequence
from typing import Any

from jitguide._jaxprs import bodies, open_jaxpr

# Equations that hand on the results of their bodies one by one: an unused result is unused inside too.
# Loops are left out: JAX can remove a carry that only feeds itself, and this walk does not follow that.
_CALLS = {
    "jit", "pjit", "closed_call", "core_call", "remat", "checkpoint", "remat2", "custom_jvp_call", "cond",
}  # fmt: skip

Used = Sequence[bool] | bool  # per result, or for all results


def liveness(jaxpr: Any, used: Used = True) -> tuple[list[tuple[bool, Used]], set[int]]:
    """Return what in an open jaxpr its results, as far as they are used, or its effects need.

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
