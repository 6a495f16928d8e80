"""Every watched call gets the outcome that JAX's own events prove, and a reason that names the cause."""

import collections
import copy
import dataclasses
import enum
import functools
import json
import os
import re
import subprocess
import sys
import threading
import types
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import Watched, assert_compiles, assert_traces, watch

COMPILED, LEFT, HIT = "compiled", "left the fast path", "hit"
ROOT = Path(__file__).parents[1]
Point = collections.namedtuple("Point", "a b")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Config:
    w: jax.Array
    mode: str = dataclasses.field(metadata={"static": True})


def by_keys(cls):
    """Register a class with one field; of two classes, JAX finds the trees equal if `register_dataclass` did it."""
    key = jax.tree_util.GetAttrKey("a")
    jax.tree_util.register_pytree_with_keys(
        cls, lambda s: (((key, s.a),), None), lambda _, leaves: cls(*leaves)
    )
    return cls


@by_keys
@dataclasses.dataclass
class Train:
    a: object


@by_keys
@dataclasses.dataclass
class Eval:
    a: object


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class TrainByFields:
    a: object


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class EvalByFields:
    a: object


@dataclasses.dataclass(frozen=True)
class Frozen:
    k: int


class ByIdentity:
    pass


class Mode(enum.Enum):
    TRAIN = 1
    TEST = 2


def ones(*shape, dtype=np.float32):
    return jnp.asarray(np.ones(shape, dtype))


def twice_of_a_field():
    return jax.jit(lambda s: jax.tree.leaves(s)[0] * 2)


def twice():
    def twice(x):
        return jax.tree.map(lambda leaf: leaf * 2, x)

    return jax.jit(twice)


def scaled():
    def scaled(x, n=2):
        return x * n

    return jax.jit(scaled, static_argnames="n")


def scaled_traced():
    def scaled_traced(x, n=2.0):
        return x * n

    return jax.jit(scaled_traced)


def tagged():
    def tagged(x, tag):
        return x + 1

    return jax.jit(tagged, static_argnums=1)


def total():
    def total(*xs):
        return sum(xs)

    return jax.jit(total)


def pair():
    return {"x": ones(4), "y": ones(4)}


def under(setting, value):
    def call(f):
        with getattr(jax, setting)(value):
            f(ones(4))

    return call


x4 = lambda f: f(ones(4))  # noqa: E731 - the table below reads best with short calls

