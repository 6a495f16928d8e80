"""What the installed JAX has: a message, as its source holds the words of what it raises, and a public name."""

import functools
import importlib
import re
import warnings
from dataclasses import dataclass
from importlib.util import find_spec

from jitguide import _jax
from jitguide._errors import patterns

_LITERAL = r"""[rbfuRBFU]{0,2}(?:"(?:[^"\\\n]|\\.)*"|'(?:[^'\\\n]|\\.)*')"""
_RAISED = re.compile(  # the literals that a raise, or a name such as `msg`, begins with
    r"^ *(?:def (?P<function>\w+)|(?:.*: )?(?:raise [\w.]+|\w*(?:msg|message|err|error)\w* *\+?=)) *"
    rf"\(?\s*(?P<literals>(?:{_LITERAL}[\s+]*)*)",
    re.MULTILINE,
)
_HOLE = re.compile(r"\{[^{}]*\}|%[srdf]")
_CLASS = re.compile(r"^(?:E\s+)?[\w.]+(?:Error|Exception): *")
_WORD = re.compile(r"[A-Za-z_]{2,}")
_FEWEST_WORDS = 4  # fewer, and other libraries have the same message
_FEWEST_AFTER_HOLE = 7


@dataclass(frozen=True)
class _Message:
    pieces: tuple[str, ...]  # the literal text between the holes; the first is "" where a hole begins
    words: int
    place: str

    def fits(self, text: str) -> bool:
        first, *rest = self.pieces
        if not text.startswith(first):
            return False
        at = len(first)
        for piece in rest:
            if (found := text.find(piece, at)) < 0:
                return False
            at = found + len(piece)
        return True


def where(message: str) -> str:
    """Return which function of the installed JAX has a message, or "" if none has; the most specific one counts.

    NumPy and SciPy have some of these messages too.

    Example:
        >>> where("ValueError: Need at least one array to concatenate.")
        '`_concatenate_array` in jax/_src/numpy/lax_numpy.py'
    """
    text = " ".join(_CLASS.sub("", message).split())
    fitting = [known for known in _messages() if known.fits(text)]
    return max(fitting, key=lambda known: known.words).place if fitting else ""


@functools.cache
def _messages() -> list[_Message]:
    found = []
    for file, source in _jax.sources():
        function = ""
        for match in _RAISED.finditer(source):
            function = match["function"] or function
            literals = re.findall(_LITERAL, match["literals"])
            if literals and (message := _message(literals, f"`{function}` in {file}")):
                found.append(message)
    return found


def _message(literals: list[str], place: str) -> _Message | None:
    bare = "".join(re.sub(r"^\w*['\"]", "", literal)[:-1] for literal in literals)
    bare = re.sub(r"\\(['\"])", r"\1", bare.replace("\\n", " "))
    holes = bare.replace("{{", "\0").replace("}}", "\1")
    pieces = tuple(
        " ".join(piece.replace("\0", "{").replace("\1", "}").split()) for piece in _HOLE.split(holes)
    )
    words = sum(len(_WORD.findall(piece)) for piece in pieces)
    enough = words >= (_FEWEST_WORDS if pieces[0] else _FEWEST_AFTER_HOLE)
    return _Message(pieces, words, place) if enough else None


def has_name(message: str) -> bool:
    """Return whether a message misses a public name of JAX that the running JAX has: an older one lacked it.

    Example:
        >>> has_name("AttributeError: module 'jax.random' has no attribute 'key'")
        True
        >>> has_name("AttributeError: module 'jax.random' has no attribute 'KeyArray'")
        False
    """
    return any(
        _has(m["module"] or m["owner"] or m["source"], m["attribute"] or m["name"])
        for m in patterns.MISSING_NAME.finditer(message)
    )


@functools.cache
def _has(module: str, name: str | None) -> bool:
    with warnings.catch_warnings(action="ignore"):
        try:
            owner = importlib.import_module(module)
            warnings.simplefilter("error")  # a deprecated name may be gone in a later JAX
            return name is None or hasattr(owner, name) or find_spec(f"{module}.{name}") is not None
        except Exception:
            return False
