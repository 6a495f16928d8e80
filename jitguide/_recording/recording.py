"""The numbers of one machine, and where they come from: `record` runs the guide's experiments."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date
from importlib.resources import files
from time import perf_counter
from typing import Any

from jitguide._arguments import refuse_tracing
from jitguide._display import AsData, Table, duration, escape, panel
from jitguide._hardware.device_report import device_report
from jitguide._hardware.peaks import rate, rates
from jitguide._recording.experiments import EXPERIMENTS, QUICK, THOROUGH, Row
from jitguide._timing.machine import megahertz
from jitguide._timing.statistics import Ratio

FORMAT = 1
# Without these, a number means nothing.
_PROVENANCE = ("jax", "jaxlib", "platform", "device_kind", "device_count", "cpu", "cores", "settings")
_UNITS = {"speedup", "ratio", "s", "B/s", "FLOP/s", "runs"}
_AGAIN = "Make it again with `python -m jitguide record FILE`."


@dataclass(frozen=True, repr=False)
class Recording(AsData):
    """The numbers of one machine.

    Attributes:
        name: What the machine is called in tables.
        date: Day of the measurement, year-month-day.
        machine: What `device_report` reports of it.
        rows: The measured numbers; times are in seconds.
        seconds: How long measuring took.
        quick: Whether it was the short form, whose intervals are wider.
    """

    name: str
    date: str
    machine: Mapping[str, Any]
    rows: tuple[Row, ...]
    seconds: float
    quick: bool

    def beside(self, *others: Recording) -> SideBySide:
        """Return a table with a column for this machine and one for each of the others.

        Args:
            *others: Recordings; those that come with the guide if left out.
        """
        return SideBySide((self, *(one for one in others or shipped() if one != self)))

    def to_dict(self) -> dict[str, Any]:
        """Return the recording as data that `json.dumps` accepts; times are in seconds.

        "shown" has the table's rows as text, and "made_on" its line on the machine, for readers other than Python.
        """
        shown = [[row.group, row.what, _shown(row)] for row in self.rows]
        return {"format": FORMAT, **super().to_dict(), "shown": shown, "made_on": _made_on(self)}

    @classmethod
    def from_dict(cls, data: Any) -> Recording:
        """Return the recording that `to_dict` made.

        Raises:
            ValueError: Something is missing or of the wrong kind; the message names it.
        """
        if not isinstance(data, dict) or data.get("format") != FORMAT:
            raise ValueError(f"This is not a recording of format {FORMAT}. {_AGAIN}")
        if missing := [field.name for field in fields(cls) if field.name not in data]:
            raise ValueError(f"The recording lacks {', '.join(missing)}. {_AGAIN}")
        machine = data["machine"] if isinstance(data["machine"], dict) else {}
        if unknown := [key for key in _PROVENANCE if machine.get(key) is None]:
            raise ValueError(f"The recording doesn't say on what it was made: {', '.join(unknown)}. {_AGAIN}")
        rows = tuple(map(_row, data["rows"] or [None]))
        return cls(**{field.name: data[field.name] for field in fields(cls)} | {"rows": rows})

    def __repr__(self) -> str:
        return repr(SideBySide((self,)))

    def _repr_html_(self) -> str:
        return SideBySide((self,))._repr_html_()


def record(*, name: str = "here", quick: bool = False) -> Recording:
    """Run the guide's experiments on this machine, to compare it with others.

    It measures the cost of a call, fusion against a copy of the same bytes, how much of a loop to jit, NumPy against
    jit from few numbers to many, the steps of compiling, the ceilings of the device, the precision of matrix products,
    and whether programs repeat their bits. Nothing but JAX and NumPy is needed, and no network.

    Args:
        name: What the machine is called in tables.
        quick: Take seconds instead of minutes, with wider intervals.

    Returns:
        A `Recording`; `beside()` shows it next to those that come with the guide.

    Raises:
        TypeError: `name` is not text, or `quick` is not True or False.
        RuntimeError: It was called inside a trace, or JAX has no device.

    Example:
        >>> from jitguide import record
        >>> here = record(quick=True)  # doctest: +SKIP
        >>> here.beside()  # doctest: +SKIP
    """
    if not isinstance(name, str):
        raise TypeError(f'`name` must be text, got {name!r}. Write `record(name="workstation")`.')
    if not isinstance(quick, bool):
        raise TypeError(f"`quick` must be True or False, got {quick!r}. Write `record(quick=True)`.")
    refuse_tracing("record", ())
    report = device_report()
    if report.problem:
        raise RuntimeError(report.problem)
    start, clock = perf_counter(), megahertz()
    rows = tuple(row for experiment in EXPERIMENTS for row in experiment(QUICK if quick else THOROUGH))
    machine = report.to_dict() | ({"clock_mhz": [clock, megahertz()]} if report.platform == "gpu" else {})
    return Recording(name, date.today().isoformat(), machine, rows, perf_counter() - start, quick)


def _row(data: Any) -> Row:
    try:
        row = Row(**data)
    except TypeError:
        text = f"A row of the recording has other fields than a row has: {data!r:.80}. {_AGAIN}"
        raise ValueError(text) from None
    bounds = [n for n in (row.low, row.high) if n is not None]
    if row.unit not in _UNITS or not all(isinstance(n, (int, float)) for n in (row.value, *bounds)):
        raise ValueError(f"A row of the recording has an unknown unit, or no numbers: {data!r:.80}. {_AGAIN}")
    return row


def shipped() -> tuple[Recording, ...]:
    """Return the recordings that come with the guide, by name."""
    folder = files("jitguide").joinpath("_recording/machines")
    texts = [path.read_text("utf-8") for path in folder.iterdir() if path.name.endswith(".json")]
    return tuple(sorted((Recording.from_dict(json.loads(text)) for text in texts), key=lambda one: one.name))


@dataclass(frozen=True, repr=False)
class SideBySide:
    """Several recordings, a column each, in one table for each question."""

    recordings: tuple[Recording, ...]

    def __repr__(self) -> str:
        origins = "\n".join(map(_made_on, self.recordings))
        return "\n\n".join([*(table.text() for table in self._tables()), origins])

    def _repr_html_(self) -> str:
        origins = "".join(f"<p>{escape(_made_on(one))}</p>" for one in self.recordings)
        return panel("".join(table.grid() for table in self._tables()) + origins)

    def _tables(self) -> list[Table]:
        found = [{(row.group, row.what): row for row in one.rows} for one in self.recordings]
        groups: dict[str, dict[str, list[str]]] = {}
        for group, what in (place for rows in found for place in rows):
            groups.setdefault(group, {})[what] = [_shown(rows.get((group, what))) for rows in found]
        header = ["measured", *(one.name for one in self.recordings)]
        columns = range(1, len(header))
        return [
            Table(header, [[what, *cells] for what, cells in members.items()], numeric=columns, title=group)
            for group, members in groups.items()
        ]


def _made_on(one: Recording) -> str:
    machine, short = one.machine, ", the short form" if one.quick else ""
    clock = " to ".join(str(mhz) for mhz in machine.get("clock_mhz", ()) if mhz)
    short += f", GPU clock {clock} MHz" if clock else ""
    settings = "".join(f", {name}={value}" for name, value in machine["settings"].items())
    return (
        f"{one.name}: {machine['device_count']} × {machine['device_kind']} ({machine['platform']}), {machine['cpu']}, "
        f"{machine['cores']} cores, JAX {machine['jax']}, {one.date}{short}{settings}."
    )


def _shown(row: Row | None) -> str:
    if row is None:
        return "not measured"
    bounds = None if row.low is None or row.high is None else (row.low, row.high)
    if row.unit == "speedup" and bounds:
        return f"{Ratio(row.value, *bounds)!r}"
    if row.unit in ("B/s", "FLOP/s"):
        return rates(*bounds, row.unit) if bounds else rate(row.value, row.unit)
    if row.unit == "s":
        return duration(row.value)
    return f"{row.value:.2f} ({bounds[0]:.2f}–{bounds[1]:.2f})" if bounds else f"{row.value:.2g}"
