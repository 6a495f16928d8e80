"""Programs of blocks: what no program can contain fails the build, and a broken one fails the check."""

import re
import shutil
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))
import snippets
import test_faults as faults

CONF = faults.CONF.replace('"_ext.claims"]', '"_ext.claims", "_ext.programs"]') + (
    'import os\nos.environ.setdefault("JAX_PLATFORMS", "cpu")\n'
)
GOOD = (
    faults.cell("import jax\n\nseen = []")
    + faults.cell("@jax.jit\ndef f(x):\n    print('tracing')\n    return x + 1\n\n\nseen.append(f(1))")
    + faults.cell("from myst_nb import glue", ":tags: [remove-cell]")
    + faults.cell("f(2)\nseen")
    + faults.cell("f('no')", ":tags: [raises-exception]", ":raises: TypeError")
    + faults.cell("print(len(seen), f.__name__)")
)

FAULTS = {
    "star": (faults.cell("from math import *\nsin(1.0)"), "from math", "import *"),
    "hidden": (
        faults.cell("secret = 1", ":tags: [remove-cell]") + faults.cell("x = 2\nprint(secret)"), "print(secret)", "only a removed cell binds"
    ),
    "unseeded": (
        faults.cell("import numpy as np\n\nrng = np.random.default_rng()") + faults.cell("print(rng.normal())"), "```{code-cell}\nprint", "no program of this cell behaves"
    ),
    "shell": (faults.cell("!true"), "!true", "is not plain Python"),
}  # fmt: skip


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """One build of a good page and of all the faults."""
    folder = tmp_path_factory.mktemp("programs")
    pages = {name: faults.FRONT + body for name, (body, _, _) in FAULTS.items()}
    pages |= {"good": faults.FRONT + GOOD}
    listed = "\n".join(pages)
    pages["index"] = f"# Pages\n\n```{{toctree}}\n{listed}\n```\n"
    return folder, *faults.sphinx(folder, pages, CONF)


@pytest.mark.parametrize("name", FAULTS)
def test_what_no_program_can_contain_is_told_with_page_and_line(site, name):
    body, needle, message = FAULTS[name]
    _, code, printed = site
    text = faults.FRONT + body
    line = text[: text.index(needle)].count("\n") + 1
    told = re.findall(rf"{name}\.md:(\d+): WARNING: (.*)", printed)
    assert code != 0
    assert [int(at) for at, said in told if message in said] == [line], printed


def test_a_good_page_is_told_nothing_about(site):
    assert "good.md" not in site[2]


def check(site, tmp_path, capsys, change=None):
    """Return the exit code and what is printed of a check of the good page, changed in its HTML."""
    shutil.copy(site[0] / "out" / "good.html", tmp_path / "good.html")
    if change:
        text = (tmp_path / "good.html").read_text("utf-8")
        assert change(text) != text
        (tmp_path / "good.html").write_text(change(text), "utf-8")
    return snippets.main([str(tmp_path), "--no-sources"]), capsys.readouterr().out


def test_the_programs_of_a_good_page_behave(site, tmp_path, capsys):
    code, printed = check(site, tmp_path, capsys)
    assert printed.splitlines()[-1] == "snippets: 5 blocks, 5 programs, 5 behaved"
    assert code == 0
    assert "glue" not in printed


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda text: text.replace("\nseen.append(f(1))\n\n# --- this block", "\n\n# --- this block", 1), "block 3"),
        (lambda text: text.replace("\nf(2)\nprint(seen)", "\nf(2.0)\nprint(seen)"), "does not end with the block itself"),
        (lambda text: text.replace("print(len(seen), f.__name__)\n</pre>", "print(len(seen), f.__name)\n</pre>"), "block 5"),
        (lambda text: text.replace("# Meant to fail: TypeError.\n", ""), "meant to fail"),
        (lambda text: text.replace("(good), JAX", "(bad), JAX"), "the first line names not this page"),
        (lambda text: re.sub(r'<details class="program".*?</details>', "", text, count=1, flags=re.DOTALL), "it has no program"),
        (lambda text: text.replace("import jax\n\nseen = []", "import jax\nfrom myst_nb import glue\n\nseen = []"), "'myst_nb'"),
        (lambda text: text.replace("<span></span>1 f", "<span></span>2 f"), "where the page prints"),
    ],
    ids=["dropped", "changed", "broken", "no word of failing", "another page", "none", "machinery", "other output"],
)  # fmt: skip
def test_what_is_broken_in_the_html_fails_the_check(site, tmp_path, capsys, change, told):
    code, printed = check(site, tmp_path, capsys, change)
    assert code == 1
    assert told in printed
    assert "5 behaved" not in printed.splitlines()[-1]
