"""What `check` returns: findings, each with what to do and the page of the guide about it."""

from collections.abc import Iterator
from dataclasses import dataclass

from jitguide._display import AsData, Table, duration, wrapped
from jitguide._timing.phases import Phases

# Inside a library's wrapper the arguments are not those that you wrote.
OF_ARGUMENTS = ("static values", "lists of numbers", "donation", "unused arguments")
IN_THE_TRACE = (
    "retraces", *OF_ARGUMENTS[:2], "captured constants", "unrolled loops", *OF_ARGUMENTS[2:],
    "random keys", "side effects", "host round trips",
)  # fmt: skip
# Below one MiB, a copy of an array in the executable or a second buffer is not worth a change.
WORTH_BYTES = 2**20
PAGES = {
    "retrace": "howto/every-call-recompiles",
    "static": "learn/static-and-traced-values",
    "constant": "howto/captured-constants",
    "unrolled loop": "howto/slow-first-call",
    "donation": "howto/donated-buffers",
    "unused argument": "learn/arguments",
    "captured key": "howto/random-keys",
    "key used twice": "howto/random-keys",
    "many numbers": "howto/slower-with-jit",
    "impure body": "learn/purity",
    "truncated dtype": "howto/precision",
    "disagreement": "howto/different-results",
    "host round trip": "learn/how-much-to-jit",
    "break-even": "howto/slower-with-jit",
}


@dataclass(frozen=True)
class Finding(AsData):
    """One thing that costs time or memory: what it is, what to do, and the page of the guide about it."""

    kind: str
    sentence: str
    advice: str
    page: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.sentence} {self.advice} (See {self.page}.)"


@dataclass(frozen=True)
class Findings(AsData):
    """What `check` found.

    Attributes:
        function: Name of the function.
        findings: The findings; empty if all is well.
        phases: Where the time of a first call goes, and that of a later one; None if it was not run.
        plain: Seconds of a call without jit; None if it was not timed.
        notes: What could not be checked, and what else to bear in mind.
        checked: What was looked at.
    """

    function: str
    findings: tuple[Finding, ...]
    phases: Phases | None = None
    plain: float | None = None
    notes: tuple[str, ...] = ()
    checked: tuple[str, ...] = IN_THE_TRACE

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    @property
    def kinds(self) -> tuple[str, ...]:
        """The kinds of the findings, in order."""
        return tuple(finding.kind for finding in self.findings)

    def _notes(self) -> list[str]:
        if self.phases is None:
            return list(self.notes)
        steps = {step: getattr(self.phases, step) for step in ("trace", "lower", "compile")}
        steps |= {"a jitted call": self.phases.steady, "a plain call": self.plain}
        known = [f"{name} {duration(value)}" for name, value in steps.items() if value is not None]
        return [f"Roughly: {', '.join(known)}.", *self.notes]

    def _title(self) -> str:
        count = len(self.findings)
        if not count:
            return f"{self.function}: nothing found. Checked {', '.join(self.checked)}."
        return f"{self.function}: {count} finding{'s' if count > 1 else ''}"

    def __repr__(self) -> str:
        found = [(f"{i}. {one}", "   ") for i, one in enumerate(self.findings, 1)]
        texts = [(self._title(), ""), *found, *((note, "") for note in self._notes())]
        return "\n".join(line for text, indent in texts for line in wrapped(text, rest=indent))

    def _repr_html_(self) -> str:
        header = ["finding", "what", "what to do", "page"]
        rows = [[f.kind, f.sentence, f.advice, f.page] for f in self.findings]
        return Table(header, rows, title=self._title(), notes=self._notes()).html()


def finding(kind: str, sentence: str, advice: str) -> Finding:
    return Finding(kind, sentence, advice, PAGES[kind])
