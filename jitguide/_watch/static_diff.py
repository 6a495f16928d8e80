"""Where two values that jit compiles in differ: the parts of a configuration, a closure or a container's metadata."""

import dataclasses
import enum
import functools
import types
from collections.abc import Iterator, Mapping
from numbers import Integral
from typing import Any, Literal, NamedTuple

import jax
import jax.tree_util as tree
import numpy as np

from jitguide._arguments import is_number
from jitguide._callables import closure_of
from jitguide._display import plural
from jitguide._jax import tree_node
from jitguide._otherwise import otherwise
from jitguide._text import clean, show

_ARRAYS = (jax.Array, np.ndarray)
_BOUND = (types.MethodType, functools.partial, jax.stages.Wrapped)  # around another function
# Of these there is one object for each value; Python 3.11 and 3.12 compare None by identity too.
_SINGLE = (
    enum.Enum, types.NoneType, types.EllipsisType, types.ModuleType,
    jax.Device, jax.sharding.PartitionSpec, jax.sharding.Mesh, jax.sharding.AbstractMesh,
)  # fmt: skip
_DEEPEST = 24
_ALIKE = "that prints the same"
ABSENT = "absent"  # in words, what one of two nodes does not have
_FIXED = "static fields are compiled in. "
_OWN = "each static value compiles. "
# What to do with a number that often changes, by where it stands.
_TRACE_IT = {
    "argument": "pass it as a traced argument",
    "field": "make a number that often changes a leaf",
    "leaf": "make it an array, which is traced",
}
Where = Literal["argument", "field", "leaf"]


class _Nothing:
    def __repr__(self) -> str:
        return ABSENT


_NOTHING = _Nothing()


class Part(NamedTuple):
    """A part in which two values differ: where it is, how ("value", "type" or "identity"), and both in words."""

    path: str
    kind: str
    before: str
    now: str
    old: Any

    def advice(self, where: Where) -> str:
        """Return what to do about it, "" for the advice of its kind.

        `where` is whether it is a static argument, a static field of a container, or a leaf that isn't an array, for
        Equinox.
        """
        old, field = self.old, where == "field"
        if ABSENT in (self.before, self.now):
            return f"{_FIXED}Set each attribute once, in `__init__`."
        has_functions = _is_function(old) or (isinstance(old, tuple) and any(map(callable, old)))
        if self.kind == "identity" and has_functions:
            return "functions compare by identity. Make it once, outside the loop, and pass the same object."
        if self.kind != "value":
            return ""
        if _is_nan(old):
            return "nan is not equal to nan, so every call with it compiles. Mark what is missing with None."
        if isinstance(old, _ARRAYS) and (field or _ALIKE in self.now):
            return "comparing arrays can raise an error. Make it a leaf or a traced argument."
        if is_number(old) or isinstance(old, _ARRAYS):
            shape = " if no shape depends on it" if isinstance(old, Integral) and not field else ""
            return f"{_FIXED if field else _OWN}Keep to a few values, or {_TRACE_IT[where]}{shape}."
        what = "functions" if _is_function(old) and not isinstance(old, type) else "values"
        return f"{_FIXED if field else _OWN}Keep to a few {what}."


def same(old: Any, new: Any) -> bool:
    """Return whether JAX would take two static values for the same: equal, and of one type."""
    return old is new or (type(old) is type(new) and equal(old, new))


@otherwise(False)  # the user's own `__eq__` may refuse
def equal(old: Any, new: Any) -> bool:
    """Return whether two values say that they are equal."""
    return bool(old == new)


def same_structure(old: Any, new: Any) -> bool:
    """Return whether two tree structures are the same to JAX: `==` overlooks the classes of registered dataclasses."""
    hashes = [otherwise(None)(hash)(structure) for structure in (old, new)]  # what it keeps may have no hash
    return equal(old, new) and hashes[0] == hashes[1]


def by_identity(value: Any) -> bool:
    """Return whether there can be an equal object that JAX takes for another one."""
    kind: Any = type(value)
    return kind.__eq__ is object.__eq__ and not isinstance(value, _SINGLE)


