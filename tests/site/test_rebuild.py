"""A build after a change ends as a clean build does, and a second rendering of the site gives the same files."""

import difflib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
HTML = ROOT / "docs" / "_build" / "html"
pytestmark = pytest.mark.timeout(900)  # a dozen builds; 4 s each on a quiet machine
FRONT = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\n---\n\n"
TAKEN = ("jitguide", "examples", "tools", "docs/_ext", "docs/_ipython", "docs/_static", "docs/_templates")
CLAIM = 'import pytest\n\n\n@pytest.mark.claim("{0}", "It is {0}.")\ndef test_{0}():\n    assert True\n'
PAGES = {
    "docs/index.md": "# Start\n\n```{toctree}\nfirst\nsecond\nthird\nshown\nabout/status\nabout/claims\n```\n",
    "docs/first.md": FRONT
    + "# First\n\nProse {claim}`wet`.\n\n```{code-cell}\nprint(1 + 1)\n```\n\n## A part\n\nText.\n",
    "docs/second.md": "# Second\n\nSee [](first.md#a-part), [](first.md), and note {claim}`white`.\n",
    "docs/third.md": FRONT + "# Third\n\n```{code-cell}\nprint(3)\n```\n",
    "docs/shown.md": "# Shown\n\n```{eval-rst}\n.. autofunction:: jitguide.expect_error\n```\n",
    "docs/about/claims.md": "# Claims\n\n```{claims-table}\n```\n",
    "docs/_data/questions.json": "[]",
    "docs/_data/claims.json": '{"releases": [], "claims": {}}',
    "tests/claims/test_rain.py": CLAIM.format("wet"),
    "tests/claims/test_snow.py": CLAIM.format("white"),
}


def environment():
    """Return the variables that this process began with: importing JAX sets more, and pages depend on them."""
    given = Path("/proc/self/environ")
    if not given.exists():
        return dict(os.environ)
    return dict(pair.split("=", 1) for pair in given.read_text("utf-8").split("\0") if "=" in pair)


def render(root, out, doctrees):
    """Build the site of a checkout; return what was printed."""
    command = [sys.executable, "-m", "sphinx", "-q", "-b", "html", "-d", doctrees, root / "docs", out]
    variables = {**environment(), "NO_COLOR": "1", "PYTHONPATH": str(root)}
    ran = subprocess.run(
        command, cwd=root, env=variables, capture_output=True, text=True, check=False, timeout=600
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout + ran.stderr


def files(folder):
    """Return the content of each file of a built site by its path; Sphinx's note of its settings is not one."""
    found = {p.relative_to(folder).as_posix(): p.read_bytes() for p in folder.rglob("*") if p.is_file()}
    return {name: content for name, content in found.items() if not name.startswith(".buildinfo")}


def different(one, other):
    """Return the files that are not the same in both, with the first lines of the difference."""
    names = sorted(name for name in {*one, *other} if one.get(name) != other.get(name))
    return {name: difference(one.get(name, b""), other.get(name, b"")) for name in names}


def difference(one, other):
    before, after = (content.decode("utf-8", "replace").splitlines() for content in (one, other))
    return [line[:300] for line in difflib.unified_diff(before, after, lineterm="", n=0)][:20]


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A small site with the guide's own settings and extensions, built once."""
    root = tmp_path_factory.mktemp("checkout")
    for folder in TAKEN:
        shutil.copytree(ROOT / folder, root / folder, ignore=shutil.ignore_patterns("__pycache__", "db"))
    for name in (
        "pyproject.toml",
        "docs/conf.py",
        "docs/about/status.md",
        "docs/_data/flags.toml",
        "docs/_data/jax.inv",
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(ROOT / name, root / name)
    for name, text in PAGES.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, "utf-8")
    render(root, root / "out", root / "doctrees")
    return root


def change(path, old, new):
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new), "utf-8")


def edit_prose(root):
    change(root / "docs/first.md", "Prose", "Other prose")


def edit_cell(root):
    change(root / "docs/first.md", "1 + 1", "20 + 20")


def edit_heading(root):
    change(root / "docs/first.md", "## A part", "## A better part")
    change(root / "docs/second.md", "#a-part", "#a-better-part")


def edit_claim(root):
    change(root / "tests/claims/test_snow.py", "It is white.", "It is white in winter.")


def cite_claim(root):
    change(root / "docs/third.md", "# Third\n", "# Third\n\nSo {claim}`white`.\n")


def add_page(root):
    (root / "docs/fourth.md").write_text("# Fourth\n", "utf-8")
    change(root / "docs/index.md", "third\n", "third\nfourth\n")


def remove_page(root):
    (root / "docs/third.md").unlink()
    change(root / "docs/index.md", "third\n", "")


def edit_style(root):
    with (root / "docs/_static/guide.css").open("a") as file:
        file.write("/* the end */\n")


def edit_module(root):
    change(
        root / "jitguide/_errors/expect_error.py", "def expect_error(", "_AN_EDIT = 1\n\n\ndef expect_error("
    )
    change(root / "jitguide/__init__.py", '__version__ = "', '__version__ = "9')


def edit_extension(root):
    change(root / "docs/_ext/claims/domain.py", "Proved:", "Shown:")


# A few at a time, because each comparison takes two builds.
CHANGES = [
    (edit_prose, edit_cell, edit_heading),
    (edit_claim, cite_claim, edit_style),
    (add_page, remove_page, edit_module),
    (edit_extension,),
]


@pytest.mark.parametrize("edits", CHANGES, ids=lambda edits: "-".join(edit.__name__ for edit in edits))
def test_a_build_after_changes_ends_as_a_clean_build(checkout, tmp_path, edits):
    for edit in edits:
        edit(checkout)
    printed = render(checkout, checkout / "out", checkout / "doctrees")
    render(checkout, tmp_path / "out", tmp_path / "doctrees")
    assert (printed, different(files(checkout / "out"), files(tmp_path / "out"))) == ("", {})


def test_a_build_without_changes_writes_no_page(checkout):
    render(checkout, checkout / "out", checkout / "doctrees")  # after what other tests changed
    before = {p: p.stat().st_mtime_ns for p in (checkout / "out").rglob("*.html")}
    printed = render(checkout, checkout / "out", checkout / "doctrees")
    after = {p: p.stat().st_mtime_ns for p in (checkout / "out").rglob("*.html")}
    assert (printed, [path.name for path in after if after[path] != before.get(path)]) == ("", [])


def test_what_is_wrong_is_told_again_by_the_next_build(checkout):
    change(checkout / "docs/first.md", "print(", "1 / 0; print(")
    for _ in range(2):
        assert "ZeroDivisionError" in render(checkout, checkout / "out", checkout / "doctrees")
    change(checkout / "docs/first.md", "1 / 0; ", "")
    assert "ZeroDivisionError" not in render(checkout, checkout / "out", checkout / "doctrees")


def test_a_second_rendering_gives_the_same_files(tmp_path):
    render(ROOT, tmp_path / "out", tmp_path / "doctrees")
    assert different(files(HTML), files(tmp_path / "out")) == {}