# id: (function, calls before, the call, outcome, kind of reason, argument)
ROWS = {
    "same call again": (twice, [x4], x4, HIT, None, None),
    "another shape": (twice, [x4], lambda f: f(ones(8)), COMPILED, "shape", "x"),
    "another rank": (twice, [x4], lambda f: f(ones(2, 2)), COMPILED, "shape", "x"),
    "back to the first shape": (twice, [x4, lambda f: f(ones(8))], x4, HIT, None, None),
    "another dtype": (twice, [x4], lambda f: f(ones(4, dtype=np.int32)), COMPILED, "dtype", "x"),
    "bfloat16": (twice, [x4], lambda f: f(ones(4).astype("bfloat16")), COMPILED, "dtype", "x"),
    "NumPy for jax": (twice, [x4], lambda f: f(np.ones(4, np.float32)), LEFT, "input kind", "x"),
    "float64 NumPy without x64": (
        twice,
        [x4, lambda f: f(np.ones(4, np.float32))],
        lambda f: f(np.ones(4)),
        HIT,
        None,
        None,
    ),
    "a list for an array": (twice, [x4], lambda f: f([1.0] * 4), COMPILED, "tree structure", "x"),
    "Fortran order": (
        twice,
        [lambda f: f(np.ones((2, 3), np.float32))],
        lambda f: f(np.ones((2, 3), np.float32, order="F")),
        HIT,
        None,
        None,
    ),
    "another Python float": (twice, [lambda f: f(3.0)], lambda f: f(4.0), HIT, None, None),
    "float to int": (twice, [lambda f: f(3.0)], lambda f: f(3), COMPILED, "dtype", "x"),
    "float to bool": (twice, [lambda f: f(3.0)], lambda f: f(True), COMPILED, "dtype", "x"),
    "float to complex": (twice, [lambda f: f(3.0)], lambda f: f(3j), COMPILED, "dtype", "x"),
    "float to NumPy float32": (
        twice,
        [lambda f: f(3.0)],
        lambda f: f(np.float32(3)),
        COMPILED,
        "weak type",
        "x",
    ),
    "NumPy float32 to strong jax scalar": (
        twice,
        [lambda f: f(3.0), lambda f: f(np.float32(3))],
        lambda f: f(jnp.float32(3)),
        LEFT,
        "input kind",
        "x",
    ),
    "float to weak jax scalar": (
        twice,
        [lambda f: f(3.0)],
        lambda f: f(jnp.asarray(3.0)),
        LEFT,
        "input kind",
        "x",
    ),
    "strong to weak jax scalar": (
        twice,
        [lambda f: f(jnp.float32(3))],
        lambda f: f(jnp.asarray(3.0)),
        COMPILED,
        "weak type",
        "x",
    ),
    "tuple to list": (
        twice,
        [lambda f: f((1.0, 2.0))],
        lambda f: f([1.0, 2.0]),
        COMPILED,
        "tree structure",
        "x",
    ),
    "tuple to dict": (
        twice,
        [lambda f: f((1.0, 2.0))],
        lambda f: f({"a": 1.0, "b": 2.0}),
        COMPILED,
        "tree structure",
        "x",
    ),
    "dict in another order": (
        twice,
        [lambda f: f({"a": 1.0, "b": 2.0})],
        lambda f: f({"b": 1.0, "a": 2.0}),
        HIT,
        None,
        None,
    ),
    "dict with other keys": (
        twice,
        [lambda f: f({"a": 1.0})],
        lambda f: f({"c": 1.0}),
        COMPILED,
        "tree structure",
        "x",
    ),
    "OrderedDict in another order": (
        twice,
        [lambda f: f(collections.OrderedDict(a=1.0, b=2.0))],
        lambda f: f(collections.OrderedDict(b=1.0, a=2.0)),
        COMPILED,
        "tree structure",
        "x",
    ),
    "tuple to namedtuple": (
        twice,
        [lambda f: f((1.0, 2.0))],
        lambda f: f(Point(1.0, 2.0)),
        COMPILED,
        "tree structure",
        "x",
    ),
    "None in a tuple": (
        twice,
        [lambda f: f((1.0, 2.0))],
        lambda f: f((1.0, None)),
        COMPILED,
        "tree structure",
        "x[1]",
    ),
    "longer tuple": (
        twice,
        [lambda f: f((1.0, 2.0))],
        lambda f: f((1.0, 2.0, 3.0)),
        COMPILED,
        "tree structure",
        "x",
    ),
    "nested structure": (
        twice,
        [lambda f: f({"a": [1.0]})],
        lambda f: f({"a": [1.0, 2.0]}),
        COMPILED,
        "tree structure",
        "x['a']",
    ),
    "one leaf of a dict": (
        twice,
        [lambda f: f(pair())],
        lambda f: f(pair() | {"y": ones(8)}),
        COMPILED,
        "shape",
        "x['y']",
    ),
    "another registered class": (
        twice_of_a_field,
        [lambda f: f(Train(ones(4)))],
        lambda f: f(Eval(ones(4))),
        COMPILED,
        "tree structure",
        "s",
    ),
    "a nested registered class": (
        twice_of_a_field,
        [lambda f: f(Train(Train(ones(4))))],
        lambda f: f(Train(Eval(ones(4)))),
        COMPILED,
        "tree structure",
        "s.a",
    ),
    "same static field": (
        twice,
        [lambda f: f(Config(ones(4), "a"))],
        lambda f: f(Config(ones(4), "a")),
        HIT,
        None,
        None,
    ),
    "another static field": (
        twice,
        [lambda f: f(Config(ones(4), "a"))],
        lambda f: f(Config(ones(4), "b")),
        COMPILED,
        "static field",
        "x.mode",
    ),
    "same static value": (tagged, [lambda f: f(1.0, 2)], lambda f: f(1.0, 2), HIT, None, None),
    "another static value": (
        tagged,
        [lambda f: f(1.0, 2)],
        lambda f: f(1.0, 3),
        COMPILED,
        "static value",
        "tag",
    ),
    "static 2 to 2.0": (tagged, [lambda f: f(1.0, 2)], lambda f: f(1.0, 2.0), COMPILED, "static type", "tag"),
    "static 1 to True": (
        tagged,
        [lambda f: f(1.0, 1)],
        lambda f: f(1.0, True),
        COMPILED,
        "static type",
        "tag",
    ),
    "static 2 to NumPy 2": (
        tagged,
        [lambda f: f(1.0, 2)],
        lambda f: f(1.0, np.int64(2)),
        COMPILED,
        "static type",
        "tag",
    ),
    "equal static object": (
        tagged,
        [lambda f: f(1.0, Frozen(1))],
        lambda f: f(1.0, Frozen(1)),
        HIT,
        None,
        None,
    ),
    "unequal static object": (
        tagged,
        [lambda f: f(1.0, Frozen(1))],
        lambda f: f(1.0, Frozen(2)),
        COMPILED,
        "static value",
        "tag.k",
    ),
    "static member of an Enum": (
        tagged,
        [lambda f: f(1.0, Mode.TRAIN)],
        lambda f: f(1.0, Mode.TEST),
        COMPILED,
        "static value",
        "tag",
    ),
    "static object by identity": (
        tagged,
        [lambda f: f(1.0, ByIdentity())],
        lambda f: f(1.0, ByIdentity()),
        COMPILED,
        "static identity",
        "tag",
    ),
    "static function made anew": (
        tagged,
        [lambda f: f(1.0, lambda: 0)],
        lambda f: f(1.0, lambda: 0),
        COMPILED,
        "static identity",
        "tag",
    ),
    "static keyword to position": (
        scaled,
        [lambda f: f(1.0, n=2)],
        lambda f: f(1.0, 2),
        COMPILED,
        "keyword or positional",
        "n",
    ),
    "static default left out": (
        scaled,
        [lambda f: f(1.0, n=2)],
        lambda f: f(1.0),
        COMPILED,
        "default left out",
        "n",
    ),
    "static and traced by keyword": (
        scaled,
        [lambda f: f(1.0, n=2)],
        lambda f: f(x=1.0, n=2),
        COMPILED,
        "keyword or positional",
        "x",
    ),
    "order of keywords": (scaled, [lambda f: f(x=1.0, n=2)], lambda f: f(n=2, x=1.0), HIT, None, None),
    "traced keyword to position": (
        scaled_traced,
        [lambda f: f(1.0, n=2.0)],
        lambda f: f(1.0, 2.0),
        COMPILED,
        "keyword or positional",
        "n",
    ),
    "traced default left out": (
        scaled_traced,
        [lambda f: f(1.0, n=2.0)],
        lambda f: f(1.0),
        COMPILED,
        "default left out",
        "n",
    ),
    "traced default written out": (
        scaled_traced,
        [lambda f: f(1.0)],
        lambda f: f(1.0, 2.0),
        COMPILED,
        "default left out",
        "n",
    ),
    "one more argument": (
        total,
        [lambda f: f(1.0, 2.0)],
        lambda f: f(1.0, 2.0, 3.0),
        COMPILED,
        "number of arguments",
        "xs[2]",
    ),
    "one argument less": (
        total,
        [lambda f: f(1.0, 2.0)],
        lambda f: f(1.0),
        COMPILED,
        "number of arguments",
        "xs[1]",
    ),
    "committed to the same device": (
        twice,
        [x4],
        lambda f: f(jax.device_put(ones(4), jax.devices()[0])),
        COMPILED,
        "committedness",
        "x",
    ),
    "matmul precision": (
        twice,
        [x4],
        under("default_matmul_precision", "highest"),
        COMPILED,
        "configuration",
        "jax_default_matmul_precision",
    ),
    "matmul precision again": (
        twice,
        [x4, under("default_matmul_precision", "highest")],
        under("default_matmul_precision", "highest"),
        HIT,
        None,
        None,
    ),
    "x64": (twice, [x4], under("enable_x64", True), COMPILED, "configuration", "jax_enable_x64"),
    "rank promotion": (
        twice,
        [x4],
        under("numpy_rank_promotion", "warn"),
        COMPILED,
        "configuration",
        "jax_numpy_rank_promotion",
    ),
    "dtype promotion": (
        twice,
        [x4],
        under("numpy_dtype_promotion", "strict"),
        COMPILED,
        "configuration",
        "jax_numpy_dtype_promotion",
    ),
    "threefry": (
        twice,
        [x4],
        under("threefry_partitionable", False),
        COMPILED,
        "configuration",
        "jax_threefry_partitionable",
    ),
    "debug_nans is no part of the key": (twice, [x4], under("debug_nans", True), HIT, None, None),
    "default_prng_impl is no part of the key": (
        twice,
        [x4],
        under("default_prng_impl", "rbg"),
        HIT,
        None,
        None,
    ),
    "typed key to raw key": (
        twice,
        [lambda f: f({"k": jax.random.key(0), "x": 1.0}["x"])],
        lambda f: f(jax.random.key_data(jax.random.key(0))),
        COMPILED,
        "dtype",
        "x",
    ),
}


