"""The device of a compiled function, and the bytes of its arguments and results."""

from typing import Any

import jax

from jitguide._jax import has_loop, library_calls, nbytes
from jitguide._otherwise import otherwise

# Below this many calls that do nothing, the cost of the call is a good part of the time.
_FEW_CALLS = 20


def why_no_ceiling(hlo: str, seconds: float, nothing: float) -> str:
    """Return why no ceiling can be named, in a few words; nothing where one can.

    `hlo` is the optimized HLO, and `nothing` are the seconds of a call that does nothing, with as many arguments.
    """
    if seconds < _FEW_CALLS * nothing:
        return f"call overhead: under {_FEW_CALLS} empty calls"
    if targets := library_calls(hlo):
        return f"not known: XLA does not count {targets[0]}"
    return "not known: XLA counts the loop once" if has_loop(hlo) else ""


def only_device(compiled: Any) -> Any:
    """Return the device that the program runs on; raise if it runs on several."""
    shardings = jax.tree.leaves((_input_shardings(compiled), compiled.output_shardings))
    devices = set().union(*(sharding.device_set for sharding in shardings))
    if len(devices) > 1:
        raise ValueError(
            f"`fn` runs on {len(devices)} devices, and roofline holds it against the ceilings of one. Pass "
            "arrays that are on one device, outside of `jax.set_mesh`."
        )
    return next(iter(devices), None)


@otherwise([])  # what a user's class raises when it is made with other things than arrays
def _input_shardings(compiled: Any) -> list[Any]:
    """Return the sharding of each argument, None for one that is not used; nothing if a class cannot hold shardings."""
    return list(compiled.in_tree.flatten_up_to(compiled.input_shardings))


def leaves(lowered: Any, compiled: Any) -> tuple[list[Any], list[Any]]:
    """Return the arguments that are left in the program, as jit drops those that it does not use, and the results."""
    inputs = jax.tree.leaves(lowered.args_info)
    shardings = _input_shardings(compiled) or [()] * len(inputs)
    used = [leaf for leaf, sharding in zip(inputs, shardings, strict=True) if sharding is not None]
    return used, jax.tree.leaves(lowered.out_info)


def traffic(inputs: list[Any], outputs: list[Any]) -> tuple[int, int, str]:
    """Return the bytes of the arguments, those of the results, and the type of the largest result."""
    bytes_in, bytes_out = sum(map(_nbytes, inputs)), sum(map(_nbytes, outputs))
    if bytes_in + bytes_out == 0:
        raise ValueError(
            "`fn` takes no bytes and returns none, so there is nothing to copy. Pass arrays that have elements."
        )
    return bytes_in, bytes_out, str(max(outputs or inputs, key=_nbytes).dtype)


def _nbytes(leaf: Any) -> int:
    return nbytes(leaf.shape, leaf.dtype)
