"""The description and the caption of each figure, as its cell names them.

A figure's cell says in words what the figure shows, for readers who cannot see it::

    :alt: Two bars; the jitted function takes a fifth of the time.
    :caption: Time of one call.

`recorded` adds drawings of other machines.
"""

from __future__ import annotations

import hashlib
import html
from collections.abc import Sequence

from nbformat import NotebookNode

from . import recorded
from .notebooks import PageError


def describe(cell: NotebookNode, line: int, elsewhere: Sequence[tuple[recorded.Drawing, str]] = ()) -> None:
    """Put `alt` and `caption` of the cell into the figure it drew, and beside it those of other machines.

    Args:
        cell: A cell that has run.
        line: Where it stands.
        elsewhere: What was drawn from recordings, with its HTML.

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
        figure = _filled(output.data["text/html"], alt, caption)
        if elsewhere:
            also = [
                (
                    one.name,
                    _filled(
                        text,
                        cell.metadata["recorded-alt"],
                        " ".join(filter(None, [caption, f"Recorded on {one.made_on}"])),
                    ),
                )
                for one, text in elsewhere
            ]
            group = hashlib.sha256(cell.source.encode()).hexdigest()[:8]  # alone also where pages are joined
            figure = recorded.switch(f"machines-{group}", [("this build", figure), *also])
        output.data["text/html"] = figure


def _filled(figure: str, alt: str, caption: str | None) -> str:
    below = f"<figcaption>{html.escape(caption)}</figcaption>" if caption else ""
    return figure.replace("@@alt@@", html.escape(alt)).replace("@@caption@@", below)
