"""Recorded facts: the verdict on each claim on each JAX release and on other devices; the rows of the five tutorials.

Plain data, read from docs/_data; `domain`, `tables` and `tutorials` show it.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from itertools import groupby, pairwise
from pathlib import Path

CLAIMS, SOURCES = "claims.json", "sources.json"  # in docs/_data
BESIDE = ("python", "numpy")  # what is recorded of each release besides its devices

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
class Device:
    """Devices on which the claims were run, besides those of the releases."""

    kind: str
    count: int
    jax: str
    beside: tuple[str, ...] = ()  # Python and NumPy

    @property
    def name(self) -> str:
        """The devices in words.

        Example:
            >>> Device("cpu", 8, "0.10.2").name, Device("NVIDIA H100 80GB HBM3", 1, "0.10.2").name
            ('8 CPU devices', 'NVIDIA H100')
        """
        return devices_in_words(self.kind, self.count)


def devices_in_words(kind: str, count: int | None) -> str:
    """Return a number of devices of a kind in words; without the memory, which is a part of some names.

    Example:
        >>> devices_in_words("cpu", 1), devices_in_words("NVIDIA A100-SXM4-40GB", 2)
        ('one CPU device', '2 × NVIDIA A100-SXM4')
    """
    if kind == "cpu":
        return {None: "a CPU", 1: "one CPU device"}.get(count, f"{count} CPU devices")
    kind = re.sub(r"[ -]\d+ ?GB\b.*", "", kind)
    return kind if count in (None, 1) else f"{count} × {kind}"


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
    beside: dict[str, tuple[str, ...]] = field(default_factory=dict)  # Python, NumPy, devices of each release
    devices: tuple[Device, ...] = ()
    # Verdicts and reasons on each device, by claim.
    elsewhere: dict[str, dict[Device, tuple[str, str]]] = field(default_factory=dict)

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
        kinds = sorted({entry[-1] for entry in self.beside.values() if entry[-1]})
        device = "".join(f", on {kind}" for kind in kinds)
        if self.only_elsewhere(claim):
            why = ", ".join(dict.fromkeys(reasons.values()))
            return f"Not applicable on the {len(row)} releases tried{device}{why and f': {why}'}."
        seen = [
            span
            for span in self.spans(claim)
            if span.verdict == "+" or (span.verdict == "~" and not span.reason)
        ]
        where = ", ".join(span.releases for span in seen)
        number = sum(v == "+" or (v == "~" and release not in reasons) for release, v in self._row(claim))
        count = "all" if number == len(row) else f"{number} of"
        hold = "happen" if "~" in row else "hold"
        return f"Seen to {hold} on JAX {where or 'none'} ({count} {len(row)} releases tried){device}."

    def only_elsewhere(self, claim: str) -> bool:
        """Return whether the experiment could be run on none of the releases, but for example by a TPU compiler."""
        return set(self.verdicts.get(claim, "")) == {"0"}

    def elsewhere_in_words(self, claim: str) -> str:
        """Return in words what was seen of the claim on other devices; "" where nothing was recorded.

        Example:
            >>> one, eight = Device("cpu", 1, "0.10.2"), Device("cpu", 8, "0.10.2")
            >>> recorded = Recording(elsewhere={"a": {one: ("0", "one device only"), eight: ("+", "")}})
            >>> recorded.elsewhere_in_words("a")
            'Also on 8 CPU devices (JAX 0.10.2). Not applicable on one CPU device (JAX 0.10.2): one device only.'
        """
        found = self.elsewhere.get(claim, {}).items()
        also = [one for one, (short, reason) in found if short == "+" or (short == "~" and not reason)]
        first = "Seen to hold" if self.only_elsewhere(claim) else "Also"
        said = [f"{first} on {_listed(also)}."] if also else []
        for one, (short, reason) in found:
            if one not in also:
                said.append(f"{WORDS[short].capitalize()} on {_listed([one])}: {reason.rstrip('.')}.")
        return " ".join(said)

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
    claims, found = document["claims"], document["releases"]
    releases = tuple(release["jax"] for release in found)
    columns = document.get("devices", [])
    devices = {_column(d): Device(d["device"], d["count"], d["jax"], _beside(d)) for d in columns}
    return Recording(
        releases,
        {name: claim["verdicts"] for name, claim in claims.items()},
        {
            name: _by_release(claim["reasons"], releases)
            for name, claim in claims.items()
            if "reasons" in claim
        },
        {r["jax"]: (*_beside(r), _devices_of(r)) for r in found},
        tuple(devices.values()),
        {name: _elsewhere(claim, devices) for name, claim in claims.items() if "devices" in claim},
    )


def _beside(entry: dict) -> tuple[str, ...]:
    return tuple(entry.get(key, "") for key in BESIDE)


def _devices_of(release: dict) -> str:
    return devices_in_words(release["device"], release.get("count")) if "device" in release else ""


def _column(entry: dict) -> str:
    """Return the name of a column in the file; tests/claims/device_columns.py writes it."""
    return f"{entry['count']} {entry['device']}, JAX {entry['jax']}"


def _by_release(reasons: dict[str, str], releases: tuple[str, ...]) -> dict[str, str]:
    """Return the reason on each release; one that stands for several in a row is written as 0.4.30..0.7.2."""
    found: dict[str, str] = {}
    for key, reason in reasons.items():
        first, _, last = key.partition("..")
        if first in releases:
            span = releases[releases.index(first) : releases.index(last or first) + 1]
            found |= dict.fromkeys(span, reason)
    return found


def _elsewhere(claim: dict, devices: dict[str, Device]) -> dict[Device, tuple[str, str]]:
    reasons = claim.get("reasons", {})
    pairs = zip(devices.items(), claim["devices"], strict=False)
    return {one: (short, reasons.get(name, "")) for (name, one), short in pairs if short != " "}


def _listed(devices: list[Device]) -> str:
    """Return devices in words, with the JAX release that those before it share."""
    releases: dict[str, list[str]] = {}
    for jax, group in groupby(devices, key=lambda one: one.jax):
        releases.setdefault(joined([one.name for one in group]), []).append(jax)
    return ", on ".join(f"{names} (JAX {joined(several)})" for names, several in releases.items())


def joined(words: list[str]) -> str:
    """Return words as a list in a sentence.

    Example:
        >>> joined(["0.9.2", "0.10.2", "0.11.2"])
        '0.9.2, 0.10.2 and 0.11.2'
    """
    return " and ".join(filter(None, [", ".join(words[:-1]), words[-1]]))


def rows(path: Path) -> list[Row]:
    """Return the rows of the five tutorials in their order."""
    if not path.exists():
        return []
    return [Row(**{**row, "claims": tuple(row["claims"])}) for row in json.loads(path.read_text("utf-8"))]


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(int(part) for part in version.split(".") if part.isdigit())
