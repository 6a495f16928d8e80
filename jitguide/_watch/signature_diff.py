"""The differences between two calls, and which of them made JAX work.

JAX's own explanation is a log text that changes with versions, says nothing about recompiles without a trace
and sometimes picks an unfit earlier call. So signatures are compared here, and no text of JAX is read.
"""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from jax.sharding import NamedSharding, SingleDeviceSharding

from jitguide._display import plural
from jitguide._text import show
from jitguide._watch.paths import written
from jitguide._watch.reasons import COMPILE, FAST, KINDS, TRACE, Reason, reaches, reason
from jitguide._watch.signature import STATIC, Argument, Leaf, Signature
from jitguide._watch.static_diff import parts, same, same_structure, words_of
from jitguide._watch.structure_diff import fixed, structures

_MAX_ALSO = 2  # further differences that are named
# They leave out of sight what else differs in the same place.
_HIDING = ("number of arguments", "default left out", "static field")
_DONE_BEFORE = {
    COMPILE: "its trace was there before, from `lower`, `trace`, another jit, a function around it or a call "
    "that raised. Only the rest was done now.",
    FAST: "the program was there before. Only the fast path is new.",
}
_MIXED_KEYS = "one of them is a typed random key. Make all keys in one way: with `jax.random.key`, or all with `PRNGKey`."
_IMPLEMENTATIONS = "the keys have different implementations. Make all keys with the same `impl`."
_REFERENCE = "one of them is a reference to an array. Pass the same of the two on each call."
_NUMBER_OF_KEYS = (
    "jit compiles once per shape. Pass the same number of keys each time, or split one key in the function."
)
_DIMENSIONS = "jit compiles once per shape. Keep the number of dimensions: `x[None]` adds one, for example."
_SOMETIMES_AN_ARRAY = "an array is traced, other values are static and compiled in. Pass an array each time."
_WITH_AND_WITHOUT = "calls with and without it are compiled separately, once each. To compile once only, pass an array each time."
_WEAK = "a Python number has a weak type. Start from an array with a dtype, such as `jnp.{}(0)`."
_NOT_THE_CAUSE = "that alone makes no new program, and no other difference was found."


def reason_for(
    name: str, now: Signature, earlier: Sequence[Signature], layer: str, raised: bool = False
) -> Reason:
    """Return why a call did work down to `layer`: `TRACE`, `COMPILE` or `FAST`.

    `earlier` are the signatures in JAX's caches, oldest first; `raised` is whether other calls raised.
    """
    if not earlier:
        kind = "first call without error" if raised else "first call"
        return reason(kind, name, advice=_DONE_BEFORE.get(layer, ""))
    # Of equally near ones the latest.
    nearest = min(reversed(earlier), key=lambda before: _distance(before, now, layer))
    found = differences(nearest, now)
    telling = _telling(found, layer)
    if not found or (layer == TRACE and not telling):
        return reason("unknown", name)
    if not telling:
        return replace(found[0], advice=_NOT_THE_CAUSE)
    deeper = [d for d in telling if not reaches(d.kind, layer)]  # it would trace, and the trace was there
    main = (deeper or telling)[0]
    stays = {"dtype", "shape", "layout", "static value", "weak type" if main.kind != "dtype" else ""}
    rest = [d.sentence for d in telling if d is not main and (d.argument != main.argument or d.kind in stays)]
    hidden = len(rest) - _MAX_ALSO
    more = [f"{hidden} further {plural('difference', hidden)}"] if hidden > 0 else []
    known = deeper or (layer == FAST and reaches(main.kind, COMPILE))
    advice = _DONE_BEFORE[layer] if known and main.kind != "class" else main.advice
    return replace(main, advice=advice, also=(*rest[:_MAX_ALSO], *more))


def differences(before: Signature, now: Signature) -> list[Reason]:
    """Return the differences between two calls, the most telling first; empty if JAX sees none."""
    found = [*_arguments(before, now), *_settings(before, now)]
    return sorted(found, key=lambda d: KINDS.index(d.kind))  # of one kind, in the order of the arguments


