"""Runs small pages as a notebook would: `python notebook.py < pages.json`. Each has a process of its own."""

import ast
import contextlib
import inspect
import io
import json
import os
import sys
import tempfile
import types
from pathlib import Path

import jax
import jax.numpy
import numpy


def outputs(number, source, names, folder):
    body = ast.parse(source).body
    printed, found = io.StringIO(), []
    last = body.pop() if isinstance(body[-1], ast.Expr) and not source.rstrip().endswith(";") else None
    path = Path(folder, f"cell{number}.py")
    path.write_text(source)
    value = None
    with contextlib.redirect_stdout(printed):
        try:
            exec(compile(ast.Module(body, []), path, "exec"), names)
            if last:
                value = eval(compile(ast.Expression(last.value), path, "eval"), names)
            jax.effects_barrier()
        except Exception as error:
            found.append({"output_type": "error", "ename": type(error).__name__, "evalue": str(error)})
    if printed.getvalue():
        found.append({"output_type": "stream", "name": "stdout", "text": printed.getvalue()})
    if value is not None:
        found.append({"output_type": "execute_result", "data": {"text/plain": plain(value)}})
    return found


def plain(value):
    if isinstance(value, type):
        return (
            value.__qualname__
            if value.__module__ == "builtins"
            else f"{value.__module__}.{value.__qualname__}"
        )
    if isinstance(value, types.FunctionType):
        return f"<function {value.__module__}.{value.__qualname__}{inspect.signature(value)}>"
    return repr(value)


def page(sources):
    module = sys.modules["__main__"] = types.ModuleType("__main__")
    numpy.random.seed()  # noqa: NPY002 -- otherwise every child draws the same numbers
    with tempfile.TemporaryDirectory() as folder:
        return [outputs(i, source, vars(module), folder) for i, source in enumerate(sources)]


def main():
    for name, sources in json.load(sys.stdin).items():
        sys.stdout.flush()
        if not os.fork():
            print(json.dumps([name, page(sources)]), flush=True)
            os._exit(0)
        os.wait()


if __name__ == "__main__":
    main()
