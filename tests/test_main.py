"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import codecs
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import jitguide
from jitguide.__main__ import main

ROOT = Path(__file__).parent.parent
IMMUTABLE = "TypeError: JAX arrays are immutable and do not support in-place item assignment.\n"


def run(*arguments: str, text: str = "", **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "jitguide", *arguments],
        cwd=ROOT,
        env=os.environ | environment,
        input=text,
        capture_output=True,
        encoding="utf-8",
        check=False,
    )


def test_help_names_both_commands_and_the_exit_codes() -> None:
    done = run("--help")
    assert done.returncode == 0
    assert "report" in done.stdout
    assert "explain" in done.stdout
    assert "1 the text is unknown" in done.stdout
    assert done.stderr == ""


def test_the_help_of_explain_shows_every_way_to_hand_over_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["explain", "--help"])
    assert stopped.value.code == 0
    text = capsys.readouterr().out
    for way in (
        "explain traceback.txt",
        'explain "TypeError: JAX arrays are immutable"',
        "| python -m jitguide",
    ):
        assert way in text


def test_the_version_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["--version"])
    assert stopped.value.code == 0
    assert capsys.readouterr().out == f"jitguide {jitguide.__version__}\n"


def test_without_a_command_the_help_is_shown(capsys: pytest.CaptureFixture[str]) -> None:
    assert main([]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert "{report,explain,record}" in captured.err
    assert "Exit codes:" in captured.err


def test_a_text_in_quotes_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", IMMUTABLE.strip()]) == 0
    assert "[item-assignment]" in capsys.readouterr().out


@pytest.mark.parametrize("text", ["a" * 5000 + " b", "printer\0 on fire", "line one\nline two"])
def test_a_text_that_cannot_be_the_name_of_a_file_is_a_text(
    text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["explain", text]) == 1
    assert "names nothing of JAX" in capsys.readouterr().out


def test_a_file_with_a_space_in_its_name_is_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "my traceback.txt"
    file.write_text(IMMUTABLE)
    assert main(["explain", str(file)]) == 0
    assert "[item-assignment]" in capsys.readouterr().out


def test_empty_quotes_are_no_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", ""]) == 2
    assert "There is no text to explain." in capsys.readouterr().err


def test_a_folder_is_no_text(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    assert main(["explain", str(tmp_path)]) == 2
    assert "name a file that can be read" in capsys.readouterr().err


def test_a_backend_that_does_not_start_is_part_of_the_report() -> None:
    done = run("report", JAX_PLATFORMS="nonsense")
    assert done.returncode == 0, done.stderr
    assert "JAX could not start a device: " in done.stdout
    assert "Traceback" not in done.stdout + done.stderr


def test_a_known_text_on_standard_input_is_explained() -> None:
    done = run("explain", text=IMMUTABLE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(IMMUTABLE + "\n`x[i] = y` on a JAX array  [item-assignment]\n")
    assert "x.at[0].set(1)" in done.stdout


def test_the_output_of_a_program_is_passed_on_before_its_error_is_explained() -> None:
    program = "loss 0.1\nloss 0.2\nTraceback (most recent call last):\n"
    failed = program + '  File "train.py", line 9, in <module>\n    d["x"]\nKeyError: "x"'
    done = run("explain", text=failed)
    assert done.stdout == (
        failed + '\n\nThis is not an error of JAX: it is your `KeyError` in train.py:9.\n    d["x"]\n'
    )
    assert done.returncode == 1
    data = run("explain", "--json", text=failed)
    assert json.loads(data.stdout)["foreign"] is True
    assert data.stderr.startswith(program)


@pytest.mark.parametrize(
    "data",
    [
        b"\xe9\xff " + IMMUTABLE.encode(),  # not all of it is UTF-8
        IMMUTABLE.encode("utf-8-sig"),
        codecs.BOM_UTF16_LE + IMMUTABLE.encode("utf-16-le"),
        codecs.BOM_UTF16_BE + IMMUTABLE.encode("utf-16-be"),
    ],
)
def test_a_known_text_in_a_file_is_explained(
    data: bytes, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "traceback.txt"
    file.write_bytes(data)
    assert main(["explain", str(file)]) == 0
    assert "[item-assignment]" in capsys.readouterr().out


def test_an_unknown_text_has_exit_code_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "traceback.txt"
    file.write_text("ValueError: the sharding of jit is purple")
    assert main(["explain", str(file)]) == 1
    assert "matches no entry" in capsys.readouterr().out


def test_json_is_what_the_explanation_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "traceback.txt"
    file.write_text(IMMUTABLE)
    assert main(["explain", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == "item-assignment"


def test_the_class_of_an_error_alone_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "jax.errors.TracerBoolConversionError"]) == 0
    assert "python-if-on-tracer" in capsys.readouterr().out


def test_a_program_is_no_message(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "train.py"
    path.write_text("import jax\nraise TypeError('JAX arrays are immutable')\n")
    assert main(["explain", str(path)]) == 2
    assert f"python {path} 2>&1 | python -m jitguide explain" in capsys.readouterr().err
    path.write_text(f"Traceback (most recent call last):\n{IMMUTABLE}")
    assert main(["explain", str(path)]) == 0


def test_a_word_that_is_no_file_is_a_text(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "RESOURCE_EXHAUSTED"]) == 1
    assert "matches no entry" in capsys.readouterr().out


@pytest.mark.parametrize("word", ["no-such-file.txt", "no/such"])
def test_a_word_that_names_no_file_is_told_so(word: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", word]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        f"jitguide: Cannot read {word}: No such file or directory. "
        "A single word is the name of a file or of an error's class: name a file that can be read, write the "
        "message in quotes, or pipe the text in.\n"
    )


def test_an_empty_text_is_a_sentence_and_exit_code_two() -> None:
    done = run("explain", text=" \n")
    assert done.returncode == 2
    assert done.stderr == (
        "jitguide: There is no text to explain. Name a file, write the text in quotes, or pipe it in.\n"
    )


def test_a_closed_standard_input_holds_no_text(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", None)
    assert main(["explain"]) == 2
    assert "There is no text to explain." in capsys.readouterr().err


def test_a_closed_standard_output_does_not_change_the_exit_code(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdout", None)
    assert main(["explain", IMMUTABLE]) == 0


@pytest.mark.parametrize(("text", "code"), [(IMMUTABLE, 0), ("the printer is on fire", 1)])
def test_a_reader_that_went_away_does_not_change_the_exit_code(text: str, code: int) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        done = subprocess.run(
            [sys.executable, "-m", "jitguide", "explain", text],
            cwd=ROOT,
            stdout=writing,
            stderr=subprocess.PIPE,
            check=False,
        )
    finally:
        os.close(writing)
    assert (done.returncode, done.stderr) == (code, b"")


@pytest.mark.parametrize("arguments", [["repair"], ["report", "extra"], ["explain", "a", "b"]])
def test_wrong_usage_has_exit_code_two(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(arguments)
    assert stopped.value.code == 2
    assert "usage: jitguide" in capsys.readouterr().err


def test_the_report_prints_as_text_and_as_json(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report"]) == 0
    assert "usable cores" in capsys.readouterr().out
    assert main(["report", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["device_count"] >= 1


def test_a_terminal_without_the_signs_still_gets_a_report() -> None:
    done = run("report", PYTHONIOENCODING="ascii")
    assert done.returncode == 0, done.stderr
    assert "? cpu" in done.stdout or "1 ?" in done.stdout
