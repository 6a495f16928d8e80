"""Serve the guide and show each change at once: `python tools/live.py SPHINX-AUTOBUILD'S ARGUMENTS`.

This is sphinx-autobuild, except for who builds. It starts Sphinx for each change, and most of the time goes into
imports and settings. Here a process has done all that and waits; the change makes it build, and the next process
gets ready while you read. A change of code or data starts the imports again as well.

A page shows the warnings about it above its text, where you see them: a cell that failed, a link that leads nowhere.
"""

from __future__ import annotations

import argparse
import atexit
import contextlib
import os
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import sphinx.cmd.build
from sphinx.application import Sphinx
from sphinx.config import eval_config_file
from sphinx.util.tags import Tags
from sphinx_autobuild import __main__ as autobuild
from sphinx_autobuild.build import Builder
from sphinx_autobuild.utils import show_message

# What a build reads when it starts; anything else is read, or imported, while a process gets ready.
_READ_LATE = {".md", ".css", ".js", ".svg"}


class ReadyBuilder(Builder):
    """sphinx-autobuild's builder, which asks the process of `serve` to build.

    It keeps nothing but the name of a socket, because sphinx-autobuild calls a copy of it in another process.
    """

    def __init__(self, sphinx_args: list[str], **options: object):
        super().__init__(sphinx_args, **options)
        folder = tempfile.TemporaryDirectory(prefix="jit-guide-live-")
        self.address = str(Path(folder.name, "socket"))
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(self.address)
        listener.listen()
        number = listener.fileno()
        server = subprocess.Popen(
            [sys.executable, __file__, "--serve", str(number), *sphinx_args], pass_fds=[number]
        )
        atexit.register(folder.cleanup)
        atexit.register(server.terminate)
        listener.close()

    def __call__(self, *, changed_paths: Sequence[Path]) -> None:
        """Have the guide built, and return when it is."""
        with socket.socket(socket.AF_UNIX) as connection:
            connection.connect(self.address)
            connection.sendall("\n".join(map(str, changed_paths)).encode())
            connection.shutdown(socket.SHUT_WR)
            code = connection.recv(8)
        if code != b"0":
            show_message(
                f"Sphinx ended with {code.decode() or 'nothing'}: what is served may be older than its source"
            )
        show_message(f"Serving on {self.uri}")


def serve(number: str, *arguments: str) -> None:
    """Build whenever the socket is asked to, in a process that was ready before."""
    listener = socket.socket(fileno=int(number))
    listener.settimeout(1)
    parent = os.getppid()
    with contextlib.suppress(Exception):  # what is wrong with the settings, the build says
        import_extensions(Path(sphinx.cmd.build.get_parser().parse_known_args(arguments)[0].sourcedir))
    while True:
        go, finish = get_ready(arguments)
        while True:
            with contextlib.suppress(TimeoutError):
                connection, _ = listener.accept()
                break
            if os.getppid() != parent:  # sphinx-autobuild was killed
                sys.exit()
        with connection, connection.makefile() as asked:
            late = {Path(path).suffix for path in asked.read().split("\n") if path} <= _READ_LATE
            if not late:
                go(b"")
                finish()
                command = [sys.executable, __file__, "--once", *arguments]
                code = subprocess.run(command, check=False).returncode
            else:
                go(b"x")
                code = finish()
            connection.sendall(b"%d" % code)
        if not late:
            os.execv(sys.executable, [sys.executable, __file__, "--serve", number, *arguments])


def import_extensions(source: Path) -> None:
    """Import what a build needs and does not change."""
    settings = eval_config_file(source.resolve() / "conf.py", Tags())
    for name in (*settings["extensions"], settings["html_theme"], "sphinx.builders.html"):
        import_module(name)
    build = import_module("_ext.build")
    build.devices()  # a second of starting JAX, and the answer stays


def get_ready(arguments: Sequence[str]) -> tuple[Callable[[bytes], None], Callable[[], int]]:
    """Fork a process that is about to build.

    Returns:
        A function that has it build, or end where its argument is empty, and one that returns its exit code.
    """
    waits, starts = os.pipe()
    pid = os.fork()
    if not pid:
        os.close(starts)
        code = build(arguments, lambda: os.read(waits, 1) or os._exit(0))
        sys.stdout.flush()
        os._exit(code)
    os.close(waits)

    def go(message: bytes) -> None:
        with contextlib.suppress(BrokenPipeError):  # it ended already, because of its settings
            os.write(starts, message)
        os.close(starts)

    return go, lambda: os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def build(arguments: Sequence[str], wait: Callable[[], object] = lambda: None) -> int:
    """Run sphinx-build, which waits between its settings and its sources, and return its exit code."""

    class Waiting(Sphinx):
        def build(self, *options: object, **more: object) -> None:
            wait()
            super().build(*options, **more)

    sphinx.cmd.build.Sphinx = Waiting
    return sphinx.cmd.build.build_main(arguments)


def with_free_port(arguments: list[str]) -> list[str]:
    """Return the arguments with a port that is free; end with a sentence if the one asked for is not."""
    parser = argparse.ArgumentParser(add_help=False, allow_abbrev=False)
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int)
    asked = parser.parse_known_args(arguments)[0]
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((asked.host, 8000 if asked.port is None else asked.port))
        except OSError as error:
            if asked.port is None:
                return ["--port", "0", *arguments]
            sys.exit(
                f"Cannot serve on port {asked.port}: {error.strerror}. Choose another with `nox -s live -- --port N`, or leave it out."
            )
    return arguments


if __name__ == "__main__":
    match sys.argv[1:]:
        case ["--serve", *rest]:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            serve(*rest)
        case ["--once", *rest]:
            sys.exit(build(rest))
        case rest:
            autobuild.Builder = ReadyBuilder
            sys.exit(autobuild.main(["-D", "guide_preview=1", *with_free_port(rest)]))
