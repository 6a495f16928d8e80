"""Decide whether a program behaved as its block did on the page.

The same error class and the same first line of its message; the same printed text; the same shown value. What
differs between two processes is left out: places in files, addresses, today's date. Where a program measures, what
it measured is left out too: of a clock quantities with a unit, ratios, verdicts; of a process' memory its sizes. And
one more rule: *a line that differs between two runs of one program is measured*. Counts never are: they must be the
page's.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from _ext.execution.redact import clean_text

from .runner import Outcome

_INSTRUMENTS = {
    "clock": re.compile(
        r"\b(perf_counter|perf_counter_ns|monotonic|process_time|timeit|time\.time|getrusage|compare|phases|scaling"
        r"|watch|roofline|peaks|record|log_compiles|device_report|check|memory_stats|profiler|cost_analysis|measure)\b"
    ),
    "memory": re.compile(r"\b(getrusage|memory_stats)\b"),
}
_SAME_EVERYWHERE = (
    (re.compile(r"(?:[\w./~-]*/)?program\.py\b"), "cell"),
    (re.compile(r"\bcell\b[\"']?(?:, line |:)\d+(?::\d+)?"), "cell:N"),
    (re.compile(r"\bid=\d+|\bobject \d{6,}"), "id=N"),
    (re.compile(r"\x1b\[[0-9;]*m"), ""),
    (re.compile(r"\b\d{4}-\d\d-\d\d\b"), "day"),  # the page may have been built before midnight
    (re.compile(r"Input dtypes \('\w+', '\w+'\)"), "Input dtypes"),  # JAX names them in the order of a set
)
_NUMBER = r"[+-]?\d[\d,]*(?:\.\d+)?(?:e[+-]?\d+)?"
_UNIT = r"(?:[KMGT]i?B/s|[GT]?FLOP/s|[µumn]?s|min|seconds|sec|%)(?!\w)"
_BY_CLOCK = (
    (re.compile(rf"{_NUMBER}(?: ?{_UNIT})? ?– ?{_NUMBER}(?: ?{_UNIT})?"), "#"),
    (re.compile(rf"× ?{_NUMBER}|{_NUMBER} ?(?:× slower|×|x\b)"), "#"),
    (re.compile(rf"{_NUMBER} ?{_UNIT}"), "#"),
    (re.compile(rf"\bload +{_NUMBER}"), "#"),  # of `device_report`: the same for seconds, then another
    (re.compile(rf"(?<=peak memory )\+?{_NUMBER}"), "#"),
    (re.compile(r"\b(?:faster|slower|same|cannot tell|no clear winner)\b"), "verdict"),
    (re.compile(rf"even after {_NUMBER} calls?|never even"), "even #"),
    (re.compile(rf"baseline against itself {_NUMBER}|{_NUMBER} rounds"), "#"),
    (re.compile(rf"nothing found\. Checked .*|{_NUMBER} findings?"), "findings"),
)
_MEASURED = {
    "clock": _BY_CLOCK,
    "memory": ((re.compile(rf"{_NUMBER} ?(?:[KMGT]i?B(?![\w/])|page faults)"), "#"),),
}
# The last column of a table over sizes: who was fastest.
_FASTEST = re.compile(r"^([\d.,e+]+(?: #){2,}) .*$")
# A sentence of jitguide that goes on in the next line; where it breaks depends on its numbers.
_WRAPPED = re.compile(r"^(\S.{50,})\n {2}(?=\S)", re.MULTILINE)
# Notes that jitguide makes or leaves out, depending on how the measurement went; `scaling` puts their sizes first.
_NOTES = re.compile(
    r"Other programs kept|Only \d+ rounds|a jitted call that returns its argument|after warm-up, interleaved|Two compiled copies of"
    r"|^(?:Sizes? [^:]+: )?(?:With one wait after many calls|The GPU's clock went|By its typical block)"
    r"|^Compiled again without autotuning"
    r"|^(?:\d+\. )?break-even:? A jitted call|Jit a larger function|^Break-even was not checked"
)


@dataclass(frozen=True)
class Expected:
    """What a page shows below a block; `shown` are the lines of its value."""

    printed: str = ""
    stderr: str = ""
    error: str | None = None
    message: str = ""
    shown: tuple[str, ...] | None = None


def instruments(text: str) -> tuple[str, ...]:
    """Return with what a program may have measured what it prints: "clock", "memory".

    Example:
        >>> instruments("start = time.perf_counter()"), instruments("print(len(runs))")
        (('clock',), ())
    """
    return tuple(name for name, pattern in _INSTRUMENTS.items() if pattern.search(text))


def normal(text: str, measured: Sequence[str]) -> list[str]:
    """Return the lines of a text, less what differs between two processes.

    Example:
        >>> normal("f at cell:3 took   1.2 ms", ["clock"]), normal("2 traces in 3 calls", ["clock"])
        (['f at cell:N took #'], ['2 traces in 3 calls'])
        >>> normal("grew by 20.6 MB", ["clock"]), normal("grew by 20.6 MB", ["memory"])
        (['grew by 20.6 MB'], ['grew by #'])
        >>> normal("257 page faults", ["memory"])
        ['#']
        >>> normal("recorded 2026-01-31", ["clock"])
        ['recorded day']
    """
    text = clean_text(text)
    while _WRAPPED.search(text):
        text = _WRAPPED.sub(r"\1 ", text)
    if measured:
        text = "\n".join(line for line in text.splitlines() if not _NOTES.search(line))
    for pattern, replacement in (*_SAME_EVERYWHERE, *(pair for name in measured for pair in _MEASURED[name])):
        text = pattern.sub(replacement, text)
    lines = [" ".join(line.split()) for line in text.splitlines()]
    if measured:
        lines = [_FASTEST.sub(r"\1 verdict", line) for line in lines]
    return [line for line in lines if line]


def measured_numbers(text: str, measured: Sequence[str]) -> bool:
    """Return whether a text shows a number that was measured.

    Example:
        >>> measured_numbers("took 1.2 ms", ["clock"]), measured_numbers("the same again", ["clock"])
        (True, False)
    """
    return any("#" in line for line in set(normal(text, measured)) - set(normal(text, ())))


def difference(
    expected: Expected,
    runs: Sequence[Outcome],
    measured: Sequence[str],
    shown: Sequence[tuple[str, ...]] | None = None,
) -> str:
    """Return in words how runs of a program differ from the page; an empty text if they do not.

    Args:
        expected: What the page shows.
        runs: The outcomes of one program, run once or more.
        measured: With what the program measures, as `instruments` returns it.
        shown: The lines of the shown value in each run; by default its plain text.
    """
    first = runs[0]
    if first.early:
        return f"it fails before its block: {first.error}: {first.message}"
    if first.error != expected.error:
        return f"it raises {first.error}: {first.message[:300]}, and the page {expected.error}"
    if _first_line(first.message) != _first_line(expected.message):
        return (
            f"its error says {_first_line(first.message)!r}, and the page {_first_line(expected.message)!r}"
        )
    if bool(first.stderr.strip()) != bool(expected.stderr.strip()):
        return f"it writes {first.stderr[:300]!r} to stderr, and the page {expected.stderr[:300]!r}"
    unlike = _unlike("prints", [expected.printed], [[run.stdout] for run in runs], measured)
    if unlike or expected.shown is None:
        return unlike
    if any(run.plain is None for run in runs):
        return "it shows no value, and the page does"
    return _unlike(
        "shows", expected.shown, shown or [tuple((run.plain or "").splitlines()) for run in runs], measured
    )


def _first_line(message: str) -> str:
    return (normal(message, ["clock"]) or [""])[0]


def _unlike(verb: str, page: Sequence[str], runs: Sequence[Sequence[str]], measured: Sequence[str]) -> str:
    """Compare the lines that all runs of the program agree on with those of the page."""
    wanted = normal("\n".join(page), measured)
    given = [normal("\n".join(run), measured) for run in runs]
    if any("".join(wanted).replace(" ", "") == "".join(lines).replace(" ", "") for lines in given):
        return ""
    if measured and len(runs) > 1:
        stable = Counter(given[0])
        for lines in given[1:]:
            stable &= Counter(lines)
        left = Counter(wanted) - stable
        free = max(len(lines) for lines in given) - stable.total()
        if not stable - Counter(wanted) and left.total() <= free:
            return ""
    lost = [line for line in wanted if line not in given[0]]
    more = [line for line in given[0] if line not in wanted]
    return f"it {verb} {' ⏎ '.join(more)[:300]!r} where the page {verb} {' ⏎ '.join(lost)[:300]!r}"
