"""Recorded facts: the verdict on each claim on each JAX release, and the rows of the five tutorials.

Plain data, read from docs/_data; `domain`, `tables` and `tutorials` show it.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from itertools import groupby
from pathlib import Path

CLAIMS, SOURCES = "claims.json", "sources.json"  # in docs/_data

WORDS = {"+": "holds", "-": "does not hold", "0": "not applicable"}
MARKS = {"+": "✓", "-": "✗", "0": "–"}


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
    """A claim whose verdict differs between two neighbouring releases."""

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
    beside: dict[str, tuple[str, str]] = field(default_factory=dict)  # Python and NumPy of each release

    def on(self, claim: str, jax: str) -> str:
        """Return the verdict on the release, or on the last one before it; "" where none was recorded."""
        known = [r for r in self.releases if _numbers(r) <= _numbers(jax)]
        return self.verdicts[claim][len(known) - 1] if known and claim in self.verdicts else ""

    def spans(self, claim: str) -> list[Span]:
        """Return the spans of equal verdicts, oldest first; the reason is that of the newest release in it."""
        pairs = zip(self.releases, self.verdicts.get(claim, ""), strict=False)
        found = []
        for verdict, group in groupby(pairs, key=lambda pair: pair[1]):
            names = [release for release, _ in group]
            found.append(Span(names[0], names[-1], verdict, self.reasons.get(claim, {}).get(names[-1], "")))
        return found

    def in_words(self, claim: str) -> str:
        """Return in words on which releases the claim was recorded to hold.

        Example:
            >>> Recording(("0.9.2", "0.10.2"), {"a": "-+"}).in_words("a")
            'Seen to hold on JAX 0.10.2 (1 of 2 releases tried).'
        """
        row = self.verdicts.get(claim, "")
        if not row:
            return "Not recorded across releases yet."
        where = ", ".join(span.releases for span in self.spans(claim) if span.verdict == "+")
        count = "all" if set(row) == {"+"} else f"{row.count('+')} of"
        return f"Seen to hold on JAX {where or 'none'} ({count} {len(row)} releases tried)."

    def flips(self) -> list[Flip]:
        """Return every change between neighbouring releases, oldest first."""
        return [
            Flip(claim, self.releases[i], self.releases[i + 1], old, new, reasons.get(at, ""))
            for i in range(len(self.releases) - 1)
            for claim, row in self.verdicts.items()
            for old, new in [(row[i], row[i + 1])]
            if old != new
            for reasons in [self.reasons.get(claim, {})]
            for at in [self.releases[i] if old != "+" else self.releases[i + 1]]
        ]


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
        {r["jax"]: (r.get("python", ""), r.get("numpy", "")) for r in document["releases"]},
    )


def rows(path: Path) -> list[Row]:
    """Return the rows of the five tutorials in their order."""
    if not path.exists():
        return []
    return [Row(**{**row, "claims": tuple(row["claims"])}) for row in json.loads(path.read_text("utf-8"))]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
