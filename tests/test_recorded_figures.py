"""A figure is drawn again from the recordings of other machines, by the code of its page and of the same experiment."""

import __future__

import ast
import json
import re
import types
import zipfile
from pathlib import Path

import jax
import numpy as np
import pytest
from _ext.execution import forked, kernels, notebooks, recorded, recorded_values
from nbformat.v4 import new_code_cell

from jitguide._recording import experiments

pytestmark = pytest.mark.usefixtures("zygote")
DOCS = Path(__file__).parents[1] / "docs"
SIZES, COMPILING = "From which size on does jit beat NumPy?", "How long does compiling take?"
PAGE = """---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3}
---
# Gains

```{code-cell}
gains = {"14 operations": {10: 1.5, 100: 2.0}}
```

```{code-cell}
:alt: The gain of this build.
:caption: Gain & size.
:recorded: numpy-against-jit
:recorded-alt: The gain of a "recording".
import matplotlib.pyplot as plt

fig, ax = plt.subplots()
for name, of_size in gains.items():
    ax.plot(list(of_size), list(of_size.values()), label=name)
```

```{code-cell}
print(gains)
```
"""


def row(group, what, value):
    return {"group": group, "what": what, "unit": "speedup", "value": value, "low": value, "high": value}


def recording(name, *rows):
    return {"name": name, "made_on": f"{name}: 1 × chip.", "rows": rows}


FAST = recording("fast <GPU>", row(SIZES, "10 numbers", 0.25), row(SIZES, "10,000,000 numbers", 40.0))
OTHER = recording("another", row(COMPILING, "polynomial: trace", 0.1))


@pytest.fixture(scope="module")
def zygote():
    """Fork all kernels from one process: to start one takes longer than what these pages do."""
    shared = forked.Zygote(kernels.environment())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(forked, "Zygote", lambda _: types.SimpleNamespace(fork=shared.fork, close=lambda: None))
        yield
    shared.close()


@pytest.fixture
def recordings(monkeypatch):
    monkeypatch.setattr(recorded, "recordings", lambda: (OTHER, FAST))


def cell(**options):
    return new_code_cell("draw(gains)", metadata=options)


def test_a_recording_without_the_experiment_is_left_out(recordings):
    options = {"recorded": "numpy-against-jit", "recorded-alt": "A line."}
    (found,) = recorded.drawings(cell(**options), 7)
    assert (found.name, found.made_on) == ("fast <GPU>", "fast <GPU>: 1 × chip.")
    drawn = []
    exec(found.source, {"draw": drawn.append, "gains": "of this build"})
    assert drawn == [{"14 operations": {10: 0.25, 10_000_000: 40.0}}]
    assert recorded.drawings(cell(), 7) == []
    # Both questions of this one are needed.
    assert recorded.drawings(cell(**options | {"recorded": "gain-of-jit"}), 7) == []


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"recorded": "no-such"}, "no experiment is called 'no-such'; there are numpy-against-jit,"),
        ({"recorded": "numpy-against-jit"}, "say in `:recorded-alt:` what such a drawing shows."),
    ],
)
def test_a_cell_that_cannot_be_drawn_again_is_refused(options, message):
    with pytest.raises(notebooks.PageError, match=re.escape(message)) as caught:
        recorded.drawings(cell(**options), 7)
    assert caught.value.line == 7


def test_a_page_gets_a_switch_and_keeps_its_own_numbers(recordings):
    notebook = notebooks.read(PAGE)
    kernels.execute(notebook)
    _, figure, printed = notebooks.code_cells(notebook)
    (output,) = figure.outputs
    text = output.data["text/html"]
    buttons = re.findall(r'<input type="radio" name="(\S+)" id="\S+"( checked="checked")? />', text)
    assert [checked for _, checked in buttons] == [' checked="checked"', ""]
    assert len({name for name, _ in buttons}) == 1
    assert re.findall(r"<label for=\S+>(.*?)</label>", text) == ["this build", "fast &lt;GPU&gt;"]
    assert re.findall(r'<svg [^>]*class="(?:wide|narrow)"[^>]*aria-label="([^"]*)"', text) == [
        "The gain of this build.", "The gain of a &quot;recording&quot;.",
    ]  # fmt: skip
    assert text.count('class="phone"') == 2  # each figure has a drawing of a phone's width
    assert re.findall("<figcaption>(.*?)</figcaption>", text) == [
        "Gain &amp; size.", "Gain &amp; size. Recorded on fast &lt;GPU&gt;: 1 × chip.",
    ]  # fmt: skip
    assert [re.findall("<td>(.*?)</td>", table) for table in text.split("<table>")[1:]] == [
        ["10", "1.5", "100", "2"], ["10", "0.25", "1e+07", "40"],
    ]  # fmt: skip
    ids = re.findall(r'\bid="([^"]+)"', text)
    assert len(ids) == len(set(ids))
    assert printed.outputs[0].text == "{'14 operations': {10: 1.5, 100: 2.0}}\n"