@pytest.mark.parametrize(("make", "before", "call", "outcome", "kind", "argument"), ROWS.values(), ids=ROWS)
def test_a_changed_call_has_its_outcome_and_its_reason(make, before, call, outcome, kind, argument):
    f = watch(make())
    for earlier in before:
        earlier(f)
    call(f)
    assert f.last.outcome == outcome
    assert (f.last.reason and f.last.reason.kind) == kind
    assert (f.last.reason and f.last.reason.argument) == argument
    if outcome == COMPILED and kind != "committedness":
        assert f.last.trace is not None
    f.last.to_dict()
    json.dumps(f.to_dict())


def test_another_class_is_named_whether_jax_compiles_or_takes_it_for_the_first():
    f = watch(twice_of_a_field())
    f(TrainByFields(ones(4)))
    f(EvalByFields(ones(4)))
    # JAX 0.10 finds both equal: of some functions, about one in a hundred, it runs the program of the first class.
    assert f.last.outcome in (COMPILED, LEFT)
    assert (f.last.reason.kind, f.last.reason.argument) == ("class", "s")


def test_x64_is_named_before_the_dtype_that_it_changes():
    f = watch(twice())
    f(1.0)
    with jax.enable_x64(True):
        f(1.0)
    assert f.last.reason.argument == "jax_enable_x64"
    assert "`x` changed dtype" in str(f.last.reason)


def test_a_mesh_is_named():
    f = watch(twice())
    f(1.0)
    mesh = jax.make_mesh((1,), ("i",), axis_types=(jax.sharding.AxisType.Auto,))
    with jax.set_mesh(mesh):
        f(1.0)
    assert (f.last.outcome, f.last.reason.kind, f.last.reason.argument) == (COMPILED, "configuration", "mesh")


def test_a_user_context_is_named():
    context = jax.make_user_context()
    f = watch(twice())
    f(1.0)
    with context("a"):
        f(1.0)
    assert (f.last.outcome, f.last.reason.kind, f.last.reason.argument) == (
        COMPILED,
        "configuration",
        "user_context",
    )


def test_the_first_call_says_so():
    @watch
    @jax.jit
    def only_here_for_first(x):
        return x

    only_here_for_first(1.0)
    assert str(only_here_for_first.last.reason).startswith(
        "This is the first call of `only_here_for_first`: jit "
    )
    assert only_here_for_first.last.signature == "x: float32[] (Python float)"


def test_a_carry_that_starts_as_a_python_number_traces_twice():
    def only_here_for_carry(c):
        return c + jnp.float32(1)

    f, c = watch(jax.jit(only_here_for_carry)), 0.0
    for _ in range(3):
        c = f(c)
    assert [call.outcome for call in f.calls] == [COMPILED, COMPILED, HIT]
    assert f.calls[1].reason.kind == "weak type"
    assert "weak float32[] (Python float) → strong float32[] (jax.Array)" in str(f.calls[1].reason)


