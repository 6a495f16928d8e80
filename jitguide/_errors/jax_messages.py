"""Where the installed JAX has a message: its source holds the words of what it raises, with holes for values."""

import functools
import re
from dataclasses import dataclass

from jitguide import _jax

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
