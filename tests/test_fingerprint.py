"""Stored outputs are used until something changes that can change them: code, packages, devices; not the linter."""

import json
import os
import re
import subprocess
import sys
from importlib.metadata import packages_distributions
from pathlib import Path

import pytest
from _ext import ROOT, build
from _ext.execution import fingerprint, notebooks, package

CODE_CELL = re.compile(r"^(`{3,})\{code-cell\}[^\n]*\n(.*?)^\1\s*$", re.DOTALL | re.MULTILINE)


@pytest.fixture
def install(tmp_path, monkeypatch):
    """Put a package before the installed ones, so that its version is the one that is found."""
    monkeypatch.setattr(build, "devices", lambda: [("cpu", "cpu")])
    monkeypatch.setattr(sys, "path", [str(tmp_path), *sys.path])

    def put(name, version="99.0", requires=(), entry_points=""):
        folder = tmp_path / f"{name.replace('-', '_')}-{version}.dist-info"
        folder.mkdir()
        lines = ["Metadata-Version: 2.1", f"Name: {name}", f"Version: {version}"]
        lines += [f"Requires-Dist: {text}" for text in requires]
        lines += [f"Provides-Extra: {e}" for text in requires for e in re.findall(r"extra == '(.*)'", text)]
        (folder / "METADATA").write_text("\n".join(lines) + "\n")
        (folder / "entry_points.txt").write_text(entry_points)

    return put


@pytest.mark.parametrize(
    "package", ["jax", "jaxlib", "numpy", "scipy", "matplotlib", "ipykernel", "nbclient", "myst-nb"]
)
def test_a_package_that_can_change_an_output_is_part_of_the_fingerprint(install, package):
    install(package)
    assert f"{package}==99.0" in fingerprint.packages()


@pytest.mark.parametrize(
    "package", ["ruff", "codespell", "mypy", "sphinx", "sphinx-book-theme", "hypothesis", "nox", "pytest"]
)
def test_a_package_that_no_cell_sees_is_not(install, package):
    before = fingerprint.packages()
    install(package)
    assert fingerprint.packages() == before


def test_a_plugin_of_jax_counts_with_the_libraries_of_its_extras(install):
    entry_points = "[jax_plugins]\nxla_fake = jax_plugins.xla_fake\n"
    before = fingerprint.digest()
    install("jax-fake-plugin", requires=["fake-blas; extra == 'with-fake'"], entry_points=entry_points)
    plugged = fingerprint.digest()
    assert plugged != before
    install("fake-blas")
    assert fingerprint.digest() != plugged
    assert {"jax-fake-plugin==99.0", "fake-blas==99.0"} <= set(fingerprint.packages())


def test_packages_that_require_each_other_are_read_once(install):
    install("jax", requires=["one"])
    install("one", requires=["two"])
    install("two", requires=["one"])
    assert {"one==99.0", "two==99.0"} <= set(fingerprint.packages())


def test_the_packages_that_pages_import_are_part_of_the_fingerprint():
    pages = [p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts]
    code = "\n".join(cell[2] for page in pages for cell in CODE_CELL.finditer(page.read_text("utf-8")))
    homes = packages_distributions()
    imported = set(re.findall(r"^ *(?:import|from) (\w+)", code, re.MULTILINE)) & set(homes)
    assert {"jax", "numpy", "matplotlib"} <= imported
    named = {package.partition("==")[0] for package in fingerprint.packages()} | set(fingerprint.uses(code))
    for module in imported - {"jitguide"}:  # its sources count by part
        assert {name.lower().replace("_", "-") for name in homes[module]} & named, module


@pytest.mark.parametrize(
    "file", ["docs/_ipython/matplotlibrc"]
    + [str(path.relative_to(ROOT)) for path in (ROOT / "docs" / "_ext" / "execution").glob("*.py")],
)  # fmt: skip
def test_code_that_shapes_the_outputs_of_cells_is_part_of_the_fingerprint(monkeypatch, file):
    monkeypatch.setattr(fingerprint, "environment", dict)  # slow to read, and the same before and after
    before = fingerprint.digest()
    read = Path.read_bytes
    monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path == ROOT / file))
    assert fingerprint.digest() != before


def test_variables_of_jax_count_and_others_do_not(monkeypatch, install):
    before = fingerprint.digest()
    monkeypatch.setenv("EDITOR", "ed")
    assert fingerprint.digest() == before
    monkeypatch.setenv("XLA_FLAGS", "--xla_cpu_enable_fast_math=true")
    assert fingerprint.digest() != before


