"""What became of each equation."""

from collections.abc import Mapping, Sequence
from typing import Any

from jitguide._jaxprs import bodies, name_stack
from jitguide._stages.hlo import BOOKKEEPING, Instruction, Module
from jitguide._stages.model import Equation, Fusion
from jitguide._stages.tags import Node, Nodes

# XLA expresses these through the layout or the indexing of their neighbours.
_MOVES_DATA = {
    "broadcast_in_dim", "reshape", "squeeze", "expand_dims", "transpose", "slice", "convert_element_type",
    "bitcast_convert_type", "unstack", "concatenate", "pad", "rev", "iota", "copy", "copy_p",
}  # fmt: skip
_DETAILS = {
    "unused": "unused: removed by JAX",
    "not lowered": "not in StableHLO",
    "merged": "simplified by XLA",
    "moves data": "only moves data: absorbed by its neighbours",
    "folded": "simplified by XLA: folded or merged, so not found under its own name in the optimized code",
    "unknown": "not known: the compiled text carries no labels",
}


def equations(
    nodes: Nodes,
    origin: Sequence[tuple[int | None, str]],
    lowered: frozenset[int] | None,
    where: Mapping[int, Sequence[str]],
    known: bool,
) -> tuple[Equation, ...]:
    """Return every equation with its status.

    `lowered` are those in the StableHLO text, None where that carries no labels; `where` has for each the names of
    the HLO instructions that compute it. Unless the HLO text carries labels (`known`), the status is told only of
    what is not in the StableHLO.
    """
    children, twins, made = nodes.children(), _twins(nodes), []
    for node in nodes.all:
        equation = node.equation
        family = [node.id, *children.get(node.id, ())]
        names = tuple(dict.fromkeys(name for n in family for name in where.get(n, ())))
        is_lowered = None if lowered is None else bool(lowered.intersection(family))
        status = _status(node, names, is_lowered, known)
        detail = "kept in " + ", ".join(names) if status == "kept" else _DETAILS[status]
        alike = [t for t in twins.get(node.id, ()) if where.get(t) and t != node.id]
        if alike and status in ("folded", "moves data"):
            line, status = origin[alike[0]][0], "merged"
            detail = f"{_DETAILS[status]}: same as " + (f"line {line}" if line else f"equation {alike[0]}")
        parent = node.ancestors[-1] if node.ancestors else None
        stack = name_stack(equation)
        direction = "backward" if "transpose(" in stack else "forward" if "jvp(" in stack else ""
        about = (node.id, equation.primitive.name, parent, *origin[node.id], direction)
        made.append(Equation(*about, status, detail, names if known else ()))
    return tuple(made)


def _status(node: Node, names: Sequence[str], lowered: bool | None, known: bool) -> str:
    if known and names:
        return "kept"
    if lowered is False:
        return "not lowered" if node.live else "unused"
    if not known:
        return "unknown"
    return "moves data" if node.equation.primitive.name in _MOVES_DATA else "folded"


def _twins(nodes: Nodes) -> dict[int, list[int]]:
    """Return groups of equations that compute the same value: equal operation, parameters and inputs."""
    value: dict[tuple[tuple[int, ...], int], Any] = {}
    groups: dict[Any, list[int]] = {}
    for node in nodes.all:
        equation, scope = node.equation, node.path[:-1]
        inputs = tuple(value.get((scope, id(v)), _input(v, scope)) for v in equation.invars)
        if bodies(equation):
            continue
        key = (equation.primitive.name, str(equation.params), inputs)
        groups.setdefault(key, []).append(node.id)
        number = groups[key][0]
        value.update({(scope, id(v)): (number, i) for i, v in enumerate(equation.outvars)})
    return {n: group for group in groups.values() if len(group) > 1 for n in group}


def _input(variable: Any, scope: tuple[int, ...]) -> Any:
    literal = getattr(variable, "val", None)
    return ("literal", str(literal), str(variable.aval)) if literal is not None else (scope, id(variable))


def places(module: Module) -> dict[int, list[str]]:
    """Return for each equation the names of the fusions, or unfused operations, that compute it.

    Operands that XLA only moves or makes on the spot do not count where their label was deduced.
    """
    found: dict[int, list[str]] = {}
    # In the order of the text, but a loop or branch as such before what it is made of.
    for instruction in sorted(_in_order(module), key=lambda i: i.opcode not in ("while", "conditional")):
        weak = instruction.link == "inferred" and instruction.opcode in ("broadcast", "iota", "convert")
        if instruction.opcode in ("fusion", "constant", *BOOKKEEPING) or weak:
            continue
        holder = instruction
        while (caller := module.region_of(holder.computation)) is not None:
            holder = caller
        for equation in instruction.equations:
            if holder.name not in found.setdefault(equation, []):
                found[equation].append(holder.name)
    return found


def fusions(module: Module, lines_of: Any) -> tuple[Fusion, ...]:
    """Return the fusions in the order of the text; `lines_of` gives the source lines of equations."""
    return tuple(
        Fusion(i.name, i.kind, _operations(module, i), i.equations, lines_of(i.equations))
        for i in _in_order(module)
        if i.opcode == "fusion"
    )


def _in_order(module: Module) -> list[Instruction]:
    if not module.entry:
        return []
    entry = module.computations[module.entry]
    return [j for i in entry.values() for j in (i, *module.inside(i))]


def _operations(module: Module, fusion: Instruction) -> tuple[str, ...]:
    left_out = ("parameter", "constant", "fusion")
    return tuple(i.opcode for i in module.inside(fusion) if i.opcode not in left_out)
