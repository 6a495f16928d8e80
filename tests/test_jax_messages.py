"""`explain` knows JAX's own messages that the catalogue has no entry for, and no others."""

import ast
from pathlib import Path

import jax
import pytest

from jitguide import explain

NOT_JAX = [
    "ValueError: my own sizes do not fit together",
    "ValueError: `in_channels` (=3) must be divisible by `groups` (=2)",
    "ValueError: x and y must have the same length",
    "AttributeError: module 'optax' has no attribute 'adamx'",
    "IndexError: index 4 is out of bounds for axis 0 with size 3",
]
NDMIN = "TypeError: ndmin 3 cannot be greater than object's ndims 2 for string arrays."


def raised_in(folder):
    """Yield the texts of all raises with words enough, a value in place of each hole, and their files."""
    root = Path(jax.__file__).parent
    for path in sorted((root / folder).glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            call = node.exc if isinstance(node, ast.Raise) else None
            if (
                isinstance(call, ast.Call)
                and call.args
                and isinstance(call.args[0], ast.Constant | ast.JoinedStr)
            ):
                parts = getattr(call.args[0], "values", [call.args[0]])
                text = "".join(str(p.value) if isinstance(p, ast.Constant) else "(3, 4)" for p in parts)
                if len(text.replace("(3, 4)", "").split()) > 5:
                    yield f"{ast.unparse(call.func)}: {text}", path.relative_to(root.parent).as_posix()


def test_most_messages_of_jax_are_known_with_their_file():
    texts = list(raised_in("_src/numpy"))
    assert len(texts) > 150
    found = [(explain(text), file) for text, file in texts]
    assert sum(e.found or file in e.where for e, file in found) > 0.9 * len(texts)
    assert sum(e.foreign for e, _ in found) < 0.05 * len(texts)


@pytest.mark.parametrize("text", NOT_JAX)
def test_messages_of_others_are_not_jax(text):
    found = explain(text)
    assert (found.found, found.where) == (False, "")
    assert found.foreign


def test_the_function_that_has_the_message_is_named():
    shown = repr(explain(NDMIN))
    assert "JAX:    `_make_string_array` in jax/_src/numpy/array_constructors.py has this" in shown


def test_a_line_of_yours_that_calls_jax_does_not_make_it_your_error_and_one_that_raises_does():
    frame = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 7, in step\n    {}\n'
    assert explain(frame.format("y = jnp.array(x, ndmin=3)") + NDMIN).where
    assert explain(frame.format("raise TypeError(text)") + NDMIN).foreign
