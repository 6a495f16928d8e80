"""What the text says of a measurement: a busy moment must not contradict it.

A cell names it as an expression over the page's variables; `_` is the cell's last value::

    :shows: _.speedup("jit").value > 2

While the expression is false, the cell runs again, at most three times in all. Where it stays false, because the
machine is busy or is another one than the text had in mind, the page says so below the output. So such a cell may
run twice: it must define what it times, not only call it.
"""

from __future__ import annotations

import ast
import html
from collections.abc import Awaitable, Callable

from nbformat import NotebookNode
from nbformat.v4 import new_output

_TRIES = 3
PROBLEM = "what `:shows:` says cannot be evaluated"


async def measure(
    cell: NotebookNode,
    run: Callable[[], Awaitable[NotebookNode]],
    evaluate: Callable[[str], Awaitable[list[NotebookNode]]],
) -> NotebookNode:
    """Run the cell until it shows what the text says of it.

    Args:
        cell: The cell.
        run: Runs it and returns it.
        evaluate: Runs code beside the page and returns its outputs.
    """
    condition = cell.metadata.get("shows")
    for _ in range(_TRIES):
        done = await run()
        # Printed, because the value of an expression would take the place of `_`.
        if condition is None or (await evaluate(f"print(bool({condition}))"))[0].text == "True\n":
            return done
    done.outputs.append(_otherwise(str(condition)))
    return done


def problem(condition: object) -> str | None:
    """Return why what stands in `:shows:` is no condition, or None.

    Example:
        >>> problem("fast < slow"), problem(True)
        (None, ':shows: needs an expression of Python, but has True.')
    """
    try:
        ast.parse(condition if isinstance(condition, str) else "?", mode="eval")
    except SyntaxError:
        return f":shows: needs an expression of Python, but has {condition!r}."
    return None


def _otherwise(condition: str) -> NotebookNode:
    before = f"This build measured something else than the text describes: in {_TRIES} runs, "
    after = " was false. Its machine was busy, or differs from those that the text has in mind."
    data = {
        "text/plain": f"{before}{condition}{after}",
        "text/html": f'<p class="measured-otherwise">{before}<code>{html.escape(condition)}</code>{after}</p>',
    }
    return new_output("display_data", data)