def test_code_that_a_recording_cannot_feed_fails_the_page(recordings):
    broken = PAGE.replace("fig, ax", "gains['14 operations'][100]\nfig, ax")
    with pytest.raises(notebooks.PageError, match="drawn from the recording of fast <GPU>: KeyError: 100"):
        kernels.execute(notebooks.read(broken))


def test_the_lesson_measures_what_a_recording_measures():
    """The function and its arguments: the page must be changed with the recording, or lose its switch."""
    notebook = notebooks.read(DOCS.joinpath("learn/when-jit-does-not-help.md").read_text("utf-8"))
    cells = notebooks.code_cells(notebook)
    drawn = next(i for i, one in enumerate(cells) if one.metadata.get("recorded") == "numpy-against-jit")
    source = cells[drawn - 1].source
    functions = [node for node in ast.parse(source).body if isinstance(node, ast.FunctionDef)]
    names = {"np": np, "jnp": jax.numpy}
    exec(compile(ast.Module(functions, []), "page", "exec"), names)
    for size in (10, 1000):
        host, device = names["inputs"](size)
        np.testing.assert_array_equal(host, np.linspace(0, 1, size, dtype=np.float32))
        assert str(jax.make_jaxpr(names["polynomial"])(device)) == str(
            jax.make_jaxpr(experiments.polynomial)(device)
        )
    assert '"NumPy": lambda a, x: polynomial(a),\n    "jit": lambda a, x: polynomial_jit(x),' in source


@pytest.mark.parametrize("name", recorded.EXPERIMENTS)
def test_the_recordings_that_come_with_the_guide_have_the_experiment(name):
    found = recorded.drawings(cell(**{"recorded": name, "recorded-alt": "Bars."}), 1)
    assert len(found) == len(recorded.recordings())


MEASURED = PAGE.replace(
    """```{code-cell}
gains = {"14 operations": {10: 1.5, 100: 2.0}}
```""",
    """```{code-cell}
def measure(size):  # the experiment
    return float(size)


done = []
```""",
).replace(
    """:recorded: numpy-against-jit
:recorded-alt: The gain of a "recording".
import matplotlib.pyplot as plt

fig, ax""",
    """:recorded: two-sizes
:recorded-data: gains, unit
:recorded-alt: The gain of a "recording".
import matplotlib.pyplot as plt

unit, _ = "times", done.append(1)
gains = {name: {"10": measure(size), "100": 2.0} for name, size in [("z", 10), ("a", 20)]}
fig, ax""",
)
MACHINE = {
    "jax": "0.12.0.1", "jaxlib": "0.12.0.1", "platform": "gpu", "device_kind": "chip", "device_count": 1, "cpu": "other",
    "cores": 8, "settings": {"jax_enable_x64": "True"}, "load": 0.1,
}  # fmt: skip
ENTRY = {
    "date": "2026-01-02", "machine": MACHINE, "experiment": "0" * 16,
    "values": {"gains": {"z": {"10": 7.0, "100": 8.0}}, "unit": "times"},
}  # fmt: skip
FILE = "docs/_data/figures/fast.json"


@pytest.fixture
def on_fast(monkeypatch):
    """Return a function that says what was recorded of `two-sizes` on another machine."""

    def give(**changes):
        entry = {key: value for key, value in {**ENTRY, **changes}.items() if value is not None}
        recordings = {FILE: {"name": "fast <GPU>", "figures": {"two-sizes": entry}}}
        monkeypatch.setattr(recorded_values, "recordings", lambda: recordings)

    return give


def run(text, machine=""):
    """Return an executed page."""
    notebook, started = notebooks.read(text), kernels.Kernels(machine=machine)
    try:
        started.execute(notebook)
    finally:
        started.close()
    return notebook


def test_a_page_records_what_its_figure_drew(on_fast):
    on_fast()
    notebook = run(MEASURED)
    (entry,) = [notebook.metadata["recorded"]["two-sizes"]]
    assert entry["values"] == {
        "gains": {"z": {"10": 10.0, "100": 2.0}, "a": {"10": 20.0, "100": 2.0}},
        "unit": "times",
    }
    assert list(entry["values"]["gains"]) == ["z", "a"]  # as they are drawn
    assert set(entry["machine"]) >= {"jax", "platform", "device_kind", "cpu", "cores", "load"}
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", entry["date"])
    assert entry["experiment"] == recorded_values.experiments(notebook)["two-sizes"][1]


