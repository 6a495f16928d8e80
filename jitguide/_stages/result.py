"""The result of `stages`."""

from __future__ import annotations

import dataclasses
from typing import Any

from jitguide._display import AsData
from jitguide._stages.diff import StagesDiff, diff
from jitguide._stages.html import columns
from jitguide._stages.model import NAMES, Constant, Equation, Fusion, Stage
from jitguide._stages.text_view import summary, texts


@dataclasses.dataclass(frozen=True, repr=False)
class Stages(AsData):
    """The four texts of one function on its way to the machine, line linked to line.

    Attributes:
        name: The function's name.
        source: What you wrote; line numbers count the lines shown here, from 1.
        jaxpr: What JAX traced.
        stablehlo: What JAX handed to XLA.
        hlo: What XLA made of it, for the backend in use.
        equations: Every equation with its status, once per place that it is called from.
        fusions: The fusions of the optimized HLO.
        operations: Counts before (jaxpr equations, StableHLO operations) and after XLA (HLO instructions,
            HLO fusions); None where the backend gives no text.
        cost: "flops", "bytes accessed" and "transcendentals" of one device as XLA estimates them, or None.
        memory: Bytes of "argument", "output", "temp" and "alias" buffers on one device as the backend
            reports, or None.
        constants: Captured arrays, largest first.
        donated: Names of the donated arguments.
        notes: What limits the above, in full sentences.
    """

    name: str
    source: Stage
    jaxpr: Stage
    stablehlo: Stage
    hlo: Stage
    equations: tuple[Equation, ...]
    fusions: tuple[Fusion, ...]
    operations: dict[str, int | None]
    cost: dict[str, float | None]
    memory: dict[str, int | None]
    constants: tuple[Constant, ...] = ()
    donated: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    def show(self, *names: str) -> View:
        """Return a view of some texts ("source", "jaxpr", "stablehlo", "hlo"); without names, of all four.

        Raises:
            ValueError: If a name is none of the four.

        Example:
            >>> import jax.numpy as jnp
            >>> from jitguide import stages
            >>> stages(jnp.sin, 1.0).show("jaxpr")
            Jaxpr: what JAX traced
            ...
        """
        for name in names:
            if name not in NAMES:
                raise ValueError(
                    f"show takes names of stages, and {name!r} is none. Use {', '.join(map(repr, NAMES))}."
                )
        return View(self, tuple(n for n in NAMES if n in names) or NAMES)

    def diff(self, other: Stages) -> StagesDiff:
        """Return how `other` differs from this result: each text line by line, and counts of operations.

        Raises:
            TypeError: If `other` is not a result of `stages`.
        """
        return diff(self, other)

    def to_dict(self) -> dict[str, Any]:
        """Return everything as JSON-serialisable data."""
        data = super().to_dict()
        return {"stages": {name: data.pop(name) for name in NAMES}, **data}

    def __repr__(self) -> str:
        return summary(self)

    def _repr_html_(self) -> str:
        return self.show()._repr_html_()


@dataclasses.dataclass(frozen=True, repr=False)
class View:
    """Some of the texts of a `Stages` result, side by side."""

    stages: Stages
    names: tuple[str, ...]

    def __repr__(self) -> str:
        return texts(self.stages, self.names)

    def _repr_html_(self) -> str:
        return columns(self.stages, self.names)

    def to_dict(self) -> dict[str, Any]:
        """Return the stages of this view as JSON-serialisable data."""
        return {name: getattr(self.stages, name).to_dict() for name in self.names}
