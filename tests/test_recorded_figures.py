"""A figure is drawn again from the recordings of other machines, by the code of its page and of the same experiment."""

import ast
import re
from pathlib import Path

import jax
import numpy as np
import pytest
from _ext.execution import kernels, notebooks, recorded
from nbformat.v4 import new_code_cell

from jitguide._recording import experiments

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
    assert re.findall(r'<svg [^>]*aria-label="([^"]*)"', text) == [
        "The gain of this build.", "The gain of a &quot;recording&quot;.",
    ]  # fmt: skip
    assert re.findall("<figcaption>(.*?)</figcaption>", text) == [
        "Gain &amp; size.", "Recorded on fast &lt;GPU&gt;: 1 × chip.",
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
