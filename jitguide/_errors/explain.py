"""Find the entry of the catalogue that an exception or a pasted text belongs to."""

from __future__ import annotations

import functools
import re
import sys
import traceback
from dataclasses import dataclass, replace
from typing import Any

from jitguide._errors import patterns
from jitguide._errors.entries import catalogue
from jitguide._errors.entry import Entry, Explanation
from jitguide._errors.frames import chain, code_only, notes_of, user_line
from jitguide._errors.installed import has_name, where
from jitguide._errors.pasted import plain
from jitguide._otherwise import otherwise
from jitguide._text import clean, place, shortened

# A pattern makes a candidate; class and source line rank them. The class weighs more: two classes may share a message,
# and a line is only a hint. An entry that asks for a line which is not there ranks below the general one.
_CLASS_WEIGHT, _SOURCE_WEIGHT, _SOURCE_MISSING = 4, 2, -1
_ANY_CALL = "missing-argument"  # Python raises it for a wrong call of any function
# A name that the running JAX has was not removed.
_REMOVED, _TOO_OLD, _OWN_FILE = "removed-name", "jax-too-old", "own-file-called-jax"
_FEWEST_LETTERS = 22  # of a message that was cut: fewer begin several messages
_MAX_OTHERS = 4  # more alternatives than a user reads
_REMOVED_FRAMES = "JAX has removed its internal frames"  # its note about a traceback
_compiled = functools.cache(re.compile)  # more patterns than the cache of `re` holds


@dataclass(frozen=True)
class _Evidence:
    classes: frozenset[str]  # last components of the names, so that a renamed module does no harm
    message: str
    source: str = ""  # the failing line, without the words of its strings and comments
    raised: str = ""  # the class that ended the program; "" where nothing was raised
    line: str = ""  # the failing line as it was, with its place
    said: str = ""  # the message without the traceback around it
    foreign: bool = False  # whether what was raised is not JAX's
    library: str = ""  # the package that raised it, other than yours and JAX


def explain(error_or_text: BaseException | str) -> Explanation:
    """Explain an exception, or a pasted traceback, log line or warning.

    An exception is recognized by its class, its message and the failing line of your source. If it is not
    known, the exceptions that it was raised from are tried.

    Args:
        error_or_text: The exception itself, or the text as you saw it.

    Returns:
        An `Explanation`; its `found` is False for an unknown text, and `foreign` is whether that text
        comes from something other than JAX.

    Raises:
        TypeError: If the argument is not an exception or a text.
        ValueError: If the text is empty.

    Example:
        >>> from jitguide import explain
        >>> explain("TypeError: unhashable type: 'DynamicJaxprTracer'").key
        'tracer-as-key'
        >>> explain("KeyError: 'loss'")
        This is probably not an error of JAX: it is your `KeyError`.
    """
    if isinstance(error_or_text, BaseException):
        evidence = [_from_exception(error) for error in chain(error_or_text)]
    elif isinstance(error_or_text, str):
        if not error_or_text.strip():
            raise ValueError(
                "The text given to explain is empty. Paste the error message or the whole traceback."
            )
        evidence = _from_text(error_or_text)
    else:
        raise TypeError(
            f"explain takes an exception or a text, not {type(error_or_text).__name__}. Pass the exception that you "
            "caught, not its class, or the text of the traceback."
        )
    last = evidence[0]
    known = ((r, e) for e in evidence if not e.foreign and (r := rank(e)))
    ranked, known_by = next(known, (_by_beginning(last) or _by_class(last), last))
    about: dict[str, Any] = {"line": known_by.line or last.line}
    about["argument"] = "".join(patterns.ARGUMENT.findall(known_by.message)[-1:])
    if not ranked:
        about["where"] = last.library if last.foreign else where(last.said)
        return Explanation(found=False, foreign=last.foreign, error=last.raised or None, **about)
    about["where"] = known_by.library
    shown = ("key", "title", "error", "cause", "example", "fix", "cost", "page")
    about |= {name: getattr(ranked[0], name) for name in shown}
    for kind, path in patterns.REFUSED.findall(known_by.message)[-1:]:
        about["cause"] += f" Here, `{path}` is of type `{kind}`."
    return Explanation(found=True, others=tuple(e.key for e in ranked[1 : 1 + _MAX_OTHERS]), **about)


def _by_class(evidence: _Evidence) -> list[Entry]:
    """Return the general entry for a class of JAX's own that the text names, for any message."""
    raised = [m[1] for p in (patterns.RAISED, patterns.HEAD) for m in p.finditer(evidence.message)]
    named = {name.rpartition(".")[2] for name in raised} - {"JaxRuntimeError"}
    errors = ((e, e.error or "") for e in catalogue() if not e.source)
    return [e for e, error in errors if error.startswith("jax.") and error.rpartition(".")[2] in named][:1]


