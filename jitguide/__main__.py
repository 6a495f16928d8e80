"""The command line: `python -m jitguide report` and `python -m jitguide explain`."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

FOUND, UNKNOWN, USAGE = 0, 1, 2  # argparse itself exits with 2

_DESCRIPTION = "Measure, watch and explain jax.jit."
_EXPLAIN = "Explain an error, a warning or a log line of JAX, read from FILE or from standard input."
_REPORT = "Report versions, device, processor and settings, without naming a host, a user or a path."
_EPILOG = "Exit codes: 0 done or explained, 1 the text is unknown, 2 the command cannot be carried out."


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code.

    Args:
        arguments: Words after the program's name; those of this process by default.

    Returns:
        0 if done or explained, 1 if `explain` does not know the text, 2 if the command cannot be carried out.

    Example:
        >>> from pathlib import Path
        >>> main(["explain", "no-such-file.txt"])
        2
    """
    options = _parser().parse_args(arguments)
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="replace")  # a terminal without × or µ must not end the program
    return _report(options) if options.command == "report" else _explain(options)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="jitguide", description=_DESCRIPTION, epilog=_EPILOG)
    commands = parser.add_subparsers(dest="command", required=True, metavar="{report,explain}")
    report = commands.add_parser("report", help=_REPORT, description=_REPORT)
    explain = commands.add_parser("explain", help=_EXPLAIN, description=_EXPLAIN, epilog=_EPILOG)
    explain.add_argument(
        "file", nargs="?", default="-", metavar="FILE", help="a text file; - is standard input"
    )
    for command in (report, explain):
        command.add_argument("--json", action="store_true", help="print JSON instead of text")
    return parser


def _report(options: argparse.Namespace) -> int:
    from jitguide._device import device_report  # imports JAX, which --help does not need

    _print(device_report(), options.json)
    return FOUND


def _explain(options: argparse.Namespace) -> int:
    from jitguide._errors import explain

    try:
        text = _read(options.file)
    except OSError as error:
        return _fail(f"Cannot read {options.file}: {error.strerror}. Name a text file, or pipe the text in.")
    if not text.strip():
        return _fail("There is no text to explain. Name a file with a traceback, or pipe one in.")
    found = explain(text)
    _print(found, options.json)
    return FOUND if found.found else UNKNOWN


def _read(name: str) -> str:
    if name != "-":
        return Path(name).read_text(encoding="utf-8", errors="replace")
    if sys.stdin.isatty():
        sys.stderr.write("Paste the text and end it with Ctrl-D (on Windows: Ctrl-Z, Enter).\n")
    stream = getattr(sys.stdin, "buffer", None)  # a stand-in for standard input may have text only
    return stream.read().decode("utf-8", "replace") if stream else sys.stdin.read()


def _print(result: Any, as_json: bool) -> None:
    sys.stdout.write(f"{json.dumps(result.to_dict(), indent=2) if as_json else result}\n")


def _fail(message: str) -> int:
    sys.stderr.write(f"jitguide: {message}\n")
    return USAGE


if __name__ == "__main__":
    sys.exit(main())
