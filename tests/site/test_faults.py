"""A page is broken on purpose, once for each checker, and the build must say so with page and line."""

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from _ext.execution import kernels, notebooks

pytestmark = pytest.mark.timeout(600)  # each builds a small site, in 5 s on a quiet machine
ROOT = Path(__file__).parents[2]
FRONT = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\n---\n\n# Page\n\n"
CONF = f"""
import sys
sys.path.insert(0, {str(ROOT / "docs")!r})
project = "broken"
extensions = ["myst_nb", "_ext.execution", "_ext.directives", "_ext.claims"]
nb_execution_mode = "off"
nb_custom_formats = {{".md": ["_ext.execution.read", {{}}, False]}}
myst_enable_extensions = ["colon_fence"]
guide_store = "../store"
"""


def cell(source, *options):
    return "```{code-cell}\n" + "".join(f"{o}\n" for o in options) + source + "\n```\n"


def sphinx(folder, pages, conf=CONF, **environment):
    """Build a site of the given pages; return exit code and what was printed."""
    source = folder / "docs"
    source.mkdir(exist_ok=True)
    (source / "conf.py").write_text(conf.replace("../store", str(folder / "store")))
    for name, text in pages.items():
        (source / f"{name}.md").write_text(text)
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-n",
        "-W",
        "--keep-going",
        "-q",
        "-b",
        "html",
        str(source),
        str(folder / "out"),
    ]
    variables = {**os.environ, "NO_COLOR": "1", **environment}
    ran = subprocess.run(command, capture_output=True, text=True, check=False, timeout=300, env=variables)
    return ran.returncode, ran.stdout + ran.stderr


@pytest.fixture
def build(tmp_path):
    """Build a site of one page in a folder of its own."""
    return lambda text, **options: sphinx(tmp_path, {"index": text}, **options)


def line_of(text, needle):
    return next(i for i, line in enumerate(text.splitlines(), 1) if needle in line)


BREAKAGES = {
    "syntax error": (cell("def f(:\n    pass"), "def f(:", "SyntaxError"),
    "unexpected error": (cell("x = 1\ny = 0\nx / y"), "x / y", "ZeroDivisionError: division by zero"),
    "raises nothing": (
        cell("1", ":tags: [raises-exception]", ":raises: ValueError"), "```{code-cell}", "should raise ValueError but raised nothing"
    ),
    "raises another class": (
        cell("1 / 0", ":tags: [raises-exception]", ":raises: ValueError"), "```{code-cell}", "should raise ValueError but raised ZeroDivisionError"
    ),
    "names no class": (cell("1 / 0", ":tags: [raises-exception]"), "```{code-cell}", "names no error class"),
    "nested cell": (":::{note}\n" + cell("1") + ":::\n", "```{code-cell}", "because it is nested"),
    "unasked warning": (cell("import warnings; warnings.warn('hey')"), "```{code-cell}", "wrote to stderr"),
    "silent warning": (cell("1", ":warns: UserWarning"), "```{code-cell}", "should warn with UserWarning but did not"),
    "crash": (cell("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)"), "```{code-cell}", "crashed (SIGSEGV) in compiled code"),
    "no memory": (cell("import os, signal; os.kill(os.getpid(), signal.SIGKILL)"), "```{code-cell}", "was killed (SIGKILL), most likely because memory ran out"),
    "exit": (cell("import os; os._exit(3)"), "```{code-cell}", "ended its process, with exit status 3"),
    "flood": (cell("while True:\n    print('on and on' * 100)"), "```{code-cell}", "printed more than 1,000,000 characters: print less"),
    "unmarked measurement": (cell("import time; time.perf_counter()"), "```{code-cell}", "say `measures: true`"),
    "figure without a text": (
        cell("import matplotlib.pyplot as plt\nplt.plot([1, 2]);"), "```{code-cell}", "say in `:alt:` what it shows"
    ),
    "text without a figure": (cell("1", ":alt: Nothing."), "```{code-cell}", "draws 0 figures"),
    "unknown claim": ("Snow {claim}`no-such-claim`.\n", "no-such-claim", "unknown claim 'no-such-claim'"),
    "unknown page": ("[x](nowhere.md)\n", "nowhere.md", "nowhere.md"),
    "unknown reference": ("{ref}`no-such-label`\n", "no-such-label", "no-such-label"),
    "value never glued": ("{glue:text}`no_such_value`\n", "no_such_value", "no_such_value"),
}  # fmt: skip


@pytest.fixture(scope="module")
def broken_site(tmp_path_factory):
    """One build of all the broken pages, which also shows that one failure does not hide the next."""
    pages = {name.replace(" ", "-"): FRONT + body for name, (body, _, _) in BREAKAGES.items()}
    listed = "\n".join(pages)
    pages["index"] = f"# Broken pages\n\n```{{toctree}}\n{listed}\n```\n"
    return sphinx(tmp_path_factory.mktemp("broken"), pages)


