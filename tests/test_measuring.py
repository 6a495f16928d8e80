"""The cells that measure are found, however they come by a clock; and all of the guide's pages say that they measure."""

import inspect
from pathlib import Path

import pytest
from _ext.execution import measuring, notebooks

import jitguide

DOCS = Path(__file__).parents[1] / "docs"
FRONT = "---\nfile_format: mystnb\nkernelspec: {name: python3, display_name: Python 3}\n"


def page(*sources, marked=True):
    cells = "".join(f"```{{code-cell}}\n{source}\n```\n\n" for source in sources)
    return notebooks.read(FRONT + "measures: true\n" * marked + "---\n\n# Page\n\n" + cells)


def measuring_cells(*sources, marked=True):
    return [number for number, found in enumerate(measuring.cells(page(*sources, marked=marked))) if found]


@pytest.mark.parametrize(
    "sources",
    [
        ["import time", "time.perf_counter()"],
        ["import time as clock", "clock.monotonic()"],
        ["from time import perf_counter as now", "start = now()"],
        ["import timeit", "timeit.timeit('1')"],
        ["1", "%timeit 1"],
        ["1", "%%time\n1"],
        ["from jitguide import compare", "compare({})"],
        ["from jitguide import phases as cost", "cost(f)"],
        ["import jitguide", "jitguide.scaling({}, f, [1])"],
        ["import jitguide", "getattr(jitguide, name)({})"],
        ["import time\ndef took(): return time.time()", "took()"],
        ["def took(): return clock()\nfrom time import time as clock", "print([took() for _ in range(3)])"],
        ["import time\ntook = lambda: time.time()", "took()"],
        ["import time\ndef one(): return time.time()\ndef two(): return one()", "two()"],
        ["def two(): return one()\nimport time\ndef one(): return time.time()", "two()"],
        ["import time\ndef use(f): return f()", "use(time.time)"],
        ["import time\nclass Clock:\n    def read(self): return time.time()", "Clock().read()"],
        [
            "import time\ndef timed(f):\n    def inner(): return time.time()\n    return inner\n",
            "@timed\ndef f(): pass",
        ],
        ["1", "exec('import time; print(time.perf_counter())')"],
        ["1", "with jax.profiler.trace('/tmp/x'): f()"],
        ["import subprocess", "subprocess.run(command)"],
    ],
)
def test_a_cell_that_measures_is_found(sources):
    assert measuring_cells(*sources) == [1]


@pytest.mark.parametrize(
    ("sources", "found"),
    [
        (["import time\nclocks = [lambda: time.time()]", "clocks[0]()"], [1]),
        (["import time\nclocks = []\nclocks.append(lambda: time.time())", "clocks[0]()"], [1]),
        (
            ["import time\nclass Clock:\n    def read(self): return time.time()", "c = Clock()", "c.read()"],
            [1, 2],
        ),
        (["import functools, time", "now = functools.partial(time.time)", "now()"], [1, 2]),
        (["from jitguide import watch", "f = watch(g)", "f(1)", "print(f.calls[0].seconds)"], [1, 2, 3]),
    ],
)
def test_what_holds_a_clock_measures_too(sources, found):
    assert measuring_cells(*sources)[-1] == found[-1]
    assert set(found) - set(measuring_cells(*sources)) <= {0}


@pytest.mark.parametrize(
    "sources",
    [
        ["import time", "def f(): return time.time()", "print(f)" if False else "1"],
        ["import time", "time.sleep(1)"],
        ["from jitguide import compare", "print('compare')"],
        ["import jitguide", "jitguide.watch(f)(1)\nprint(jitguide.__file__)"],
        ["from jax.experimental import checkify", "checkify.check(x > 0, 'positive')"],
        ["def f(:"],
        ["from jitguide import compare\nresult = 1", "print(result)"],
    ],
)
def test_a_cell_that_does_not_measure_is_not_held_up(sources):
    assert measuring_cells(*sources) == []


def test_a_result_is_shown_without_measuring_again():
    assert measuring_cells("from jitguide import compare", "result = compare({})", "print(result.table)") == [
        1
    ]


def test_a_page_that_measures_and_does_not_say_so_is_refused():
    measuring.check(page("import time", "time.time()"))
    measuring.check(page("import time", "1", marked=False))
    with pytest.raises(notebooks.PageError, match="say `measures: true` in the front matter") as caught:
        measuring.check(page("import time", "time.time()", marked=False))
    assert caught.value.line == 12


def test_a_cell_can_say_that_what_it_starts_measures_nothing():
    quiet = ":measures: false\n\nsubprocess.run(command)"
    assert measuring_cells("import subprocess", quiet, "subprocess.run(command)") == [2]
    assert measuring_cells("import time", ":measures: false\n\ntime.time()") == [1]  # it does


def test_every_function_of_jitguide_is_known_to_measure_or_not():
    functions = {name for name in jitguide.__all__ if inspect.isfunction(getattr(jitguide, name))}
    others = {
        "assert_compiles",
        "assert_traces",
        "check",
        "device_report",
        "expect_error",
        "explain",
        "stages",
        "watch",
    }
    sources = [f"import jitguide\njitguide.{name}" for name in sorted(functions)]
    measure = {
        name for name, source in zip(sorted(functions), sources, strict=True) if measuring_cells(source)
    }
    assert measure == {"compare", "phases", "scaling", "peaks", "roofline", "record"}
    assert functions - measure <= others


def test_the_pages_of_the_guide_say_that_they_measure():
    for path in DOCS.rglob("*.md"):
        if "_build" not in path.parts and "{code-cell}" in (text := path.read_text("utf-8")):
            notebook = notebooks.read(text, path)
            measuring.check(notebook)
            assert any(measuring.cells(notebook)) == bool(notebook.metadata.get("measures")), path
