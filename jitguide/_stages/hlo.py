"""The optimized HLO text: computations and instructions without metadata, in the order they are shown."""

import dataclasses
import re
from collections.abc import Iterator

_COMPUTATION = re.compile(r"^(ENTRY )?%?([\w.\-]+) \(.*\) -> .* \{")
_INSTRUCTION = re.compile(r"^\s+(ROOT )?%?([\w.\-]+) = (.*)$")
_OP_NAME = re.compile(r'op_name="((?:[^"\\]|\\.)*)"')
_REFERENCE = re.compile(r"%?([A-Za-z_][\w.\-]*)")
_CALLED = re.compile(r", (\w+)=(?:%?([\w.\-]+)|\{(%[^{}]*)\})(?=,|$)")
_LAYOUT = re.compile(r"(?<=[\])])\{[\d,]*(?::[^{}]*)?\}")
_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|[()\[\]{}]')
_STRIPPED = re.compile(r", (?:metadata|backend_config|frontend_attributes|origin)=(?=[{\"])")
_REGIONS = {"to_apply", "select", "scatter", "comparator", "called_computations"}
# They move or bundle results and compute nothing; XLA makes them where it needs them.
BOOKKEEPING = {"parameter", "tuple", "get-tuple-element", "bitcast", "copy", "copy-start", "copy-done"}


@dataclasses.dataclass
class Instruction:
    """One instruction, with what the links need."""

    name: str
    computation: str
    root: bool
    type: str
    opcode: str
    operands: tuple[str, ...]  # names of instructions
    inside: str  # the text between the parentheses
    attributes: str
    op_name: str
    called: tuple[tuple[str, str], ...]  # (role, computation): ("calls", "fused_computation.1")
    equations: frozenset[int] = frozenset()
    link: str | None = None

    @property
    def kind(self) -> str:
        """XLA's kind of fusion, or ""."""
        found = re.search(r"kind=(\w+)", self.attributes)
        return found[1] if found else ""


class Module:
    """The computations of one module; `entry` is the name of the first to run."""

    def __init__(self, text: str) -> None:
        self.computations: dict[str, dict[str, Instruction]] = {}
        self.entry = ""
        name = ""
        for row in text.splitlines():
            if match := _COMPUTATION.match(row):
                name = match[2]
                self.computations[name] = {}
                self.entry = name if match[1] else self.entry
            elif row.startswith("}"):
                name = ""
            elif name and (match := _INSTRUCTION.match(row)):
                self.computations[name][match[2]] = _instruction(match[2], name, bool(match[1]), match[3])
        for instruction in self.instructions():
            instruction.called = tuple(c for c in instruction.called if c[1] in self.computations)
        self.callers = {name: i for i in self.instructions() for _, name in i.called}
        self.reducers = {n: r for n in self.computations if (r := self._reducer(n))}

    def instructions(self) -> Iterator[Instruction]:
        for computation in self.computations.values():
            yield from computation.values()

    def region_of(self, computation: str) -> Instruction | None:
        """Return the instruction that this computation is part of: a fusion, or one that applies it."""
        caller = self.callers.get(computation)
        if caller is None or caller.opcode == "call":
            return None
        roles = {role for role, name in caller.called if name == computation}
        return caller if roles & (_REGIONS | {"calls"}) else None

    def inside(self, instruction: Instruction) -> Iterator[Instruction]:
        """Yield the instructions of the computations that this one calls, however deep."""
        for _, name in instruction.called:
            for inner in self.computations[name].values():
                yield inner
                yield from self.inside(inner)

    def parameters(self, computation: str) -> list[Instruction]:
        """Return the parameters of a computation by their index."""
        found = [i for i in self.computations[computation].values() if i.opcode == "parameter"]
        return sorted(found, key=lambda i: int(i.inside))

    def _reducer(self, computation: str) -> str | None:
        """Return the opcode of a region of one operation on two parameters ("add" in a sum), else None."""
        body = [i for i in self.computations[computation].values() if i.opcode != "parameter"]
        caller = self.callers.get(computation)
        region = caller is not None and ("to_apply", computation) in caller.called
        one = region and len(body) == 1 and len(self.computations[computation]) == 3 and not body[0].called
        return body[0].opcode if one else None


