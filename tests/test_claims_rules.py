"""What `tests/claims` refuses: a wrong twin that passes, or that fails for another reason than it names."""

import ast
import os
import re
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
    for name in ("conftest.py", "hostile.py", "digests.py", "recorder.py", "pytest.ini"):
        shutil.copy(CLAIMS / name, folder)
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


# Words of a sentence that speaks of all cases there are; code and "no longer" say something else.
UNIVERSAL = re.compile(
    r"\b(any|every|always|all|only|never|none|no(?! longer\b)|and not otherwise)\b(?!-)", re.IGNORECASE
)
# Claims whose sentence speaks of all cases and whose test tries few of them, each with the reason.
NOT_ATTACKED: dict[str, str] = {}


def instances(test):
    """Return how many cases a test of a claim is run with besides the first, by its marker or its parameters."""
    counts, arguments = [0], [argument.arg for argument in test.args.args]
    for call in (node for node in test.decorator_list if isinstance(node, ast.Call)):
        marker = getattr(call.func, "attr", "")
        if marker == "hostile":
            used = any(
                isinstance(node, ast.Name) and node.id == "case"
                for line in test.body
                for node in ast.walk(line)
            )
            counts.append(len(call.args) if used and "case" in arguments else 0)
        elif marker == "parametrize" and isinstance(call.args[1], ast.List | ast.Tuple):
            counts.append(len(call.args[1].elts) - 1)
    return max(counts)


def unattacked(source):
    """Return the claims of a file that speak of all cases and are tried with fewer than two hostile ones."""
    found = set()
    for test in (node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)):
        for call in (
            node
            for node in test.decorator_list
            if getattr(getattr(node, "func", None), "attr", "") == "claim"
        ):
            name, sentence = map(ast.literal_eval, call.args)
            if UNIVERSAL.search(re.sub(r"`[^`]*`", "", sentence)) and instances(test) < 2:
                found.add(name)
    return found


@pytest.mark.parametrize("path", sorted(CLAIMS.glob("test_*.py")), ids=lambda path: path.stem)
def test_a_sentence_that_speaks_of_all_is_attacked(path):
    words = "try it with two cases of tests/claims/hostile.py, or say less"
    assert unattacked(path.read_text("utf-8")) <= set(NOT_ATTACKED), words


@pytest.mark.parametrize(
    ("sentence", "decorator", "body", "accepted"),
    [
        ("Snow is white.", "", "pass", True),
        ("Snow is no longer white, and `any` is a name.", "", "pass", True),
        ("All snow is white.", "", "pass", False),
        ("All snow is white.", "@pytest.mark.hostile('scalar', 'empty')", "case.array", True),
        ("All snow is white.", "@pytest.mark.hostile('scalar', 'empty')", "pass", False),
        ("All snow is white.", "@pytest.mark.hostile('scalar')", "case.array", False),
        ("Snow is never black.", "@pytest.mark.parametrize('case', [1, 2, 3])", "case", True),
        ("Snow is never black.", "@pytest.mark.parametrize('case', [1, 2])", "case", False),
    ],
)
def test_the_rule_for_general_sentences(sentence, decorator, body, accepted):
    source = f"@pytest.mark.claim('snow', {sentence!r})\n{decorator}\ndef test_snow(case):\n    {body}\n"
    assert unattacked(source) == (set() if accepted else {"snow"})
