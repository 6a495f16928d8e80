"""Which equations an HLO instruction computes: by XLA's label, else deduced from its neighbours."""

from collections.abc import Mapping
from typing import Any

from jitguide._stages.hlo import BOOKKEEPING, Instruction, Module
from jitguide._stages.tags import Nodes, tags

# XLA moves these about freely; the operation that uses one says where it belongs.
_MATERIAL = {"constant", "broadcast", "iota", "convert", "reshape", "transpose"}


def link(module: Module, emitted: Mapping[int, set[str]], nodes: Nodes) -> None:
    """Give every instruction its equations; `emitted` are the StableHLO operations that each was lowered to."""
    for instruction in module.instructions():
        names = instruction.op_name.split(";")  # XLA joins those of instructions that it merged
        instruction.equations = frozenset().union(*(nodes.find(tags(name)) for name in names))
        instruction.link = "exact" if instruction.equations else None
    if not any(instruction.equations for instruction in module.instructions()):
        return  # no label anywhere: a link would be a guess
    _deduce(module, emitted)
    for instruction in module.instructions():
        if instruction.opcode == "fusion" or (instruction.called and not instruction.equations):
            inside = [i for i in module.inside(instruction) if i.equations and i.opcode != "parameter"]
            instruction.equations |= frozenset().union(*(i.equations for i in inside))
            exact = instruction.link == "exact" or any(i.link == "exact" for i in inside)
            instruction.link = ("exact" if exact else "inferred") if instruction.equations else None


def _deduce(module: Module, emitted: Mapping[int, set[str]]) -> None:
    users = _users(module)
    computing = (i for i in module.instructions() if i.opcode not in _MATERIAL | BOOKKEEPING)
    claimed = frozenset().union(*(i.equations for i in computing))
    unclaimed = {equation: ops for equation, ops in emitted.items() if equation not in claimed}
    found: list[tuple[Instruction, frozenset[int]]] = []
    for instruction in module.instructions():
        if instruction.equations or instruction.opcode in BOOKKEEPING or instruction.opcode == "fusion":
            continue
        caller = module.region_of(instruction.computation)
        if caller is not None and caller.opcode != "fusion":
            found.append((instruction, caller.equations))
            continue
        near = _near(module, instruction, users)
        if instruction.opcode not in _MATERIAL:
            near = _by_opcode(instruction.opcode, near, unclaimed) or near
        found.append((instruction, near))
    for instruction, equations in found:
        instruction.equations, instruction.link = equations, "inferred" if equations else None


def _by_opcode(opcode: str, near: frozenset[int], unclaimed: dict[int, set[str]]) -> frozenset[int]:
    """Return the equations without a label of their own that were lowered to this very operation."""
    wanted = "dot_general" if opcode == "dot" else opcode.replace("-", "_")
    found = frozenset(equation for equation, ops in unclaimed.items() if wanted in ops)
    return found if len(found) <= 1 else found & near


def _users(module: Module) -> dict[tuple[str, str], list[Instruction]]:
    users: dict[tuple[str, str], list[Instruction]] = {}
    for instruction in module.instructions():
        for operand in dict.fromkeys(instruction.operands):
            users.setdefault((instruction.computation, operand), []).append(instruction)
    return users


def _near(module: Module, start: Instruction, users: Mapping[Any, list[Instruction]]) -> frozenset[int]:
    """Return the labels of the nearest labelled users of a result, looking into and out of fusions."""
    todo, seen, labels = [start], set[Any](), frozenset[int]()
    while todo:
        at = todo.pop()
        for user in users.get((at.computation, at.name), ()):
            if (user.computation, user.name, at.name) in seen:
                continue
            seen.add((user.computation, user.name, at.name))
            if user.opcode == "fusion":
                todo += _matching_parameters(module, user, at.name)
            elif user.link == "exact":
                labels |= user.equations
            else:
                todo.append(user)
        caller = module.callers.get(at.computation)
        if at.root and caller is not None and caller.opcode == "fusion":
            todo.append(caller)
    return labels


def _matching_parameters(module: Module, fusion: Instruction, operand: str) -> list[Instruction]:
    computation = next((c for role, c in fusion.called if role == "calls"), None)
    parameters = module.parameters(computation) if computation else []
    return [p for p, name in zip(parameters, fusion.operands, strict=False) if name == operand]
