"""Programs made of small pages behave as the pages did, and hold no more than they need."""

import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest
from _ext.programs import candidates, compare_outputs, runner
from _ext.programs.prove import Trial, prove
from _ext.programs.render import Origin, write
from _ext.programs.slicer import Cell, Page

sys.path.insert(0, str(Path(__file__).parent / "minipages"))
from pages import PAGES

pytestmark = pytest.mark.timeout(300)  # the first test runs about a hundred programs; 40 s on a quiet machine
ORIGIN = Origin("A page", "learn/a-page", "0.12.0")
NOTEBOOK = Path(__file__).parent / "minipages" / "notebook.py"


def cells_of(text):
    """Return source and metadata of each cell of a small page."""
    found = []
    for part in f"\n{text}".split("# %%"):
        head, _, source = part.partition("\n")
        found.append({"source": source.strip("\n"), "metadata": {}, "raises": "raises" in head})
    return found


def executed(pages):
    """Run small pages as a notebook would; return their cells with outputs."""
    cells = {name: cells_of(text) for name, text in pages.items()}
    asked = json.dumps({name: [c["source"] for c in found] for name, found in cells.items()})
    with tempfile.TemporaryDirectory() as folder:  # some pages write files
        ran = subprocess.run(
            [sys.executable, str(NOTEBOOK)],
            input=asked,
            capture_output=True,
            text=True,
            check=True,
            env=os.environ,
            cwd=folder,
        )
    for line in ran.stdout.splitlines():
        name, outputs = json.loads(line)
        for cell, found in zip(cells[name], outputs, strict=True):
            cell["outputs"] = found
    return cells


@pytest.fixture(scope="module")
def chosen():
    """Every small page with the chosen program of each of its cells."""
    found = {}
    for name, cells in executed(PAGES).items():
        found[name] = candidates.prepare(cells, Origin(name, name, "0.12.0"))
        for number, cell in enumerate(cells):
            assert bool(found[name][number].expected.error) == cell["raises"], (name, number)
    candidates.choose([one for page in found.values() for one in page.values()])
    return found


@pytest.mark.slow
@pytest.mark.parametrize("name", PAGES)
def test_each_program_behaves_as_its_cell_did(chosen, name):
    assert {number: one.problem for number, one in chosen[name].items() if one.problem} == {}


@pytest.mark.slow
def test_few_cells_need_everything_before_them(chosen):
    widest = [c.name for found in chosen.values() for c in found.values() if c.level == candidates.LEVELS[-1]]
    assert len(widest) <= 2, widest


@pytest.mark.slow
@pytest.mark.parametrize(
    ("page", "cell", "kept", "left"),
    [
        ("second call", 3, "print(f(1))", "print(f(2.0))"),
        ("a call long before", 4, "f(jnp.ones(2))", "unrelated"),
        ("stale global", 4, "print(f(3.0))", "ones"),
        ("mutation", 5, "seen.append(1)", "other"),
        ("donation", 2, "y = f(x)", "sum"),
        ("failed trace", 4, "tracing again", "if x > 0"),
        ("raising in the middle", 2, "x = jnp.arange(3)", "x[0] = 5"),
        ("a name with two lives", 2, "the second", "the first"),
        ("generator", 3, "b = rng.integers(10)", "print(a)"),
        ("ambient", 3, "jax_debug_nans", "warn("),
        ("custom rule", 2, "f.defjvp(rule)", "jit"),
        ("loop variable", 1, 'for x in "ab"', "append"),
        ("files", 2, "print(1)", "print(2)"),
        ("a draw too late", 3, "values =", "later"),
        ("a draw too late", 4, "later =", "print(values"),
        ("comprehension in a function", 2, "import jax.numpy as jnp", "unrelated"),
        ("lambda in a loop", 1, "(abs, float)", "unrelated"),
    ],
)
def test_what_is_kept_and_what_is_left(chosen, page, cell, kept, left):
    text = chosen[page][cell].text
    assert kept in text
    assert left not in text.replace("print(b", "")


