"""The StableHLO text: operations, their location names, and the equations these name."""

import dataclasses
import math
import re
from collections.abc import Iterable

from jitguide._stages.model import Line
from jitguide._stages.tags import Nodes, tags

_STRING = r'"(?:[^"\\]|\\.)*"'
_LOCATION = re.compile(rf" ?loc\((#loc\d*|unknown|{_STRING}(?:\(#loc\d*\))?)\)")
_ALIAS = re.compile(rf"^(#loc\d*) = loc\(({_STRING})(?:\((#loc\d*)\))?\)$")
_FUNCTION = re.compile(r"^\s*func\.func (?:public |private )?@(\"[^\"]*\"|[\w.$\-]+)\(")
_RESULT = re.compile(r"^\s*(%[\w#]+)(?::\d+)? = ")
_VALUE = re.compile(r"%[A-Za-z_0-9]+")
_OPCODE = re.compile(r"(?:stablehlo|chlo|func|sdy|mhlo)\.([a-z_0-9]+)|(?<![\w.@])(call|return)(?= )")
_CALLEE = re.compile(r"\bcall @(\"[^\"]*\"|[\w.$\-]+)\(")
_TENSOR = re.compile(r"tensor<((?:[\d?]+x)*)([a-zA-Z]\w*(?:<\w+>)?)>")
_LONG_DENSE = re.compile(r'dense<("?[^<>]{60})[^<>]*>')
_DTYPES = {"i1": "bool", "complex<f32>": "c64", "complex<f64>": "c128"}
_DTYPES |= {f"ui{n}": f"u{n}" for n in (2, 4, 8, 16, 32, 64)}


@dataclasses.dataclass
class Op:
    """One line of the text with what it says about itself."""

    text: str
    function: str
    name: str = ""  # of its location: "jit(f)/jgq3_/mul"
    location: str = ""  # "#loc7"
    result: str = ""
    operands: tuple[str, ...] = ()
    opcode: str = ""
    callee: str = ""
    equations: frozenset[int] = frozenset()
    link: str | None = None


def shorten_types(text: str) -> str:
    """Return `text` with ``tensor<8x2xf32>`` written as ``f32[8,2]``.

    Example:
        >>> shorten_types("(tensor<8x2xf32>, tensor<i1>) -> tensor<?xui8>")
        '(f32[8,2], bool[]) -> u8[?]'
    """
    return _TENSOR.sub(lambda m: f"{_DTYPES.get(m[2], m[2])}[{m[1].rstrip('x').replace('x', ',')}]", text)


def clean(text: str) -> str:
    """Return one line as shown: without locations and prefixes, with short types and constants."""
    text = _LOCATION.sub("", text)
    text = re.sub(r' ?\{jax\.result_info = "[^"]*"\}|jax\.result_info = "[^"]*"(, )?', "", text)
    text = text.replace("stablehlo.", "").replace("func.func ", "func ").replace("func.call", "call")
    return shorten_types(_LONG_DENSE.sub(r"dense<\1…>", text))


def devices(text: str) -> int:
    """Return how many devices a module is for.

    Example:
        >>> devices("module @f attributes {mhlo.num_partitions = 4 : i32, mhlo.num_replicas = 2 : i32} {")
        8
    """
    head = re.search(r"^module .*$", text, re.M)
    found = re.findall(r"mhlo\.num_(?:partitions|replicas) = (\d+)", head[0] if head else "")
    return math.prod(map(int, found))


def read(text: str) -> list[Op]:
    """Return the lines of a module printed with ``debug_info=True``, each with its location's name."""
    aliases = _names(text)
    ops: list[Op] = []
    function = ""
    unfinished: dict[int, list[Op]] = {}  # lines of an operation whose location stands on its last line
    for row in text.splitlines():
        if not row.strip() or row.startswith(("#", "module ", "}")):
            continue
        if header := _FUNCTION.match(row):
            function, unfinished = header[1], {}
            ops.append(Op(row, function, opcode="func"))
            continue
        op = _read_op(row, function, aliases)
        ops.append(op)
        indent = len(row) - len(row.lstrip())
        unfinished.setdefault(indent, []).append(op)
        if row.startswith("  }"):  # the end of a function
            op.name = op.location = ""
        elif op.location and not row.lstrip().startswith("^"):
            for part in unfinished.pop(indent):
                part.name, part.location = op.name, op.location
    return ops