def test_a_figure_is_drawn_from_recorded_variables_and_measures_nothing_again(on_fast):
    on_fast()
    _, figure, printed = notebooks.code_cells(
        run(MEASURED.replace("print(gains)", "print(done, list(gains))"))
    )
    text = figure.outputs[0].data["text/html"]
    assert re.findall(r"<label for=\S+>(.*?)</label>", text) == ["this build", "fast &lt;GPU&gt;"]
    assert re.findall("<figcaption>(.*?)</figcaption>", text)[1] == (
        "Gain &amp; size. Recorded on fast &lt;GPU&gt;: 1 × chip (gpu), other, 8 cores, JAX 0.12.0.1, 2026-01-02, "
        "jax_enable_x64=True."
    )
    assert [re.findall("<td>(.*?)</td>", table) for table in text.split("<table>")[1:]] == [
        ["10", "10", "100", "2"], ["10", "20", "100", "2"], ["10", "7", "100", "8"],
    ]  # fmt: skip
    assert printed.outputs[0].text == "[1] ['z', 'a']\n"  # of this build


def test_a_machine_that_is_recorded_again_is_not_drawn(on_fast):
    on_fast(values={"what it drew": "before"})
    _, figure, _ = notebooks.code_cells(run(MEASURED, machine="fast <GPU>"))
    assert "figure-switch" not in figure.outputs[0].data["text/html"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"machine": None}, f"{FILE} doesn't say on what 'two-sizes' was measured: jax, jaxlib, platform,"),
        ({"machine": {**MACHINE, "cpu": None}}, "on what 'two-sizes' was measured: cpu."),
        ({"date": None}, "on what 'two-sizes' was measured: date."),
        ({"values": {"gains": {}}}, f"the cell draws gains, unit, and {FILE} has gains of 'two-sizes': record it again."),
        ({"values": {"gains": 3, "unit": ""}}, "drawn from the recording of fast <GPU>: AttributeError: 'int' object has"),
    ],
)  # fmt: skip
def test_a_recording_that_does_not_fit_fails_the_page(on_fast, changes, message):
    on_fast(**changes)
    with pytest.raises(notebooks.PageError, match=re.escape(message)) as caught:
        run(MEASURED)
    assert caught.value.line == MEASURED[: MEASURED.index(":alt:")].count("\n")


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ("{1: 2.0}", "TypeError: only lists, dicts with text as keys, numbers and text can be recorded"),
        ("(1, 2)", "TypeError: only lists"),
        ("float('nan')", "ValueError: Out of range float values"),
        ("plt", "TypeError: Object of type module is not JSON serializable"),
    ],
)
def test_what_is_no_plain_data_cannot_be_recorded(on_fast, value, message):
    on_fast()
    text = MEASURED.replace('unit, _ = "times"', f"unit, _ = {value}")
    with pytest.raises(notebooks.PageError, match=re.escape(f"cannot be recorded: {message}")) as caught:
        run(text)
    assert caught.value.line == MEASURED[: MEASURED.index(":alt:")].count("\n")


def test_variables_without_a_name_are_refused():
    with pytest.raises(notebooks.PageError, match="name that with `:recorded:`"):
        recorded_values.experiments(notebooks.read(MEASURED.replace(":recorded: two-sizes\n", "")))


def test_an_experiment_is_the_code_that_measures():
    def digest(old="", new=""):
        return recorded_values.experiments(notebooks.read(MEASURED.replace(old, new)))["two-sizes"][1]

    same = [("# Gains", "# Losses"), ("  # the experiment\n", "\n    # one\n"), ("fig, ax", "width = 3\nfig, ax"),
            ("ax.plot(", "ax.bar("), ("print(gains)", "pass")]  # fmt: skip
    assert {digest(*one) for one in same[:1] + same[2:]} == {digest()}
    assert digest("    return float(size)", "    # of a size\n\n    return float(size)") == digest()
    other = [("float(size)", "2.0 * size"), ('("a", 20)', '("a", 30)'), ('"times"', '"x"')]
    assert len({digest(), *(digest(*one) for one in other)}) == 4


