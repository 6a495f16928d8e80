"""The project's own files: what they promise to tools and to newcomers."""

import ast
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


@pytest.mark.parametrize(
    ("schema", "file"),
    [("vendor.readthedocs", ".readthedocs.yaml"), ("vendor.github-workflows", ".github/workflows/ci.yml")],
)
def test_configuration_is_valid_by_its_schema(schema, file):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(ROOT / file)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_schema_check_can_fail(tmp_path):
    broken = tmp_path / "rtd.yaml"
    broken.write_text("version: 2\nbuild: {os: ubuntu-24.04, tools: {pithon: '3.13'}}\n")
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.readthedocs",
        str(broken),
    ]
    assert subprocess.run(command, capture_output=True, check=False).returncode == 1


def test_the_citation_is_valid_yaml_with_the_version_of_the_package():
    citation = yaml.safe_load((ROOT / "CITATION.cff").read_text())
    assert citation["version"] == PROJECT["project"]["version"]


def test_every_requirement_is_locked():
    locked = set(
        re.findall(r"^([a-z0-9_.-]+)==", (ROOT / "constraints.txt").read_text().lower(), re.MULTILINE)
    )
    groups = PROJECT["dependency-groups"]
    wanted = [r for name in ("docs", "tests", "lint") for r in groups[name]] + PROJECT["project"][
        "dependencies"
    ]
    names = {re.match(r"[\w-]+", r)[0].lower() for r in wanted}
    assert names <= locked


def test_the_lock_names_no_host():
    assert not re.search(r"://|index-url|find-links", (ROOT / "constraints.txt").read_text())


@pytest.mark.parametrize(
    "file", ["README.md", "CONTRIBUTING.md", ".github/workflows/ci.yml", "pyproject.toml"]
)
def test_every_session_that_is_named_exists(file):
    sessions = {
        node.name
        for node in ast.walk(ast.parse((ROOT / "noxfile.py").read_text("utf-8")))
        if isinstance(node, ast.FunctionDef) and any("session" in ast.unparse(d) for d in node.decorator_list)
    }
    named = set(re.findall(r"\bnox -s (\w+)", (ROOT / file).read_text("utf-8")))
    assert named
    assert named <= sessions


def test_importing_the_package_does_not_import_matplotlib():
    program = "import sys, jitguide; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_jax_that_is_too_old_is_refused_with_the_version_needed(tmp_path):
    (tmp_path / "jax.py").write_text("__version__ = '0.4.30'\n__version_info__ = (0, 4, 30)\n")
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import jitguide"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "jitguide needs JAX 0.10 or later, and this is JAX 0.4.30" in run.stderr
