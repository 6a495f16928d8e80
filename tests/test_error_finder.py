"""The box for error messages finds in the browser what `explain` finds in Python."""

import json
from pathlib import Path

import jax
import pytest
from _ext.directives import error_finder
from py_mini_racer import MiniRacer

from jitguide import explain
from jitguide._errors.entries import catalogue

HOMES = {entry.key: "reference/errors" for entry in catalogue()}
SCRIPT = Path(__file__).parents[1] / "docs" / "_static" / "finder" / "explain.js"
FRAME = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 7, in step\n    {}\n'
IN_TORCH = (
    'Traceback (most recent call last):\n  File "/opt/torch/lib/site-packages/{}", line 7, in f\n    g(x)\n'
    "ValueError: a"
)
FOREIGN = [
    "KeyError: 'loss'",
    FRAME.format("x = d['a']") + "KeyError: 'a'",
    "RuntimeError: CUDA error: an illegal memory access was encountered\nCompile with `TORCH_USE_CUDA_DSA`",
    FRAME.format("import flox") + "ModuleNotFoundError: No module named 'flox'",
    "ValueError: could not convert string to float: 'a'",
    "my loss is too large",
    "FAILED test_a.py::test - AssertionError: Arrays are not almost eq...",
    "ImportError: cannot import name 'runtime' from 'torch_xla'",
    IN_TORCH.format("torch/nn/a.py"),
]


def readable(pattern):
    """Return a text that a pattern matches, or at least words of it."""
    from _ext.directives.error_index import readable as words

    return words(pattern).replace("…", "x")


def tracebacks():
    """Yield for each pattern of each entry, in turn, a message, a traceback, or a traceback without its first half."""
    count = 0
    for entry in catalogue():
        for pattern in entry.patterns:
            message = readable(pattern)
            line = f"{entry.error}: {message}" if entry.error else message
            whole = FRAME.format(entry.example.strip().splitlines()[-1] if entry.example else "f(x)") + line
            yield (message, whole, whole[len(whole) // 2 :])[count % 3]
            count += 1


@pytest.fixture(scope="module")
def v8():
    engine = MiniRacer()
    engine.eval(SCRIPT.read_text("utf-8"))
    engine.eval(f"GuideErrors.load({json.dumps(error_finder.data(HOMES))})")
    yield engine
    engine.close()


def in_browser(v8, text):
    call = f"(r => [r.found, r.foreign, r.entry?.key ?? null, r.others.map(e => e.key)])(GuideErrors.explain({json.dumps(text)}))"
    return v8.execute(call)


def in_python(text):
    found = explain(text)
    return [found.found, found.foreign, found.key, list(found.others)]


def differ(browser, python, text):
    """Return whether both say another thing; the browser has no source of JAX to find an unknown message in."""
    return browser != python and not (not browser[0] and not python[0] and explain(text).where)


@pytest.mark.timeout(300)  # provokes every error of the catalogue
def test_both_find_the_same_in_every_message_of_the_catalogue(v8):
    texts = [text for text in tracebacks() if text.strip()]
    assert len(texts) > 500
    found = {text: (in_browser(v8, text), in_python(text)) for text in texts}
    assert {text: both for text, both in found.items() if differ(*both, text)} == {}
    assert sum(python[0] for _, python in found.values()) > 0.6 * len(found)  # most of them are found at all


@pytest.mark.parametrize("text", FOREIGN)
def test_both_say_that_an_error_is_not_of_jax(v8, text):
    assert in_browser(v8, text) == in_python(text)
    assert in_browser(v8, text)[:2] == [False, True]


def test_both_take_a_folder_called_torch_for_no_library(v8):
    text = IN_TORCH.format("jax/_src/a.py")
    assert in_browser(v8, text)[:2] == list(in_python(text)[:2]) == [False, False]


def test_boxes_cells_and_chains_of_tracebacks_are_read_alike(v8):
    message = "TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]."
    for text in (
        f"╭── Traceback ──╮\n│ ❱ 7 if x > 0: │\n╰──╯\n{message}",
        f"Cell In[3], line 2\n----> 2 if f'{{x > 0}}':\n{message}",
        FRAME.format("d[x]  # a key")
        + "KeyError: 1\n\nDuring handling of the above exception, another occurred:\n\n"
        + message,
        f"E   jax.errors.{message}\r\nFAILED test_a.py::test - jax.errors.{message}",
        "a line of a log\n" * 10_000 + message,
        "a line of a log\n" * 10_000 + FRAME.format("if x:") + message + "\na line of a log" * 10_000,
        "".join(
            f"[rank 3 | 12:0{i}] {line}\n"
            for i, line in enumerate((FRAME.format("if x:") + message).splitlines())
        ),
        f"train.py:7: in step\n    if x:\nE   {message}",
        "AttributeError: module \u2018jax.core\u2019 has no attribute \u2018Shape\u2019",
        "FAILED test_a.py::test - TypeError: scan body output must be a pa...",
        "[/lib/dist-packages/jax/core.py](https://localhost:8080/#) in f(x)\n      1 x\n----> 2 g(x)\n\n"
        + message,
    ):
        assert in_browser(v8, text) == in_python(text)
        assert in_browser(v8, text)[0]


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/venv/lib/python3.11/site-packages/jaxopt/_src/bisection.py", "jaxopt"),
        ("/venv/lib/python3.11/site-packages/numpy/_core/fromnumeric.py", ""),
        ("/home/me/bisection.py", ""),
    ],
)
def test_both_say_that_the_failing_line_is_in_a_library(v8, file, library):
    text = (
        FRAME.format("solve(x)").rstrip("\n")
        + f'\n  File "{file}", line 7, in init\n    if low > high:\n'
        + '  File "/venv/lib/python3.11/site-packages/jax/_src/core.py", line 1, in error\n    raise e\n'
        + "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]."
    )
    assert v8.execute(f"GuideErrors.explain({json.dumps(text)}).library") == explain(text).where == library
    assert (f"in the library `{library}`" in repr(explain(text))) == bool(library)


def test_the_public_names_of_jax_are_those_that_it_has():
    public = error_finder.public_names(jax)
    assert "key" in public["jax.random"]
    assert "norm" in public["jax.numpy.linalg"]
    assert "numpy" in public["jax"]
    assert "KeyArray" not in public["jax.random"]
    assert all(module.startswith("jax") and module.count(".") <= 2 for module in public)
