"""The project's own files: what they promise to tools and to newcomers."""

from __future__ import annotations

import ast
import hashlib
import json
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import jinja2
import pytest
import repository
import yaml
from hatchling.metadata.core import ProjectMetadata
from hatchling.plugin.manager import PluginManager

import jitguide

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))

SCHEMAS = {
    ".readthedocs.yaml": "vendor.readthedocs",
    ".github/dependabot.yml": "vendor.dependabot",
    "CITATION.cff": "vendor.citation-file-format",
    **{f".github/workflows/{p.name}": "vendor.github-workflows" for p in WORKFLOWS},
    **{
        f".github/ISSUE_TEMPLATE/{name}.yml": "vendor.github-issue-forms"
        for name in ("page", "bug", "question")
    },
}


def check_schema(schema, file):
    command = [sys.executable, "-m", "check_jsonschema", "--builtin-schema", schema, str(file)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("file", SCHEMAS)
def test_configuration_is_valid_by_its_schema(file):
    run = check_schema(SCHEMAS[file], ROOT / file)
    assert run.returncode == 0, run.stdout + run.stderr


def test_the_schema_check_can_fail(tmp_path):
    broken = tmp_path / "rtd.yaml"
    broken.write_text("version: 2\nbuild: {os: ubuntu-24.04, tools: {pithon: '3.13'}}\n")
    assert check_schema("vendor.readthedocs", broken).returncode == 1


def test_the_version_is_the_same_in_all_places():
    assert "version" not in PROJECT["project"]
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == jitguide.__version__
    newest = re.search(r"^## \[?(\d[\w.]*)", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] == jitguide.__version__


def test_each_release_in_the_changelog_has_a_date():
    headings = re.findall(r"^## (.*)$", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert headings[0] == "Unreleased"
    releases = [re.fullmatch(r"(\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)", heading) for heading in headings[1:]]
    assert all(releases)
    dates = [release[2] for release in releases]
    assert dates == sorted(dates, reverse=True)


# Actions and hooks are programs of others ---------------------------------------------------------------------


@pytest.mark.parametrize("workflow", WORKFLOWS, ids=lambda path: path.stem)
def test_each_action_is_pinned_by_its_commit_with_the_version_beside_it(workflow):
    actions = re.findall(r"uses: (.*)", workflow.read_text())
    assert actions
    for action in actions:
        assert re.fullmatch(r"[\w/-]+@[0-9a-f]{40} # v\d+\.\d+\.\d+", action), action


def test_only_jobs_that_need_it_may_write():
    for workflow in WORKFLOWS:
        assert yaml.safe_load(workflow.read_text())["permissions"] == {"contents": "read"}, workflow.name


def test_pre_commit_runs_the_versions_that_lint_runs():
    hooks = yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    locked = dict(re.findall(r"^([\w.-]+)==([\w.]+)", (ROOT / "constraints.txt").read_text(), re.MULTILINE))
    biome = json.loads((ROOT / "package.json").read_text())["devDependencies"]["@biomejs/biome"]
    revisions = {hook["repo"].rpartition("/")[2]: hook for hook in hooks}
    pairs = {
        "ruff-pre-commit": "ruff",
        "mirrors-mypy": "mypy",
        "codespell": "codespell",
        "zizmor-pre-commit": "zizmor",
    }
    assert {repo: revisions[repo]["rev"] for repo in pairs} == {r: f"v{locked[t]}" for r, t in pairs.items()}
    assert revisions["pre-commit"]["hooks"][0]["additional_dependencies"] == [f"@biomejs/biome@{biome}"]
    assert f"/{biome}/" in (ROOT / "biome.jsonc").read_text()


def test_the_vendored_search_is_the_file_that_its_licence_names():
    script = (ROOT / "docs" / "_static" / "search" / "minisearch.min.js").read_bytes()
    licence = (ROOT / "docs" / "_static" / "search" / "minisearch.LICENSE.txt").read_text()
    version = re.match(rb"/\*! MiniSearch ([\d.]+),", script)[1].decode()
    assert f"minisearch@{version}" in licence
    assert hashlib.sha256(script).hexdigest() in licence
    assert "Permission is hereby granted" in licence


# The repository's address, set and not set --------------------------------------------------------------------


@pytest.fixture(params=["", "someone/guide"], ids=["without an address", "with an address"])
def project(request, tmp_path):
    """A copy of what depends on the address, and the address."""
    for name in (
        "pyproject.toml",
        "README.md",
        "CITATION.cff",
        "LICENSE",
        "tools/repository.py",
        "jitguide/__init__.py",
    ):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    settings = tmp_path / "pyproject.toml"
    text = re.sub(
        r'^repository = ".*"$', f'repository = "{request.param}"', settings.read_text(), flags=re.MULTILINE
    )
    settings.write_text(text)
    return tmp_path, request.param


def test_what_depends_on_the_address_is_written_from_the_one_setting(project):
    root, address = project
    assert repository.address(root) == address
    assert repository.main(["--check"], root) == int(address != repository.address())
    assert repository.main([], root) == 0
    assert repository.main(["--check"], root) == 0
    for name in ("README.md", "CITATION.cff"):
        text = (root / name).read_text()
        assert ("github.com" in text) == bool(address), name
        assert (f"https://github.com/{address}" in text) == bool(address), name
    assert check_schema("vendor.citation-file-format", root / "CITATION.cff").returncode == 0


def test_the_readme_on_pypi_has_no_link_that_leads_nowhere(project):
    root, address = project
    repository.main([], root)
    text = repository.readme((root / "README.md").read_text(), address)
    targets = re.findall(r"\]\(([^)]*)\)", text)
    assert all(target.startswith(f"https://github.com/{address}") for target in targets)
    assert bool(targets) == bool(address)
    assert "repository:" not in text
    assert "<picture>" not in text


def test_the_package_has_links_where_the_project_has_an_address(project):
    root, address = project
    metadata = ProjectMetadata(str(root), PluginManager()).core
    assert metadata.urls == repository.urls(address)
    assert metadata.readme.startswith("# The JIT guide")


@pytest.mark.parametrize("address", ["", "someone/guide"])
def test_a_page_offers_to_report_an_error_where_there_is_an_address(address):
    template = jinja2.Template((ROOT / "docs" / "_templates" / "take-away.html").read_text())
    html = template.render(
        guide_downloads={"Notebook": "page.ipynb"}, guide_repository=address, pagename="learn/a b"
    )
    link = f"https://github.com/{address}/issues/new?template=page.yml&amp;page=learn/a%20b"
    assert (link in html) == bool(address)
    assert ("github.com" in html) == bool(address)


def test_a_setting_that_is_no_address_is_refused(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[tool.jitguide]\nrepository = "https://github.com/a/b"\n')
    with pytest.raises(ValueError, match=r'must be "owner/name" or "", got .https://github\.com/a/b.'):
        repository.address(tmp_path)


# The rest -----------------------------------------------------------------------------------------------------


def test_every_requirement_is_locked():
    locked = set(
        re.findall(r"^([a-z0-9_.-]+)==", (ROOT / "constraints.txt").read_text().lower(), re.MULTILINE)
    )
    groups = PROJECT["dependency-groups"]
    wanted = [
        r for name in ("docs", "tests", "ecosystem", "lint", "package") for r in groups[name]
    ] + PROJECT["project"]["dependencies"]
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


def test_continuous_integration_and_its_script_run_the_same_session():
    """Their steps are in one list, in noxfile.py: neither may have one of its own."""
    script = (ROOT / ".ci" / "run").read_text()
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    runs = [step["run"] for step in workflow["jobs"]["ci"]["steps"] if "run" in step]
    assert re.findall(r"nox -s (\w+)", script.partition("set -euo")[2]) == ["ci"]
    assert re.findall(r"nox -s (\w+)", "\n".join(runs)) == [
        "ci",
        "linkcheck",
    ]  # the latter strictly, once a week


def paths_in_contributing():
    """Yield each path that CONTRIBUTING.md names; NAME, TOPIC and PAGE stand for any name."""
    text = (ROOT / "CONTRIBUTING.md").read_text()
    drawing = text.split("```text\n")[1].partition("\npages, examples")[0]
    folder = ""
    for line in drawing.splitlines():
        indent, words = len(line) - len(line.lstrip()), re.split(r"\s{2,}", line.strip())[0].split()
        if not indent and words[0].endswith("/"):
            folder = words[0]
        yield from (f"{folder if indent else ''}{word}" for word in words)
    yield from re.findall(r"(?<![\w.])((?:jitguide|docs|tests|examples|tools|\.github)/[\w./-]*)", text)


def test_contributing_names_what_is_there():
    paths = set(paths_in_contributing())
    assert len(paths) > 40
    made = ("docs/_build", "docs/howto/page.md")  # by the build; an example of a page
    for path in paths:
        pattern = re.sub("NAME|TOPIC|PAGE", "*", path.rstrip("/."))
        assert path.startswith(made) or list(ROOT.glob(pattern)), path


def test_importing_the_package_does_not_import_matplotlib():
    program = "import sys, jitguide; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0


def test_a_jax_that_is_too_old_is_refused_with_the_version_needed(tmp_path):
    (tmp_path / "jax.py").write_text("__version__ = '0.4.30'\n__version_info__ = (0, 4, 30)\n")
    program = f"import sys; sys.path[:0] = [{str(tmp_path)!r}, {str(ROOT)!r}]; import jitguide"
    run = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert run.returncode == 1
    assert "jitguide needs JAX 0.10.2 or later, and this is JAX 0.4.30" in run.stderr


def test_a_system_that_cannot_fork_is_sent_to_wsl():
    class Session:
        def error(self, message):
            raise SystemExit(message)

    tree = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    tree.body = [node for node in tree.body if getattr(node, "name", "") == "need_fork"]
    space = {"os": object()}  # a module without `fork`, as on Windows
    exec(compile(tree, "noxfile.py", "exec", flags=annotations.compiler_flag), space)
    with pytest.raises(SystemExit, match="Windows does not have: run it in WSL"):
        space["need_fork"](Session())
    assert "on Windows, build the guide in WSL" in (ROOT / "README.md").read_text("utf-8")


@pytest.mark.parametrize(
    ("tool", "found"),
    [
        (None, False),
        ("echo 'GPU 0: NVIDIA H100 (UUID: 1)'", True),
        ("echo 'No devices found.'", False),
        ("echo 'NVIDIA-SMI has failed because no driver answers.'; exit 9", False),
    ],
)
def test_a_gpu_counts_where_its_driver_works(monkeypatch, tmp_path, tool, found):
    if tool is not None:
        (tmp_path / "nvidia-smi").write_text(f"#!/bin/sh\n{tool}\n")
        (tmp_path / "nvidia-smi").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    tree = ast.parse((ROOT / "noxfile.py").read_text("utf-8"))
    tree.body = [node for node in tree.body if getattr(node, "name", "") == "has_gpu"]
    space = {"shutil": shutil, "subprocess": subprocess}
    exec(compile(tree, "noxfile.py", "exec", flags=annotations.compiler_flag), space)
    assert space["has_gpu"]() is found


def test_read_the_docs_runs_sessions_and_copies_folders_that_exist():
    jobs = yaml.safe_load((ROOT / ".readthedocs.yaml").read_text("utf-8"))["build"]["jobs"]
    commands = "\n".join([*jobs["install"], *jobs["build"]["html"]])
    sessions = {
        node.name
        for node in ast.parse((ROOT / "noxfile.py").read_text("utf-8")).body
        if hasattr(node, "name")
    }
    assert set(re.findall(r"nox -s (\w+)", commands)) == {"docs"} <= sessions
    assert re.findall(r"cp -r (\S+)/\.", commands) == ["docs/_build/html"]