REMADE = {
    "lambda": lambda: lambda x: x + 1,
    "partial": lambda: functools.partial(_shift, by=1),
    "bound method": lambda: _OBJECT.method,
    "grad": lambda: jax.grad(_square),
    "callable object": lambda: _Callable(),
}


class _Callable:
    def __call__(self, x):
        return x + 1

    def method(self, x):
        return x + 1


_OBJECT = _Callable()


def _shift(x, by):
    return x + by


def _square(x):
    return x * x


@pytest.mark.parametrize("make", REMADE.values(), ids=REMADE)
def test_a_function_made_anew_each_time_is_called_a_new_function_object(make):
    kinds = []
    for _ in range(3):
        f = watch(jax.jit(make()))
        f(1.0)
        kinds.append((f.last.outcome, f.last.reason.kind))
    assert kinds == [(COMPILED, "first call")] + 2 * [(COMPILED, "new function object")]


def test_jit_of_the_same_function_again_is_a_hit():
    for _ in range(2):
        f = watch(jax.jit(_square))
        f(1.0)
    assert f.last.outcome == HIT


def test_jit_of_the_same_function_with_other_options_says_options():
    def only_here_for_options(x):
        return x * 3

    first = watch(jax.jit(only_here_for_options))
    first(1.0)
    f = watch(jax.jit(only_here_for_options, compiler_options={"xla_embed_ir_in_executable": True}))
    f(1.0)
    assert (f.last.outcome, f.last.trace, f.last.reason.kind) == (COMPILED, None, "options")


@pytest.mark.parametrize("clear", [jax.clear_caches, None], ids=["jax.clear_caches", "clear_cache"])
def test_cleared_caches_are_named_for_every_call_that_was_forgotten(clear):
    f = watch(twice())
    for n in (1, 2):
        f(ones(n))
    (clear or f.clear_cache)()
    for n in (1, 2):
        f(ones(n))
    assert [c.reason.kind for c in f.calls[2:]] == ["caches cleared", "caches cleared"]
    f(ones(3))
    assert f.last.reason.kind == "shape"


def test_a_program_lowered_ahead_of_time_leaves_the_fast_path_once():
    f = watch(twice())
    f(ones(1))
    f.lower(ones(2)).compile()
    f(ones(2))
    assert (f.last.outcome, f.last.reason.kind) == (LEFT, "shape")
    assert f.last.reason.advice == "the program was there before. Only the fast path is new."


def test_a_function_with_a_callback_leaves_the_fast_path_each_time():
    @jax.jit
    def with_print(x):
        jax.debug.callback(lambda v: None, x)
        return x + 1

    f = watch(with_print)
    for _ in range(3):
        f(1.0)
    assert [c.outcome for c in f.calls] == [COMPILED, LEFT, LEFT]
    assert f.last.reason.kind == "no fast path"


@pytest.mark.parametrize("freeze", [True, False])
def test_a_reference_of_the_functions_own_keeps_the_fast_path(freeze):
    @jax.jit
    def doubled(x):
        ref = jax.new_ref(x)
        ref[...] *= 2
        return jax.freeze(ref) if freeze else ref[...]

    f = watch(doubled)
    for _ in range(3):
        f(ones(3))
    assert [c.outcome for c in f.calls] == [COMPILED, HIT, HIT]


def test_a_reference_from_outside_leaves_the_fast_path_with_one_of_its_own_too():
    @jax.jit
    def add(total, x):
        ref = jax.new_ref(x)
        total[...] += ref[...]

    f, total = watch(add), jax.new_ref(ones(3))
    for _ in range(3):
        f(total, ones(3))
    assert [c.outcome for c in f.calls] == [COMPILED, LEFT, LEFT]


def test_a_callback_is_noticed_in_a_function_that_was_warm_before():
    @jax.jit
    def with_print(x):
        jax.debug.callback(lambda v: None, x)
        return x + 1

    with_print(ones(3))
    f = watch(with_print)
    for n in (3, 3, 4, 3):
        f(ones(n))
    assert [c.outcome for c in f.calls] == [LEFT, LEFT, COMPILED, LEFT]
    assert [c.reason.kind for c in f.calls] == ["no fast path"] * 2 + ["shape", "no fast path"]


def test_a_kind_of_call_that_failed_at_first_stays_off_the_fast_path_until_the_cache_is_cleared():
    wrong = True

    @jax.jit
    def fragile(x):
        if wrong:
            raise RuntimeError("not yet")
        return x + 1

    f = watch(fragile)
    with pytest.raises(RuntimeError, match="not yet"):
        f(ones(3))
    wrong = False
    for n in (3, 3, 4, 4, 3):
        f(ones(n))
    f.clear_cache()
    for _ in range(2):
        f(ones(3))
    outcomes = ["raised", COMPILED, LEFT, COMPILED, HIT, LEFT, COMPILED, HIT]
    assert [c.outcome for c in f.calls] == outcomes
    assert f.calls[2].reason.kind == "failed first call"


def test_a_static_flag_that_adds_a_callback_loses_the_fast_path_for_that_flag_only():
    @functools.partial(jax.jit, static_argnums=1)
    def step(x, verbose):
        if verbose:
            jax.debug.callback(lambda v: None, x)
        return x + 1

    f = watch(step)
    for verbose in (False, True, False, True):
        f(1.0, verbose)
    assert [c.outcome for c in f.calls] == [COMPILED, COMPILED, HIT, LEFT]


def test_disable_jit_is_no_hit():
    f = watch(twice())
    f(1.0)
    with jax.disable_jit():
        f(1.0)
    assert (f.last.outcome, f.last.reason.kind) == (LEFT, "disabled")