# Statements to leave out of the program of a cell, each of which changes what it does.
DROPPED = {
    ("second call", 3): "print(f(1))",
    ("mutation", 5): "seen.append(1)",
    ("donation", 2): "y = f(x)",
    ("stale self", 2): "print(c.calc(3))",
    ("ambient", 3): 'jax.config.update("jax_debug_nans", True)',
    ("trace counter", 2): "f(1), f(2), f(1.0)",
    ("alias", 3): "print(a(1))",
}


@pytest.fixture(scope="module")
def without(chosen):
    """The outcome of each of these programs without its statement."""
    jobs = []
    for (page, cell), statement in DROPPED.items():
        one = chosen[page][cell]
        text = one.text.replace(f"\n{statement}\n", "\n", 1)
        assert text != one.text
        jobs.append(candidates.job(page, text, one.expected.shown is not None))
    return runner.run(jobs)


@pytest.mark.slow
@pytest.mark.parametrize(("page", "cell"), DROPPED)
def test_a_dropped_statement_is_noticed(chosen, without, page, cell):
    assert compare_outputs.difference(chosen[page][cell].expected, [without[page]], measured=())


def test_a_break_even_may_come_and_go_and_no_other_finding():
    advice = {"break-even": "Jit a larger function.", "constant": "Pass it as an argument."}

    def said(*kinds):
        lines = [
            f"{i}. {kind}: A jitted call takes 2 µs.\n   {advice[kind]}" for i, kind in enumerate(kinds, 1)
        ]
        title = f"f: {len(kinds)} findings" if kinds else "f: nothing found. Checked retraces, break-even."
        return compare_outputs.normal("\n".join([title, *lines]), ["clock"])

    assert said("constant") == said("constant", "break-even")
    assert said() == said("break-even")
    unknown = "f: nothing found. Checked retraces.\nBreak-even was not checked: it was compiled before."
    assert compare_outputs.normal(unknown, ["clock"]) == said("break-even")
    assert said() != said("constant")


@pytest.mark.slow
def test_the_readme_shows_what_its_code_prints():
    text = (Path(__file__).parents[1] / "README.md").read_text("utf-8")
    code, shown = re.findall(r"```(?:python|text)\n(.*?)```", text, re.DOTALL)[:2]
    outcome = runner.run([runner.Job("readme", code)])["readme"]
    page = compare_outputs.Expected(printed=shown)
    assert compare_outputs.difference(page, [outcome], compare_outputs.instruments(code)) == ""


def test_the_load_of_the_machine_may_differ_and_be_the_same_in_all_runs():
    report = "JAX    0.10.2\nload   {}".format
    page = compare_outputs.Expected(shown=tuple(report("4.9").splitlines()))
    runs = [runner.Outcome(plain=report("4.7"))] * 3
    assert compare_outputs.difference(page, runs, ["clock"]) == ""
    assert compare_outputs.difference(
        page, [runner.Outcome(plain="JAX    0.10.3\nload   4.7")] * 3, ["clock"]
    )


@pytest.mark.parametrize(
    "note",
    [
        "With one wait after many calls, 'the first variant' takes 3.6 µs a call, 'the second' 77\n  µs.",
        "Size 1000: With one wait after many calls, 'NumPy' takes 3.6 µs a call, 'jit' 27 µs.",
        "Sizes 16, 1e+06: With one wait after many calls, 'one argument' takes 3.6 µs a call, 'a list' 27 µs.",
        "The GPU's clock went from 1980 to 1665 MHz: trust the ratios more than the times.",
        "Size 10: The GPU's clock went from 1980 to 1665 MHz: trust the ratios more than the times.",
        "By its typical block 'jit' is faster than 'plain', by its fastest tenth it is not.",
        "Compiled again without autotuning (`xla_gpu_autotune_level=0`): 78 ms.",
        "Other programs kept 0.7 cores busy: trust the ratios more than the times.",
    ],
)
def test_notes_on_how_a_measurement_went_may_come_and_go(note):
    assert compare_outputs.normal(f"variant  time\n{note}\nend", ["clock"]) == ["variant time", "end"]