def test_broken_pages_fail_the_build_without_a_python_traceback(broken_site):
    code, printed = broken_site
    assert code != 0
    assert "Traceback (most recent call last)" not in printed


@pytest.mark.parametrize("name", BREAKAGES)
def test_each_breakage_is_told_with_page_and_line(broken_site, name):
    body, needle, message = BREAKAGES[name]
    page, (_, printed) = name.replace(" ", "-"), broken_site
    told = re.findall(rf"{page}\.md:(\d+): WARNING: (.*)", printed)
    assert [line for line, text in told if message in text] == [str(line_of(FRONT + body, needle))], printed


def test_a_good_page_builds(build):
    text = (
        FRONT
        + cell("print(1 + 1)")
        + cell("1 / 0", ":tags: [raises-exception]", ":raises: ZeroDivisionError")
    )
    code, printed = build(text)
    assert code == 0, printed


def test_a_line_that_is_printed_in_pieces_is_one_line(build, tmp_path):
    pieces = cell("import time\nprint('one', end='', flush=True)\ntime.sleep(0.5)\nprint(' line')")
    assert build(FRONT + pieces)[0] == 0
    assert "one line" in (tmp_path / "out" / "index.html").read_text()


def test_what_a_terminal_would_carry_out_is_not_in_a_page(build, tmp_path):
    strange = cell(r"print('a\x00b\x08c \x1b[31mred\x1b[0m\x1b]0;title\x07 10 %\r\x1b[1mall done')")
    assert build(FRONT + strange)[0] == 0
    page = (tmp_path / "out" / "index.html").read_text()
    assert "<span></span>all done" in page
    assert not re.search(r"[\x00-\x08\x0b-\x1f]", page)


def test_a_cell_that_hangs_is_ended_and_named():
    text = FRONT + cell("1") + cell("import time; time.sleep(600)", ":name: hangs")
    running = kernels.Kernels()
    with pytest.raises(notebooks.PageError, match="took more than 20 s: look for a loop") as caught:
        running.execute(notebooks.read(text), timeout=20)  # its start must take less, on a busy machine too
    running.close()
    assert caught.value.line == line_of(text, ":name: hangs") - 1


def test_no_state_goes_from_page_to_page():
    text = FRONT + cell(
        "import sys, jax, numpy\nprint(hasattr(sys, 'left'), jax.config.jax_enable_x64, numpy.random.rand())"
    )
    leave = cell(
        "sys.left = numpy.left = 1\njax.config.update('jax_enable_x64', True)\nx = jax.numpy.ones(3)"
    )
    pages = [notebooks.read(text + leave) for _ in range(3)]
    running = kernels.Kernels()
    for page in pages:
        running.execute(page)
    running.close()
    printed = [notebooks.code_cells(page)[0].outputs[0].text.split() for page in pages]
    assert {tuple(words[:2]) for words in printed} == {("False", "False")}
    assert len({words[2] for words in printed}) == 3


def test_a_missing_kernel_is_named(build):
    code, printed = build(FRONT.replace("name: python3", "name: fortran77") + cell("1"))
    assert code != 0
    assert "there is no kernel 'fortran77'" in printed
    assert "index.md" in printed


def test_a_jax_that_cannot_start_is_one_line(build):
    code, printed = build(FRONT + cell("1"), JAX_PLATFORMS="no_such_platform")
    assert code != 0
    assert "JAX does not start" in printed
    assert "no_such_platform" in printed


def test_a_store_inside_the_source_is_refused(build, tmp_path):
    code, printed = build(FRONT + cell("1"), conf=CONF.replace("../store", str(tmp_path / "docs" / "store")))
    assert code != 0
    assert "must lie outside the source folder" in printed


def test_outputs_are_reused_until_code_or_environment_changes(build, tmp_path):
    page = FRONT + cell("import os; print('run', os.getpid())")
    assert build(page)[0] == 0

    def shown():
        return re.search(r"run (\d+)", (tmp_path / "out" / "index.html").read_text())[1]

    first = shown()
    assert build(page + "\nMore prose.\n")[0] == 0
    assert shown() == first
    assert build(page, XLA_FLAGS="--xla_cpu_enable_fast_math=false")[0] == 0
    assert shown() != first


KILL_THE_BUILD = """\
import os, signal, subprocess, time
forks_kernels = str(os.getppid())
build = subprocess.run(["ps", "-o", "ppid=", "-p", forks_kernels], stdout=subprocess.PIPE).stdout
print("half", flush=True)
os.kill(int(build), signal.SIGKILL)
time.sleep(60)"""


def test_an_interrupted_execution_is_repeated(build, tmp_path):
    assert build(FRONT + cell(KILL_THE_BUILD))[0] == -signal.SIGKILL
    assert not list((tmp_path / "store").rglob("*.json"))
    assert build(FRONT + cell("print('whole')"))[0] == 0
    assert "whole" in (tmp_path / "out" / "index.html").read_text()
