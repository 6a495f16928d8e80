"""From a function and its arguments to a `Stages` result."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import jax

from jitguide import _jax, _jaxprs
from jitguide._callables import hint_at_static
from jitguide._stages import compiled_info, link_hlo, outcomes, source, stablehlo
from jitguide._stages import jaxpr as jaxpr_text
from jitguide._stages.hlo import BOOKKEEPING, Module, ordered
from jitguide._stages.model import Line, Stage
from jitguide._stages.result import Stages
from jitguide._stages.tags import Nodes, replay, sites_of, tagged, tags, untag_names, works

NO_LINKS = "Links are not available: JAX made no copy of this program that carries labels."
NO_HLO = "The optimized HLO is not available on this backend."
NO_HLO_LINKS = "Links to the optimized HLO are not available: the compiled text carries no labels."
_TRACED = "stages was called inside a function that JAX is tracing"
_OUTSIDE = "Call stages outside of jit, grad and vmap, on arrays."
_VALUE = re.compile(r"%(?!arg)\w+")


@dataclasses.dataclass
class Program:
    """What JAX made, and whether its texts carry tags."""

    jaxpr: Any
    nodes: Nodes
    lowered: Any
    tagged: bool


def build(fn: Any, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Stages:
    """Trace, lower and compile once, and link what came out."""
    traced = _trace(jitted, args, kwargs)
    program = _tagged(jitted, traced, args, kwargs) or _plain(traced)
    compiled = _compile(program.lowered)
    shown = source.Shown(source.code_of(fn), program.nodes)
    hlo = _jax.compiled_text(compiled)
    found = _link(program, hlo, shown)
    return Stages(
        name=compiled_info.name_of(traced, fn),
        **{name: _stage(name, rows, shown) for name, rows in found.lines.items()},
        equations=outcomes.equations(program.nodes, shown.origin, found.lowered, found.places, found.known),
        fusions=outcomes.fusions(found.module, shown.lines_of),
        operations=_operations(program.nodes, found),
        cost=_jax.cost_analysis(compiled, hlo),
        memory=_jax.memory_analysis(compiled),
        constants=compiled_info.constants(traced.jaxpr),
        donated=compiled_info.donated(traced),
        notes=(*_banners(program, found), *compiled_info.notes(found.loops, hlo, shown, found.devices)),
    )


def _trace(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    _refuse_tracers("an argument", jax.tree.leaves((args, kwargs)))
    try:
        traced = jitted.trace(*args, **kwargs)
    except TypeError as error:
        hint_at_static("stages", error)
        raise
    # JAX turns a captured tracer into one more input, so that the jaxpr is not the user's.
    captured = _jax.captured(traced)
    if captured is None and not _jax.at_top_level():
        raise RuntimeError(f"{_TRACED}. {_OUTSIDE}")
    _refuse_tracers("a captured value", captured or ())
    return traced


def _refuse_tracers(what: str, values: Sequence[Any]) -> None:
    for value in values:
        if _jax.is_tracer(value):
            raise RuntimeError(f"{_TRACED}: {what} is a tracer of type {jax.typeof(value)}. {_OUTSIDE}")


def _tagged(jitted: Any, traced: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program | None:
    """Return the tagged program, or None where tags cannot be put in or would change the program."""
    if not works():
        return None
    try:
        sites = sites_of(traced.jaxpr)
        jaxpr = tagged(traced.jaxpr, sites)
        inner, options = getattr(jitted, "__wrapped__", jitted), _jax.jit_options(jitted) or {}
        program = replay(inner, traced, jaxpr, options).trace(*args, **kwargs)
        lowered = program.lower()
        if _operations_of(lowered) != _operations_of(traced.lower()):
            return None
    except Exception:  # undocumented parts of JAX failed; the program itself is lowered again, without tags
        return None
    return Program(jaxpr, Nodes(traced.jaxpr, sites), lowered, True)


def _operations_of(lowered: Any) -> list[str]:
    """Return the lines of a program without the order and names of its constants, which the tagged one may change."""
    return sorted(_VALUE.sub("%", line) for line in lowered.as_text().splitlines())


def _plain(traced: Any) -> Program:
    with _jax.placeholders_explained():
        lowered = traced.lower()
    return Program(traced.jaxpr, Nodes(traced.jaxpr, sites_of(traced.jaxpr)), lowered, False)


def _compile(lowered: Any) -> Any:
    """Compile, and keep the persistent cache from answering with an equal executable under other labels.

    Its key leaves labels out unless this flag is set.
    """
    flag = "jax_compilation_cache_include_metadata_in_key"
    before = _jax.setting(flag)
    if before is None or before:
        return lowered.compile()
    jax.config.update(flag, True)
    try:
        return lowered.compile()
    finally:
        jax.config.update(flag, before)


@dataclasses.dataclass
class Links:
    """The texts as lines with their equations, and what the status of an equation is told from."""

    lines: dict[str, list[Line]]
    ops: list[stablehlo.Op]
    module: Module
    lowered: frozenset[int] | None  # equations found in the StableHLO text, where it carries tags
    places: dict[int, list[str]]  # where each equation is computed in the HLO text
    loops: bool  # XLA unrolls some loops, and JAX lowers random numbers to others
    known: bool  # whether the HLO text carries tags, or has no instruction that could
    devices: int


def _link(program: Program, hlo: str, shown: source.Shown) -> Links:
    nodes, debug = program.nodes, program.lowered.as_text(debug_info=True)
    hlo = untag_names(hlo, nodes)
    ops, module = stablehlo.read(debug), Module(hlo)
    if program.tagged:
        stablehlo.link(ops, nodes)
        link_hlo.link(module, stablehlo.emitted(ops), nodes)
        rows = jaxpr_text.jaxpr_lines(program.jaxpr, nodes.find)
    else:
        rows = [Line(row) for row in str(_jaxprs.open_jaxpr(program.jaxpr)).splitlines()]
    lines = {
        "source": shown.lines(),
        "jaxpr": rows,
        "stablehlo": stablehlo.lines(ops),
        "hlo": _hlo_lines(module),
    }
    lowered = frozenset(e for op in ops for e in op.equations) if program.tagged else None
    known = program.tagged and _labelled(module)
    loops = _jax.has_loop(hlo) if module.entry else _jaxprs.has_loop(program.jaxpr)
    places = outcomes.places(module)
    return Links(lines, ops, module, lowered, places, loops, known, stablehlo.devices(debug))


def _labelled(module: Module) -> bool:
    """Return whether the HLO text carries tags; where XLA folded all there is to compute, it needs none."""
    instructions = list(module.instructions())
    plain = {"constant", "broadcast", "iota", "fusion", *BOOKKEEPING}
    return any(tags(i.op_name) for i in instructions) or (
        bool(instructions) and all(i.opcode in plain for i in instructions)
    )


def _banners(program: Program, found: Links) -> list[str]:
    """Return what is to be said about the links as a whole."""
    if not found.module.entry:
        return [NO_HLO]
    if not program.tagged:
        return [NO_LINKS]
    return [] if found.known or not program.nodes.all else [NO_HLO_LINKS]


def _stage(name: str, rows: Sequence[Line], shown: source.Shown) -> Stage:
    """Return the lines of one text with the source lines that each comes from."""
    if name == "source":
        return Stage(name, tuple(rows))
    return Stage(name, tuple(dataclasses.replace(row, source=shown.lines_of(row.equations)) for row in rows))


def _hlo_lines(module: Module) -> list[Line]:
    rows = []
    for text, instruction, computation in ordered(module):
        if instruction is None:
            rows.append(Line(text, block=computation))
            continue
        op = "" if text.endswith(":") else instruction.opcode
        by_xla = "" if instruction.equations else "made by XLA"
        note = {"parameter": "argument", "constant": "constant"}.get(instruction.opcode, by_xla)
        rows.append(Line(text, instruction.equations, instruction.link, op=op, note=note, block=computation))
    return rows


def _operations(nodes: Nodes, found: Links) -> dict[str, int | None]:
    instructions = [i for i in found.module.instructions() if i.opcode != "parameter"]
    known = bool(found.module.entry)
    return {
        "jaxpr equations": len(nodes.sites),
        "StableHLO operations": sum(map(stablehlo.counted, found.ops)),
        "HLO instructions": len(instructions) if known else None,
        "HLO fusions": sum(i.opcode == "fusion" for i in instructions) if known else None,
    }
