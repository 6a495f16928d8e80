"""What the catalogue knows about one phenomenon, and what is told about it."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

from jitguide import _display

INDEX_PAGE = "reference/errors"


@dataclass(frozen=True)
class Entry:
    """One thing that goes wrong, with its cause, its repair and what the repair costs.

    All code runs after `import jax`, `import jax.numpy as jnp` and `import numpy as np`.

    Attributes:
        key: Stable name in kebab case.
        title: What happened, in the words of a user.
        cause: One sentence.
        examples: Smallest programs that show it. Each raises `error`; if that is None, each ends in an
            assertion about what happens silently.
        repair: A program that does what was meant.
        cost: What the repair costs, in a sentence.
        page: Page of the guide, relative to the site.
        error: Qualified name of the class that is raised, or None if nothing is raised.
        patterns: Regular expressions; any of them, found in the message, recognises the entry.
        source: Regular expressions for the failing line of the user's program, without comments and the words
            of strings. They tell apart phenomena that share a message; an entry without any is the general
            case.
        devices: Number of devices that the examples need.
    """

    key: str
    title: str
    cause: str
    examples: tuple[str, ...]
    repair: str
    cost: str
    page: str
    error: str | None = None
    patterns: tuple[str, ...] = ()
    source: tuple[str, ...] = ()
    devices: int = 1

    @property
    def example(self) -> str:
        """The first of the examples."""
        return self.examples[0]


@dataclass(frozen=True)
class Explanation(_display.AsData):
    """What the catalogue says about an error or a text.

    Attributes:
        found: Whether an entry was recognised; if not, only `page` is filled in and names the error index.
        key: Name of the entry. What follows is the entry's: title, error, cause, example, repair, cost, page.
        others: Keys of further entries that match less well, best first.
    """

    found: bool
    key: str | None = None
    title: str = "This text matches no entry of the error catalogue."
    error: str | None = None
    cause: str = ""
    example: str = ""
    repair: str = ""
    cost: str = ""
    page: str = INDEX_PAGE
    others: tuple[str, ...] = ()

    def __repr__(self) -> str:
        if not self.found:
            return f"{self.title}\nLook through the error index of the guide: {self.page}"
        parts = [
            f"{self.title}  [{self.key}]",
            f"Error:  {self.error or 'none is raised'}",
            f"Cause:  {self.cause}",
            "Shows it:\n" + textwrap.indent(self.example, "    "),
            "Repair:\n" + textwrap.indent(self.repair, "    "),
            f"Cost:   {self.cost}",
            f"Page:   {self.page}",
        ]
        return "\n".join([*parts, *([f"See also: {', '.join(self.others)}"] if self.others else [])])

    def _repr_html_(self) -> str:
        e = _display.escape
        if not self.found:
            return _display.panel(
                f"<p>{e(self.title)} Look through the error index of the guide: {e(self.page)}</p>"
            )
        return _display.panel(
            f"<p><strong>{e(self.title)}</strong> <code>{e(self.error or 'no error')}</code></p>"
            f"<p>{e(self.cause)}</p>"
            f"<p>Shows it:</p><pre>{e(self.example)}</pre>"
            f"<p>Repair:</p><pre>{e(self.repair)}</pre>"
            f"<p>{e(self.cost)}</p><p>Page: {e(self.page)}</p>"
            + (f"<p>See also: {e(', '.join(self.others))}</p>" if self.others else "")
        )