def parts(old: Any, new: Any, path: str = "", strict: bool = True, depth: int = _DEEPEST) -> list[Part]:
    """Return the parts in which two values differ; none if JAX takes them for the same.

    `path` is where they stand, as it would be written in Python; a value in the closure of `f` is `f(name)`, and one
    in a list of names and values `f['name']`. Equal values of two types differ as static arguments, and not as static
    fields, which are not `strict`.

    Example:
        >>> [(part.path, part.before, part.now) for part in parts({"lr": 0.1, "n": 2}, {"lr": 0.2, "n": 2})]
        [("['lr']", '0.1', '0.2')]
    """
    if same(old, new) or (not strict and equal(old, new)):
        return []
    if type(old) is not type(new):
        if equal(old, new):
            kinds = [type(value).__name__ for value in (old, new)]
            if kinds[0] == kinds[1]:
                kinds = [f"{type(value).__module__}.{type(value).__name__}" for value in (old, new)]
            before, now = (f"{show(value)} ({kind})" for value, kind in zip((old, new), kinds, strict=True))
            return [Part(path, "type", before, now, old)]
        return [Part(path, "value", *words_of(old, new), old)]
    pairs = list(inside(old, new)) if depth else []
    found = [part for step, a, b in pairs for part in parts(a, b, path + step, strict, depth - 1)]
    found.sort(key=lambda part: is_number(part.old))  # a count may only follow from what else differs
    remade = all(part.kind == "identity" for part in found) and _is_remade(old, new)
    if remade or (not found and by_identity(old) and not _is_function(old)):
        return [Part(path, "identity", "", _another(old), old)]
    return found or [Part(path, "value", *words_of(old, new), old)]


def field_parts(old: Any, new: Any, path: str) -> list[Part]:
    """Return the parts in which the data differ that two nodes of a tree keep beside their leaves."""
    try:
        nodes = [unflattened(structure) for structure in (old, new)]
        children = {id(c) for n in nodes for c in tree.tree_leaves(n, is_leaf=lambda x, n=n: x is not n)}
        found = []
        for name in dict.fromkeys(name for node in nodes for name in attributes(node) if name[:1] != "_"):
            a, b = (getattr(node, name, _NOTHING) for node in nodes)
            if not {id(a), id(b)} & children:
                found += parts(a, b, f"{path}.{name}", strict=False)
    except Exception:  # a container may refuse to be built of numbers
        found = []
    return found or parts(tree_node(old)[0], tree_node(new)[0], path, strict=False)


def unflattened(structure: Any) -> Any:
    """Return a tree of a structure, with a new object for each leaf: its nodes hold no such values."""
    return structure.unflatten([object() for _ in range(structure.num_leaves)])