def same_call(before: Signature, now: Signature) -> bool:
    """Return whether JAX sees no difference between two calls; quicker than to ask for all differences."""
    return next(_arguments(before, now), None) is None and next(_settings(before, now), None) is None


def _telling(found: list[Reason], layer: str) -> list[Reason]:
    """Return the differences that reach `layer`, or deeper: a shallower one is the cause of nothing here."""
    return [d for d in found if reaches(d.kind, layer) or reaches(d.kind, TRACE)]


def _unmatched(before: Signature, now: Signature) -> int:
    """Return how many leaves are in one call only, which tells a renamed key from another tree."""
    both = before.arguments.keys() & now.arguments.keys()
    paths = [[{leaf.path for leaf in call.arguments[name].leaves} for name in both] for call in (before, now)]
    return sum(len(old ^ new) for old, new in zip(*paths, strict=True))


def _distance(before: Signature, now: Signature, layer: str) -> tuple[Any, ...]:
    """Return how far an earlier call is, so that the nearest is the one a user would compare with."""
    telling = _telling(differences(before, now), layer)
    return (
        any(not reaches(d.kind, layer) for d in telling),  # it has another trace, and this call reused one
        any(d.kind == "tree structure" for d in telling),  # the leaves cannot be compared at all
        _unmatched(before, now),
        len({d.argument for d in telling}),
        sum(d.kind in _HIDING for d in telling),
        len(telling),
        sum(d.advice == _DIMENSIONS for d in telling),
        sum(d.kind not in ("weak type", "static type") for d in telling),  # the least of them
    )


def _arguments(before: Signature, now: Signature) -> Iterator[Reason]:
    for name in [*now.arguments, *before.arguments]:
        came = name in now.arguments
        if came and name in before.arguments:
            continue
        given, without = (now.arguments[name], before) if came else (before.arguments[name], now)
        kind, absent, there, advice = "number of arguments", "absent", _spelling(given), ""
        leaf = [leaf.origin for leaf in given.leaves] == [STATIC]  # for Equinox, what isn't an array
        if name in without.defaults:
            default, value = without.defaults[name], given.leaves[0].value if leaf else given.value
            static = given.static or leaf
            changed = [*fixed(name, parts(default, value), "leaf" if leaf else "argument")] if static else []
            texts = words_of(default, value) if changed else (show(default), show(value))
            kind, absent = "default left out", f"left to its default {texts[0]}"
            there = f"passed as {texts[1]}" if static else there
            optional = default is None and given.leaves and not static
            advice = changed[0].advice if changed else _WITH_AND_WITHOUT if optional else ""
        words = (absent, there) if came else (there, absent)
        yield reason(kind, name, f"was {words[0]}", f"is now {words[1]}", advice)
    for name, argument in now.arguments.items():
        if name in before.arguments:
            yield from _values(before.arguments[name], argument)


def _spelling(argument: Argument) -> str:
    if argument.static:
        return f"passed as {show(argument.value)}"
    return {None: "passed", True: "passed by keyword", False: "passed by position"}[argument.keyword]


def _values(before: Argument, now: Argument) -> Iterator[Reason]:
    name = now.name
    if before.keyword != now.keyword:
        words = ("by keyword" if x.keyword else "by position" for x in (before, now))
        yield reason("keyword or positional", name, *words)
    if before.static != now.static:
        words = (show(x.value) if x.static else "traced" for x in (before, now))
        yield reason("static value", name, *words)
    elif now.static:
        yield from fixed(name, parts(before.value, now.value))
    elif not same_structure(before.structure, now.structure):
        yield from structures(name, before.structure, now.structure)
        there = {leaf.path: leaf for leaf in before.leaves}
        for leaf in now.leaves:
            if leaf.path in there:
                yield from _leaves(name + written(now.structure, leaf.path), there[leaf.path], leaf)
    else:
        for old, new in zip(before.leaves, now.leaves, strict=True):
            yield from _leaves(name + written(now.structure, new.path), old, new)


