"""How busy the rest of the machine is while something is measured."""

import os
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Self

_STAT = Path("/proc/stat")
# user, nice, system, irq, softirq, steal. Not idle and iowait; and guests' time is part of "user" already.
_WORK = (0, 1, 2, 5, 6, 7)


@dataclass(frozen=True)
class Busy:
    """A reading of the counters of processor time, in seconds; two readings tell the load between them."""

    wall: float  # on the wall clock
    own: float  # processor time of this process and its children
    machine: float | None  # processor time of all programs; None where the system does not tell

    @classmethod
    def now(cls) -> Self:
        return cls(perf_counter(), sum(os.times()[:4]), _machine_seconds())

    def cores_since(self, now: Self | None = None) -> float | None:
        """Return the mean number of cores that other programs have used since this reading."""
        now = now or self.now()
        if self.machine is None or now.machine is None or now.wall <= self.wall:
            return None
        others = (now.machine - self.machine) - (now.own - self.own)
        return round(max(others, 0.0) / (now.wall - self.wall), 2)


def _machine_seconds() -> float | None:
    try:
        columns = _STAT.read_text(encoding="ascii").split("\n", 1)[0].split()[1:]
        return sum(int(columns[i]) for i in _WORK) / os.sysconf("SC_CLK_TCK")
    except (OSError, ValueError, IndexError, AttributeError):  # only Linux has this file
        return None
