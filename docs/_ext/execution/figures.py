"""The description and the caption of each figure, as its cell names them.

A figure's cell says in words what the figure shows, for readers who cannot see it::

    :alt: Two bars; the jitted function takes a fifth of the time.
    :caption: Time of one call.
"""

from __future__ import annotations

import html

from nbformat import NotebookNode

from .notebooks import PageError


def describe(cell: NotebookNode, line: int) -> None:
    """Put `alt` and `caption` of the cell into the figure it drew.

    Raises:
        PageError: A figure without a description, or a description without a figure.
    """
    drawn = [o for o in cell.outputs if "data" in o and "@@alt@@" in o.data.get("text/html", "")]
    alt, caption = cell.metadata.get("alt"), cell.metadata.get("caption")
    if drawn and not alt:
        raise PageError(
            "the cell draws a figure: say in `:alt:` what it shows, for readers who cannot see it.", line
        )
    if alt and len(drawn) != 1:
        raise PageError(f"the cell has a description but draws {len(drawn)} figures: draw exactly one.", line)
    for output in drawn:
        below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
        text = output.data["text/html"].replace("@@alt@@", html.escape(alt)).replace("@@caption@@", below)
        output.data["text/html"] = text
