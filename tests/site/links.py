"""Judges what Sphinx's link check found: broken is an error, not reachable from here is not.

    python tests/site/links.py docs/_build/linkcheck/output.json [--strict]

A machine without a network cannot tell a dead host from a live one, so failures to resolve or to connect count
as "not reachable from here" and are printed as a number; with --strict they are errors as well.
"""

from __future__ import annotations

import json
import re
import sys
from pathlib import Path

_NO_NETWORK = re.compile(
    r"NameResolutionError|Temporary failure in name resolution|Failed to resolve|getaddrinfo|"
    r"Network is unreachable|No route to host|ProxyError|ConnectTimeout|Connection refused|NewConnectionError",
)
_GOOD = {"working", "unchecked", "ignored", "redirected", "local"}


def judge(entries: list[dict], *, strict: bool = False) -> tuple[list[dict], list[dict]]:
    """Return the broken links and those that could not be reached from here."""
    failed = [e for e in entries if e["status"] not in _GOOD]
    unreachable = [e for e in failed if _NO_NETWORK.search(e.get("info", "")) and not _is_local(e["uri"])]
    broken = [e for e in failed if strict or e not in unreachable]
    return broken, unreachable


def _is_local(uri: str) -> bool:
    return re.match(r"https?://(localhost|127\.|\[::1\])", uri) is not None


def main(arguments: list[str]) -> int:
    """Print the verdict; return 1 when a link is broken."""
    path = Path(next(a for a in arguments if not a.startswith("--")))
    if not path.exists():
        print(f"links: {path.name} is missing, so the link check did not run.", file=sys.stderr)
        return 1
    entries = [json.loads(line) for line in path.read_text("utf-8").splitlines() if line.strip()]
    broken, unreachable = judge(entries, strict="--strict" in arguments)
    for entry in broken:
        print(f"{entry['filename']}:{entry['lineno']}: {entry['uri']}: {entry['info']}", file=sys.stderr)
    print(f"links: {len(entries)} found, {len(broken)} broken, {len(unreachable)} not reachable from here")
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