FRONT = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\n---\n\n# Page\n\n"
PAGES = {
    "runs-a-loop": "run('training_loop.py')",
    "runs-pytest": "command = [sys.executable, '-m', 'pytest']",
    "runs-all": "for program in (root / 'examples').glob('*.py'): run(program)",
    "plain": "print(1)",
    "compares": "from jitguide import compare\ncompare(f, g)",
    "watches": "import jitguide\n\nwith jitguide.watch() as log: f(1)",
    "explains": "!python -m jitguide explain error.txt",
    "unclear": "import jitguide as jg\njg.compare(f, g)",
    "demos": "from jitguide.demos.cache_key import pairs",
    "figure": ":recorded: numpy-against-jit\n\nplot(gains)",
}
ANY_PART = {"explains", "unclear"}


def keys(environment="e"):
    pages = {name: FRONT + f"```{{code-cell}}\n{code}\n```\n" for name, code in PAGES.items()}
    return {name: notebooks.key(notebooks.read(text), environment) for name, text in pages.items()}


def changed(before):
    return {name for name, key in keys().items() if key != before[name]}


@pytest.fixture
def edit(monkeypatch):
    """Have a file read as if it ended otherwise."""

    def as_if(file):
        read, edited = Path.read_bytes, ROOT / file
        assert edited.exists()
        monkeypatch.setattr(Path, "read_bytes", lambda path: read(path) + b"#" * (path == edited))
        package._modules.cache_clear()

    yield as_if
    package._modules.cache_clear()


def test_an_example_counts_for_the_pages_that_name_it(edit):
    before = keys()
    edit("examples/training_loop.py")
    assert changed(before) == {"runs-a-loop", "runs-all"}


@pytest.mark.parametrize(
    ("file", "pages"),
    [
        ("jitguide/_timing/compare.py", {"compares", "figure", "runs-all"}),
        ("jitguide/_timing/engine.py", {"compares", "figure", "runs-all"}),  # `compare` imports it
        ("jitguide/_watch/reasons.py", {"watches", "demos", "runs-a-loop", "runs-all"}),
        ("jitguide/_errors/catalogue/values.toml", set()),
        ("jitguide/_recording/machines/2-core-epyc.json", {"figure"}),
        ("jitguide/display.css", {"compares", "watches", "demos", "figure", "runs-a-loop", "runs-all"}),
        ("jitguide/demos/cache_key/pairs.py", {"demos"}),
        ("jitguide/__main__.py", set()),
    ],
)
def test_a_part_of_the_package_counts_for_the_pages_that_use_it(edit, file, pages):
    before = keys()
    edit(file)
    assert changed(before) == pages | ANY_PART


def test_what_a_page_is_said_to_use_is_what_it_loads():
    """Ask a fresh interpreter for what each public name loads."""
    code = "import json, sys, jitguide; getattr(jitguide, sys.argv[1]); print(json.dumps(list(sys.modules)))"
    for name in ("check", "roofline", "explain"):
        told = subprocess.run([sys.executable, "-c", code, name], capture_output=True, text=True, check=True)
        loaded = {module for module in json.loads(told.stdout) if module.startswith("jitguide")}
        assert loaded - {"jitguide"} <= package.behind(f"jitguide.{name}")


def test_a_tool_counts_for_the_pages_that_name_it(install):
    before = keys()
    install("pytest")
    assert changed(before) == {"runs-pytest"}


def test_the_environment_counts_for_every_page():
    assert {name for name, key in keys("other").items() if key != keys()[name]} == set(PAGES)


@pytest.mark.parametrize(
    ("platform", "workers", "preallocate"), [("cpu", 4, None), ("gpu", 4, "false"), ("tpu", 1, None)]
)
def test_pages_share_a_gpu_but_not_a_device_that_one_process_keeps(
    monkeypatch, platform, workers, preallocate
):
    monkeypatch.setattr(build, "devices", lambda: [(platform, "a device")])
    monkeypatch.setattr(os, "cpu_count", lambda: 4)
    monkeypatch.setattr(os, "environ", {})
    build.share_gpu()
    assert build.workers() == workers
    assert os.environ.get("XLA_PYTHON_CLIENT_PREALLOCATE") == preallocate
    os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] = "true"
    build.share_gpu()
    assert os.environ["XLA_PYTHON_CLIENT_PREALLOCATE"] == "true", "what the user sets stays"