def test_a_stale_value_is_a_hit():
    class Box:
        k = 1

    box = Box()
    f = watch(jax.jit(lambda x, b: x * b.k, static_argnums=1))
    f(1.0, box)
    box.k = 100
    assert f(1.0, box) == 1.0
    assert f.last.outcome == HIT


def test_a_shape_that_was_only_evaluated_is_compiled_but_not_traced_again():
    f = watch(twice())
    f.eval_shape(ones(3))
    f(ones(3))
    assert (f.last.outcome, f.last.trace) == (COMPILED, None)


def test_a_donated_array_that_is_used_again_raises_and_is_recorded():
    f = watch(jax.jit(lambda x: x + 1, donate_argnums=0))
    x = ones(4)
    f(x)
    with pytest.raises((RuntimeError, ValueError)):
        f(x)
    assert f.last.outcome == "raised"


def test_a_callable_object_has_the_name_of_its_class_in_the_table():
    f = watch(jax.jit(_Callable()))
    f(1.0)
    assert repr(f).startswith("_Callable: 1 call (1 compiled)")
    assert f.traces == 1


def test_jit_of_a_watched_function_passes_through():
    f = watch(twice())
    assert jax.jit(f)(2.0) == 4.0
    assert f.calls == ()


def test_donated_arguments_still_have_a_signature():
    f = watch(jax.jit(lambda x: x + 1, donate_argnums=0))
    x = f(ones(4))
    x = f(x)
    assert f.last.outcome == HIT
    f(ones(8))
    assert (f.last.reason.kind, f.last.reason.before, f.last.reason.now) == (
        "shape",
        "float32[4]",
        "float32[8]",
    )


def test_a_call_that_raises_is_recorded_and_raises():
    f = watch(jax.jit(lambda x: 1 if x else 2))
    with pytest.raises(jax.errors.TracerBoolConversionError):
        f(True)
    assert (f.last.outcome, f.last.reason.now) == ("raised", "TracerBoolConversionError")
    assert f.traces == 1
    assert f.compiles == 0


@pytest.mark.parametrize("transform", [jax.jit, lambda f: functools.partial(jax.eval_shape, f)])
def test_calls_inside_another_trace_pass_through(transform):
    f = watch(jax.jit(lambda x: x * 2.0))
    transform(lambda x: f(x))(1.0)
    assert f.calls == ()
    f(1.0)
    assert len(f.calls) == 1


@pytest.mark.parametrize(("transform", "name"), [(jax.grad, "grad"), (jax.vmap, "vmap")])
def test_calls_under_a_transformation_count_where_they_compile(transform, name):
    f = watch(jax.jit(lambda x: (x * 17.0).sum()))
    for n in (2, 2, 3):
        transform(f)(ones(n) if name == "grad" else jnp.ones((n, 3)))
    f.assert_compiles(2)
    assert f.last.reason.sentence == f"`<lambda>` was called under `{name}`, which compiles it for itself"


def test_an_inner_jit_of_the_same_name_does_not_count_twice():
    inner = jax.jit(lambda x: x + 1)
    f = watch(jax.jit(lambda x: inner(x) * 2))
    f(1.0)
    assert (f.traces, f.compiles) == (1, 1)


def test_a_watched_method_is_bound_to_its_object():
    class Model:
        @watch
        @functools.partial(jax.jit, static_argnums=0)
        def apply(self, x):
            return x + 1

    model = Model()
    assert model.apply(1.0) == 2.0
    assert Model.apply.compiles == 1
    assert isinstance(model.apply, types.MethodType)


def test_a_watched_function_keeps_what_a_jitted_function_has():
    jitted = jax.jit(_square)
    f = watch(jitted)
    assert (f.__name__, f.__doc__, f.__wrapped__) == ("_square", jitted.__doc__, _square)
    assert f.eval_shape(1.0).shape == ()
    assert f.lower(1.0).compile()(1.0) == 1.0
    assert isinstance(f, jax.stages.Wrapped)
    with pytest.raises(AttributeError):
        _ = f.no_such_attribute


def test_threads_do_not_mix_their_events():
    f = watch(twice())
    sizes = [1, 2, 3, 4]
    threads = [threading.Thread(target=lambda n=n: [f(ones(n)) for _ in range(20)]) for n in sizes]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(f.calls) == 80
    assert [c.index for c in f.calls] == list(range(1, 81))
    assert f.compiles == len(sizes)


def test_reset_forgets_calls_but_not_what_jax_remembers():
    f = watch(twice())
    f(ones(1))
    f.reset()
    assert (f.calls, f.last, f.traces, f.compiles, f.hits) == ((), None, 0, 0, 0)
    f(ones(1))
    f(ones(2))
    assert [c.outcome for c in f.calls] == [HIT, COMPILED]
    assert f.last.reason.kind == "shape"


def test_the_table_folds_hits_and_says_why():
    f = watch(twice())
    for n in (3, 3, 3, 3, 5):
        f(ones(n))
    text = [line for line in repr(f).splitlines() if not line.startswith("new function")]
    assert text[0] == "twice: 5 calls (3 hit, 2 compiled)"
    assert text[4].startswith("2–4   hit, 3 times")
    assert text[7].strip() == "`x` changed shape, float32[3] → float32[5]"
    assert text[-1] == "shape: jit compiles once per shape. Pad to a few sizes, or mask."
    assert max(map(len, text)) <= 80


def test_the_html_escapes_names():
    f = watch(jax.jit(lambda x: x))
    f(1.0)
    html = f._repr_html_()
    assert "&lt;lambda&gt;" in html
    assert "<lambda>" not in html


