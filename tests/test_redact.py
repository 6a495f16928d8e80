"""No trace of the machine is left in an output."""

from pathlib import Path

import nbformat
import pytest
from _ext.execution import redact

ROOT = Path(__file__).parents[1]
v4 = nbformat.v4


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("f at /tmp/ipykernel_7/123456.py:2", "f at cell:2"),
        ("invalid syntax (2445660835.py, line 1)", "invalid syntax (cell, line 1)"),
        ("/opt/v/lib/python3.11/site-packages/jax/_src/core.py", "jax/_src/core.py"),
        (f"{ROOT}/jitguide/_watch.py:3", "jitguide/_watch.py:3"),
        ("<function f at 0x7f12ab34cd56>", "<function f at 0x…>"),
        ("0xff is a number", "0xff is a number"),
    ],
)
def test_paths_and_addresses_are_cut(before, after):
    assert redact.clean_text(before) == after


def error(traceback, message="bad"):
    output = v4.new_output("error", ename="ValueError", evalue=message, traceback=traceback.splitlines())
    return v4.new_code_cell("x", outputs=[output])


def test_a_traceback_keeps_the_deepest_line_of_a_cell_and_the_message():
    cell = error(
        "  Cell \x1b[92mIn[2]\x1b[39m, line 2\n    f(1.0)\n\n  Cell In[1], line 4 in f\n    if x > 0:\n\n  File a.py:3\n    raise"
    )
    assert redact.cell_frames(cell.outputs[0]) == [(2, "f(1.0)"), (4, "if x > 0:")]
    redact.clean_outputs(cell)
    assert cell.outputs[0].traceback == ["line 4: if x > 0:\n\nValueError: bad"]


def test_jax_note_on_its_frames_is_cut():
    message = (
        "bad\n--------------------\nFor simplicity, JAX has removed its internal frames from the traceback."
    )
    cell = error("", message)
    redact.clean_outputs(cell)
    assert cell.outputs[0].traceback == ["ValueError: bad"]


@pytest.mark.parametrize(
    ("printed", "shown"),
    [
        ("\x1b[1;31mred\x1b[0m", "red"),
        ("\x1b]0;a title\x07text", "text"),
        ("10 %\r50 %\r100 %\nnext", "100 %\nnext"),
        ("first\r\nsecond\r\n", "first\nsecond\n"),
        ("a bell\x07, a zero\x00, half a character\ud800", "a bell, a zero, half a character"),
        ("a\ttab — and ×, é, 漢", "a\ttab — and ×, é, 漢"),
    ],
)
def test_what_only_a_terminal_understands_is_carried_out_or_cut(printed, shown):
    cell = v4.new_code_cell("x", outputs=[v4.new_output("stream", name="stdout", text=printed)])
    redact.clean_outputs(cell)
    assert cell.outputs[0].text == shown


def test_a_picture_in_an_output_is_one_long_word_that_takes_no_time():
    picture = (
        "A+/b" * 250_000
    )  # as base64 has it: minutes, if each character is tried as the beginning of a path
    assert redact.clean_text(picture) == picture