def _names(text: str) -> dict[str, str]:
    """Return the name of each location; one without tags can wrap one with tags ("debug_print:")."""
    found = {m[1]: (m[2][1:-1], m[3]) for row in text.splitlines() if (m := _ALIAS.match(row))}
    names = {}
    for alias, (name, child) in found.items():
        while not tags(name) and child in found:
            name, child = found[child]
        names[alias] = name if tags(name) else found[alias][0]
    return names


def _read_op(row: str, function: str, aliases: dict[str, str]) -> Op:
    locations = list(_LOCATION.finditer(row))
    location = locations[-1][1] if locations and locations[-1].end() == len(row) else ""
    result, opcode, callee = _RESULT.match(row), _OPCODE.search(row), _CALLEE.search(row)
    values = tuple(_VALUE.findall(row[result.end() :] if result else row))
    name = location[1:].split('"')[0] if location.startswith('"') else aliases.get(location, "")
    operation = (opcode[1] or opcode[2]) if opcode else ""
    target, called = (match[1] if match else "" for match in (result, callee))
    return Op(row, function, name, location, target, values, operation, called)


def link(ops: list[Op], nodes: Nodes) -> None:
    """Give each operation its equations: by tag, else by consumer, else by the calls that reach it."""
    prefixes = _prefixes(ops)
    for op in ops:
        callers = prefixes.get(op.function, {()})
        own = tags(op.name)
        if op.opcode == "func":
            op.equations = _union(nodes.find(c) for c in callers)
            op.link = "exact" if callers != {()} else None
        elif own:
            op.equations, op.link = _union(nodes.find((*c, *own)) for c in callers), "exact"
    _by_consumer(ops)
    for op in ops:
        ends = op.text.startswith(("    return", "  }"))
        if not op.equations and not ends and prefixes.get(op.function):
            op.equations = _union(nodes.find(c) for c in prefixes[op.function])
            op.link = "inferred" if op.equations else None


def _union(sets: Iterable[frozenset[int]]) -> frozenset[int]:
    return frozenset().union(*sets)


def _prefixes(ops: list[Op]) -> dict[str, set[tuple[int, ...]]]:
    """Return for each function the tag paths of the calls that reach it from `main`."""
    calls: dict[str, list[tuple[str, tuple[int, ...]]]] = {}
    for op in ops:
        if op.callee:
            calls.setdefault(op.function, []).append((op.callee, tags(op.name)))
    found: dict[str, set[tuple[int, ...]]] = {"main": {()}}
    todo: list[tuple[str, tuple[int, ...]]] = [("main", ())]
    while todo:
        function, path = todo.pop()
        for callee, own in calls.get(function, ()):
            longer = (*path, *own)
            if longer not in found.setdefault(callee, set()):
                found[callee].add(longer)
                todo.append((callee, longer))
    return found


def _by_consumer(ops: list[Op]) -> None:
    # Backwards, because names are used again in another region: a definition ends the life of its name.
    consumers: dict[tuple[str, str], frozenset[int]] = {}
    for op in reversed(ops):
        if op.result:
            used_by = consumers.pop((op.function, op.result), frozenset())
            if not op.equations and used_by and op.opcode not in ("return", "func"):
                op.equations, op.link = used_by, "inferred"
        for value in op.operands:
            if op.equations and op.opcode != "return":
                consumers[op.function, value] = op.equations  # the first consumer in the text wins


def emitted(ops: list[Op]) -> dict[int, set[str]]:
    """Return for each equation the operations it was lowered to."""
    found: dict[int, set[str]] = {}
    for op in ops:
        for equation in op.equations if counted(op) and op.opcode != "constant" else ():
            found.setdefault(equation, set()).add(op.opcode)
    return found


def lines(ops: list[Op]) -> list[Line]:
    made = []
    for op in ops:
        opcode, note = op.opcode if counted(op) else "", "constant" if op.opcode == "constant" else ""
        # Two spaces less, because the line of the module around the functions is not shown.
        made.append(Line(clean(op.text)[2:], op.equations, op.link, op=opcode, block=op.function, note=note))
    return made


def counted(op: Op) -> bool:
    """Return whether a line is an operation: not the head of a function, nor the end of a region."""
    return bool(op.opcode) and op.opcode not in ("func", "return") and op.function != ""
