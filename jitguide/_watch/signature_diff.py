"""The differences between two calls, and which of them made JAX work.

JAX's own explanation is a log text that changes with versions, says nothing about recompiles without a trace
and picks an unfit earlier call at times. So signatures are compared here, and no text of JAX is read.
"""

from __future__ import annotations

import enum
import types
from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import jax
import jax.tree_util as tree

from jitguide._jax import tree_node
from jitguide._text import show
from jitguide._watch.reasons import COMPILE, FAST, KINDS, TRACE, Reason, reaches, reason
from jitguide._watch.signature import Argument, Leaf, Signature

_MAX_ALSO = 2
# Containers whose own data are keys or nothing; other nodes keep static fields there.
_CONTAINERS = (dict, tuple, list, type(None))
# They leave out of sight what else differs in the same place.
_HIDING = ("number of arguments", "default left out", "static field")
_DONE_BEFORE = {
    COMPILE: "its trace was there before, from `lower`, `trace`, another jit, a function around it or a call "
    "that raised. Only the rest was done now.",
    FAST: "the program was there before. Only the fast path is new.",
}
_NOT_THE_CAUSE = "that alone makes no new program, and no other difference was found."


def reason_for(
    name: str, now: Signature, earlier: Sequence[Signature], layer: str, raised: bool = False
) -> Reason:
    """Return why a call did work down to `layer`, given the signatures that had been seen before.

    Args:
        name: Name of the function.
        now: Signature of the call.
        earlier: Signatures that are in JAX's caches, oldest first.
        layer: How deep the call went: `TRACE`, `COMPILE` or `FAST`.
        raised: Whether there were calls that raised; they are not among `earlier`.
    """
    if not earlier:
        kind = "first call without error" if raised else "first call"
        return reason(kind, name, advice=_DONE_BEFORE.get(layer, ""))
    found = min(
        (differences(signature, now) for signature in reversed(earlier)),  # of equally near ones the latest
        key=lambda found: _distance(found, layer),
    )
    telling = _telling(found, layer)
    if not found or (layer == TRACE and not telling):
        return reason("unknown", name)
    if not telling:
        return replace(found[0], advice=_NOT_THE_CAUSE)
    deeper = [d for d in telling if not reaches(d.kind, layer)]  # it would trace, and the trace was there
    main = (deeper or telling)[0]
    rest = [d.sentence for d in telling if d.argument != main.argument]
    more = [f"{len(rest) - _MAX_ALSO} further differences"] if len(rest) > _MAX_ALSO else []
    advice = _DONE_BEFORE[layer] if deeper else main.advice
    return replace(main, advice=advice, also=(*rest[:_MAX_ALSO], *more))


def differences(before: Signature, now: Signature) -> list[Reason]:
    """Return the differences between two calls, the most telling first; empty if JAX sees none."""
    found = [*_arguments(before, now), *_settings(before, now)]
    return sorted(found, key=lambda d: (KINDS.index(d.kind), d.argument))


def _telling(found: list[Reason], layer: str) -> list[Reason]:
    """Return the differences that reach `layer`, or deeper: a shallower one is the cause of nothing here."""
    return [d for d in found if reaches(d.kind, layer) or reaches(d.kind, TRACE)]


def _distance(found: list[Reason], layer: str) -> tuple[Any, ...]:
    """Return how far an earlier call is, so that the nearest is the one a reader would compare with."""
    telling = _telling(found, layer)
    return (
        any(not reaches(d.kind, layer) for d in telling),  # it has another trace, and this call reused one
        any(d.kind == "tree structure" for d in telling),  # the leaves cannot be compared at all
        len({d.argument for d in telling}),
        sum(d.kind in _HIDING for d in telling),
        len(telling),
    )


def _arguments(before: Signature, now: Signature) -> Iterator[Reason]:
    for name in now.arguments.keys() - before.arguments.keys():
        written = f"is now {_spelling(now.arguments[name])}"
        if name in before.defaults:
            yield reason(
                "default left out", name, f"was left to its default {show(before.defaults[name])}", written
            )
        else:
            yield reason("number of arguments", name, "was absent", written)
    for name in before.arguments.keys() - now.arguments.keys():
        written = f"was {_spelling(before.arguments[name])}"
        if name in now.defaults:
            yield reason(
                "default left out", name, written, f"is now left to its default {show(now.defaults[name])}"
            )
        else:
            yield reason("number of arguments", name, written, "is now absent")
    for name in before.arguments.keys() & now.arguments.keys():
        yield from _values(before.arguments[name], now.arguments[name])


def _spelling(argument: Argument) -> str:
    value = f" as {show(argument.value)}" if argument.static else ""
    return f"passed by keyword{value}" if argument.keyword else f"passed by position{value}"


def _values(before: Argument, now: Argument) -> Iterator[Reason]:
    name = now.name
    if before.keyword != now.keyword:
        spelling = ("by position", "by keyword")
        yield reason("keyword or positional", name, spelling[before.keyword], spelling[now.keyword])
    if before.static or now.static:
        yield from _static(name, before, now)
    elif before.structure != now.structure:
        yield _structure(name, before, now)
    else:
        for old, new in zip(before.leaves, now.leaves, strict=True):
            yield from _leaves(name + new.path, old, new)


def _static(name: str, before: Argument, now: Argument) -> Iterator[Reason]:
    old, new = before.value, now.value
    if same(old, new):
        return
    if type(old) is not type(new) and _equal(old, new):
        yield reason("static type", name, *(f"{show(v)} ({type(v).__name__})" for v in (old, new)))
    elif type(old) is type(new) and by_identity(old):
        kind = f"`{type(old).__name__}`" if not callable(old) else "a function"
        yield reason("static identity", name, kind, show(new))
    else:
        yield reason("static value", name, show(old), show(new))