def _by_beginning(evidence: _Evidence) -> list[Entry]:
    """Return the entry whose message begins as one that was cut, if no other entry of that class has one."""
    cut = None if evidence.foreign else patterns.CUT.search(evidence.message)
    name, start = (cut["name"], (cut["start"] or "").lower()) if cut else ("", "")
    of_class = [e for e in catalogue() if e.error and e.error.rpartition(".")[2] == name]
    found = [e for e in of_class if any(beginning.startswith(start) for beginning in e.beginnings)]
    return found if len(start) >= _FEWEST_LETTERS and len(found) == 1 else []


def rank(evidence: _Evidence) -> list[Entry]:
    """Return the entries that match `evidence`, best first."""
    texts = {evidence.message, " ".join(evidence.message.split())}  # also without the breaks of a box
    scored = [(score, e) for e in catalogue() if (score := _score(e, evidence, texts)) is not None]
    ranked = [entry for _, entry in sorted(scored, key=lambda item: -item[0])]  # equal ones stay in order
    if ranked and ranked[0].key == _ANY_CALL:  # what knows the function is better, also with another class
        ranked.sort(key=lambda entry: entry.key == _ANY_CALL or bool(entry.source))
    if ranked and ranked[0].key == _REMOVED and has_name(evidence.message):
        shadowed = [entry for entry in ranked if entry.key == _OWN_FILE]  # each JAX has the name
        better = shadowed or [entry for entry in catalogue() if entry.key == _TOO_OLD]
        return better + [entry for entry in ranked if entry not in better]
    return ranked


def _score(entry: Entry, evidence: _Evidence, texts: set[str]) -> float | None:
    if entry.error is None and evidence.classes and not any(c.endswith("Warning") for c in evidence.classes):
        return None  # something was raised, and this entry is about what raises nothing
    matches = [m for p in entry.patterns for t in texts if (m := _compiled(p, re.IGNORECASE).search(t))]
    if not matches:
        return None
    score = max(len(m[0]) for m in matches) / 1000  # the longer pattern is the more specific
    if (entry.error or "").rpartition(".")[2] in evidence.classes:
        score += _CLASS_WEIGHT
    if entry.source:
        hit = any(_compiled(pattern, re.MULTILINE).search(evidence.source) for pattern in entry.source)
        if not hit and patterns.PLAIN.search(evidence.message):
            return None  # Python's own words, which mean this in such a line only
        score += _SOURCE_WEIGHT if hit else _SOURCE_MISSING
    return score


def _from_exception(error: BaseException) -> _Evidence:
    line, kind = user_line(error), type(error)
    message = clean(shortened(otherwise("")(str)(error)))  # a class may fail to say what it says
    raised = _Evidence(
        frozenset(c.__name__ for c in kind.__mro__),
        f"{kind.__name__}: {message}",
        code_only(line.text) if line else "",
        kind.__name__,
        f"{line.file}:{line.number}: {line.text}" if line else "",
    )
    files = [frame.f_code.co_filename for frame, _ in traceback.walk_tb(error.__traceback__)]
    in_jax = bool(patterns.OF_JAX.match(kind.__module__)) or _REMOVED_FRAMES in notes_of(error)
    foreign = _is_foreign(raised, files, in_jax)
    return replace(raised, said=raised.message, foreign=foreign, library=_library(files))


def _from_text(text: str) -> list[_Evidence]:
    """Return the errors of a text, the last one first, and then the text as a whole."""
    text = plain(text)
    parts = [patterns.TRACEBACK.split(part)[-1] for part in patterns.CHAINED.split(text)]
    found = [_from_part(part, _REMOVED_FRAMES in text) for part in reversed(parts)]
    if not found[0].raised:  # the end of a log, or a traceback that was cut
        return [_from_part(text)]
    return found if found[0].foreign else [*found, _from_part(text)]


