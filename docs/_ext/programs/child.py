"""One program inside the process that runs it: first what it kept, then its block. Standard library only."""

from __future__ import annotations

import ast
import inspect
import sys
import types
from collections.abc import Callable
from pathlib import Path


class Program:
    """Executes a program as `__main__`, from a real file, so that tracebacks and `inspect` find its source."""

    def __init__(self, job: dict, place: Path, before_block: Callable[[], None] | None = None):
        self.job, self.place, self.before_block = job, place, before_block
        self.path = Path("program.py").resolve()
        self.path.write_text(job["text"], "utf-8")
        module = types.ModuleType("__main__")
        module.__file__ = str(self.path)
        vars(module)["__builtins__"] = __builtins__
        sys.modules["__main__"] = module
        sys.argv = [str(self.path)]
        self.outcome: dict = {"early": False, "error": None, "message": "", "plain": None, "html": None}

    def run(self) -> dict:
        """Return the outcome as data."""
        marks = (0, 0)
        try:
            body = ast.parse(self.job["text"]).body
            kept = [n for n in body if (n.end_lineno or n.lineno) < self.job["block"]]
            self.outcome["early"] = True
            self._execute(kept)
            marks = self._positions()
            self.outcome["early"] = False
            if self.before_block:
                self.before_block()
            self._block(body[len(kept) :])
        except BaseException as error:
            if not (isinstance(error, SystemExit) and not error.code):
                self.outcome |= {"error": type(error).__name__, "message": str(error)}
            marks = (0, 0) if self.outcome["early"] else marks
        self._positions()
        for name, mark in zip(("stdout", "stderr"), marks, strict=True):
            self.outcome[name] = (self.place / name).read_bytes()[mark:].decode("utf-8", "replace")
        return self.outcome

    def _execute(self, nodes: list[ast.stmt]) -> None:
        if nodes:
            exec(compile(ast.Module(nodes, []), str(self.path), "exec"), _names())  # noqa: S102 -- the guide's own code

    def _block(self, nodes: list[ast.stmt]) -> None:
        match nodes[-1:] if self.job["shown"] else []:
            case [ast.Expr(value=ast.Call(func=ast.Name(id="print"), args=[shown]))]:
                self._execute(nodes[:-1])
                code = compile(ast.Expression(shown), str(self.path), "eval")
                value = eval(code, _names())  # noqa: S307 -- the guide's own code
                self.outcome |= {"plain": plain(value), "html": _html(value)}
                self._show(value)
            case _:
                self._execute(nodes)

    def _show(self, value: object) -> None:
        """Print the value as the program would, into a file that is not compared."""
        with (self.place / "shown").open("w", encoding="utf-8") as file:
            print(value, file=file)

    def _positions(self) -> tuple[int, int]:
        """Return how much was written so far, when everything has arrived that was under way."""
        if "jax" in sys.modules:
            sys.modules["jax"].effects_barrier()
        sys.stdout.flush()
        sys.stderr.flush()
        return (self.place / "stdout").stat().st_size, (self.place / "stderr").stat().st_size


def _names() -> dict:
    """Return the program's variables. Nothing here keeps them: JAX's leak check would stumble over the holder."""
    return vars(sys.modules["__main__"])


def _html(value: object) -> str | None:
    draw = getattr(value, "_repr_html_", None)
    return draw() if callable(draw) and not isinstance(value, type) else None


def plain(value: object) -> str:
    """Return the text that a notebook shows for a value.

    Example:
        >>> plain(int), plain([1, 2])
        ('int', '[1, 2]')
    """
    if isinstance(value, type):  # notebooks show classes by name
        prefix = "" if value.__module__ == "builtins" else f"{value.__module__}."
        return prefix + value.__qualname__
    if isinstance(value, types.FunctionType):
        return f"<function {value.__module__}.{value.__qualname__}{inspect.signature(value)}>"
    return repr(value)
