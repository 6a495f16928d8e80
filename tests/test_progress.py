"""A build says how far it is: on one line in a terminal, with a line for each page elsewhere."""

import pytest
from _ext.execution import progress


@pytest.fixture
def shown(monkeypatch):
    """What is shown, and a clock that the test moves."""
    lines, clock = [], [0.0]
    monkeypatch.setattr(progress._log, "info", lambda text, *words, nonl=False: lines.append(text % words))
    monkeypatch.setattr(progress.time, "monotonic", lambda: clock[0])
    return lines, clock


def test_without_a_terminal_there_is_one_line_for_each_page(shown, monkeypatch):
    lines, clock = shown
    monkeypatch.setattr("sys.stdout.isatty", lambda: False, raising=False)
    watched = progress.Progress({"a": [1.0, 1.0], "b": [1.0, 1.0]})
    for number in (0, 1):
        watched.cell("a", number)
    watched.cell("b", 0)
    clock[0] = 6.0
    watched.end("a", 5.0)
    clock[0] = 9.0
    watched.end("b")
    assert lines == [
        "executed a: 2 cells in 5.0 s (1 of 2 pages in 6 s, about 6 s left)",
        "executed b: failed (2 of 2 pages in 9 s)",
    ]


def test_in_a_terminal_one_line_names_what_runs(shown, monkeypatch):
    lines, clock = shown
    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    watched = progress.Progress({"learn/a": [1.0, 1.0, 2.0], "b": [4.0]})
    watched.cell("learn/a", 0)
    watched.cell("b", 0)
    clock[0] = 4.0
    watched.cell("learn/a", 2)
    watched.end("learn/a", 3.0)
    watched.end("b", 3.0)
    assert [line.strip().strip("\r") for line in lines] == [
        "0 of 2 pages in 0 s: learn/a 1/3",
        "0 of 2 pages in 0 s: learn/a 1/3, b 1/1",
        "0 of 2 pages in 4 s, about 12 s left: learn/a 3/3, b 1/1",
        "1 of 2 pages in 4 s, about 4 s left",
        "2 of 2 pages in 4 s",
    ]
    assert all(line.startswith("\r") for line in lines)


def test_a_page_that_took_no_time_is_no_division_by_zero(shown):
    watched = progress.Progress({"a": [0.0]})
    watched.cell("a", 0)
    watched.end("a", 0.0)
