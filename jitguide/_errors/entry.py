"""What the catalogue knows about one phenomenon, and how it is reported."""

import functools
import re
import textwrap
from collections.abc import Callable
from dataclasses import dataclass
from importlib.metadata import metadata

from jitguide import _display
from jitguide._otherwise import otherwise

INDEX_PAGE = "reference/errors"
_LOOK = "Print what the line passes, `print(jax.typeof(x))`: shapes and dtypes are known inside jit too."
_TRACER_ERRORS = "howto/tracer-errors"
_IN_LIBRARY = "make a setting static; pass data outside jit, or through `jax.pure_callback`."
_HEAD = re.compile(r"(?:(?:\\\W|[^\\()\[\]{}.*+?|^$])(?![*+?{]))+")
_SHARED = {"NotImplementedError", "RuntimeError", "TypeError", "ValueError"}  # JAX raises these as well


@dataclass(frozen=True)
class Entry:
    """One thing that goes wrong, with its cause, its fix and what the fix costs.

    All code runs after `import jax`, `import jax.numpy as jnp` and `import numpy as np`.
    """

    key: str  # stable, in kebab case
    title: str  # what happened, in the words of a user
    cause: str  # one sentence
    # The smallest programs that show it. Each raises `error`; if that is None, each ends in an assertion about what
    # happens silently. None where it takes another machine or installation.
    examples: tuple[str, ...]
    fix: str  # code that does what was meant
    cost: str  # of the fix, in a sentence
    page: str  # of the guide, relative to the site, with the anchor of a section or without
    error: str | None = None  # qualified name of the class that is raised, or None if nothing is raised
    # Regular expressions; any of them, found in the message, recognises the entry.
    patterns: tuple[str, ...] = ()
    # Regular expressions for the failing line of the user's program, without comments and the words of strings. They
    # tell apart phenomena that share a message; an entry without any is the general case.
    source: tuple[str, ...] = ()
    devices: int = 1  # that the examples need

    @property
    def example(self) -> str:
        """The first of the examples; "" where the failure needs another machine or installation."""
        return self.examples[0] if self.examples else ""

    @functools.cached_property
    def beginnings(self) -> list[str]:
        """The plain words that the patterns begin with, in lower case."""
        heads = (_HEAD.match(pattern) for pattern in self.patterns)
        return [re.sub(r"\\(.)", r"\1", head[0]).lower() for head in heads if head]


@dataclass(frozen=True)
class Explanation(_display.AsData):
    """What the catalogue says about an error or a text.

    Attributes:
        found: Whether an entry was recognized.
        foreign: Whether the error comes from something other than JAX: your own code, or another library.
        key: Name of the entry. Title, cause, example, fix, cost and page are the entry's too; the cause also names the
            part of an argument that JAX refuses.
        error: Class that the entry is about; of an unknown error, the class that was raised.
        line: The line of your program that failed, with its place, or "" where the text has none.
        argument: The arguments that the failing value depends on, as JAX names them, or "".
        where: The function of the installed JAX that has the message of an unknown error, with its file, or "";
            otherwise the package whose line failed, or "" if that is your line or not known.
        others: Keys of further entries that match less well, best first.
    """

    found: bool
    foreign: bool = False
    key: str | None = None
    title: str = "This text matches no entry of the error catalogue."
    error: str | None = None
    cause: str = ""
    example: str = ""
    fix: str = ""
    cost: str = ""
    page: str = INDEX_PAGE
    line: str = ""
    argument: str = ""
    where: str = ""
    others: tuple[str, ...] = ()

    def __repr__(self) -> str:
        return self._text(_wrapped)

    def _text(self, fit: Callable[[str, int], str]) -> str:
        own = {"Yours": self.line, "Needs": self.argument and f"the value of {self.argument}"}
        if self.where and self.page.startswith(_TRACER_ERRORS):
            own["Where"] = f"in the library `{self.where}`: {_IN_LIBRARY}"
        if self.foreign:
            return self._not_of_jax(fit)
        rows = {"Error": self.error or "none is raised", **own, "Cause": _quoted(self.cause)}
        if not self.found:
            has = self.where and f"{self.where} has this message."
            rows = {**own, "JAX": has, "Try": _LOOK, "Page": f"{_address(self.page)}, the error index"}
        lines = [f"{name + ':':<8}{fit(text, 8)}" for name, text in rows.items() if text]
        if not self.found:
            return "\n".join([self.title, *lines])
        code = {"Shows it:": self.example, "Fix:": self.fix}
        lines += [f"{name}\n{textwrap.indent(text, '    ')}" for name, text in code.items() if text]
        lines += [f"Cost:   {fit(_quoted(self.cost), 8)}", f"Page:   {_address(self.page)}"]
        seen = [f"See also: {', '.join(self.others)}"] if self.others else []
        return "\n".join([fit(f"{self.title}  [{self.key}]", 2), *lines, *(fit(line, 2) for line in seen)])

    def _not_of_jax(self, fit: Callable[[str, int], str]) -> str:
        if not self.error:
            return (
                "This is not an error of JAX: it names nothing of JAX.\n"
                "Paste the message of an error or its traceback. For a symptom in words, see\n"
                f"{_address('howto/index')}."
            )
        what = f"`{self.where}` raised the" if self.where else "it is your"
        at, _, source = self.line.partition(": ")
        # Without its line, the message of an error is all there is.
        sure = "" if at or self.where else "probably "
        lines = [fit(f"This is {sure}not an error of JAX: {what} `{self.error}`{at and f' in {at}'}.", 0)]
        if sure and self.error in _SHARED:
            lines.append("If JAX raised it, paste the whole traceback: its last file tells.")
        return "\n".join([*lines, *([f"    {fit(source, 4)}"] if source else [])])

    def _repr_html_(self) -> str:
        return _display.panel(
            f'<pre class="jg-text">{_display.escape(self._text(lambda text, _: text))}</pre>'
        )


def _quoted(text: str) -> str:
    """Return a text of the catalogue with quotation marks around what it quotes in italics."""
    return re.sub(r"\*([^*`]+)\*(?!\w)", r'"\1"', text)


def _wrapped(text: str, indent: int) -> str:
    """Return a text on lines that fit, of which the second and later ones are indented."""
    return "\n".join(_display.wrapped(text, " " * indent, " " * indent)).lstrip()


def _address(page: str) -> str:
    """Return where a page of the guide can be read: on its site, if the installed package names one."""
    installed = otherwise(None)(metadata)("jitguide")
    urls = (installed and installed.get_all("Project-URL")) or []
    site = next((url.partition(", ")[2] for url in urls if url.startswith("Documentation,")), "")
    name = re.sub(r"#[\w-]+$", "", page)
    if site:
        return f"{site.rstrip('/')}/{name}.html{page.removeprefix(name)}"
    return f"docs/{name}.md in the source of the guide"
