"""Each program in examples/ runs alone, explains itself, and refuses a wrong argument in a sentence."""

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAMS = sorted((Path(__file__).parents[1] / "examples").glob("*.py"))


def run(program, *arguments, folder):
    command = [sys.executable, str(program), *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, timeout=120)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_runs_with_its_defaults_from_any_folder(program, tmp_path):
    ran = run(program, folder=tmp_path)
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout.strip()


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)
def test_a_program_explains_itself_and_refuses_a_wrong_argument(program, tmp_path):
    assert "usage:" in run(program, "--help", folder=tmp_path).stdout
    wrong = run(program, "--size", "0", folder=tmp_path)
    assert wrong.returncode == 2
    assert "is not positive: give the length" in wrong.stderr


def test_there_are_programs():
    assert PROGRAMS