CONF = """
import sys
from pathlib import Path
sys.path.insert(0, {docs!r})
from _ext.execution import fingerprint
fingerprint.FIGURES = Path({folder!r}) / "figures"
project = "small"
extensions = ["myst_nb", "_ext.execution"]
nb_execution_mode = "off"
nb_custom_formats = {{".md": ["_ext.execution.read", {{}}, False]}}
guide_store = {folder!r} + "/store"
html_theme = "basic"
"""


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_build_records_its_figures_and_another_draws_them(tmp_path, sphinx):
    source, file = tmp_path / "docs", tmp_path / "figures" / "fast.json"
    source.mkdir()
    (source / "conf.py").write_text(CONF.format(docs=str(DOCS), folder=str(tmp_path)))
    (source / "index.md").write_text(MEASURED)

    def build(*options):
        code, printed = sphinx("-W", "--keep-going", *options, source, tmp_path / "out")
        return code, printed, (tmp_path / "out" / "index.html").read_text("utf-8")

    options = ["-D", "guide_machine=fast <GPU>", "-D", f"guide_figures={file}"]
    code, printed, page = build(*options)
    assert code == 0, printed
    assert "figure-switch" not in page
    recorded_there = json.loads(file.read_text("utf-8"))
    assert recorded_there["name"] == "fast <GPU>"
    assert list(recorded_there["figures"]["two-sizes"]["values"]["gains"]) == ["z", "a"]

    code, printed, page = build()  # the file is new, so the page runs again
    assert code == 0, printed
    assert page.count("Recorded on fast &lt;GPU&gt;: ") == 1

    recorded_there["figures"]["another"] = ENTRY  # of a page that this build doesn't have
    file.write_text(json.dumps(recorded_there))
    assert build(*options)[0] == 0
    assert set(json.loads(file.read_text("utf-8"))["figures"]) == {"another", "two-sizes"}

    (source / "index.md").write_text(MEASURED.replace("float(size)", "2.0 * size"))
    code, printed, _ = build()
    assert code != 0
    line = MEASURED[: MEASURED.index(":alt:")].count("\n")
    assert (
        f"index.md:{line}: WARNING: the page measures 'two-sizes' in another way than when fast <GPU>"
        in printed
    )
    assert 'nox -s record -- "fast <GPU>" index' in printed
    assert build(*options)[0] == 0


@pytest.mark.parametrize("built", [True, False])
def test_the_recordings_of_another_machine_are_unpacked(tmp_path, capsys, built):
    tree = ast.parse((DOCS.parent / "noxfile.py").read_text("utf-8"))
    tree.body = [
        one for one in tree.body if getattr(one, "name", "") in ("recording_files", "unpack_recording")
    ]
    flag = __future__.annotations.compiler_flag
    space = {"ROOT": tmp_path, "json": json, "re": re, "zipfile": zipfile}
    exec(compile(tree, "noxfile.py", "exec", flags=flag), space)
    for folder in ("jitguide/_recording/machines", "docs/_data"):
        (tmp_path / folder).mkdir(parents=True)
    with zipfile.ZipFile(tmp_path / "results.zip", "w") as packed:
        packed.writestr("machine.json", '{"name": "8-core Laptop!"}')
        packed.writestr("claims.json", "{}")
        if built:
            packed.writestr("figures.json", "{}")
    space["unpack_recording"](None, str(tmp_path / "results.zip"))
    found = [path.relative_to(tmp_path).as_posix() for path in sorted(tmp_path.rglob("8-core-laptop.json"))]
    figures = ["docs/_data/figures/8-core-laptop.json"] if built else []
    assert found == [*figures, "jitguide/_recording/machines/8-core-laptop.json"]
    assert ("nothing: the site was not built there" in capsys.readouterr().out) is not built


# Figures of pages that measure which show no measured number.
DRAWS_NO_TIME = {
    (
        "howto/training-memory",
        "Temporary memory of the gradient, and how much of it each further block adds.",
    ),
    ("learn/a-real-program", "The chemical `v`, every thousand steps."),
    ("learn/shapes", "The length after padding. For powers of two, each level is a compile."),
    ("learn/what-jit-buys-you", "Each call looks in the cache first, and compiles only on a miss."),
    ("learn/what-jit-buys-you", "Megabytes that a call reads and writes for a million numbers."),
    ("ten-minutes", "When each line of scaled_sum runs."),
}


def figures():
    """Yield page and cell of every figure on a page that measures."""
    for path in sorted(DOCS.rglob("*.md")):
        page = path.relative_to(DOCS).with_suffix("").as_posix()
        if page[0] != "_" and "measures: true" in (text := path.read_text("utf-8")):
            yield from (
                (page, one) for one in notebooks.code_cells(notebooks.read(text)) if "alt" in one.metadata
            )


def test_every_measured_figure_can_be_switched():
    without = {(page, one.metadata["caption"]) for page, one in figures() if "recorded" not in one.metadata}
    assert without == DRAWS_NO_TIME


def test_the_recorded_figures_that_come_with_the_guide_are_those_of_its_pages():
    names = [one.metadata["recorded"] for _, one in figures() if recorded_values.variables(one)]
    assert len(names) == len(set(names))
    for file, one in recorded_values.recordings().items():
        assert sorted(one["figures"]) == sorted(names), file
    assert {one["name"] for one in recorded_values.recordings().values()} == {
        one["name"] for one in recorded.recordings()
    }