@pytest.mark.slow
def test_an_unseeded_generator_is_noticed():
    page = "import numpy as np\nrng = np.random.default_rng()\n# %%\nprint(rng.normal())"
    legacy = "import numpy as np\n# %%\nprint(np.random.randn())"
    pages = executed({"new": page, "legacy": legacy})
    unseeded = [candidates.prepare(cells, Origin(name, name, "0.12.0"))[1] for name, cells in pages.items()]
    candidates.choose(unseeded)
    assert all("it prints" in one.problem for one in unseeded)


@pytest.mark.slow
@pytest.mark.parametrize(("fresh", "scale"), [(False, "0.1"), (True, "None")])
def test_only_forked_programs_measure_briefly(fresh, scale, monkeypatch):
    monkeypatch.delenv("JITGUIDE_BUDGET_SCALE")
    text = "import os, jitguide\nprint(os.environ.get('JITGUIDE_BUDGET_SCALE'))"
    assert runner.run([runner.Job("x", text, fresh=fresh)])["x"].stdout.strip() == scale


@pytest.mark.slow
def test_a_block_that_would_tell_compiles_by_itself():
    text = (
        "import jax\nf = jax.jit(lambda x: x * 3.25)\nread = []\n"
        "getattr(jax, 'monit' 'oring').register_event_listener("
        "lambda event, **_: read.append(1) if event.endswith('cache_hits') else None)\n"
    )
    block = text.count("\n") + 1
    programs = {
        "first": "f(1.0)",
        "shares": "f(1.0)\nprint(len(read))",
        "tells": "f(1.0)  # monitoring\nprint(len(read))",
    }
    found = runner.run([runner.Job(n, text + t, block) for n, t in programs.items()], workers=1)
    assert int(found["shares"].stdout) > 0
    assert int(found["tells"].stdout) == 0


@pytest.mark.parametrize(
    ("outputs", "measures", "fresh", "problem"),
    [
        (["right"], False, [False], ""),
        (["wrong", "right"], False, [False, True], ""),
        (["wrong", "wrong"], False, [False, True], "it prints wrong"),
        (["wrong", "right"], True, [False, True], ""),
        (["wrong", "wrong", "right"], True, [False, True, False], ""),
        (["wrong", "wrong", "wrong"], True, [False, True, False], "it prints wrong"),
    ],
)
def test_a_program_is_run_again_until_it_behaves_or_cannot(monkeypatch, outputs, measures, fresh, problem):
    jobs = []

    def run(asked, _workers):
        jobs.extend(asked)
        return {job.name: runner.Outcome(stdout=outputs[len(jobs) - 1]) for job in asked}

    def difference(runs):
        return "" if runs[0].stdout == "right" else f"it prints {runs[0].stdout}"

    monkeypatch.setattr(runner, "run", run)
    trial = Trial(lambda fresh: runner.Job("x", "", fresh=fresh), difference, measures)
    assert prove({"x": trial}, 1)["x"].difference == problem
    assert [job.fresh for job in jobs] == fresh


def test_imports_come_first_unless_settings_stand_before_them():
    cells = [
        "import jax",
        "x = jax.numpy.ones(3)",
        "import numpy as np\nimport math",
        "print(np.sum(x), math.pi)",
    ]
    text = write(Page([Cell(source) for source in cells]), 3, 1, Origin("A page", "learn/a-page", "0.12.0"))
    assert text.splitlines()[2:7] == ["import math", "", "import jax", "import numpy as np", ""]
    cells[1] = 'jax.config.update("jax_enable_x64", True)\nx = jax.numpy.ones(3)'
    text = write(Page([Cell(source) for source in cells]), 3, 1, Origin("A page", "learn/a-page", "0.12.0"))
    assert text.index("jax.config") < text.index("import numpy")