def same(old: Any, new: Any) -> bool:
    """Return whether JAX would take two static values for the same: equal, and of one type."""
    return old is new or (type(old) is type(new) and _equal(old, new))


def by_identity(value: Any) -> bool:
    """Return whether there can be an equal object that JAX takes for another one."""
    # Python 3.11 and 3.12 compare None by identity too; of these there is one object for each value.
    single = (enum.Enum, types.NoneType, types.EllipsisType, types.ModuleType, jax.Device)
    kind: Any = type(value)
    return kind.__eq__ is object.__eq__ and not isinstance(value, single)


def _equal(old: Any, new: Any) -> bool:
    try:
        return bool(old == new)
    except Exception:  # the reader's own `__eq__` may refuse
        return False


def _structure(name: str, before: Argument, now: Argument) -> Reason:
    path, old, new = _first_difference(before.structure, now.structure)
    before_data, now_data = (tree_node(node)[0] for node in (old, new))
    if before_data and now_data and old.num_leaves == new.num_leaves:
        (kind, was), (now_kind, is_now) = before_data, now_data
        if kind is now_kind and not issubclass(kind, _CONTAINERS):
            return reason("static field", name + path, show(was), show(is_now))
    words = [_node(old), _node(new)]
    if words[0] == words[1]:
        words[1] += " with other keys or static parts"
    return reason("tree structure", name + path, *words)


def _first_difference(old: Any, new: Any, path: str = "") -> tuple[str, Any, Any]:
    """Return the path to the first node in which two tree structures differ, and both nodes."""
    (data, parts), (other_data, other_parts) = map(tree_node, (old, new))
    if data == other_data and len(parts) == len(other_parts):
        for i, (a, b) in enumerate(zip(parts, other_parts, strict=True)):
            if a != b:
                return _first_difference(a, b, path + _step(old, i))
    return path, old, new


def _step(structure: Any, i: int) -> str:
    """Return how a child of a node is written in Python, such as `.weights` or `['x']`."""
    try:
        node = structure.unflatten(range(structure.num_leaves))  # numbers stand in for the leaves
        children, _ = tree.tree_flatten_with_path(node, is_leaf=lambda part: part is not node)
        return str(tree.keystr(children[i][0]))
    except Exception:  # a container may refuse numbers
        return f"[{i}]"


def _node(structure: Any) -> str:
    data, parts = tree_node(structure)
    if data is None:
        return "a leaf" if structure.num_leaves == structure.num_nodes == 1 else show(structure)
    kind, keys = data
    if kind is type(None):
        return "None"
    if issubclass(kind, dict) and keys:
        return f"{kind.__name__} with keys {show(list(keys))}"
    return f"{kind.__name__} of {len(parts)}"


def _leaves(name: str, before: Leaf, now: Leaf) -> Iterator[Reason]:
    if before == now:
        return
    types = (before.type, now.type)
    if before.dtype != now.dtype:
        yield reason("dtype", name, *types)
    if before.shape != now.shape:
        yield reason("shape", name, *types)
    if before.weak != now.weak:
        yield reason("weak type", name, *(_with_weakness(leaf) for leaf in (before, now)))
    if before.origin != now.origin:
        yield reason("input kind", name, before.origin, now.origin)
    yield from _placement(name, before, now)


def _with_weakness(leaf: Leaf) -> str:
    return f"{'weak' if leaf.weak else 'strong'} {leaf.type} ({leaf.origin})"


def _placement(name: str, before: Leaf, now: Leaf) -> Iterator[Reason]:
    if bool(before.committed) != bool(now.committed):
        words = ("not committed", "committed")
        yield reason("committedness", name, words[bool(before.committed)], words[bool(now.committed)])
    if None in (before.sharding, now.sharding):
        return  # a NumPy array or a Python number goes where the others are
    if before.sharding != now.sharding:
        # A mesh is part of an array's type, even a mesh of one device: going there traces again.
        moved = type(before.sharding) is type(now.sharding) and _is_single(before) and _is_single(now)
        yield reason("device" if moved else "sharding", name, _place(before.sharding), _place(now.sharding))
    if None not in (before.layout, now.layout) and before.layout != now.layout:
        yield reason("layout", name, _order(before.layout), _order(now.layout))


def _is_single(leaf: Leaf) -> bool:
    return len(leaf.sharding.device_set) == 1


def _place(sharding: Any) -> str:
    devices = sorted(sharding.device_set, key=lambda d: d.id)
    spec, mesh = getattr(sharding, "spec", None), getattr(sharding, "mesh", None)
    if len(devices) == 1:
        kind = getattr(sharding, "memory_kind", None)
        memory = f" ({kind})" if kind not in (None, "device") else ""
        return f"{devices[0].platform}:{devices[0].id}{memory}{'' if mesh is None else ' on a mesh'}"
    if spec is None or mesh is None:
        return f"{type(sharding).__name__} over {len(devices)} devices"
    axes = ", ".join(f"{axis}: {size}" for axis, size in mesh.shape.items())
    return f"P({', '.join(repr(part) for part in spec)}) on mesh ({axes})"


def _order(layout: Any) -> str:
    order = getattr(layout, "major_to_minor", None)
    return f"major to minor {order}" if order is not None else show(layout)


def _settings(before: Signature, now: Signature) -> Iterator[Reason]:
    for name in before.settings.keys() | now.settings.keys():
        old, new = before.settings.get(name), now.settings.get(name)
        if not same(old, new):
            yield reason("configuration", name, show(old), show(new))
