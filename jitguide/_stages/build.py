"""From a function and its arguments to a `Stages` result."""

import dataclasses
import re
from collections.abc import Sequence
from typing import Any

import jax
import numpy as np

from jitguide import _jax, _jaxprs
from jitguide._arguments import traced
from jitguide._monitoring import shown_name
from jitguide._stages import jaxpr as jaxpr_text
from jitguide._stages import link_hlo, outcomes, source, stablehlo
from jitguide._stages.hlo import BOOKKEEPING, Module, ordered
from jitguide._stages.model import Constant, Line, Stage
from jitguide._stages.result import Stages
from jitguide._stages.tags import Nodes, replay, sites_of, tagged, tags, untag_names, works

NO_LINKS = "Links are not available: JAX made no copy of this program that carries labels."
NO_HLO = "The optimized HLO is not available on this backend."
NO_HLO_LINKS = "Links to the optimized HLO are not available: the compiled text carries no labels."
_VALUE = re.compile(r"%(?!arg)\w+")


def build(fn: Any, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Stages:
    """Trace, lower and compile once, and link what came out."""
    found = traced("stages", jitted, args, kwargs)
    nodes = Nodes(found.jaxpr, sites_of(found.jaxpr))
    labelled = _tagged(jitted, found, nodes, args, kwargs)
    with _jax.placeholders_explained():
        jaxpr, lowered = labelled or (found.jaxpr, found.lower())
    compiled = _compile(lowered)
    debug, hlo = lowered.as_text(debug_info=True), untag_names(_jax.compiled_text(compiled), nodes)
    ops, module = stablehlo.read(debug), Module(hlo)
    if labelled:
        stablehlo.link(ops, nodes)
        link_hlo.link(module, stablehlo.emitted(ops), nodes)
    shown = source.Shown(source.code_of(fn), nodes)
    lines = {
        "jaxpr": jaxpr_text.jaxpr_lines(jaxpr, nodes.find) if labelled else _unlinked(jaxpr),
        "stablehlo": stablehlo.lines(ops),
        "hlo": _hlo_lines(module),
    }
    in_stablehlo = frozenset(e for op in ops for e in op.equations) if labelled else None
    known = bool(labelled) and _has_labels(module)
    # XLA unrolls some loops, and JAX lowers random numbers to others, so the HLO text decides where there is one.
    loops = _jax.has_loop(hlo) if module.entry else _jaxprs.has_loop(jaxpr)
    missing = {NO_HLO: not module.entry, NO_LINKS: not labelled, NO_HLO_LINKS: nodes.all and not known}
    return Stages(
        name=shown_name(fn),
        source=Stage("source", tuple(shown.lines())),
        **{name: _stage(name, rows, shown) for name, rows in lines.items()},
        equations=outcomes.equations(nodes, shown.origin, in_stablehlo, outcomes.places(module), known),
        fusions=outcomes.fusions(module, shown.lines_of),
        operations=_operations(nodes, ops, module),
        cost=_jax.cost_analysis(compiled, hlo),
        memory=_jax.memory_analysis(compiled),
        constants=_constants(found.jaxpr),
        donated=_donated(found),
        notes=(
            *[text for text, is_so in missing.items() if is_so][:1],
            *_notes(loops, hlo, shown, stablehlo.devices(debug)),
        ),
    )


def _tagged(
    jitted: Any, traced: Any, nodes: Nodes, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[Any, Any] | None:
    """Return the tagged jaxpr, and it lowered; None where tags cannot be put in or would change the program."""
    if not works():
        return None
    try:
        jaxpr = tagged(traced.jaxpr, nodes.sites)
        inner, options = getattr(jitted, "__wrapped__", jitted), _jax.jit_options(jitted) or {}
        lowered = replay(inner, traced, jaxpr, options).trace(*args, **kwargs).lower()
        return (jaxpr, lowered) if _operations_of(lowered) == _operations_of(traced.lower()) else None
    except Exception:  # undocumented parts of JAX failed; the program itself is lowered again, without tags
        return None


def _operations_of(lowered: Any) -> list[str]:
    """Return the lines of a program without the order and names of its constants, which the tagged one may change."""
    return sorted(_VALUE.sub("%", line) for line in lowered.as_text().splitlines())


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


def _unlinked(jaxpr: Any) -> list[Line]:
    return [Line(row) for row in str(_jaxprs.open_jaxpr(jaxpr)).splitlines()]


def _has_labels(module: Module) -> bool:
    """Return whether the HLO text carries tags; where XLA folded all there is to compute, it needs none."""
    instructions = list(module.instructions())
    plain = {"constant", "broadcast", "iota", "fusion", *BOOKKEEPING}
    return any(tags(i.op_name) for i in instructions) or (
        bool(instructions) and all(i.opcode in plain for i in instructions)
    )


def _stage(name: str, rows: Sequence[Line], shown: source.Shown) -> Stage:
    """Return the lines of one text with the source lines that each comes from."""
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


def _operations(nodes: Nodes, ops: Sequence[stablehlo.Op], module: Module) -> dict[str, int | None]:
    instructions = [i for i in module.instructions() if i.opcode != "parameter"]
    known = bool(module.entry)
    return {
        "jaxpr equations": len(nodes.sites),
        "StableHLO operations": sum(map(stablehlo.counted, ops)),
        "HLO instructions": len(instructions) if known else None,
        "HLO fusions": sum(i.opcode == "fusion" for i in instructions) if known else None,
    }


def _constants(jaxpr: Any) -> tuple[Constant, ...]:
    """Return the arrays that a jaxpr captured, the bodies of its equations included, each once."""
    arrays = (c for c in _jaxprs.constants(jaxpr) if np.ndim(c) or c.nbytes > 8)
    return tuple(Constant(_jaxprs.short_type(c), int(c.nbytes)) for c in arrays)


def _donated(traced: Any) -> tuple[str, ...]:
    leaves = jax.tree.leaves(getattr(traced, "args_info", ()), is_leaf=lambda x: hasattr(x, "donated"))
    names = _jaxprs.argument_names(traced.jaxpr, len(leaves))
    return tuple(n for n, leaf in zip(names, leaves, strict=True) if getattr(leaf, "donated", False))


def _notes(loops: bool, hlo: str, shown: source.Shown, devices: int) -> list[str]:
    """Return the notes needed to read the result rightly."""
    found = []
    if calls := _jax.library_calls(hlo):
        found.append(f"Flops and bytes are not available: XLA does not count {', '.join(calls)}.")
    elif loops:
        found.append("Flops and bytes count the body of a loop once, not once per step.")
    if devices > 1:
        found.append(f"Cost and memory are those of one of the {devices} devices.")
    if not shown.texts:
        found.append(
            "The source of this function is not shown: it was not found, or it is part of a library."
        )
    elif shown.origin and not any(line for line, _ in shown.origin):
        found.append("Links to the source are not available: JAX names no line of it.")
    return found
