"""The command line: what it prints, where, and with which exit code."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

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


def test_the_module_imports_nothing_heavy_of_its_own() -> None:
    program = (
        "import sys, jitguide; before = set(sys.modules); import jitguide.__main__; "
        "print(sorted(m for m in set(sys.modules) - before if m.startswith(('jax', 'numpy', 'jitguide._'))))"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "['jitguide.__main__']"


def test_a_known_text_on_standard_input_is_explained() -> None:
    done = run("explain", text=IMMUTABLE)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("`x[i] = y` on a JAX array  [item-assignment]\n")
    assert "x.at[0].set(1)" in done.stdout


def test_a_known_text_in_a_file_is_explained(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = tmp_path / "traceback.txt"
    file.write_bytes(b"\xff\xfe\xe9 " + IMMUTABLE.encode())
    assert main(["explain", str(file)]) == 0
    assert "[item-assignment]" in capsys.readouterr().out


def test_an_unknown_text_has_exit_code_one(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "traceback.txt"
    file.write_text("the printer is on fire")
    assert main(["explain", str(file)]) == 1
    assert "matches no entry" in capsys.readouterr().out


def test_json_is_what_the_explanation_holds(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    file = tmp_path / "traceback.txt"
    file.write_text(IMMUTABLE)
    assert main(["explain", str(file), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["key"] == "item-assignment"


def test_a_missing_file_is_a_sentence_and_exit_code_two(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["explain", "no-such-file.txt"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err == (
        "jitguide: Cannot read no-such-file.txt: No such file or directory. "
        "Name a text file, or pipe the text in.\n"
    )


def test_an_empty_text_is_a_sentence_and_exit_code_two(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(" \n"))
    assert main(["explain"]) == 2
    assert capsys.readouterr().err == (
        "jitguide: There is no text to explain. Name a file with a traceback, or pipe one in.\n"
    )


@pytest.mark.parametrize("arguments", [[], ["repair"], ["report", "extra"], ["explain", "a", "b"]])
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