def inside(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    """Yield the parts of two values of one type, where they have the same parts: how each is written, and both."""
    if isinstance(old, Mapping):
        if old.keys() == new.keys():
            yield from ((f"[{key!r}]", old[key], new[key]) for key in old)
    elif hasattr(old, "_fields"):
        yield from ((f".{name}", getattr(old, name), getattr(new, name)) for name in old._fields)
    elif isinstance(old, tuple | list):
        if len(old) == len(new):
            for i, (a, b) in enumerate(zip(old, new, strict=True)):
                named = _name(a) and _name(a) == _name(b)
                yield (f"[{a[0]!r}]", a[1], b[1]) if named else (f"[{i}]", a, b)
    elif isinstance(old, _BOUND):
        yield from _around(old, new)
    elif isinstance(old, types.FunctionType):
        if _is_remade(old, new):
            held, other = closure_of(old), closure_of(new)
            yield from ((f"({name})", held[name], other[name]) for name in held if name in other)
            yield "(defaults)", (old.__defaults__, old.__kwdefaults__), (new.__defaults__, new.__kwdefaults__)
    elif not by_identity(old) and not isinstance(old, (type, *_ARRAYS, *_SINGLE)) and not _is_function(old):
        for name in attributes(old):
            yield f".{name}", getattr(old, name, None), getattr(new, name, None)


def _around(old: Any, new: Any) -> Iterator[tuple[str, Any, Any]]:
    if isinstance(old, functools.partial):
        yield from ((f".{name}", getattr(old, name), getattr(new, name)) for name in attributes(old))
    elif isinstance(old, types.MethodType):
        if old.__func__ is not new.__func__:
            yield "", old.__func__, new.__func__
        yield ".__self__", old.__self__, new.__self__
    else:  # a jitted function
        yield "", getattr(old, "__wrapped__", None), getattr(new, "__wrapped__", None)


def attributes(value: Any) -> list[str]:
    if isinstance(value, functools.partial):  # such as `jax.tree_util.Partial`
        return ["func", "args", "keywords"]
    if dataclasses.is_dataclass(value):
        return [field.name for field in dataclasses.fields(value) if field.compare]
    slots = getattr(type(value), "__slots__", ())
    return [*getattr(value, "__dict__", ()), *((slots,) if isinstance(slots, str) else slots)]


def _is_remade(old: Any, new: Any) -> bool:
    """Return whether two functions, or two named tuples, whose parts are the same or remade are one made twice."""
    if isinstance(old, types.FunctionType):
        codes = [(f.__code__.co_name, f.__code__.co_code, f.__code__.co_names) for f in (old, new)]
        return codes[0] == codes[1] and repr(old.__code__.co_consts) == repr(new.__code__.co_consts)
    return isinstance(old, _BOUND) or hasattr(old, "_fields")


def _is_function(value: Any) -> bool:
    return isinstance(value, _BOUND) or (callable(value) and hasattr(value, "__name__"))


def _is_nan(value: Any) -> bool:
    return isinstance(value, float) and value != value


def _another(value: Any) -> str:
    if isinstance(value, types.MethodType):
        return f"another method {show(value)}, bound to another {type(value.__self__).__name__}"
    if isinstance(value, types.FunctionType | jax.stages.Wrapped):
        return f"another function {show(value)}, of the same code"
    return f"another {type(value).__name__} object"


def words_of(old: Any, new: Any) -> tuple[str, str]:
    """Return two values as two different texts, the part that differs among them."""
    if isinstance(old, Mapping) and type(old) is type(new) and len(show(old)) > 40:
        gone, come = ([key for key in a if key not in b] for a, b in ((old, new), (new, old)))
        if gone or come:
            return _count("key", len(old), gone), _count("key", len(new), come)
    if _is_nan(old) and _is_nan(new):
        return "nan", "nan, which is not equal to nan"
    short = show(old), show(new)
    if short[0] != short[1]:
        return short
    if isinstance(old, tuple | list) and isinstance(new, tuple | list) and len(old) != len(new):
        names = [[name for item in value if (name := _name(item))] for value in (old, new)]
        own = ([name for name in a if name not in b] for a, b in (names, names[::-1]))
        first, second = (_count("item", len(v), extra) for v, extra in zip((old, new), own, strict=True))
        return first, second
    full = [" ".join(clean(repr(value)).split()) for value in (old, new)]
    if full[0] != full[1]:
        at = next((i for i, (a, b) in enumerate(zip(*full, strict=False)) if a != b), min(map(len, full)))
        first, second = (f"…{text[max(at - 12, 0) : at + 28]}…" for text in full)
        return first, second
    kinds = [f"{type(value).__module__}.{type(value).__qualname__}" for value in (old, new)]
    if kinds[0] != kinds[1]:
        return f"{short[0]} of {kinds[0]}", f"{short[1]} of {kinds[1]}"
    if callable(old):
        return short[0], "another function of that name"
    what = "array" if isinstance(old, _ARRAYS) else type(old).__name__
    return short[0], f"another {what} {_ALIKE}"


def _name(item: Any) -> str:
    """Return the name in a pair of a name and a value, as a list of them keeps it in place of a dict; "" for others."""
    pair = type(item) is tuple and len(item) == 2 and isinstance(item[0], str)
    return str(item[0]) if pair else ""


def _count(noun: str, count: int, own: list[Any]) -> str:
    return f"{count} {plural(noun, count)}" + (f", with {show(own)}" if own else "")
