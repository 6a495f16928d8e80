"""The differences between two tree structures: the nodes where they part, and what nodes keep beside their leaves."""

from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from jitguide._jax import tree_node
from jitguide._text import show
from jitguide._watch.paths import step
from jitguide._watch.reasons import Reason, reason
from jitguide._watch.static_diff import ABSENT, Part, Where, equal, field_parts, same_structure, words_of

_SHORT = 40  # characters of keys that are shown all
# Containers whose own data are keys or nothing; other nodes keep static fields there.
_CONTAINERS = (dict, tuple, list, type(None))
_DEFINED_AGAIN = "a class that is defined again is another class. Define the class once."


def fixed(name: str, found: list[Part], where: Where = "argument") -> Iterator[Reason]:
    """Yield the reasons for what differs in a static value, or in what a container keeps."""
    for part in found:
        kind = f"static {'field' if where == 'field' and part.kind == 'value' else part.kind}"
        yield reason(kind, name + part.path, part.before, part.now, part.advice(where))


def structures(path: str, old: Any, new: Any) -> Iterator[Reason]:
    """Yield the differences between two tree structures: of the nodes where they part, and of what nodes keep."""
    (data, children), (other, others) = tree_node(old), tree_node(new)
    kind = data[0] if data and other and data[0] is other[0] else None
    own = kind and not issubclass(kind, _CONTAINERS)
    if kind and len(children) == len(others) and (own or equal(data, other)):
        if not equal(data, other):
            yield from fixed(path, field_parts(old, new, ""), "field")
        for i, (a, b) in enumerate(zip(children, others, strict=True)):
            if not same_structure(a, b):
                yield from structures(path + step(old, i), a, b)
    elif own and (before := _attributes(old)) and (now := _attributes(new)):
        for name in {**before, **now}:
            if name not in before or name not in now:
                words = (_node(node[name]) if name in node else ABSENT for node in (before, now))
                yield reason("tree structure", path + name, *words)
            elif not same_structure(before[name], now[name]):
                yield from structures(path + name, before[name], now[name])
    else:
        names = [(node[0].__module__, node[0].__qualname__) for node in (data, other) if node]
        advice = _DEFINED_AGAIN if kind is None and len(names) > len({*names}) else ""
        yield reason("class" if equal(old, new) else "tree structure", path, *_nodes(old, new), advice)


def _attributes(structure: Any) -> dict[str, Any]:
    """Return the children of a node as they are written in Python; empty if they are not attributes, one for each."""
    children = tree_node(structure)[1]
    found = {step(structure, i): child for i, child in enumerate(children)}
    return found if len(found) == len(children) and all(name.startswith(".") for name in found) else {}


def _nodes(old: Any, new: Any) -> tuple[str, str]:
    """Return the nodes of two trees in words, which differ."""
    nodes: list[Any] = [tree_node(structure)[0] or (None, None) for structure in (old, new)]
    (kind, data), (other, more) = nodes
    if kind is other is defaultdict and not equal(data[0], more[0]):
        first, second = words_of(data[0], more[0])
        return f"defaultdict of {first}", f"defaultdict of {second}"
    if kind is other and kind is not None and issubclass(kind, dict):
        keys = [list(one[1] if kind is defaultdict else one) for one in (data, more)]
        few = len(show(keys[0])) < _SHORT
        first, second = words_of(*keys) if few else words_of(*map(dict.fromkeys, keys))
        what = f"{kind.__name__} with {'keys ' if few else ''}"
        return what + first, what + second
    words = _node(old), _node(new)
    if words[0] != words[1]:
        return words
    if kind is not None and kind is not other:
        return f"{words[0]}, of {kind.__module__}", f"{words[1]}, another class of that name"
    return words[0], f"{words[1]} with other keys or static parts"


def _node(structure: Any) -> str:
    data, children = tree_node(structure)
    if data is None:
        return "a leaf" if structure.num_leaves == structure.num_nodes == 1 else show(structure)
    return "None" if data[0] is type(None) else f"{data[0].__name__} of {len(children)}"
