"""Recorded facts: the verdict on each claim on each JAX release, and the rows of the five tutorials.

Plain data, read from docs/_data; `domain`, `tables` and `tutorials` show it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

CLAIMS, SOURCES = "claims.json", "sources.json"  # in docs/_data
BESIDE = ("python", "numpy", "device")  # what is recorded of each release

WORDS = {"+": "holds", "-": "does not hold", "~": "measured", "0": "not applicable"}
MARKS = {"+": "✓", "-": "✗", "~": "≈", "0": "–"}


@dataclass(frozen=True)
class Span:
    """Neighbouring releases with the same verdict."""

    first: str
    last: str
    verdict: str
    reason: str

    @property
    def releases(self) -> str:
        """The span in words.

        Example:
            >>> Span("0.4.30", "0.6.2", "-", "").releases
            '0.4.30 – 0.6.2'
        """
        return self.first if self.first == self.last else f"{self.first} – {self.last}"


@dataclass(frozen=True)
class Flip:
    """A claim that holds on one of two releases and not on the other, with no verdict between them."""

    claim: str
    before: str
    since: str
    old: str
    new: str
    reason: str


@dataclass(frozen=True)
class Recording:
    """The verdicts on all claims on all releases tried, oldest release first."""

    releases: tuple[str, ...] = ()
    verdicts: dict[str, str] = field(default_factory=dict)
    reasons: dict[str, dict[str, str]] = field(default_factory=dict)
    beside: dict[str, tuple[str, ...]] = field(
        default_factory=dict
    )  # Python, NumPy and device of each release

    def on(self, claim: str, jax: str) -> str:
        """Return the verdict on the release, or on the last one before it; "" where none was recorded."""
        known = [r for r in self.releases if _numbers(r) <= _numbers(jax)]
        return self.verdicts[claim][len(known) - 1] if known and claim in self.verdicts else ""

    def spans(self, claim: str) -> list[Span]:
        """Return the spans of equal outcomes, oldest first; the reason is that of the newest release in it."""
        reasons = self.reasons.get(claim, {})
        triples = [(release, verdict, reasons.get(release, "")) for release, verdict in self._row(claim)]
        found = []
        for _, group in groupby(triples, key=lambda triple: (triple[1], bool(triple[2]))):
            members = list(group)
            found.append(Span(members[0][0], *members[-1]))
        return found

    def _row(self, claim: str) -> list[tuple[str, str]]:
        return list(zip(self.releases, self.verdicts.get(claim, ""), strict=False))

    def in_words(self, claim: str) -> str:
        """Return in words on which releases the claim was recorded to hold.

        Example:
            >>> Recording(("0.9.2", "0.10.2"), {"a": "-+"}).in_words("a")
            'Seen to hold on JAX 0.10.2 (1 of 2 releases tried).'
        """
        row, reasons = self.verdicts.get(claim, ""), self.reasons.get(claim, {})
        if not row:
            return "Not recorded across releases yet."
        seen = [
            span
            for span in self.spans(claim)
            if span.verdict == "+" or (span.verdict == "~" and not span.reason)
        ]
        where = ", ".join(span.releases for span in seen)
        number = sum(v == "+" or (v == "~" and release not in reasons) for release, v in self._row(claim))
        count = "all" if number == len(row) else f"{number} of"
        kinds = sorted({entry[-1] for entry in self.beside.values() if entry[-1]})
        device = "".join(f", on {'a CPU' if kind == 'cpu' else kind}" for kind in kinds)
        hold = "happen" if "~" in row else "hold"
        return f"Seen to {hold} on JAX {where or 'none'} ({count} {len(row)} releases tried){device}."

    def flips(self) -> list[Flip]:
        """Return what JAX changed, oldest first: each claim that began or ceased to hold."""
        found = []
        for claim in self.verdicts:
            known = [(release, verdict) for release, verdict in self._row(claim) if verdict in "+-"]
            for (before, old), (since, new) in pairwise(known):
                if old != new:
                    reason = self.reasons.get(claim, {}).get(before if old == "-" else since, "")
                    found.append(Flip(claim, before, since, old, new, reason))
        return sorted(
            found, key=lambda flip: (self.releases.index(flip.since), self.releases.index(flip.before))
        )


@dataclass(frozen=True)
class Row:
    """One statement or experiment of a tutorial, restated, and what became of it."""

    id: str
    restated: str
    verdict: str
    evidence: str
    claims: tuple[str, ...]
    page: str
    heading: str


def load(path: Path) -> Recording:
    """Return the recorded verdicts; an empty recording where there is no file."""
    if not path.exists():
        return Recording()
    document = json.loads(path.read_text("utf-8"))
    claims = document["claims"]
    return Recording(
        tuple(release["jax"] for release in document["releases"]),
        {name: claim["verdicts"] for name, claim in claims.items()},
        {name: claim["reasons"] for name, claim in claims.items() if "reasons" in claim},
        {r["jax"]: tuple(r.get(key, "") for key in BESIDE) for r in document["releases"]},
    )


def rows(path: Path) -> list[Row]:
    """Return the rows of the five tutorials in their order."""
    if not path.exists():
        return []
    return [Row(**{**row, "claims": tuple(row["claims"])}) for row in json.loads(path.read_text("utf-8"))]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
