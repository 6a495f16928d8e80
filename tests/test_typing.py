"""A user's program that uses every public name has the types that type checkers should see."""

import ast
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

import jitguide

ROOT = Path(__file__).parents[1]
PROGRAM = ROOT / "tests" / "typing" / "uses_everything.py"
CHECKERS = {
    # Without the settings for the package itself, which has checks of its own.
    "mypy": ["--config-file=", "--strict", "--follow-imports=silent", str(PROGRAM)],
    "pyright": ["--pythonpath", sys.executable, "--project", str(PROGRAM.parent)],
}


def test_the_program_imports_every_public_name():
    tree = ast.parse(PROGRAM.read_text("utf-8"))
    imported = [a.name for node in tree.body if isinstance(node, ast.ImportFrom) for a in node.names]
    assert [name for name in imported if name in jitguide.__all__] == jitguide.__all__


@pytest.mark.slow
@pytest.mark.parametrize("checker", CHECKERS)
def test_a_type_checker_finds_the_types_that_the_program_states(checker):
    if find_spec(checker) is None:
        pytest.skip(f"{checker} is not installed here; `nox -s tests` installs it")
    command = [sys.executable, "-m", checker, *CHECKERS[checker]]
    ran = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
