"""What stands in a pasted text because of where it was printed or copied, and hides its lines."""

import re

from jitguide._errors import patterns
from jitguide._text import ANSI, shortened

_TYPOGRAPHIC = str.maketrans("\xa0\u2018\u2019\u201c\u201d", " ''\"\"")
_FEWEST = 3  # lines that begin in the same way: one may be a sentence


def plain(text: str) -> str:
    r"""Return a text without colors, frames of boxes, broken lines, and what a log or a mail puts before each line.

    Example:
        >>> print(plain("0: Traceback (most recent call last):\n0:   f(x)\n0: TypeError: it\u2019s"))
        Traceback (most recent call last):
          f(x)
        TypeError: it's
    """
    text = ANSI.sub("", text.replace("\r\n", "\n")).translate(_TYPOGRAPHIC)
    text = _unprefixed(shortened(text))
    text = patterns.SHORT_FRAME.sub(r'  File "\1", line \2, in \3', text)
    text = patterns.OLD_FRAME.sub(r"File \g<file>:\g<line>, in \g<function>\n\g<before>\g<arrow>", text)
    text = patterns.WRAPPED.sub("", patterns.GROUP.sub("", patterns.LOGGED.sub("", text)))
    return patterns.BOX.sub(" ", text)


def _unprefixed(text: str) -> str:
    """Return a text without what stands before the last traceback, if three lines or more begin so, up to numbers."""
    found = [*patterns.PREFIXED.finditer(text)]
    if not found:
        return text
    prefix = re.sub(r"\d+", r"\\d+", re.escape(found[-1]["prefix"].rstrip()))
    lines = re.compile(rf"^{prefix}(?:[ \t]|$)", re.MULTILINE)
    return lines.sub("", text) if len(lines.findall(text)) >= _FEWEST else text