def _leaves(name: str, before: Leaf, now: Leaf) -> Iterator[Reason]:
    if STATIC in (before.origin, now.origin):
        if before.origin == now.origin:
            yield from fixed(name, parts(before.value, now.value), "leaf")
        else:
            first, second = (show(x.value) if x.origin == STATIC else x.type for x in (before, now))
            yield reason("static value", name, first, second, _SOMETIMES_AN_ARRAY)
        return
    if before == now:
        return
    types = (before.type, now.type)
    if before.dtype != now.dtype:
        keys = sum(text.startswith("key<") for text in types)
        yield reason("dtype", name, *types, ("", _MIXED_KEYS, _IMPLEMENTATIONS)[keys])
    elif type(before.aval) is not type(now.aval):
        yield reason("dtype", name, *types, _REFERENCE)
    if before.shape != now.shape:
        advice = _DIMENSIONS if len(before.shape) != len(now.shape) else ""
        yield reason("shape", name, *types, _NUMBER_OF_KEYS if now.type.startswith("key<") else advice)
    if before.weak != now.weak:
        first, second = (f"{'weak' if x.weak else 'strong'} {x.type} ({x.origin})" for x in (before, now))
        yield reason("weak type", name, first, second, _WEAK.format(now.dtype))
    if before.origin != now.origin:
        yield reason("input kind", name, before.origin, now.origin)
    yield from _placement(name, before, now)


def _placement(name: str, before: Leaf, now: Leaf) -> Iterator[Reason]:
    if bool(before.committed) != bool(now.committed):
        words = ("committed" if x.committed else "not committed" for x in (before, now))
        yield reason("committedness", name, *words)
    if None in (before.sharding, now.sharding):
        # A NumPy array or a Python number goes where the others are; a mesh is part of an array's type.
        if NamedSharding in (type(before.sharding), type(now.sharding)):
            words = (_place(x.sharding) if x.sharding else f"a {x.origin}, not placed" for x in (before, now))
            yield reason("sharding", name, *words)
        return
    kinds = [getattr(leaf.sharding, "memory_kind", None) for leaf in (before, now)]
    if kinds[0] != kinds[1]:
        yield reason("memory", name, *map(str, kinds))
    elif before.sharding != now.sharding:
        # The axes of a mesh are part of an array's type, even on one device: other axes trace again.
        moved = {type(before.sharding), type(now.sharding)} == {SingleDeviceSharding}
        places = _place(before.sharding), _place(now.sharding)
        if places[0] == places[1]:
            places = _with_devices(before.sharding), _with_devices(now.sharding)
        yield reason("device" if moved else "sharding", name, *places)
    if None not in (before.layout, now.layout) and before.layout != now.layout:
        yield reason("layout", name, _order(before.layout), _order(now.layout))


def _place(sharding: Any) -> str:
    devices = sorted(sharding.device_set, key=lambda d: d.id)
    spec, mesh = getattr(sharding, "spec", None), getattr(sharding, "mesh", None)
    if len(devices) == 1:
        kind = getattr(sharding, "memory_kind", None)
        place = f"{devices[0].platform}:{devices[0].id}{'' if kind in (None, 'device') else f' ({kind})'}"
        return place if spec is None else f"{_spec(spec)} on a mesh of {place}"
    if spec is None or mesh is None:
        return f"{type(sharding).__name__} over {len(devices)} devices"
    axes = ", ".join(f"{axis}: {size}" for axis, size in mesh.shape.items())
    return f"{_spec(spec)} on mesh ({axes})"


def _spec(spec: Any) -> str:
    return f"P({', '.join(repr(part) for part in spec)})"


def _with_devices(sharding: Any) -> str:
    mesh = getattr(sharding, "mesh", None)
    listed = [device.id for device in getattr(mesh, "devices", np.array([])).flat]
    kinds = f"axes of type {', '.join(str(kind) for kind in getattr(mesh, 'axis_types', ()))}"
    return f"{_place(sharding)}, devices {listed}, {kinds}"


def _order(layout: Any) -> str:
    order = getattr(layout, "major_to_minor", None)
    return f"major to minor {order}" if order is not None else show(layout)


def _settings(before: Signature, now: Signature) -> Iterator[Reason]:
    for name in {**before.settings, **now.settings}:
        old, new = before.settings.get(name), now.settings.get(name)
        if not same(old, new):
            yield reason("configuration", name, show(old), show(new))