def _balanced(text: str, start: int) -> int:
    """Return the index after the bracket or the quoted text that begins at `start`."""
    depth = 0
    for token in _TOKEN.finditer(text, start):
        if token[0] in "([{":
            depth += 1
        elif token[0] in ")]}":
            depth -= 1
        if depth == 0:
            return token.end()
    return len(text)


def _instruction(name: str, computation: str, root: bool, rest: str) -> Instruction:
    rest = re.sub(r"/\*.*?\*/", "", rest)  # XLA numbers the items of long tuples
    type_end = _balanced(rest, 0) if rest.startswith("(") else rest.index(" ")
    opened = rest.index("(", type_end)
    closed = _balanced(rest, opened)
    opcode, inside, attributes = rest[type_end:opened].strip(), rest[opened + 1 : closed - 1], rest[closed:]
    op_name = _OP_NAME.search(attributes)
    attributes = strip(attributes)
    called = [
        (match[1], part.strip().lstrip("%"))
        for match in _CALLED.finditer(attributes)
        for part in (match[2] or match[3]).split(",")
    ]
    return Instruction(
        name=name,
        computation=computation,
        root=root,
        type=_LAYOUT.sub("", rest[:type_end]),
        opcode=opcode,
        operands=() if opcode in ("constant", "parameter") else tuple(_REFERENCE.findall(inside)),
        inside=_LAYOUT.sub("", inside.replace("%", "")),
        attributes=attributes,
        op_name=op_name[1] if op_name else "",
        called=tuple(called),
    )


def strip(attributes: str) -> str:
    """Return attributes without file names, settings of a backend, and layouts.

    Example:
        >>> strip(', dimensions={0}, metadata={op_name="jit(f)/mul"}, backend_config={"a":{"b":1}}')
        ', dimensions={0}'
    """
    while found := _STRIPPED.search(attributes):
        attributes = attributes[: found.start()] + attributes[_balanced(attributes, found.end()) :]
    return _LAYOUT.sub("", attributes)


def ordered(module: Module) -> Iterator[tuple[str, Instruction | None, str]]:
    """Yield (text, instruction, computation): the entry first, what an instruction calls indented beneath it.

    A fusion's parameters are left out: the names of its operands stand for them.
    """
    if module.entry:
        yield "entry {", None, module.entry
        yield from _body(module, module.entry, 1, {})
        yield "}", None, module.entry


def _body(
    module: Module, name: str, depth: int, names: dict[str, str]
) -> Iterator[tuple[str, Instruction | None, str]]:
    pad = "  " * depth
    for instruction in module.computations[name].values():
        if instruction.name in names:
            continue
        yield pad + _text(module, instruction, names), instruction, name
        for role, computation in instruction.called:
            if computation in module.reducers:
                continue
            if role == "calls":  # a fusion
                pairs = zip(module.parameters(computation), instruction.operands, strict=False)
                inner = {p.name: names.get(operand, operand) for p, operand in pairs}
                yield from _body(module, computation, depth + 1, inner)
            else:
                yield f"{pad}  {role}:", instruction, name
                yield from _body(module, computation, depth + 2, {})


def _text(module: Module, instruction: Instruction, names: dict[str, str]) -> str:
    inside = instruction.inside
    if names and instruction.operands:
        inside = _REFERENCE.sub(lambda m: names.get(m[1], m[1]), inside)
    attributes = _CALLED.sub(lambda match: _without_called(module, match), instruction.attributes)
    attributes = attributes.replace("%", "")
    if len(inside) > 200 and instruction.opcode == "constant":
        inside = inside[:200] + "…"
    root = "return " if instruction.root and instruction.opcode == "tuple" else ""
    return f"{root}{instruction.name} = {instruction.type} {instruction.opcode}({inside}){attributes}"


def _without_called(module: Module, match: re.Match[str]) -> str:
    """Return nothing for the name of a computation that is shown beneath, and its operation for a reducer."""
    name = (match[2] or match[3]).split(",")[0].strip().lstrip("%")
    if name not in module.computations:
        return match[0]
    return f", {match[1]}={module.reducers[name]}" if name in module.reducers else ""