def test_the_table_folds_calls_without_a_fast_path_and_cuts_what_nobody_reads():
    @jax.jit
    def talks(x):
        jax.debug.callback(lambda v: None, x)
        return x

    f = watch(talks)
    for _ in range(100):
        f(1.0)
    assert "2–100  left the fast path, 99 times" in repr(f)
    f = watch(twice())
    f.__name__ = "many"
    for _ in range(50):
        f._add("compiled", 0.0, {}, None)
    lines = repr(f).splitlines()
    assert len(lines) == 2 + 41 + 1
    assert lines[22].startswith("…")
    assert "10 calls" in lines[22]


def test_assert_compiles_gives_the_reasons():
    f = watch(twice())
    f(ones(1))
    f.assert_compiles(1)
    f.assert_traces(1)
    f(ones(2))
    with pytest.raises(AssertionError) as caught:
        f.assert_compiles(1)
    first, *_ = str(caught.value).splitlines()
    assert first == "`twice` compiled in 2 of 2 calls; expected: 1."
    assert "  call 2: x: float32[2]\n    `x` changed shape, float32[1] → float32[2]" in str(caught.value)
    with pytest.raises(AssertionError, match=r"traced in 2 of 2 calls; expected: 0"):
        f.assert_traces(0)
    f.reset()
    with pytest.raises(AssertionError, match=r"No call compiled: the programs were there before"):
        f.assert_compiles(1)


def test_a_block_counts_functions_it_did_not_wrap():
    def only_seen_here(x):
        return x * 2

    f, x = jax.jit(only_seen_here), ones(3)
    with watch() as seen:
        f(x)
        f(x)
    assert (seen.traces, seen.lowerings, seen.compiles, seen.cache_reads) == (1, 1, 1, 0)
    assert {event.function for event in seen.events} == {"only_seen_here"}
    line = seen.events[-1].where
    assert line.startswith("test_watch.py:")
    assert "only_seen_here" in repr(seen)
    assert line in seen._repr_html_()
    json.dumps(seen.to_dict())
    f(ones(4))
    assert seen.compiles == 1


def scale(x, by=2.0):
    return x * by


RECREATED = {
    "a lambda": lambda: jax.jit(lambda x: x * 2),
    "a partial": lambda: jax.jit(functools.partial(scale, by=3.0)),
    "a local function": lambda: jax.jit(functools.wraps(scale)(lambda x: x * 2)),
}


@pytest.mark.parametrize("make", RECREATED.values(), ids=RECREATED)
def test_a_block_hints_at_a_function_that_a_loop_recreates(make):
    x = ones(3)
    with watch() as seen:
        for _ in range(3):
            make()(x)
    text = " ".join(repr(seen).split())
    assert "compiled 3 times for the same shapes." in text
    assert "make the jitted function once, outside of the loop" in text


def test_a_block_does_not_hint_at_a_loop_for_other_shapes_or_a_jitted_function_made_once():
    f, arrays = jax.jit(lambda x: x * 2), [ones(n) for n in (3, 4, 5, 3, 4, 5)]
    bound, carry = jax.jit(functools.partial(scale, by=3.0)), 0.0
    with watch() as seen:
        for x in arrays:
            f(x)
            bound(x)
            carry = jax.jit(scale)(carry)
            x + 1
    assert "for the same shapes" not in repr(seen)


def test_a_line_of_a_notebook_is_called_a_cell():
    f = jax.jit(lambda x: x + 1)
    code = compile("\n\nf(1.0)", "/tmp/ipykernel_1/2.py", "exec")
    with watch() as seen:
        exec(code, {"f": f})
    assert {event.where for event in seen.events} == {"cell:3"}


def test_a_block_sees_only_its_own_thread():
    f = jax.jit(lambda x: x * 2)
    with watch() as seen:
        thread = threading.Thread(target=f, args=(1.0,))
        thread.start()
        thread.join()
    assert seen.events == ()


def test_blocks_nest():
    with watch() as outer:
        jax.jit(lambda x: x + 1)(1.0)
        with watch() as inner:
            jax.jit(lambda x: x + 1)(1.0)
    assert (outer.compiles, inner.compiles) == (2, 1)


def test_assert_compiles_as_a_block():
    f, x = jax.jit(_shift, static_argnames="by"), ones(3)
    with assert_compiles(1):
        f(x, by=1)
    with assert_traces(0):
        f(x, by=1)
    with assert_compiles(1, of=f):
        f(x, by=2)
        jax.jit(lambda y: y)(x)
    with pytest.raises(AssertionError) as caught, assert_compiles(0, of="_shift"):
        f(x, by=3)
    assert str(caught.value).startswith("Compiles of `_shift` in this block: 1; expected: 0.")
    assert "test_watch.py:" in str(caught.value)
    assert "watch(fn)" in str(caught.value)


def test_an_error_in_the_block_is_not_hidden_by_the_count():
    with pytest.raises(ZeroDivisionError), assert_compiles(5):
        _ = 1 / 0


BAD = {
    "number": (3, "`fn` is 3 of type int, which cannot be called"),
    "plain function": (_square, "`_square` is not jitted. Write watch(jax.jit(_square))."),
    "lambda": (lambda x: x, "`<lambda>` is not jitted. Write watch(jax.jit(fn))."),
}


