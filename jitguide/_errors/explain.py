"""Find the entry of the catalogue that an exception or a pasted text belongs to."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from jitguide._errors.entries import catalogue
from jitguide._errors.entry import Entry, Explanation
from jitguide._errors.frames import user_line
from jitguide._text import clean

# A pattern makes a candidate; class and source line rank the candidates. The class weighs more, because one
# message may be shared by two classes, while a source line is only a hint. An entry that asks for a source
# line which is not there ranks below the general entry with the same message.
_CLASS_WEIGHT = 4
_SOURCE_WEIGHT = 2
_SOURCE_MISSING = -1
_MAX_OTHERS = 4  # more alternatives than a reader looks at

_RAISED = re.compile(
    r"^(?:E\s+)?(?:[\w.]*\.)?(\w+(?:Error|Exception|Warning|Operation)|Exception): ", re.MULTILINE
)
_FILE_LINE = re.compile(r'^\s*File "(?P<file>[^"]*)", line \d+.*\n\s*(?P<code>\S.*)$', re.MULTILINE)
_ARROW_LINE = re.compile(r"^(?:-+>\s*\d+|>)\s+(?P<code>\S.*)$", re.MULTILINE)  # IPython's and pytest's marks
# Python's words between chained tracebacks; the last one is the error that the user saw.
_CHAINED = re.compile(
    r"^(?:The above exception was the direct cause|During handling of the above).*:\s*$", re.MULTILINE
)
_LIBRARY_FILE = re.compile(r"[/\\](?:jax|jaxlib|numpy|python3\.\d+)[/\\]")
_STRING_OR_COMMENT = re.compile(
    r"(?P<prefix>\b[rbfu]{1,2})?(?P<quote>['\"])(?P<inside>(?:\\.|(?!(?P=quote))[^\\\n])*)(?P=quote)|\#.*",
    re.IGNORECASE,
)
_FIELD = re.compile(r"(?<!\{)\{[^{}]+")  # what an f-string computes


@dataclass(frozen=True)
class _Evidence:
    classes: frozenset[str]  # last components of the names, so that a renamed module does no harm
    message: str
    source: str  # the failing line, without the words of its strings and comments


def explain(error_or_text: BaseException | str) -> Explanation:
    """Explain an exception, or a pasted traceback, log line or warning.

    An exception is recognised by its class, its message and the failing line of your source. If it is not
    known, the exceptions that it was raised from are tried.

    Args:
        error_or_text: The exception itself, or the text as you saw it.

    Returns:
        An `Explanation`; its `found` is False for an unknown text.

    Raises:
        TypeError: If the argument is neither an exception nor a text.
        ValueError: If the text is empty.

    Example:
        >>> from jitguide import explain
        >>> explain("TypeError: unhashable type: 'DynamicJaxprTracer'").key
        'tracer-as-key'
        >>> explain("the printer is on fire").found
        False
    """
    if isinstance(error_or_text, BaseException):
        evidence = [_from_exception(error) for error in _chain(error_or_text)]
    elif isinstance(error_or_text, str):
        if not error_or_text.strip():
            raise ValueError(
                "The text given to explain is empty. Paste the error message or the whole traceback."
            )
        evidence = [_from_text(part) for part in (*reversed(_CHAINED.split(error_or_text)), error_or_text)]
    else:
        raise TypeError(_wrong_type(error_or_text))
    ranked = next((r for r in map(rank, evidence) if r), [])
    if not ranked:
        return Explanation(found=False)
    return _explanation(ranked[0], [entry.key for entry in ranked[1 : 1 + _MAX_OTHERS]])


def rank(evidence: _Evidence) -> list[Entry]:
    """Return the entries that match `evidence`, best first."""
    scored = [
        (score, -place, e)
        for place, e in enumerate(catalogue())
        if (score := _score(e, evidence)) is not None
    ]
    return [entry for _, _, entry in sorted(scored, key=lambda item: item[:2], reverse=True)]


def _score(entry: Entry, evidence: _Evidence) -> float | None:
    if entry.error is None and evidence.classes and not any(c.endswith("Warning") for c in evidence.classes):
        return None  # something was raised, and this entry is about what raises nothing
    matches = [m for pattern in entry.patterns if (m := re.search(pattern, evidence.message, re.IGNORECASE))]
    if not matches:
        return None
    score = max(len(m[0]) for m in matches) / 1000  # of two patterns the longer is the more specific
    if (entry.error or "").rpartition(".")[2] in evidence.classes:
        score += _CLASS_WEIGHT
    if entry.source:
        hit = any(re.search(pattern, evidence.source, re.MULTILINE) for pattern in entry.source)
        score += _SOURCE_WEIGHT if hit else _SOURCE_MISSING
    return score


def _chain(error: BaseException) -> Iterator[BaseException]:
    seen: set[int] = set()
    current: BaseException | None = error
    while current is not None and id(current) not in seen:
        seen.add(id(current))
        yield current
        current = current.__cause__ or current.__context__


def _from_exception(error: BaseException) -> _Evidence:
    line = user_line(error)
    classes = frozenset(c.__name__ for c in type(error).__mro__)
    return _Evidence(classes, clean(str(error)), _code_only(line.text) if line else "")


def _from_text(text: str) -> _Evidence:
    text = text.replace("\r\n", "\n")
    return _Evidence(frozenset(_RAISED.findall(text)), clean(text), _code_only("\n".join(_code_lines(text))))


def _code_lines(text: str) -> Iterable[str]:
    own = [m["code"] for m in _FILE_LINE.finditer(text) if not _LIBRARY_FILE.search(m["file"])]
    return [*own[-1:], *(m["code"] for m in _ARROW_LINE.finditer(text))]


def _code_only(source: str) -> str:
    """Return `source` without comments and without what strings say; an f-string keeps what it computes."""
    return _STRING_OR_COMMENT.sub(_computed, source)


def _computed(match: re.Match[str]) -> str:
    if match["quote"] is None:
        return ""  # a comment
    fields = _FIELD.findall(match["inside"]) if "f" in (match["prefix"] or "").lower() else []
    return f'"{" ".join(map(_code_only, fields))}"'


def _explanation(entry: Entry, others: Iterable[str]) -> Explanation:
    names = ("key", "title", "error", "cause", "example", "repair", "cost", "page")
    known = {name: getattr(entry, name) for name in names}
    return Explanation(found=True, others=tuple(others), **known)


def _wrong_type(given: object) -> str:
    if isinstance(given, type) and issubclass(given, BaseException):
        return (
            f"explain takes an exception, not its class {given.__name__}: the message decides. "
            "Pass the exception that you caught, or the text of the traceback."
        )
    return (
        f"explain takes an exception or a text, not {type(given).__name__}. "
        "Pass the exception that you caught, or the text of the traceback."
    )
