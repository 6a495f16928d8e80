"""One watched call."""

from dataclasses import dataclass, replace
from typing import Literal, get_args

from jitguide._display import AsData
from jitguide._watch.reasons import Reason

# From the least to the most work; the last two say that a call cannot be placed on this scale.
Outcome = Literal[
    "hit", "left the fast path", "traced", "lowered", "read from the persistent cache", "compiled",
    "raised", "not counted",
]  # fmt: skip
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)


@dataclass(frozen=True)
class Call(AsData):
    """One call of a watched function.

    Attributes:
        index: Its number, from 1.
        outcome: The deepest thing it made JAX do, or "raised"; one of `OUTCOMES`.
        seconds: Until the call returned. JAX may still be computing the result then.
        trace: Seconds of tracing; None if there was none.
        lower: Seconds of lowering to StableHLO; None if there was none.
        compile: Seconds in XLA, or of reading from the persistent cache; None without either.
        compiled: Whether XLA compiled it, which a call that raised when its program ran did as well.
        reason: Why it was not a hit; None for a hit.
        signature: The call as jit sees it; empty for a hit, which is too quick to write one down.
    """

    index: int
    outcome: Outcome
    seconds: float
    trace: float | None = None
    lower: float | None = None
    compile: float | None = None
    reason: Reason | None = None
    signature: str = ""
    compiled: bool = False


def call_at(index: int, seconds: float, other: Call | Reason | None) -> Call:
    """Return the call of that index; `other` is what it was unless it was a hit."""
    if isinstance(other, Call):
        return replace(other, index=index)
    return Call(index, "left the fast path" if other else "hit", seconds, reason=other)
