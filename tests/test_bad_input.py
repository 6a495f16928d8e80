"""What each instrument says to input it cannot use: a sentence that names the argument and the next step."""

from __future__ import annotations

import functools
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import jitguide as jg

ROOT = Path(__file__).parents[1]
SHORT = {"budget": 1e-3}


@jax.jit
def double(x):
    return x * 2


@functools.partial(jax.jit, static_argnames="n")
def repeat(x, n):
    return x * len(n)


def plain(x):
    return x * 2


def fails(x):
    raise KeyError("mine")


@jax.tree_util.register_pytree_node_class
class Converts:
    """A class that converts what it is given, as the distributions of TensorFlow Probability do."""

    def __init__(self, mean):
        self.mean = jnp.asarray(mean, jnp.float32)

    def tree_flatten(self):
        return (self.mean,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


@jax.jit
def mean_of(converts):
    return converts.mean + 1


def branches(x):
    return x if x.sum() > 0 else -x


def ones(*shape):
    return jnp.ones(shape or (4,))


def deleted():
    x = ones()
    x.delete()
    return x


def lowered():
    return double.lower(ones())


def in_jit(use: Callable[[Any], object]):
    """Use an instrument inside a function that is being traced."""
    return jax.jit(lambda x: (use(x), x)[1])(ones())


def in_vmap(use: Callable[[Any], object]):
    """Use an instrument inside a trace, on an array that is no tracer."""
    return jax.vmap(lambda x: (use(np.ones(2, np.float32)), x)[1])(ones())


def compare(fn, *args, **options):
    return jg.compare({"f": fn}, *args, **{**SHORT, **options})


def pair(other, *args, **options):
    return jg.compare({"a": double, "b": other}, *(args or (ones(),)), **{**SHORT, **options})


def scaling(fn=double, make_args=jnp.ones, sizes=(1, 2)):
    return jg.scaling({"f": fn}, make_args, sizes, **SHORT)


def check(fn, *args, **options):
    return jg.check(fn, *args, **{"run": False, **options})


def watched(fn, *args):
    return jg.watch(fn)(*args)


def block(expected=1, of=None, test=jg.assert_compiles):
    with test(expected, of=of):
        double(ones(3))


TRACED = "called inside a function that JAX is tracing"
STAGED = "which stands for one executable and never traces again. Pass the function that it was made from."
NOT_CALLED = "which cannot be called. Pass the function itself, not the result of calling it."

# instrument and input: what is done, the class of the error, and a part of its message
REFUSED: dict[str, tuple[Callable[[], object], type[Exception], str]] = {
    "compare, no mapping": (lambda: jg.compare([double], ones()), TypeError, "`variants` must be a mapping"),
    "compare, empty": (lambda: jg.compare({}), ValueError, "`variants` is empty"),
    "compare, key": (lambda: jg.compare({1: double}, ones()), TypeError, "`variants` must have text as keys"),
    "compare, not callable": (lambda: compare(ones()), TypeError, "`variants['f']` must be a function"),
    "compare, lowered": (lambda: compare(lowered(), ones()), TypeError, "`variants['f']` must be a function"),
    "compare, no baseline": (
        lambda: pair(plain, baseline="c"),
        ValueError,
        "`baseline` is 'c', which is not among the variants. Use one of 'a', 'b'.",
    ),
    "compare, values": (lambda: pair(jnp.sin), ValueError, "'a' and 'b' disagree at result[0]: 2.0 against"),
    "compare, nan": (lambda: pair(lambda x: x * jnp.nan), ValueError, "disagree at result[0]: 2.0 against nan"),
    "compare, shape": (lambda: pair(lambda x: x[:2] * 2), ValueError, "disagree in shape at result: (4,)"),
    "compare, dtype": (lambda: pair(lambda x: jnp.int8(x)), ValueError, "disagree in dtype at result"),
    "compare, structure": (lambda: pair(lambda x: (x,)), ValueError, "return different structures"),
    "compare, no result": (lambda: compare(lambda x: None, ones()), TypeError, "returns nothing to compare"),
    "compare, no array": (lambda: compare(lambda x: "text", ones()), TypeError, "returns a str at result"),
    "compare, deleted": (lambda: compare(double, deleted()), ValueError, "argument args[0] was deleted"),
    "compare, setup deleted": (lambda: jg.compare({"f": double}, setup=deleted), ValueError, "`setup` returned args[0]"),
    "compare, many checks": (lambda: pair(plain, check=lambda a, b: a == b), TypeError, "`check` must return one"),
    "compare, in jit": (lambda: in_jit(lambda x: compare(double, x)), RuntimeError, TRACED),
    "compare, in vmap": (lambda: in_vmap(lambda x: compare(double, x)), RuntimeError, TRACED),
    "phases, not callable": (lambda: jg.phases(ones()), TypeError, NOT_CALLED),
    "phases, traced": (lambda: jg.phases(double.trace(ones()), ones()), TypeError, STAGED),
    "phases, compiled": (lambda: jg.phases(lowered().compile(), ones()), TypeError, STAGED),
    "phases, lowered": (lambda: jg.phases(lowered(), ones()), TypeError, STAGED),
    "phases, deleted": (lambda: jg.phases(double, deleted()), ValueError, "argument args[0] was deleted"),
    "phases, in jit": (lambda: in_jit(lambda x: jg.phases(double, x)), RuntimeError, TRACED),
    "phases, in vmap": (lambda: in_vmap(lambda x: jg.phases(double, x)), RuntimeError, TRACED),
    "scaling, empty": (lambda: jg.scaling({}, jnp.ones, [1]), ValueError, "`variants` is empty"),
    "scaling, not callable": (lambda: scaling(3), TypeError, "`variants['f']` must be a function"),
    "scaling, make_args": (lambda: scaling(make_args=3), TypeError, "`make_args` must be a function"),
    "scaling, no sizes": (lambda: scaling(sizes=[]), ValueError, "`sizes` is empty"),
    "scaling, sizes": (lambda: scaling(sizes=3), TypeError, "`sizes` must be a series of numbers"),
    "scaling, in jit": (lambda: in_jit(lambda x: scaling()), RuntimeError, TRACED),
    "watch, not callable": (lambda: jg.watch(ones()), TypeError, NOT_CALLED),
    "watch, not jitted": (lambda: jg.watch(plain), TypeError, "Write watch(jax.jit(plain))."),
    "watch, traced": (lambda: jg.watch(double.trace(ones())), TypeError, STAGED),
    "watch, lowered": (lambda: jg.watch(lowered()), TypeError, STAGED),
    "watch, compiled": (lambda: jg.watch(lowered().compile()), TypeError, STAGED),
    "watched, text": (lambda: jg.watch(double).assert_compiles("1"), TypeError, "`expected` must be a whole"),
    "watched, negative": (lambda: jg.watch(double).assert_traces(-1), ValueError, "got -1 of type int"),
    "block, phase": (lambda: jg.watch().count("run"), ValueError, "`phase` must be one of 'trace', 'lower'"),
    "assert_compiles, text": (lambda: block("1"), TypeError, "`expected` must be a whole number of at least 0"),
    "assert_compiles, function": (lambda: block(double), TypeError, "got `double` of type"),
    "assert_compiles, float": (lambda: block(1.0), TypeError, "got 1.0 of type float"),
    "assert_compiles, bool": (lambda: block(True), TypeError, "got True of type bool"),
    "assert_compiles, of": (lambda: block(of=3), TypeError, "`of` must be a function or its name, got 3"),
    "assert_traces, text": (lambda: block("1", test=jg.assert_traces), TypeError, "`expected` must be a whole"),
    "assert_traces, negative": (lambda: block(-1, test=jg.assert_traces), ValueError, "got -1 of type int"),
    "check, not callable": (lambda: check(ones(), ones()), TypeError, NOT_CALLED),
    "check, not jitted": (lambda: check(plain, ones()), TypeError, "Write check(jax.jit(plain), ...)."),
    "check, traced": (lambda: check(double.trace(ones()), ones()), TypeError, STAGED),
    "check, lowered": (lambda: check(lowered(), ones()), TypeError, STAGED),
    "check, compiled": (lambda: check(lowered().compile(), ones()), TypeError, STAGED),
    "check, text": (lambda: check(double, "text"), TypeError, "argument `x` is 'text' of type str"),
    "check, missing": (lambda: check(double), TypeError, "missing a required argument: 'x'. Pass example"),
    "check, too many": (lambda: check(double, 1, 2), TypeError, "too many positional arguments. Pass example"),
    "check, keyword": (lambda: check(double, 1, z=2), TypeError, "unexpected keyword argument 'z'. Pass"),
    "check, deleted": (lambda: check(double, deleted(), run=True), ValueError, "was deleted before"),
    "check, calls of arrays": (lambda: check(double, calls=[ones()]), TypeError, "Write `calls=[(x,), (y,)]`."),
    "check, calls an array": (lambda: check(double, calls=ones()), TypeError, "Write `calls=[(x,), (y,)]`."),
    "check, calls None": (lambda: check(double, 1, calls=None), TypeError, "got None of type NoneType"),
    "check, in jit": (lambda: in_jit(lambda x: check(double, x)), RuntimeError, TRACED),
    "check, in vmap": (lambda: in_vmap(lambda x: check(double, x)), RuntimeError, TRACED),
    "stages, not callable": (lambda: jg.stages(ones()), TypeError, NOT_CALLED),
    "stages, traced": (lambda: jg.stages(double.trace(ones())), TypeError, STAGED),
    "stages, lowered": (lambda: jg.stages(lowered()), TypeError, STAGED),
    "stages, compiled": (lambda: jg.stages(lowered().compile()), TypeError, STAGED),
    "stages, in jit": (lambda: in_jit(lambda x: jg.stages(double, x)), RuntimeError, TRACED),
    "stages, in vmap": (lambda: in_vmap(lambda x: jg.stages(double, x)), RuntimeError, TRACED),
    "stages, show": (lambda: jg.stages(double, 1.0).show("HLO"), ValueError, "'HLO' is none. Use 'source'"),
    "stages, diff": (lambda: jg.stages(double, 1.0).diff(3), TypeError, "`other` is of type int"),
    "roofline, not callable": (lambda: jg.roofline(ones()), TypeError, NOT_CALLED),
    "roofline, traced": (lambda: jg.roofline(double.trace(ones()), ones()), TypeError, STAGED),
    "roofline, lowered": (lambda: jg.roofline(lowered(), ones()), TypeError, STAGED),
    "roofline, compiled": (lambda: jg.roofline(lowered().compile(), ones()), TypeError, STAGED),
    "roofline, ref": (lambda: jg.roofline(double, jax.new_ref(ones())), TypeError, "write into a `Ref`"),
    "phases, ufunc": (lambda: jg.phases(np.sin, ones()), TypeError, "has no weak references"),
    "roofline, deleted": (lambda: jg.roofline(double, deleted()), ValueError, "argument args[0] was deleted"),
    "roofline, zero size": (lambda: jg.roofline(double, ones(0, 4)), ValueError, "`fn` takes no bytes"),
    "roofline, shapes": (
        lambda: jg.roofline(double, jax.ShapeDtypeStruct((3,), jnp.float32)),
        TypeError,
        "Pass an array of that shape.",
    ),
    "roofline, in jit": (lambda: in_jit(lambda x: jg.roofline(double, x)), RuntimeError, f"`roofline` was {TRACED}"),
    "roofline, in vmap": (lambda: in_vmap(lambda x: jg.roofline(double, x)), RuntimeError, f"`roofline` was {TRACED}"),
    "peaks, quick": (lambda: jg.peaks(quick="no"), TypeError, "quick must be True or False, not 'no'"),
    "peaks, in jit": (lambda: in_jit(lambda x: jg.peaks()), RuntimeError, f"`peaks` was {TRACED}"),
    "record, quick": (lambda: jg.record(quick=1), TypeError, "`quick` must be True or False, got 1"),
    "record, name": (lambda: jg.record(name=3), TypeError, "`name` must be text, got 3"),
    "record, in jit": (lambda: in_jit(lambda x: jg.record()), RuntimeError, f"`record` was {TRACED}"),
    "expect_error, nothing": (lambda: jg.expect_error(), TypeError, "needs at least one exception class"),
    "expect_error, text": (lambda: jg.expect_error("TypeError"), TypeError, "got 'TypeError' of type str"),
    "explain, empty": (lambda: jg.explain(" "), ValueError, "The text given to explain is empty"),
    "explain, bytes": (lambda: jg.explain(b"x"), TypeError, "takes an exception or a text, not bytes"),
    "explain, class": (lambda: jg.explain(KeyError), TypeError, "Pass the exception that you caught, not its class"),
}  # fmt: skip


@pytest.mark.parametrize(("use", "kind", "part"), REFUSED.values(), ids=REFUSED)
def test_it_is_refused_in_sentences_that_end_in_a_next_step(use, kind, part):
    with pytest.raises(kind) as caught:
        use()
    message = str(caught.value)
    assert part in message
    assert message.endswith(".")
    assert re.search(r"[.!?:] [A-Z`]|, got", message), "one sentence says what is wrong, one what to do"
    assert not re.search(r" at 0x|/\w+/\w+", message)


# JAX's own errors and those of the function come through as they are, with a hint where one helps.
THROUGH: dict[str, tuple[Callable[[], object], type[Exception], str, str]] = {
    "compare, raises": (lambda: compare(fails, ones()), KeyError, "mine", "The variant 'f' raised this"),
    "compare, text": (lambda: compare(double, "text"), TypeError, "abstract array", "The variant 'f' raised"),
    "compare, missing": (lambda: compare(double), TypeError, "missing 1 required", "The variant 'f' raised"),
    "scaling, raises": (lambda: scaling(fails), KeyError, "mine", "The variant 'f' raised this"),
    "phases, raises": (lambda: jg.phases(fails, ones()), KeyError, "mine", ""),
    "phases, missing": (lambda: jg.phases(double), TypeError, "missing 1 required", ""),
    "watch, raises": (lambda: watched(jax.jit(fails), ones()), KeyError, "mine", ""),
    "watch, deleted": (lambda: watched(double, deleted()), RuntimeError, "Array has been deleted", ""),
    "watch, static": (lambda: watched(repeat, ones(), []), ValueError, "Non-hashable static", ""),
    "check, raises": (lambda: check(jax.jit(fails), ones()), KeyError, "mine", ""),
    "check, class": (lambda: check(mean_of, Converts(1.0)), TypeError, "ArgInfo", "JAX builds each object"),
    "check, result": (lambda: check(jax.jit(Converts), 1.0), TypeError, "Struct", "JAX builds each object"),
    "phases, class": (lambda: jg.phases(mean_of, Converts(1.0)), TypeError, "ArgInfo", "JAX builds each object"),
    "stages, class": (lambda: jg.stages(mean_of, Converts(1.0)), TypeError, "ArgInfo", "JAX builds each object"),
    "roofline, class": (lambda: jg.roofline(mean_of, Converts(1.0)), TypeError, "ArgInfo", "JAX builds each"),
    "roofline, result": (lambda: jg.roofline(jax.jit(Converts), 1.0), TypeError, "Sharding", "JAX builds each"),
    "check, branches": (lambda: check(jax.jit(branches), ones()), TypeError, "boolean conversion", ""),
    "stages, raises": (lambda: jg.stages(fails, ones()), KeyError, "mine", ""),
    "stages, text": (lambda: jg.stages(plain, "text"), TypeError, "abstract array", "stages takes the options"),
    "stages, result": (lambda: jg.stages(lambda x: "text", 1.0), TypeError, "not a valid JAX type", ""),
    "roofline, raises": (lambda: jg.roofline(fails, ones()), KeyError, "mine", ""),
    "roofline, text": (lambda: jg.roofline(plain, "text"), TypeError, "abstract array", "roofline takes the options"),
    "assert_compiles, raises": (lambda: raise_in_block(jg.assert_compiles), KeyError, "mine", ""),
    "assert_traces, raises": (lambda: raise_in_block(jg.assert_traces), KeyError, "mine", ""),
}  # fmt: skip


def raise_in_block(test):
    with test(1):
        fails(1)


@pytest.mark.parametrize(("use", "kind", "part", "hint"), THROUGH.values(), ids=THROUGH)
def test_an_error_that_is_not_ours_comes_through_with_a_hint_at_most(use, kind, part, hint):
    with pytest.raises(kind) as caught:
        use()
    assert part in str(caught.value)
    notes = [n for n in getattr(caught.value, "__notes__", ()) if "JAX_TRACEBACK_FILTERING" not in n]
    assert len(notes) == bool(hint)
    assert all(note.startswith(hint) for note in notes)


# Odd, and yet of use: each must give a result that can be shown.
ACCEPTED: dict[str, Callable[[], object]] = {
    "compare, zero size": lambda: pair(plain, ones(0, 4)),
    "compare, nan twice": lambda: pair(plain, ones() * jnp.nan),
    "compare, compiled": lambda: compare(lowered().compile(), ones()),
    "phases, zero size": lambda: jg.phases(double, ones(0, 4)),
    "phases, nan": lambda: jg.phases(lambda x: x * jnp.nan, ones()),
    "phases, no result": lambda: jg.phases(lambda x: None, ones()),
    "scaling, zero size": lambda: scaling(make_args=lambda n: ones(0, n)),
    "watch, in jit": lambda: in_jit(jg.watch(double)),
    "check, zero size": lambda: check(double, ones(0, 4)),
    "check, nan": lambda: check(double, jnp.nan),
    "check, deleted but not run": lambda: check(double, deleted()),
    "check, unhashable static value": lambda: check(repeat, ones(), n=[]),
    "check, no result": lambda: check(jax.jit(lambda x: None), ones()),
    "stages, zero size": lambda: jg.stages(double, ones(0, 4)),
    "stages, deleted": lambda: jg.stages(double, deleted()),
    "stages, no result": lambda: jg.stages(lambda x: None, ones()),
    "explain, unknown": lambda: jg.explain("\x00"),
}


@pytest.mark.parametrize("use", ACCEPTED.values(), ids=ACCEPTED)
def test_it_is_odd_and_works(use):
    result = use()
    assert repr(result)
    assert isinstance(result, jax.Array) or result._repr_html_().startswith("<style>")


def test_a_count_of_a_partial_counts_the_function_in_it():
    partial = functools.partial(jax.jit(lambda x: x + 1))
    with jg.assert_compiles(1, of=partial):
        partial(np.ones(3))


BROKEN = """
import numpy as np, jax, jitguide as jg
f, x = jax.jit(lambda x: x * 2), np.ones(3, np.float32)
uses = {
    "compare": lambda: jg.compare({"f": f}, x),
    "phases": lambda: jg.phases(f, x),
    "scaling": lambda: jg.scaling({"f": f}, np.ones, [1]),
    "watch": lambda: jg.watch(f)(x),
    "check": lambda: jg.check(f, x),
    "stages": lambda: jg.stages(f, x),
    "roofline": lambda: jg.roofline(f, x),
    "peaks": jg.peaks,
}
for name, use in uses.items():
    try:
        use()
    except RuntimeError as error:
        print(name, jg.explain(error).key, "JAX_PLATFORMS" in str(error))
print(jg.device_report().problem)
"""


def test_a_device_that_does_not_start_is_named_by_jax_and_explained_by_us():
    environment = os.environ | {"JAX_PLATFORMS": "nonsense", "PYTHONPATH": str(ROOT)}
    done = subprocess.run(
        [sys.executable, "-c", BROKEN], env=environment, capture_output=True, text=True, check=True
    )
    *lines, problem = done.stdout.splitlines()
    instruments = ["compare", "phases", "scaling", "watch", "check", "stages", "roofline", "peaks"]
    assert lines == [f"{name} backend-missing True" for name in instruments]
    assert problem.startswith("JAX could not start a device: Unable to initialize backend 'nonsense'")
    assert problem.endswith("Check JAX_PLATFORMS and the installed plug-in.")
