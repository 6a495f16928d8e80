"""The parts of a `Stages` result: lines, stages, equations, fusions, constants."""

import dataclasses
from typing import ClassVar

from jitguide._display import AsData

NAMES = ("source", "jaxpr", "stablehlo", "hlo")

TITLES = {
    "source": "Source: what you wrote",
    "jaxpr": "Jaxpr: what JAX traced",
    "stablehlo": "StableHLO: what JAX handed to XLA",
    "hlo": "Optimized HLO: what XLA made of it",
}


@dataclasses.dataclass(frozen=True)
class Line(AsData):
    """One line of one text, and the equations it stands for.

    Attributes:
        text: The line as shown, without locations, layouts or paths.
        equations: Numbers of the equations (`Stages.equations`) that this line defines or computes.
        link: "exact" (JAX carried a label here), "inferred" (deduced from neighbours), or None (no link).
        source: Numbers of the shown source lines that these equations come from.
        op: The operation on this line ("mul", "broadcast_in_dim", "fusion"), or "".
        note: What else is to be said ("made by XLA", "constant"), or "".
        block: The function or computation that the line is part of; "" for source and jaxpr.
    """

    text: str
    equations: frozenset[int] = frozenset()
    link: str | None = None
    source: tuple[int, ...] = ()
    op: str = ""
    note: str = ""
    block: str = ""


@dataclasses.dataclass(frozen=True)
class Stage(AsData):
    """One of the four texts: its lines, and `text`, the same as one string."""

    name: str
    lines: tuple[Line, ...]
    _derived: ClassVar = ("title",)

    @property
    def title(self) -> str:
        """What this text is, in words."""
        return TITLES[self.name]

    @property
    def text(self) -> str:
        """The text as shown."""
        return "\n".join(line.text for line in self.lines)

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"{self.title}\n{self.text or '(not available)'}"

    def __len__(self) -> int:
        return len(self.lines)


@dataclasses.dataclass(frozen=True)
class Equation(AsData):
    """One equation of the jaxpr, once per place that it is called from.

    Attributes:
        id: Its number, in program order.
        primitive: The operation ("mul").
        parent: Number of the equation whose body it is in (a call, a loop, a branch), or None.
        line: Number of the shown source line that it comes from, or None.
        inside: Name of the library function whose body it belongs to, or "".
        direction: "forward" or "backward" where it is part of a derivative, else "".
        status: "kept", "unused", "not lowered", "merged", "moves data", "folded" or "unknown".
        detail: The status in words.
        fusions: Names of the HLO instructions (fusions, or unfused operations) that compute it.
    """

    id: int
    primitive: str
    parent: int | None = None
    line: int | None = None
    inside: str = ""
    direction: str = ""
    status: str = "unknown"
    detail: str = ""
    fusions: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True)
class Fusion(AsData):
    """One fusion of the optimized HLO: several operations that run as one kernel.

    Attributes:
        name: Its name in the HLO text.
        kind: XLA's kind ("kLoop", "kInput", "kOutput", "kCustom"), or "".
        operations: Opcodes inside, without parameters and constants, in order.
        equations: Numbers of the equations whose label survives inside. XLA keeps one label per
            instruction, so an equation that XLA merged into another may be missing.
        source: Numbers of the shown source lines of these equations.
    """

    name: str
    kind: str
    operations: tuple[str, ...]
    equations: frozenset[int]
    source: tuple[int, ...]


@dataclasses.dataclass(frozen=True)
class Constant(AsData):
    """An array that the function captured: it is a constant of the executable, not an argument.

    Attributes:
        type: Its element type and shape ("f32[512,512]").
        bytes: Its size in bytes.
    """

    type: str
    bytes: int
