"""From a function and its arguments to a `Stages` result."""

from __future__ import annotations

import contextlib
import dataclasses
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import jax

from jitguide._stages import facts, fallback, hlo_links, source, stablehlo, status
from jitguide._stages import jaxpr as jaxpr_text
from jitguide._stages.hlo import BOOKKEEPING, Instruction, Module, ordered
from jitguide._stages.liveness import live_equations
from jitguide._stages.model import Line, Stage
from jitguide._stages.result import Stages
from jitguide._stages.tags import Nodes, Tagger, replay, tags, untag_names, works

BY_LINE = "Linked by source line, not by operation: this JAX does not carry labels through its stages."
NO_LINKS = "Links are not available: this program's texts carry neither labels nor source lines."
NO_HLO_LINKS = "Links to the optimized HLO are not available: the compiled text carries no labels."


@dataclasses.dataclass
class Program:
    """What JAX made, and how its texts are linked: by "tags" or by "lines"."""

    jaxpr: Any
    nodes: Nodes
    lowered: Any
    mode: str


def build(fn: Any, jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Stages:
    """Trace, lower and compile once, and link what came out."""
    traced = jitted.trace(*args, **kwargs)
    program = _tagged(jitted, traced, args, kwargs) or _plain(traced)
    compiled = _compile(program.lowered)
    code = source.code_of(fn)
    origins = source.Origins(code.co_filename if code else "")
    places = origins.places(program.nodes)
    chosen = source.panels(code, [place for place, _ in places], origins.readers)
    texts, numbers = source.shown_lines(chosen)
    origin = [(numbers.get(place) if place else None, inside) for place, inside in places]
    return _result(program, compiled, traced, fn, texts, numbers, origin, origins)


def _tagged(jitted: Any, traced: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Program | None:
    """Return the tagged program, or None where tags cannot be put in or would change the program."""
    if not works():
        return None
    try:
        tagger = Tagger()
        tagged, top = tagger.jaxpr(traced.jaxpr)
        options = facts.options(jitted)
        program = replay(getattr(jitted, "__wrapped__", jitted), traced, tagged, options).trace(
            *args, **kwargs
        )
        lowered = program.lower()
        if lowered.as_text() != traced.lower().as_text():
            return None
    except Exception:  # undocumented parts of JAX failed; the program itself is lowered again, without tags
        return None
    return Program(tagged, Nodes(tagged, top, tagger.sites, live_equations), lowered, "tags")


def _plain(traced: Any) -> Program:
    tagger = Tagger(mark=False)
    _, top = tagger.jaxpr(traced.jaxpr)
    return Program(
        traced.jaxpr, Nodes(traced.jaxpr, top, tagger.sites, live_equations), traced.lower(), "lines"
    )


@contextlib.contextmanager
def _labels_in_cache_key() -> Iterator[None]:
    """Keep the persistent cache from answering with the same program under other labels: its key ignores them."""
    flag = "jax_compilation_cache_include_metadata_in_key"
    before = getattr(jax.config, flag, None)
    if before is None or before:
        yield
        return
    jax.config.update(flag, True)
    try:
        yield
    finally:
        jax.config.update(flag, before)


def _compile(lowered: Any) -> Any:
    with _labels_in_cache_key():
        return lowered.compile()


def _hlo_text(compiled: Any) -> str:
    try:
        return compiled.as_text() or ""
    except Exception:  # optional on a backend
        return ""


def _result(
    program: Program,
    compiled: Any,
    traced: Any,
    fn: Any,
    texts: Sequence[str],
    numbers: dict[source.Place, int],
    origin: Sequence[tuple[int | None, str]],
    origins: source.Origins,
) -> Stages:
    nodes, by_tag = program.nodes, program.mode == "tags"
    find = _line_finder(origin, numbers, origins)
    debug, hlo = program.lowered.as_text(debug_info=True), untag_names(_hlo_text(compiled), nodes)
    ops, module = stablehlo.read(debug), Module(hlo)
    if by_tag:
        stablehlo.link(ops, nodes)
    emitted: dict[int, set[str]] = {}
    for op in ops:
        for equation in op.equations if op.opcode not in ("func", "constant") else ():
            emitted.setdefault(equation, set()).add(op.opcode)
    hlo_links.link(
        module, hlo_links.by_tag(nodes) if by_tag else fallback.from_hlo(hlo, find), emitted, nodes
    )
    labelled = any(tags(i.op_name) for i in module.instructions()) if by_tag else False
    lowered = frozenset(e for op in ops if op.link for e in op.equations)
    table = status.equations(nodes, origin, lowered, status.places(module), labelled)
    lines_of = _lines_of([line for line, _ in origin])
    stages = {
        "source": source.source_lines(texts, [line for line, _ in origin]),
        "jaxpr": jaxpr_text.jaxpr_lines(program.jaxpr, nodes.find)
        if by_tag
        else fallback.jaxpr_lines(program.jaxpr, find, numbers),
        "stablehlo": stablehlo.lines(ops, None if by_tag else fallback.from_stablehlo(debug, find)),
        "hlo": _hlo_lines(module, by_tag),
    }
    linked = any(line.equations for name in ("stablehlo", "hlo") for line in stages[name])
    notes = [] if by_tag else [BY_LINE if linked else NO_LINKS]
    if by_tag and nodes.all and hlo and not labelled:
        notes.append(NO_HLO_LINKS)
    return Stages(
        name=facts.name_of(traced, fn),
        **{
            name: Stage(name, tuple(_with_source(line, lines_of) for line in rows))
            for name, rows in stages.items()
        },
        equations=table,
        fusions=status.fusions(module, lines_of),
        operations=_operations(nodes, ops, module, bool(hlo)),
        cost=facts.cost(compiled),
        memory=facts.memory(compiled),
        constants=facts.constants(traced.jaxpr),
        donated=facts.donated(traced),
        notes=(*notes, *facts.notes(nodes, texts, hlo)),
    )


def _line_finder(
    origin: Sequence[tuple[int | None, str]], numbers: dict[source.Place, int], origins: source.Origins
) -> fallback.Find:
    owners: dict[int, set[int]] = {}
    for equation, (line, _) in enumerate(origin):
        if line is not None:
            owners.setdefault(line, set()).add(equation)

    def find(places: list[source.Place]) -> frozenset[int]:
        place = origins.innermost(list(reversed(places)))
        return frozenset(owners.get(numbers.get(place, 0), ())) if place else frozenset()

    return find


def _lines_of(origin: Sequence[int | None]) -> Callable[[frozenset[int]], tuple[int, ...]]:
    return lambda equations: tuple(sorted({line for e in equations if (line := origin[e]) is not None}))


def _with_source(line: Line, lines_of: Callable[[frozenset[int]], tuple[int, ...]]) -> Line:
    return line if line.source else dataclasses.replace(line, source=lines_of(line.equations))


def _hlo_lines(module: Module, by_tag: bool) -> list[Line]:
    rows = []
    for text, instruction, computation in ordered(module):
        if instruction is None:
            rows.append(Line(text, block=computation))
            continue
        link = instruction.link if by_tag or not instruction.link else "inferred"
        op = instruction.opcode if text.lstrip().rstrip(":") == text.lstrip() else ""
        rows.append(
            Line(text, instruction.equations, link, op=op, note=_note(instruction), block=computation)
        )
    return rows


def _note(instruction: Instruction) -> str:
    if instruction.opcode == "parameter":
        return "argument"
    if instruction.opcode == "constant":
        return "constant"
    return (
        "made by XLA"
        if not instruction.equations or instruction.opcode in BOOKKEEPING and not instruction.link
        else ""
    )


def _operations(nodes: Nodes, ops: Sequence[Any], module: Module, known: bool) -> dict[str, int | None]:
    instructions = [i for i in module.instructions() if i.opcode not in ("parameter",)]
    return {
        "jaxpr equations": len(nodes.sites),
        "StableHLO operations": sum(map(stablehlo.counted, ops)),
        "HLO instructions": len(instructions) if known else None,
        "HLO fusions": sum(i.opcode == "fusion" for i in instructions) if known else None,
    }