def _from_part(text: str, hidden: bool = False) -> _Evidence:
    """Return the evidence of one traceback; `hidden` is whether JAX removed its frames somewhere in the text."""
    raises = list(patterns.RAISED.finditer(text))
    frames = list(patterns.FRAME.finditer(text))
    own = [m for m in frames if _is_yours(m["file"])][-1:]
    codes = [m["code"] or "" for m in own] + [m["code"] for m in patterns.ARROW_LINE.finditer(text)]
    places = [place(m["file"], int(m["line"])) + (f": {m['code']}" if m["code"] else "") for m in own]
    # The message of a traceback may quote other errors; a log ends with its last one.
    after = raises[:1] if text.startswith("\n") else raises[-1:]
    name, message = (after[0][1], text[after[0].start() :]) if after else ("", text)
    classes = frozenset(m[1].rpartition(".")[2] for m in raises)
    if "`bool` function" in message:  # its class before JAX had one for this
        classes = frozenset({"TracerBoolConversionError"})
    found = _Evidence(
        classes,
        clean(message),
        code_only("\n".join(codes)),
        name.rpartition(".")[2],
        places[-1] if places else next((c for c in reversed(codes) if not c.startswith("raise ")), ""),
    )
    # Before Python 3.11, the note about frames stands above the last traceback, which then ends in your line.
    hidden = _REMOVED_FRAMES in text or (hidden and bool(own) and own[-1] is frames[-1])
    in_jax = hidden or bool(patterns.OF_JAX.match(name) or patterns.JAX_WARNING.search(text))
    files = [m["file"] for m in frames]
    foreign = _is_foreign(found, files, in_jax)
    library = _library(files) or (_package_of_class(name) if foreign else "")
    ends = [0, *(m.end() for m in frames if not patterns.IN_JAX.search(m["file"]))]
    library = "" if not foreign and patterns.CELL.search(text, ends[-1]) else library  # your cell failed
    return replace(found, message=clean(text), said=found.message, foreign=foreign, library=library)


def _is_yours(file: str) -> bool:
    return not (patterns.IN_LIBRARY.search(file) or patterns.IN_JAX.search(file))


def _package(files: list[str]) -> str:
    """Return the package of the last file of a traceback, or "" if that is yours, JAX's or Python's."""
    return "".join(patterns.PACKAGE.findall(files[-1])[-1:]) if files else ""


def _library(files: list[str]) -> str:
    """Return the package of the last file that is not JAX's or NumPy's, or "" if that is yours or Python's."""
    others = [file for file in files if not patterns.IN_JAX.search(file) and _package([file]) != "numpy"]
    return _package(others)


def _package_of_class(name: str) -> str:
    """Return the package that a class with a dotted name is of, or "" if that is yours, JAX's or Python's."""
    package, dot, _ = name.partition(".")
    return package if dot and package not in {"__main__", "jax", "jaxlib", *sys.stdlib_module_names} else ""


def _is_foreign(evidence: _Evidence, files: list[str], in_jax: bool) -> bool:
    """Return whether an error was raised by something else than JAX."""
    if any(c.startswith(("Tracer", "Concretization", "UnexpectedTracer")) for c in evidence.classes):
        return False
    last = files[-1] if files else ""
    # Another library may speak of "JAX", and JAX of its classes: `pandas.core.series.Series`.
    if patterns.OTHER_FILE.search(last) and "jax" not in evidence.message:
        return True
    if patterns.OTHER_LIBRARY.search(evidence.message) and "jax" not in evidence.message.lower():
        return True
    in_jax_file = patterns.IN_JAX.search(last) or patterns.OF_PALLAS.search("\n".join(files))
    quoted = evidence.raised in ("JaxRuntimeError", "XlaRuntimeError")  # it tells what your callback raised
    ranked = rank(evidence)
    in_such_a_line = any(entry.source for entry in ranked)
    if patterns.NAMES_ONLY.search(evidence.message) and not (in_jax_file or quoted or in_such_a_line):
        return True
    raises = evidence.source.startswith("raise ")  # your error may pass through JAX
    yours = files and _is_yours(last)
    unlike_jax = patterns.MISSING.search(evidence.message) or _package(files) or (yours and raises)
    if unlike_jax and not in_jax_file and not ranked:
        return True
    if patterns.JAX_WORDS.search(evidence.message) or in_jax_file:
        return False
    if in_jax and evidence.raised == "AssertionError" and evidence.source and not raises:
        return evidence.source.startswith("assert")  # JAX asserts, too
    if patterns.PLAIN.search(evidence.message):
        return bool(_package(files)) or not in_such_a_line
    if patterns.NUMPY.search(evidence.message):
        return not (in_jax and patterns.JAX_LINE.search(evidence.source))
    if in_jax and not raises:
        return False
    if patterns.CALL.search(evidence.message):
        return True
    of_jax = [entry for entry in ranked if entry.key != _ANY_CALL]
    cut = not ranked and patterns.CUT.search(evidence.message)
    called = yours and patterns.JAX_LINE.search(evidence.source)
    return not of_jax and (raises or not (cut or called or where(evidence.message)))
