"""What `tests/claims` refuses: a wrong twin that passes, or that fails for another reason than it names."""

import ast
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CLAIMS = Path(__file__).parent / "claims"
TWINS = """
import pytest

@pytest.mark.wrong_twin("snow-is-white")
def test_denies_the_claim():
    assert "white" == "black"

@pytest.mark.wrong_twin("snow-is-white", raises=ValueError)
def test_names_its_error():
    int("white")

@pytest.mark.wrong_twin("snow-is-white")
def test_misspells_a_name():
    assert snwo == "black"

@pytest.mark.wrong_twin("snow-is-white", raises=ValueError)
def test_fails_with_another_error_than_it_names():
    int(None)

@pytest.mark.wrong_twin("snow-is-white")
def test_passes():
    assert "white" == "white"
"""


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Return pytest's word for each of the twins above, under the rules of the claims."""
    folder = tmp_path_factory.mktemp("claims")
    shutil.copy(CLAIMS / "conftest.py", folder)
    shutil.copy(CLAIMS / "pytest.ini", folder)
    (folder / "test_snow.py").write_text(TWINS, "utf-8")
    command = [sys.executable, "-m", "pytest", "-v", "--tb=no", "-p", "no:cacheprovider", str(folder)]
    settings = {"JAX_PLATFORMS": "cpu", "PYTEST_ADDOPTS": ""}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **settings})
    assert ran.returncode == pytest.ExitCode.TESTS_FAILED, ran.stdout + ran.stderr
    lines = [line.split() for line in ran.stdout.splitlines() if "test_snow.py::" in line and "%]" in line]
    return {words[0].split("::")[1]: words[1] for words in lines}


@pytest.mark.parametrize(
    ("twin", "outcome"),
    [
        ("test_denies_the_claim", "XFAIL"),
        ("test_names_its_error", "XFAIL"),
        ("test_misspells_a_name", "FAILED"),
        ("test_fails_with_another_error_than_it_names", "FAILED"),
        ("test_passes", "FAILED"),
    ],
)
def test_a_wrong_twin_must_fail_as_it_says(outcomes, twin, outcome):
    assert outcomes[twin] == outcome


def marked(source, marker):
    """Return the first argument of each decorator `pytest.mark.MARKER(…)` in a source."""
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call) and node.args]
    named = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == marker]
    return {ast.literal_eval(call.args[0]) for call in named}


@pytest.mark.parametrize("path", sorted(CLAIMS.glob("test_*.py")), ids=lambda path: path.stem)
def test_each_file_has_a_wrong_twin_and_each_twin_a_claim(path):
    claims, twins = (marked(path.read_text("utf-8"), marker) for marker in ("claim", "wrong_twin"))
    assert twins, "a file of claims needs a wrong twin"
    assert twins <= claims
