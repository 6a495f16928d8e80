"""What must not reach an output, and what is worth showing of a long message.

Directories, addresses and process ids say where a program ran, not what went wrong; they differ on every
machine, and they can name a person. Everything the package prints about an error passes through `clean`.
"""

import re

ANSI = re.compile(r"\x1b\[[0-9;]*m")
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")
# Jupyter runs a cell as a file whose directory carries the process id.
_CELL = re.compile(r"(?<![^\s\"'<>])[^\s\"'<>]*[/\\]ipykernel_\d+[/\\]\d+\.py|<ipython-input-[^>]*>")
_QUOTED_FILE = re.compile(r'File "[^"\n]*[/\\]([^"/\\\n]+)"')
# The look-behind keeps URLs and fractions: a path starts a word.
_PATH = re.compile(
    r"(?<![\w.:/\\>~-])(?!/tensorflow\.\w+/\w+)(?:~|file://)?(?:/[^\s/:\"'<>|,;()\[\]]+){2,}/?"  # POSIX, but not the name of a call between processes
    r"|\b[A-Za-z]:\\[^\s:\"'<>|,;()]+"  # Windows
)
_FILE_NAME = re.compile(r"[^/\\]+\.\w+$")
_FILTER_NOTE = re.compile(
    r"^-{5,}\n|^(?:jax\.errors\.SimplifiedTraceback: )?For simplicity, JAX has removed its internal frames.*\n?(?:.*JAX_TRACEBACK_FILTERING.*\n?)?",
    re.MULTILINE,
)
_LONG_WORD = re.compile(r"(\S{300})\S+")  # numbers or a picture in text: other patterns take long for them
_HEAD, _TAIL = 10_000, 40_000  # characters
_MAX_TEXT = 48
_LINK = re.compile(r"https?://[^\s\"'<>)]+")
_SENTENCE = re.compile(r"(.+?(?<!\be\.g)(?<!\bi\.e)[.!?])(?:\s+(?=[A-Z`\"'])|$)")


def clean(text: str) -> str:
    """Return `text` without directories, addresses, colours and JAX's note about filtered tracebacks.

    Example:
        >>> clean("traced f at /home/me/work/train.py:7, see https://docs.jax.dev/en/latest/errors.html")
        'traced f at train.py:7, see https://docs.jax.dev/en/latest/errors.html'
    """
    text = _FILTER_NOTE.sub("", ANSI.sub("", text))
    text = _ADDRESS.sub("", _CELL.sub("<cell>", text))
    text = _QUOTED_FILE.sub(r'File "\1"', text)
    return _PATH.sub(_without_directories, text).strip()


def shortened(text: str) -> str:
    """Return `text` without the rest of very long words, and of a very long text its ends and its last traceback."""
    if len(text) > _HEAD + _TAIL:
        last = text.rfind("Traceback (most recent call last)", _HEAD, -_TAIL)
        middle = text[max(last - _HEAD, _HEAD) : last + _HEAD] if last >= 0 else ""
        text = f"{text[:_HEAD]}\n{middle}\n{text[-_TAIL:]}"
    return _LONG_WORD.sub(r"\1", text)


def place(file: str, line: int) -> str:
    """Return file and line without directories, such as `train.py:12`; a notebook's cell has no name.

    Example:
        >>> place("/home/me/train.py", 12), place("/tmp/ipykernel_7/12.py", 3)
        ('train.py:12', 'cell:3')
    """
    name = re.split(r"[/\\]", file)[-1]
    return f"{'cell' if in_cell(file) else name}:{line}"


def in_cell(file: str) -> bool:
    """Return whether a file is a cell of a notebook, which runs from a file whose name means nothing to you."""
    return _CELL.fullmatch(file) is not None


def _without_directories(match: re.Match[str]) -> str:
    path = match[0].rstrip(".")  # the dot that ends a sentence
    name = _FILE_NAME.search(path)
    return (name[0] if name else "<directory>") + match[0][len(path) :]


def first_sentence(message: str) -> str:
    """Return the first sentence of the first line of `message` that has text."""
    line = next((line.strip() for line in message.splitlines() if line.strip()), "")
    found = _SENTENCE.match(line)
    return found[1] if found else line


def jax_link(message: str) -> str | None:
    """Return the first address of JAX's documentation in `message`, or None.

    It is taken from the message and never built, because the pages move between releases.
    """
    links = [link.rstrip(".,;:") for link in _LINK.findall(message)]
    return next((link for link in links if "jax" in link), None)


def show(value: object) -> str:
    """Return a short text for a value, the same in every process: without addresses.

    Example:
        >>> show(object()), show(len), show("a" * 100)
        ('<object object>', '`len`', "'aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa…")
    """
    if callable(value) and hasattr(value, "__name__"):
        return f"`{value.__name__}`"
    try:
        text = " ".join(_ADDRESS.sub("", repr(value)).split())
    except Exception:
        text = f"a {type(value).__name__}"
    return text if len(text) <= _MAX_TEXT else text[: _MAX_TEXT - 1] + "…"