@pytest.mark.parametrize(("fn", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_watched_is_refused_in_words(fn, message):
    with pytest.raises(TypeError) as caught:
        watch(fn)
    assert str(caught.value).startswith("watch(fn) needs a jitted function")
    assert message in str(caught.value)


def decorated(fn, **more):
    def call(*args):
        return fn(*args)

    vars(call).update(more)
    return call


class Memo:
    def __init__(self, fn):
        self.fn = fn

    def __call__(self, x):
        return self.fn(x)


def test_what_a_decorator_makes_of_a_jitted_function_is_refused_with_what_works():
    jitted = jax.jit(_square)
    for fn, advice in (
        (decorated(jitted), "Pass the one that was decorated."),
        (decorated(jitted, jitted=jitted), "Write watch(call.jitted), or put"),
        (Memo(jitted), "Write watch(fn.fn), or put"),
    ):
        with pytest.raises(
            TypeError,
            match=re.escape(
                f"around one, as {'' if 'Pass' in advice else '`jax.vmap` and '}decorators make. {advice}"
            ),
        ):
            watch(fn)
    with pytest.raises(TypeError, match=r"`call` is not jitted. Write watch\(jax.jit\(call\)\)"):
        watch(decorated(_square))


def test_a_compiled_program_is_refused_in_words():
    compiled = jax.jit(_square).lower(1.0).compile()
    with pytest.raises(TypeError, match="is a Compiled object, which stands for one executable"):
        watch(compiled)


def test_a_watched_function_may_be_watched_again():
    f = watch(twice())
    assert isinstance(watch(f), Watched)
    assert watch(f) is not f


def test_a_read_from_the_persistent_cache_is_not_a_compile(tmp_path):
    program = """
        import sys, jax, jax.numpy as jnp
        jax.config.update("jax_compilation_cache_dir", sys.argv[1])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        from jitguide import watch
        f = watch(jax.jit(lambda x: jnp.sin(x) * 2))
        f(1.0)
        with watch() as seen:
            jax.clear_caches()
            f(1.0)
        print(f.calls[0].outcome, f.calls[1].outcome, f.compiles, seen.compiles, seen.cache_reads, sep="|")
    """
    assert _run(program, str(tmp_path)) == "compiled|read from the persistent cache|1|0|1"


def test_devices_shardings_and_layouts_are_told_apart():
    program = """
        import jax, jax.numpy as jnp, numpy as np
        from jax.sharding import AxisType, NamedSharding, PartitionSpec as P
        from jitguide import watch
        f, x, d = watch(jax.jit(lambda x: x * 2)), jnp.ones(8), jax.devices()
        auto = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Auto,))
        explicit = jax.make_mesh((4,), ("i",), axis_types=(AxisType.Explicit,))
        def show():
            r = f.last.reason
            traced = "traced" if f.last.trace is not None else ""
            print(f.last.outcome, traced, *((r.kind, r.before, r.now) if r else ()), sep="|")
        f(x)
        split, whole = NamedSharding(auto, P("i")), NamedSharding(auto, P())
        for place in (d[0], d[1], split, whole, NamedSharding(explicit, P("i"))):
            f(jax.device_put(x, place))
            show()
        f(x)
        show()
        f = watch(jax.jit(lambda x: x - 1))
        f(x)
        one = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Explicit,), devices=d[:1])
        f(jax.device_put(x, NamedSharding(one, P("i"))))
        show()
        f(jax.device_put(x, NamedSharding(one, P())))
        show()
        f = watch(jax.jit(lambda x: x + 2))
        f(np.ones(8, np.float32))
        with jax.default_device(d[1]):
            f(np.ones(8, np.float32))
            show()
        f = watch(jax.jit(lambda x: x + 3))
        from jax.experimental.layout import Format, Layout
        m = jnp.ones((2, 3))
        f(m)
        f(jax.device_put(m, Format(Layout((1, 0)), m.sharding)))
        show()
    """
    assert _run(program).splitlines() == [
        "compiled||committedness|not committed|committed",
        "compiled||device|cpu:0|cpu:1",
        "compiled|traced|sharding|cpu:1|P('i') on mesh (i: 4)",
        "compiled||sharding|P('i') on mesh (i: 4)|P() on mesh (i: 4)",
        "compiled|traced|sharding|P() on mesh (i: 4)|P('i') on mesh (i: 4)",
        "hit|",
        "compiled|traced|sharding|cpu:0|P('i') on a mesh of cpu:0",
        "compiled|traced|sharding|P('i') on a mesh of cpu:0|P() on a mesh of cpu:0",
        "compiled|traced|configuration|None|CpuDevice(id=1)",
        "compiled||committedness|not committed|committed",
    ]


def _run(program, *args):
    environment = os.environ | {
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
        "JAX_PLATFORMS": "cpu",
        "PYTHONPATH": str(ROOT),
    }
    lines = "\n".join(line[8:] for line in program.splitlines())
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", lines, *args], env=environment, capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_a_function_that_was_warm_before_is_compared_with_the_first_call_that_was_watched():
    double = jax.jit(lambda x: x * 2)
    double(jnp.ones(3))
    watched = watch(double)
    watched(jnp.ones(3))
    watched(jnp.ones(4))
    assert [call.outcome for call in watched.calls] == ["hit", "compiled"]
    assert (watched.last.reason.kind, watched.last.reason.before) == ("shape", "float32[3]")


@pytest.mark.parametrize("inside", [jax.jit, jax.grad, jax.vmap], ids=["jit", "grad", "vmap"])
def test_a_missing_trace_is_said_to_be_possibly_one_that_jax_does_not_report(inside):
    ran = []

    @jax.jit
    def inner(x):
        ran.append(1)
        return x * 2

    x = ones(3) if inside is jax.vmap else jnp.float32(1)
    with pytest.raises(AssertionError) as caught, assert_traces(1, of=inner):
        inside(lambda x: inner(x))(x)
    assert ran == [1]
    counts, hint = str(caught.value).splitlines()[:2]
    assert counts == "Traces of `inner` in this block: 0; expected: 1."
    assert hint.startswith("JAX does not report every trace: not that of a jitted function inside another")


def test_a_function_counts_by_its_name_and_the_message_says_so():
    one, other, x = jax.jit(lambda x: x * 2), jax.jit(lambda x: x * 3), ones(3)
    with pytest.raises(AssertionError) as caught, assert_compiles(1, of=one):
        one(x), other(x)
    assert "another function named `<lambda>` counts too." in str(caught.value)
    with pytest.raises(AssertionError) as caught, assert_compiles(0, of="<lambda>"):
        jax.jit(lambda x: x * 4)(x)
    assert "counts too" not in str(caught.value)


def test_a_copy_is_the_function_itself():
    watched = watch(jax.jit(lambda x: x * 2))
    kept = {"step": watched}
    assert copy.copy(watched) is watched
    assert copy.deepcopy(kept)["step"](1.0) == 2.0
    assert len(watched.calls) == 1


def test_an_argument_may_be_called_self():
    assert watch(jax.jit(lambda self, x: x * 2))(self=1.0, x=2.0) == 4.0


def test_a_call_that_cannot_be_looked_at_still_says_that_it_raised():
    watched = watch(jax.jit(lambda x: x))
    with pytest.raises(ValueError, match="sorting pytree dictionary keys"):
        watched({1: 1.0, "a": 2.0})
    assert watched.last.outcome == watched.last.reason.kind == "raised"


def test_a_watched_function_is_no_block():
    with (
        pytest.raises(TypeError, match=r"write `with watch\(\) as found:`, without a function"),
        watch(jax.jit(abs)),
    ):
        pass


def test_two_kinds_of_random_keys_are_told():
    # Not `jax.random.normal` itself: its traces are those of the whole process, so that of a test before may be there.
    f = watch(jax.jit(lambda key: jax.random.normal(key)))
    f(jax.random.key(0)), f(jax.random.PRNGKey(0))
    assert "Make all keys in one way" in f.last.reason.advice


@pytest.mark.parametrize("kept", [True, False])
def test_a_function_that_captures_another_number_is_told_from_a_first_call(kept):
    def make_step(lr, *, partly):
        def step(p, lr=lr):
            return p - lr * p

        def bound(p):
            return p - lr * p

        return watch(jax.jit(functools.partial(step, lr=lr) if partly else bound))

    for partly in (True, False):
        steps = []
        for lr in (0.1, 0.2):
            steps = [*(steps if kept else []), make_step(lr, partly=partly)]
            steps[-1](ones())
        found = steps[-1].last.reason
        assert (found.kind, found.before, found.now) == ("captured value", "lr=0.1", "lr=0.2")


def test_an_optional_array_is_not_called_a_default_that_is_passed():
    f = watch(jax.jit(lambda x, mask=None: x if mask is None else x * mask))
    f(ones())
    f(ones(), ones())
    assert "Choose one of them" not in f.last.reason.advice
    assert "with and without it are compiled separately, once each" in f.last.reason.advice
    f(ones(), None)
    assert "Choose one of them" in f.last.reason.advice


def test_a_counter_that_the_body_counts_is_no_captured_value_that_differs():
    def solver(matrix):
        traces = 0

        @jax.jit
        def solve(x):
            nonlocal traces
            traces += 1
            return matrix @ x

        return watch(solve)

    for scale in (1, 2):
        solve = solver(scale * np.eye(3, dtype=np.float32))
        solve(ones(3))
    assert "traces=" not in str(solve.last.reason)
    assert solve.last.reason.kind == "new function object"


def test_a_static_method_is_sent_to_the_top_of_the_decorators():
    with pytest.raises(TypeError, match="Put `@staticmethod` above the other decorators"):
        watch(staticmethod(jax.jit(lambda x: x)))


def test_a_new_attribute_of_an_nnx_module_is_named():
    nnx = pytest.importorskip("flax.nnx")
    net = nnx.Dict(a=nnx.Linear(2, 2, rngs=nnx.Rngs(0)))
    step = watch(nnx.jit(lambda net, x: net.a(x)))
    merged = watch(jax.jit(lambda graph, state: nnx.merge(graph, state).a.kernel + 0, static_argnums=0))
    for name, value in (("a", net.a), ("extra", 3), ("cache", nnx.Cache(jnp.ones(2)))):
        setattr(net, name, value)
        step(net, jnp.ones((1, 2)))
        merged(*nnx.split(net))
    told = [str(call.reason) for call in (*step.calls[1:], *merged.calls[1:])]
    assert all(
        name in text
        for name, text in zip(["`net.extra`", "`net.cache`", "['extra']", "['cache']"], told, strict=True)
    ), told
    assert not any("traced argument" in text for text in told)


@pytest.mark.skipif(not hasattr(jax, "new_ref"), reason="JAX has no references")
def test_a_reference_in_place_of_an_array_is_the_reason():
    read = watch(jax.jit(lambda r: r[...]))
    read(jnp.ones(4))
    read(jax.new_ref(jnp.ones(4)))
    assert str(read.calls[1].reason).startswith("`r` changed dtype, float32[4] → Ref{float32[4]}")
