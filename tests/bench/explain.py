"""How many pasted texts `explain` answers rightly: with the right entry, or with "not JAX" for what is not JAX's.

The catalogue was written looking at half "a" of the texts only; half "b" was chosen afterwards. Texts with `run`
are raised here, on the installed JAX, and given as an exception, as a traceback and as its last 1500 characters.
"""

import linecache
import tomllib
import traceback
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
from _bench import arguments, exit_code, write

from jitguide import explain

TARGET = 0.9
TEXTS = Path(__file__).with_name("explain_texts.toml")


def raised(code):
    """Return an exception and its traceback, long and cut."""
    linecache.cache["train.py"] = (len(code), None, code.splitlines(keepends=True), "train.py")
    try:
        exec(compile(code, "train.py", "exec"), {"jax": jax, "jnp": jnp, "np": np})
    except Exception as error:
        text = "".join(traceback.format_exception(error))
        return [error, text, text[-1500:]]
    raise AssertionError(f"nothing was raised by {code}")


def is_right(case, given):
    """Return whether the answer is one of those that were written down before."""
    found = explain(given)
    return found.key in case["keys"] if case["keys"] else found.foreign and not found.found


def main():
    """Ask for all texts, and write the share of right answers."""
    options = arguments(__doc__, 1, 1)
    cases = tomllib.loads(TEXTS.read_text("utf-8"))["text"]
    answers = {"a": [], "b": []}
    missed = []
    for case in cases:
        forms = raised(case["run"]) if "run" in case else [case["text"]]
        right = all(is_right(case, given) for given in forms)
        answers[case["half"]].append(right)
        if not right:
            missed.append(case.get("source") or case.get("run") or case["text"][:60])
    every = [right for half in answers.values() for right in half]
    details = {
        "texts": len(every),
        "not_jax": sum(not case["keys"] for case in cases),
        "halves": {half: [sum(rights), len(rights)] for half, rights in answers.items()},
        "missed": missed,
    }
    write("explain", sum(every) / len(every), TARGET, "of the texts", details)
    print(f"right: {details['halves']}; missed: {missed}")
    return exit_code(options, counts=sum(every) >= TARGET * len(every))


if __name__ == "__main__":
    raise SystemExit(main())
