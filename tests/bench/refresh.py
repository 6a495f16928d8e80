"""Seconds from saving a sentence to the page that holds it, as `nox -s live` and sphinx-autobuild alone serve it.

Both serve the guide's pages whose outputs are stored, so that nothing is executed, and each writes into a
folder of its own. One serves after the other, and each edit comes when the server is at rest.
"""

import contextlib
import http.client
import os
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

from _bench import ENVIRONMENT, arguments, exit_code, write

ROOT = Path(__file__).parents[2]
PAGE = "learn/one-compile-many-calls"
SOURCE = ROOT / "docs" / f"{PAGE}.md"
TARGET, SHARE = 2.0, 0.5
RUNS, QUICK = 10, 1
REST = 4.0  # seconds between two edits: a short time to write a sentence
SERVERS = {"live": [ROOT / "tools" / "live.py"], "sphinx-autobuild": ["-m", "sphinx_autobuild"]}


def free_port():
    """Return a port that nobody uses."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


@contextlib.contextmanager
def served(command, folder):
    """Serve the guide; give the address of the page."""
    port = free_port()
    ignored = ("*/_build/*", "*/__pycache__/*", "*/_ipython/*/db/*")
    options = [
        "-q",
        "-j",
        "2",
        "--port",
        str(port),
        *(word for glob in ignored for word in ("--ignore", glob)),
    ]
    with (folder / "log").open("w") as log:
        server = subprocess.Popen(
            [sys.executable, *command, *options, "docs", folder / "site"],
            cwd=ROOT,
            env=ENVIRONMENT,
            stdout=log,
            stderr=log,
            start_new_session=True,  # what it started ends with it, or would still write while the folder goes
        )
        try:
            yield f"http://127.0.0.1:{port}/{PAGE}.html"
        finally:
            os.killpg(server.pid, signal.SIGTERM)
            server.wait()


def wait(address, word, limit=600):
    """Return when the page at an address holds a word."""
    end = time.perf_counter() + limit
    while time.perf_counter() < end:
        # A page that is being written may come in part.
        missing = (OSError, http.client.HTTPException)
        with contextlib.suppress(*missing), urllib.request.urlopen(address, timeout=limit) as answer:
            if word in answer.read().decode(errors="replace"):
                return
        time.sleep(0.02)
    sys.exit(f"{address} did not show {word!r} within {limit} s.")


def main():
    """Measure, and write the result."""
    options = arguments(__doc__, RUNS, QUICK)
    text, found = SOURCE.read_text("utf-8"), {}
    try:
        for name, command in SERVERS.items():  # one at a time: each would build what is edited for the other
            found[name] = []
            with tempfile.TemporaryDirectory() as folder, served(command, Path(folder)) as address:
                wait(address, "</html>")
                for number in range(options.runs):
                    time.sleep(REST)
                    word = f"Sentence-{name}-{number}"
                    start = time.perf_counter()
                    SOURCE.write_text(f"{text}\n{word}.\n", "utf-8")
                    wait(address, word)
                    found[name].append(time.perf_counter() - start)
            SOURCE.write_text(text, "utf-8")
    finally:
        SOURCE.write_text(text, "utf-8")
    ours, alone = (statistics.median(found[name]) for name in SERVERS)
    print(f"sphinx-autobuild alone: {alone:.2f} s; ours is {ours / alone:.2f} of it (target {SHARE:g})")
    write("refresh", ours, TARGET, "s", {"seconds": found, "share": ours / alone})
    return exit_code(options, times=ours <= TARGET and ours <= SHARE * alone)


if __name__ == "__main__":
    raise SystemExit(main())
