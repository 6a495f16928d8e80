"""The command line: `python -m jitguide` with `report`, `explain` or `record`."""

import argparse
import ast
import codecs
import json
import os
import re
import stat
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from jitguide import __version__, device_report, explain, record
from jitguide._otherwise import otherwise

FOUND, UNKNOWN, USAGE = 0, 1, 2  # argparse itself exits with 2

_DESCRIPTION = "Measure, watch and explain jax.jit."
_EXPLAIN = "Explain an error, a warning or a log line of JAX."
_REPORT = "Report versions, device, processor and settings, without naming a host, a user or a path."
_RECORD = "Measure this machine in a few minutes, and show it beside the recordings that come with the guide."
_EXIT_CODES = "Exit codes: 0 done or explained, 1 the text is unknown, 2 the command cannot be carried out."
_EXAMPLES = f"""examples:
  python -m jitguide explain traceback.txt
  python -m jitguide explain "TypeError: JAX arrays are immutable"
  python train.py 2>&1 | python -m jitguide explain

{_EXIT_CODES}
"""
_HOW = "Name a file, write the text in quotes, or pipe it in."
_NO_FILE = (
    "A single word is the name of a file or of an error's class: name a file that can be read, write the "
    "message in quotes, or pipe the text in."
)
_NO_NAME_OF_A_FILE = re.compile(r"\w+|[\w.]+(Error|Exception|Warning|Interrupt)|.*\s.*", re.DOTALL)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: Words after the program's name; those of this process by default.

    Returns:
        0 if done or explained, 1 if `explain` does not know the text, 2 if the command cannot be carried out.

    Example:
        >>> main(["explain", "no-such-file.txt"])
        2
    """
    parser = _parser()
    options = parser.parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without × or µ must not end the program
    if options.command == "report":
        _print(device_report(), options.json)
        return FOUND
    if options.command == "explain":
        return _explain(options)
    if options.command == "record":
        return _record(options)
    parser.print_help(sys.stderr)
    return USAGE


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jitguide", description=_DESCRIPTION, epilog=_EXIT_CODES)
    parser.add_argument("--version", action="version", version=f"jitguide {__version__}")
    commands = parser.add_subparsers(dest="command", metavar="{report,explain,record}")
    report = commands.add_parser("report", help=_REPORT, description=_REPORT)
    explaining = commands.add_parser("explain", help=_EXPLAIN, description=_EXPLAIN, epilog=_EXAMPLES)
    explaining.formatter_class = argparse.RawDescriptionHelpFormatter
    source = "a text file, or the text in quotes; - is standard input"
    explaining.add_argument("source", nargs="?", default="-", help=source)
    recording = commands.add_parser("record", help=_RECORD, description=_RECORD, epilog=_EXIT_CODES)
    recording.add_argument("file", nargs="?", type=Path, help="where to write the recording as JSON")
    recording.add_argument("--name", default="here", help="what the machine is called (default: %(default)s)")
    recording.add_argument("--quick", action="store_true", help="take seconds, with wider intervals")
    for command in (report, explaining):
        command.add_argument("--json", action="store_true", help="print JSON instead of text")
    return parser


def _explain(options: argparse.Namespace) -> int:
    try:
        text = _read(options.source, sys.stderr if options.json else sys.stdout)
    except OSError as error:
        return _fail(f"Cannot read {options.source}: {error.strerror}. {_NO_FILE}")
    if not text.strip():
        return _fail(f"There is no text to explain. {_HOW}")
    if options.source.endswith(".py") and text != options.source and otherwise(None)(ast.parse)(text):
        run = f"python {options.source} 2>&1 | python -m jitguide explain"
        return _fail(
            f"{options.source} is a program, not a message. Run it, and explain what it prints: {run}"
        )
    found = explain(text)
    _print(found, options.json)
    return FOUND if found.found else UNKNOWN


def _record(options: argparse.Namespace) -> int:
    if options.file and (options.file.is_dir() or not options.file.absolute().parent.is_dir()):
        return _fail(f"Cannot write {options.file}: name a file in a folder that exists.")
    try:
        found = record(name=options.name, quick=options.quick)
        if options.file:
            options.file.write_text(json.dumps(found.to_dict(), indent=1) + "\n", "utf-8")
    except (OSError, RuntimeError) as error:
        return _fail(f"{error}")
    _write(f"{found.beside()}", sys.stdout, "\n")
    return FOUND


def _read(source: str, echo: Any) -> str:
    if source == "-":
        return _standard_input(echo)
    # A message has spaces in it, and a misspelt name of a file hardly ever has.
    # Not pathlib, which raises for what is too long for a name.
    if not source or (_NO_NAME_OF_A_FILE.fullmatch(source) and not os.path.exists(source)):  # noqa: PTH110
        return source
    return _decoded(Path(source).read_bytes())


def _standard_input(echo: Any) -> str:
    """Return what stands on standard input; the output of a program that is piped in is passed on as it comes."""
    if sys.stdin is None:  # it was closed before Python started
        return ""
    if not hasattr(sys.stdin, "buffer"):  # a text in its place, as in some editors
        return sys.stdin.read()
    if sys.stdin.isatty():
        sys.stderr.write("Paste the text and end it with Ctrl-D (on Windows: Ctrl-Z, Enter).\n")
    lines = []
    piped = stat.S_ISFIFO(os.fstat(sys.stdin.fileno()).st_mode)
    for line in sys.stdin.buffer:
        lines.append(line)
        if piped:
            _write(line.decode(errors="replace"), echo)
    if piped and lines:
        _write("\n" if lines[-1].endswith(b"\n") else "\n\n", echo)
    return _decoded(b"".join(lines))


def _decoded(data: bytes) -> str:
    # Windows PowerShell 5 writes UTF-16 when it redirects, with a mark at the start that says so.
    utf16 = data.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE))
    return data.decode("utf-16" if utf16 else "utf-8-sig", errors="replace")


def _print(result: Any, as_json: bool) -> None:
    _write(json.dumps(result.to_dict(), indent=2) if as_json else f"{result}", sys.stdout, "\n")


def _write(text: str, stream: Any, end: str = "") -> None:
    try:
        print(text, end=end, file=stream, flush=True)
    except BrokenPipeError:
        # What the output goes to, such as `head`, has closed it. What is left would fail once more when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _fail(message: str) -> int:
    sys.stderr.write(f"jitguide: {message}\n")
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
