"""Each rule of `check` finds its own fault, stays silent on sound code, and says what to do."""

import collections
import contextvars
import dataclasses
import enum
import functools
import html
import itertools
import json
import math
import os
import pickle
import queue
import random
import re
import secrets
import sys
import threading
import time
import unittest.mock
import uuid
import warnings
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import Phases, check, watch
from jitguide._check import check as check_module
from jitguide._check import findings, jaxpr_scan, rules

MIB = (512, 512)  # of float32: one MiB
TABLE = np.ones(MIB, np.float32)


def ones(*shape):
    return jnp.asarray(np.ones(shape, np.float32))


def only(fn, *args, **kwargs):
    """Return the one finding of a check that runs nothing, so that no timing is in it."""
    findings = check(fn, *args, run=False, **kwargs)
    assert len(findings) == 1, findings
    return findings.findings[0]


def test_a_clean_function_is_said_to_be_clean():
    findings = check(jax.jit(lambda x: jnp.sin(x) * 2), ones(3), run=False)
    assert findings.kinds == ()
    assert repr(findings).splitlines()[0] == (
        "<lambda>: nothing found. Checked retraces, static values, lists of numbers,"
    )
    assert findings.notes == ()
    assert list(findings) == []


def test_example_calls_that_compile_again_are_counted_by_reason():
    fn = jax.jit(lambda x: x * 2)
    found = only(fn, calls=[(ones(n),) for n in (2, 3, 4, 2)])
    assert found.kind == "retrace"
    assert found.sentence == (
        "`x` changed shape, float32[2] → float32[3]. It makes 2 of 4 example calls compile again."
    )
    assert found.advice == "jit compiles once per shape. Pad to a few sizes, or mask."


def test_each_advice_for_an_argument_is_given():
    fn = jax.jit(lambda x: x * 2)
    found = check(fn, ones(2), calls=[(ones(3),), (ones(2, 2),), (ones(4),)], run=False)
    assert [one.advice.split(". ")[1][:10] for one in found] == ["Pad to a f", "Keep the n"]
    assert [one.sentence.split(". ")[1][:15] for one in found] == ["It makes 2 of 4", "It makes 1 of 4"]


def test_numpy_for_jax_is_no_retrace():
    fn = jax.jit(lambda x: x * 2)
    assert check(fn, ones(2), calls=[(np.ones(2, np.float32),)], run=False).kinds == ()


def test_a_commitment_is_a_retrace_of_the_compile():
    fn = jax.jit(lambda x: x * 2)
    found = only(fn, ones(2), calls=[(jax.device_put(ones(2), jax.devices()[0]),)])
    assert "changed commitment" in found.sentence


def test_a_weak_carry_is_found():
    found = only(jax.jit(lambda c: c + jnp.float32(1)), 0.0)
    assert found.kind == "retrace"
    assert found.sentence.startswith("`c` is a weakly typed float32[] (Python float), and the result ")
    assert "jnp.asarray(0, jnp.float32)" in found.advice


def test_a_weak_leaf_of_a_carry_is_named():
    fn = jax.jit(lambda c, x: ({"n": c["n"] + x.sum()}, x))
    assert only(fn, {"n": 0.0}, ones(3)).sentence.startswith("`c['n']` is a weakly typed")


def test_a_static_field_that_the_result_changes_is_found():
    @functools.partial(jax.tree_util.register_dataclass, data_fields=["place"], meta_fields=["steps"])
    @dataclasses.dataclass
    class Particle:
        place: jax.Array
        steps: int = 0

    fn = jax.jit(lambda one: Particle(one.place + 1, one.steps + 1))
    found = only(fn, Particle(ones(2)))
    assert found.sentence == (
        "`one.steps` is static in its container and changed, 0 → 1, in the result: if you feed it back, the "
        "function compiles again."
    )
    step = watch(fn)
    step(step(step(Particle(ones(2)))))
    assert step.compiles == 3
    assert (
        check(jax.jit(lambda one: Particle(one.place, one.steps)), Particle(ones(2)), run=False).kinds == ()
    )


def test_an_unhashable_static_value_stops_the_rest():
    findings = check(jax.jit(lambda x, n: x, static_argnames="n"), ones(2), n=[1])
    assert findings.kinds == ("static",)
    assert findings.findings[0].sentence == "Static `n` = [1] is a list, which cannot be hashed."
    assert repr(findings).endswith("Nothing else was checked: it cannot be traced.")


def test_an_unhashable_static_value_of_a_later_call_is_no_retrace():
    fn = jax.jit(lambda x, sizes: x, static_argnames="sizes")
    found = check(fn, ones(2), (1, 2), calls=[(ones(2), [1, 2]), (ones(2), (1, 3))], run=False)
    assert found.kinds == ("retrace", "static")
    assert found.findings[0].sentence.startswith("Static `sizes[1]` changed, 2 → 3. It makes 1 of 3")
    assert found.findings[1].sentence == "Static `sizes` = [1, 2] is a list, which cannot be hashed."


@dataclasses.dataclass(frozen=True)
class Layers:
    sizes: list
    name: str = "mlp"


def test_the_part_that_makes_a_static_value_unhashable_is_named():
    fn = jax.jit(lambda x, net: x, static_argnames="net")
    found = only(fn, ones(2), net=(0, Layers([8, 8])))
    assert found.sentence == "Static `net[1].sizes` = [8, 8] is a list, which cannot be hashed."
    assert check(fn, ones(2), net=(0, Layers((8, 8))), run=False).kinds == ()  # the advice works


def test_all_that_differs_between_two_example_calls_is_named():
    found = only(jax.jit(lambda x, y: x.sum() + y), ones(8), ones(8), calls=[(ones(9), ones(9))])
    assert "`x` changed shape" in found.sentence
    assert "Also: `y` changed shape, float32[8] → float32[9]." in found.sentence


def test_a_static_float_is_found():
    found = only(jax.jit(lambda x, lr: x * lr, static_argnames="lr"), ones(2), lr=0.1)
    assert found.sentence == "Static `lr` = 0.1 is a float: each value of it compiles again."


def test_a_static_object_that_compares_by_identity_is_found():
    class Settings:
        pass

    found = only(jax.jit(lambda x, s: x, static_argnames="s"), ones(2), s=Settings())
    assert found.sentence.startswith("Static `s` is a `Settings`, which compares by identity")


class Mode(enum.Enum):
    TRAIN = 1


@pytest.mark.parametrize("value", [None, ..., Mode.TRAIN, math, jax.devices()[0]], ids=str)
def test_a_static_value_of_which_there_is_one_object_is_not_mentioned(value):
    assert check(jax.jit(lambda x, s: x, static_argnames="s"), ones(2), s=value, run=False).kinds == ()


def test_sound_static_values_are_not_mentioned():
    fn = jax.jit(lambda x, n, f: f(x) * n, static_argnames=("n", "f"))
    assert check(fn, ones(2), n=3, f=jnp.sin, run=False).kinds == ()


def test_a_captured_constant_is_found_by_name_and_size():
    big = ones(*MIB)
    found = only(jax.jit(lambda x: x @ big), ones(3, 512))
    assert found.sentence == "The jaxpr contains `big` f32[512,512] (1 MiB)."
    assert found.kind == "constant"


def test_a_constant_that_jax_made_of_a_numpy_array_has_its_name():
    grid, mask = np.linspace(0, 1, 2**18), np.ones(2**20, bool)
    found = only(jax.jit(lambda x: jnp.interp(x, grid, grid) + jnp.where(mask, 1.0, x[0]).sum()), ones(3))
    assert "`grid` f32[262144] (1 MiB)" in found.sentence
    assert "`mask` bool[1048576] (1 MiB)" in found.sentence
    assert "an array" not in found.sentence


def test_what_a_static_object_or_a_helper_holds_has_its_name():
    class Net:
        def __init__(self):
            self.weights = ones(*MIB)

        def apply(self, x):
            return x @ self.weights

    found = check(jax.jit(Net.apply, static_argnums=0), Net(), ones(512), run=False)
    assert "contains `self.weights` f32[512,512]" in found.findings[1].sentence
    table = ones(*MIB)

    def helper(x):
        return x @ table

    assert "contains `table` f32" in only(jax.jit(lambda x: helper(x)), ones(512)).sentence


def test_a_captured_constant_of_an_inner_jit_is_found():
    big = ones(*MIB)
    inner = jax.jit(lambda y: y @ big)
    assert only(jax.jit(lambda x: inner(x) + 1), ones(3, 512)).kind == "constant"


def test_a_small_constant_is_no_finding():
    small = ones(3)
    assert check(jax.jit(lambda x: x + small), ones(3), run=False).kinds == ()


def test_an_unrolled_loop_is_found_with_its_length_and_body():
    @jax.jit
    def steps(x):
        for _ in range(30):
            x = jnp.sin(x) * 1.5 + 1
        return x

    line = sys._getframe().f_lineno - 3
    found = only(steps, ones(3))
    assert found.sentence == (
        f"The jaxpr contains 30 copies of the same 3 operations in a row, from `sin` at test_check.py:{line} "
        "on: an unrolled Python loop."
    )
    assert "`jax.lax.fori_loop` or `scan`" in found.advice


def test_turns_that_do_not_need_each_other_are_for_vmap():
    fn = jax.jit(lambda x: jnp.stack([jnp.sin(x[i]) * 2 for i in range(20)]))
    assert "Try `jax.vmap`: no copy needs another one" in only(fn, ones(20)).advice


@pytest.mark.parametrize("body", [jnp.sin, lambda x: x.at[0].set(1.0), jax.scipy.special.ndtri])
def test_a_loop_around_one_call_is_found(body):
    def repeat(x):
        for _ in range(40):
            x = body(x)
        return x

    found = only(jax.jit(repeat), ones(3))
    assert "contains 40 copies of " in found.sentence


def test_the_backward_pass_of_a_loop_is_found():
    def loss(x):
        for _ in range(30):
            x = jnp.sin(x) * 1.5
        return x.sum()

    assert only(jax.jit(jax.grad(loss)), ones(3)).kind == "unrolled loop"


NO_LOOPS = {
    "written out": (lambda *xs: eval("+".join(f"xs[{i}]" for i in range(40)), {"xs": xs}), [1.0] * 40),
    "polynomial": (lambda x: jax.scipy.special.ndtri(x) + jax.scipy.special.fresnel(x)[0], [np.ones(3)]),
    "leaves": (
        lambda p, g: jax.tree.map(lambda a, b: a - 0.1 * b * b, p, g),
        [[np.ones(3)] * 40, [np.ones(3)] * 40],
    ),
    "a list stacked": (lambda xs: jnp.stack(xs), [[1.0] * 40]),
    "an array unpacked": (lambda x: list(x), [np.ones(40)]),
    "short": (lambda x: sum(jnp.sin(x + i) for i in range(7)), [1.0]),
}


@pytest.mark.parametrize(("fn", "args"), NO_LOOPS.values(), ids=NO_LOOPS)
def test_a_repetition_without_a_loop_of_the_reader_is_not_mentioned(fn, args):
    assert check(jax.jit(fn), *jax.tree.map(jnp.float32, args), run=False).kinds == ()


def test_a_loop_of_jax_is_not_called_unrolled():
    fn = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda i, c: jnp.sin(c), x))
    assert check(fn, ones(3), run=False).kinds == ()


@pytest.mark.parametrize(
    ("body", "found"),
    [
        ("    for _ in range(40):\n        x = lax.sin(x)\n    return x", False),
        ("    i = 0\n    while i < 40:\n        x, i = lax.sin(x), i + 1\n    return x", False),
        ("    return lax.sin(x)", True),  # the loop is the caller's
    ],
)
def test_a_loop_inside_a_library_is_not_the_readers(body, found):
    library = {"lax": jax.lax}
    exec(compile(f"def call(x):\n{body}", "/env/lib/python3.12/site-packages/lib/base.py", "exec"), library)

    def once(x):
        return library["call"](x)

    def often(x):
        for _ in range(40):
            x = library["call"](x)
        return x

    kinds = check(jax.jit(often if found else once), ones(3), run=False).kinds
    assert kinds == (("unrolled loop",) if found else ())


def test_an_unrolled_loop_inside_another_loop_is_found():
    def body(c, _):
        for _ in range(40):
            c = jnp.sin(c)
        return c, None

    found = only(jax.jit(lambda x: jax.lax.scan(body, x, length=3)[0]), ones(3))
    assert "40 copies of the same 1 operation in a row" in found.sentence


def test_what_is_inside_each_copy_counts():
    layer = jax.jit(lambda x: jnp.sin(x) * 2 + jnp.cos(x))

    def layers(x):
        for _ in range(8):
            x = layer(x)
        return x

    assert "8 copies of the same 1 operation in a row" in only(jax.jit(layers), ones(3)).sentence


def test_a_donation_that_would_help_is_found():
    found = only(jax.jit(lambda x, y: x + y.sum()), ones(*MIB), ones(3))
    assert found.sentence == "`x` has 1 MiB in the shape and dtype of a result, and is not donated."
    assert "donate_argnames='x'" in found.advice


@pytest.mark.parametrize(
    ("fn", "option"),
    [
        (lambda y, *xs: xs[0] * y, {"donate_argnums": 1}),
        (lambda y, x, /: x * y, {"donate_argnums": 1}),
        (lambda y, x: x * y, {"donate_argnames": "x"}),
    ],
)
def test_the_option_named_is_one_that_jit_takes(fn, option):
    advice = only(jax.jit(fn), 2.0, ones(*MIB)).advice
    ((name, value),) = option.items()
    assert f"`{name}={value!r}`" in advice
    assert check(jax.jit(fn, **option), 2.0, ones(*MIB), run=False).kinds == ()


@pytest.mark.parametrize("option", [{"donate_argnums": 0}, {"donate_argnames": "x"}])
def test_a_donated_argument_is_not_mentioned_and_stays_usable(option):
    x = ones(*MIB)
    fn = jax.jit(lambda x: jnp.sin(x) * 2, **option)
    assert "donation" not in check(fn, x).kinds
    assert not x.is_deleted()


def test_one_result_takes_one_argument_only():
    found = only(jax.jit(lambda x, y: x + y), ones(*MIB), ones(*MIB))
    assert found.sentence.startswith("`x`")


def test_leaves_of_a_tree_are_added_up():
    fn = jax.jit(lambda p: jax.tree.map(lambda leaf: leaf * 2, p))
    assert only(fn, {"a": ones(*MIB), "b": ones(*MIB)}).sentence.startswith("`p` has 2 MiB")


PARAMS, GRADIENT = {"w": ones(*MIB)}, jax.grad(lambda params, x: jnp.tanh(x @ params["w"]).sum())
MOMENTUM, BATCH = {"w": ones(*MIB)}, ones(4, MIB[0])


def accumulated(params, x):
    zeros = jax.tree.map(jnp.zeros_like, params)
    return jax.lax.fori_loop(0, 3, lambda _, total: jax.tree.map(jnp.add, total, GRADIENT(params, x)), zeros)


GRADIENTS = {
    "grad": GRADIENT,
    "value and grad": jax.value_and_grad(lambda params, x: (x @ params["w"] + params["w"][0]).sum()),
    "clipped": lambda params, x: jax.tree.map(lambda g: jnp.clip(g, -1, 1), GRADIENT(params, x)),
    "jitted inside": lambda params, x: jax.jit(GRADIENT)(params, x),
    "accumulated": accumulated,
    "mean over a batch": lambda params, x: jax.tree.map(
        lambda g: g.mean(0), jax.vmap(GRADIENT, (None, 0))(params, x[:, None])
    ),
}


@pytest.mark.parametrize("fn", GRADIENTS.values(), ids=GRADIENTS)
def test_the_parameters_of_a_gradient_are_not_to_be_donated(fn):
    assert check(jax.jit(fn), PARAMS, BATCH, run=False).kinds == ()


def descend(params, momentum, x):
    momentum = jax.tree.map(lambda m, g: 0.9 * m + g, momentum, GRADIENT(params, x))
    return jax.tree.map(lambda p, m: p - 0.1 * m, params, momentum), momentum


def descend_unless_infinite(params, momentum, x):
    finite = jnp.isfinite(x).all()
    return jax.lax.cond(finite, descend, lambda params, momentum, x: (params, momentum), params, momentum, x)


def descend_often(params, momentum, x):
    return jax.lax.scan(lambda carry, _: (descend(*carry, x), None), (params, momentum), None, length=3)[0]


@pytest.mark.parametrize("step", [descend, descend_unless_infinite, descend_often, jax.jit(descend)])
def test_what_a_training_step_replaces_is_to_be_donated(step):
    findings = check(jax.jit(lambda *args: step(*args)), PARAMS, MOMENTUM, BATCH, run=False)
    assert [found.sentence[:9] for found in findings] == ["`args[0]`", "`args[1]`"]


def test_the_argument_that_a_result_is_made_from_is_to_be_donated():
    def follow(target, params, x):
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, GRADIENT({"w": params["w"] - target["w"]}, x))

    assert only(jax.jit(follow), MOMENTUM, PARAMS, BATCH).sentence.startswith("`params`")


def test_arguments_passed_by_keyword_in_another_order_have_their_names():
    fn = jax.jit(lambda x, later, early: x + early * 2)
    assert only(fn, ones(3), later=ones(3), early=ones(3)).sentence.startswith("`later` is not used")
    add = jax.jit(lambda x, later, early: (x * later).sum() * early, donate_argnames="early")
    assert check(add, ones(3), later=ones(3), early=ones(*MIB), run=False).kinds == ()


def test_calls_back_to_python_are_found_and_never_run():
    ran = []

    @jax.jit
    def talks(x):
        jax.debug.callback(lambda v: ran.append(v), x)
        return x + 1

    findings = check(talks, ones(3))
    assert findings.kinds == ("host round trip",)
    assert "`debug_callback`" in findings.findings[0].sentence
    assert findings.phases is None
    assert findings.notes == ("It was not run: it calls back to Python.",)
    assert ran == []


def test_a_call_back_in_a_loop_is_said_to_be_in_a_loop():
    def body(c, _):
        jax.debug.print("{c}", c=c)
        return c, None

    found = only(jax.jit(lambda x: jax.lax.scan(body, x, length=3)[0]), ones(3))
    assert found.sentence.endswith("At least one is in a loop.")


def test_the_break_even_is_judged_on_costs():
    late = Phases(0.0, 0.0, compile=1.0, first_run=0.0, steady=1e-4)
    assert [f.sentence for f in rules.break_even(late, 1.1e-4)] == [
        "A jitted call takes 100 µs, a plain one 110 µs: the compile pays off only after about 100000 calls."
    ]
    assert list(rules.break_even(late, 1e-3)) == []  # a script that calls it for a second gains much
    same = Phases(0.0, 0.0, compile=1.0, first_run=0.0, steady=1.0)
    assert next(rules.break_even(same, 1.0)).sentence.endswith(
        ": no clear gain, so the compile does not pay off."
    )
    assert list(rules.break_even(Phases(0.0, 0.0, compile=1.0, first_run=0.0, steady=0.01), 1.0)) == []


def timed_as(monkeypatch, jitted, plain):
    """Let every jitted and every plain call take these seconds."""
    real = check_module._fastest

    def fastest(fn, fresh, most):
        return (jitted if most > check_module._MOST_PLAIN else plain), real(fn, fresh, 1)[1]

    monkeypatch.setattr(check_module, "_fastest", fastest)


@pytest.mark.parametrize(("plain", "pays"), [(1.0, False), (0.9, False), (1.15, True), (10.0, True)])
def test_a_clear_gain_pays(monkeypatch, plain, pays):
    timed_as(monkeypatch, 1.0, plain)
    assert (check(jax.jit(lambda x: jnp.sin(x) * 2), ones(3)).kinds == ()) is pays


def test_the_break_even_of_a_function_that_was_compiled_before_is_known(monkeypatch):
    timed_as(monkeypatch, 1.0, 1.0)
    fn = jax.jit(lambda x: jnp.sin(x) * 2)
    fn(ones(3))
    assert check(fn, ones(3)).kinds == ("break-even",)


def test_a_plain_function_that_fails_leaves_the_break_even_unknown():
    @jax.jit
    def only_traced(x):
        if not isinstance(x, jax.core.Tracer):
            raise RuntimeError("no arrays here")
        return x + 1

    findings = check(only_traced, ones(3))
    assert "host round trips." in " ".join(repr(findings).split())
    assert findings.notes == (
        "Break-even and agreement were not checked: the plain function raised RuntimeError: no arrays here",
    )


def test_findings_stay_when_the_plain_function_fails():
    @functools.partial(jax.jit, static_argnames="lr")
    def only_traced(x, lr):
        if not isinstance(x, jax.core.Tracer):
            raise RuntimeError("no arrays here. More.")
        return x * lr

    findings = check(only_traced, ones(3), lr=0.1)
    assert findings.kinds == ("static",)
    assert findings.notes[-1].endswith("raised RuntimeError: no arrays here.")


def test_a_partial_of_a_jitted_function_is_checked_with_what_is_bound():
    power = jax.jit(lambda n, x: x**n, static_argnums=0)
    assert check(functools.partial(power, 2), ones(3), run=False).kinds == ()
    scaled = jax.jit(lambda x, *, by: x * by, static_argnames="by")
    assert check(functools.partial(scaled, by=2.5), ones(3), run=False).kinds == ("static",)
    assert check(functools.partial(scaled, by=2), calls=[(ones(3),), (ones(4),)], run=False).kinds == (
        "retrace",
    )


def test_without_jit_there_is_no_break_even():
    with jax.disable_jit():
        findings = check(jax.jit(lambda x: x * 2), ones(3))
    assert findings.kinds == ()
    assert findings.notes == (
        "It was not run: `jax_disable_jit` is on, so a jitted call runs one operation at a "
        "time. Switch it off.",
    )


def test_costs_are_measured_when_the_function_may_run():
    findings = check(jax.jit(lambda x: jnp.sin(x) * 2), ones(3))
    assert findings.phases.compile > findings.phases.steady
    assert findings.plain > 0
    assert "\nRoughly: trace " in repr(findings)
    assert set(json.loads(json.dumps(findings.to_dict()))["phases"]) > {"trace", "compile", "steady"}


def test_the_body_runs_a_handful_of_times():
    runs = []
    check(jax.jit(lambda x: (runs.append(1), x + 1)[1]), ones(3))
    assert len(runs) <= 6


@pytest.mark.parametrize("seconds", [0.1, 0.4])
def test_a_slow_function_is_run_twice_without_jit(seconds):
    runs = []

    @jax.jit
    def slow(x):
        if not isinstance(x, jax.core.Tracer):
            runs.append(time.sleep(seconds))
        return x + 1

    check(slow, ones(3))
    assert len(runs) == 2


def act_time(x):
    return x * time.time()


def act_print(x):
    print("tracing")
    return x


def act_numpy(x):
    return x + np.random.rand()  # noqa: NPY002 -- the fault that is looked for


RNG = np.random.default_rng(0)
NUMBERS = (number for number in range(1000))


def act_generator(x):
    return x + RNG.normal()


TICKETS, COUNTER = iter(range(10**6)), itertools.count()


def act_next(x):
    return x * next(TICKETS)


def act_count_up(x):
    return x * next(COUNTER)


def act_secret(x):
    return x * secrets.randbelow(7)


def act_random(x):
    return x + random.uniform(0, 1)


KEPT = []


def act_append(x):
    KEPT.append(x * 2)
    return x


OLD_RNG = np.random.RandomState(0)


def act_old_generator(x):
    return x + OLD_RNG.normal()


COUNTS = {"calls": 0}


def act_count(x):
    COUNTS["calls"] += 1
    return x


STEPS = 0


def act_step(x):
    global STEPS
    STEPS += 1
    return x


def act_identify(x):
    return x + uuid.uuid4().int % 7


def act_draw_from_the_system(x):
    return x + os.urandom(1)[0]


def act_choose(x):
    return x + secrets.choice([1, 2, 3])


def act_without_a_seed(x):
    return x + np.random.default_rng().random(dtype="float32")


def act_next_of_a_generator(x):
    return x + next(NUMBERS)


class Registry:
    rows: ClassVar[list] = []
    seen: ClassVar[dict] = {}
    last = None

    def __init__(self):
        self.metrics = {"steps": 0}

    def count(self):
        self.metrics["steps"] += 1


REGISTRY, NESTED = Registry(), {"stats": {"calls": 0}}


def remember(x):
    KEPT.append(x.sum())


def act_by_a_helper(x):
    remember(x)
    return x


def act_on_a_list_of_a_class(x):
    Registry.rows.append(x)
    return x


def act_on_an_attribute_of_a_class(x):
    Registry.last = x
    return x


def act_on_a_dict_of_a_class(x):
    Registry.seen["calls"] = Registry.seen.get("calls", 0) + 1
    return x


def act_by_a_method(x):
    REGISTRY.count()
    return x


def act_inside_a_scan(x):
    def body(carry, _):
        KEPT.append(carry)
        return carry * 2, None

    return jax.lax.scan(body, x, length=2)[0]


def act_inside_a_lambda(x):
    return jax.vmap(lambda one: (remember(one), one)[1])(x)


class Follower:
    def follow(self):
        self.look()

    def look(self):
        COUNTS["calls"] += 1


FOLLOWER = SimpleNamespace(first=Follower())


def act_by_a_method_on_a_global(x):
    FOLLOWER.first.follow()
    return x


def act_on_a_queue(x):
    QUEUE.put(x.shape)
    return x


def act_on_a_thread(x):
    THREAD.calls += 1
    return x


def act_on_a_context(x):
    CONTEXT.set(CONTEXT.get() + 1)
    return x


QUEUE, THREAD, CONTEXT = queue.Queue(), threading.local(), contextvars.ContextVar("calls", default=0)
THREAD.calls = 0


def act_wait(x):
    time.sleep(0)
    return x


def act_on_a_nested_dict(x):
    NESTED["stats"]["calls"] += 1
    return x


def act_on_an_attribute_of_a_function(x):
    remember.last = x
    return x


def act_on_the_environment(x):
    os.environ["JITGUIDE_TEST"] = str(x.shape)
    return x


def act_read_a_variable(x):
    return x * len(os.environ["PATH"])


def act_get_a_variable(x):
    return x * float(os.environ.get("JITGUIDE_SCALE", "1"))


def act_getenv(x):
    return x * float(os.getenv("JITGUIDE_SCALE", "1"))


def act_ask_for_a_variable(x):
    return -x if "JITGUIDE_SCALE" in os.environ else x


def act_copy_the_environment(x):
    return x * len(dict(os.environ))


def act_on_a_setting(x):
    jax.config.update("jax_log_compiles", False)
    return x


def act_write(x):
    Path(os.devnull).write_text("a")
    return x


def act_read_text(x):
    return x * len(Path(os.devnull).read_text() + "1")


def act_load_a_table(x):
    return x * (1 + np.loadtxt([f"{1}"]))


def remember_as(kept, x):
    kept.append(x)
    return x


REMEMBER = functools.partial(remember_as, KEPT)


def act_by_a_partial(x):
    return REMEMBER(x)


COUNTED = jax.jit(remember)
COUNTED.calls = 0


def act_on_an_attribute_of_a_jitted_function(x):
    COUNTED.calls += 1
    return x


SLOTS = dict.fromkeys(range(99), 0)


def act_remove(x):
    return x + SLOTS.popitem()[0]


def act_append_to_a_default(x, kept=[]):  # noqa: B006 -- the fault that is looked for
    kept.append(x * 2)
    return x


def act_on_a_default(x, *, shapes={}):  # noqa: B006 -- the fault that is looked for
    shapes[len(shapes)] = x.shape
    return x


IMPURE = {
    act_append_to_a_default: "stores a tracer in `kept`",
    act_on_a_default: "changes `shapes[1]`",
    act_read_text: "`pathlib.read_text` at test_check.py:",
    act_load_a_table: "`numpy.loadtxt` at test_check.py:",
    act_by_a_partial: "stores a tracer in `kept`",
    functools.partial(remember_as, KEPT): "stores a tracer in `kept`",
    act_on_an_attribute_of_a_jitted_function: "changes `COUNTED.calls`",
    act_remove: "changes `SLOTS[",
    act_next: "changes `TICKETS`",
    act_count_up: "changes `COUNTER`",
    act_by_a_helper: "stores a tracer in `KEPT`",
    act_on_a_list_of_a_class: "stores a tracer in `Registry.rows`",
    act_on_an_attribute_of_a_class: "stores a tracer in `Registry.last`",
    act_on_a_dict_of_a_class: "changes `Registry.seen['calls']`",
    act_inside_a_scan: "stores a tracer in `KEPT`",
    act_inside_a_lambda: "stores a tracer in `KEPT`",
    act_by_a_method_on_a_global: "changes `COUNTS['calls']`",
    act_on_a_queue: "changes `QUEUE.queue`",
    act_on_a_thread: "changes `THREAD.calls`",
    act_on_a_context: "changes `CONTEXT`",
    act_wait: "`time.sleep` at test_check.py:",
    act_by_a_method: "changes `REGISTRY.metrics['steps']`",
    act_on_a_nested_dict: "changes `NESTED['stats']['calls']`",
    act_on_an_attribute_of_a_function: "stores a tracer in `remember.last`",
    act_on_the_environment: "`os.environ` at test_check.py:",
    act_read_a_variable: "uses `os.environ` at test_check.py:",
    act_get_a_variable: "uses `os.environ` at test_check.py:",
    act_getenv: "uses `os.getenv` at test_check.py:",
    act_ask_for_a_variable: "uses `os.environ` at test_check.py:",
    act_copy_the_environment: "uses `os.environ` at test_check.py:",
    act_on_a_setting: "`jax.config.update` at test_check.py:",
    act_write: "`pathlib.write_text` at test_check.py:",
    act_choose: "`secrets.choice` at test_check.py:",
    act_without_a_seed: "`np.random.default_rng()` at test_check.py:",
    act_next_of_a_generator: "changes `NUMBERS`",
    act_secret: "`secrets.randbelow` at test_check.py:",
    act_old_generator: "draws from `OLD_RNG`",
    act_count: "changes `COUNTS['calls']`",
    act_step: "changes `STEPS`",
    act_identify: "`uuid.uuid4` at test_check.py:",
    act_draw_from_the_system: "`urandom` at test_check.py:",
    act_time: "`time.time` at test_check.py:",
    act_print: "`print` at test_check.py:",
    act_numpy: "`np.random`",
    act_generator: "`RNG`",
    act_random: "`random.uniform` at test_check.py:",
    act_append: "stores a tracer in `KEPT`",
}


def test_many_impure_acts_are_counted():
    def draw(x):
        return x + random.random() + random.gauss() + random.uniform(0, 1) + time.time() + time.monotonic()

    assert " and 1 more: that runs while JAX traces" in only(jax.jit(draw), ones(3)).sentence


@pytest.mark.parametrize("fn", IMPURE, ids=lambda fn: getattr(fn, "__name__", "a partial"))
def test_an_impure_body_is_found(fn):
    jitted = jax.jit(fn)
    jitted(ones(3))  # also where its trace is cached
    found = only(jitted, ones(3))
    assert found.kind == "impure body"
    assert IMPURE[fn] in found.sentence
    KEPT.clear()
    Registry.rows.clear()
    Registry.last = remember.last = None


LIMITS = [1.0, 2.0]


def test_what_is_pure_is_not_mentioned():
    def steady(x, key):
        parts = [x + np.random.RandomState(0).rand(3).astype("float32")]
        parts.append(x[np.array(random.Random(0).sample(range(3), 3))])
        for limit in LIMITS:
            parts.append(jnp.minimum(x, limit))
        return sum(parts) + jax.random.normal(key, x.shape) + jnp.asarray(np.arange(3.0), x.dtype)

    assert check(jax.jit(steady), ones(3), jax.random.key(0), run=False).kinds == ()


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
def test_a_captured_key_is_found_and_one_that_is_passed_is_not(make):
    key = make(0)
    found = only(jax.jit(lambda x: x + jax.random.normal(key)), ones(3))
    assert found.sentence == "The function captured `key`: it draws the same numbers in each call."
    assert check(jax.jit(lambda x, key: x + jax.random.normal(key)), ones(3), key, run=False).kinds == ()
    pair = jnp.asarray([1, 2], jnp.uint32)
    assert check(jax.jit(lambda x: x + pair), ones(2), run=False).kinds == ()


def test_an_unused_argument_is_found_unless_its_name_says_so():
    found = only(jax.jit(lambda x, y: x), ones(3), ones(3))
    assert found.sentence == "`y` is not used: its value does not reach the result."
    assert check(jax.jit(lambda x, _y: x), ones(3), ones(3), run=False).kinds == ()
    assert check(jax.jit(lambda x, y: x + y["a"]), ones(3), {"a": 1.0, "b": 2.0}, run=False).kinds == ()
    for unused in (
        lambda x, y: y,
        lambda x, y: (jnp.sin(x), y)[1],
        lambda x, y: (x @ ones(3, 5), y)[1],
        lambda x, y: (jax.lax.map(jnp.sin, x), y)[1],
    ):
        assert check(jax.jit(unused), ones(2, 3), ones(2, 3), run=False).kinds == ("unused argument",)
    for make in (jax.random.key, jax.random.PRNGKey):
        dropped = jax.jit(lambda key, y: (jax.random.normal(key), y)[1])
        assert check(dropped, make(0), ones(3), run=False).kinds == ("unused argument",)
    printed = jax.jit(lambda x, y: (jax.debug.print("{}", x), y)[1])
    assert check(printed, ones(3), ones(3), run=False).kinds == ("host round trip",)


def test_a_tracer_of_an_earlier_trace_is_not_taken_for_an_argument():
    class Sampler:
        accepted = 0

        def step(self, x, y):
            self.accepted += jnp.sum(x > y)
            return x * 2 + y

    sampler = Sampler()
    for x in (ones(2), ones(3)):
        jax.jit(sampler.step).trace(x, x)
    findings = check(jax.jit(sampler.step), ones(2), ones(2), run=False)
    assert "unused argument" not in findings.kinds


def test_an_argument_that_is_deleted_or_called_unused_is_meant():
    def step(key, x, unused_key, _):
        del key
        return x * 2

    key = jax.random.key(0)
    for fn in (step, functools.partial(step), jax.jit(step)):
        assert check(jax.jit(fn), key, ones(3), key, 1.0, run=False).kinds == ()
    environment = SimpleNamespace(step=step)
    assert check(jax.jit(environment.step), key, ones(3), key, 1.0, run=False).notes == ()


def shaped_like(x, y):
    return jnp.zeros_like(x) + y


SHAPES = {
    "its shape": lambda x, y: jnp.zeros(x.shape) * y.sum(),
    "its first length": lambda x, y: jnp.arange(len(x)) * y[0],
    "its dtype": lambda x, y: y.astype(x.dtype),
    "a shape that has to fit": shaped_like,
    "by keyword": lambda z, y, *, x: (jnp.zeros(x.shape), z * y),
}


@pytest.mark.parametrize("name", SHAPES)
def test_an_argument_of_which_only_the_type_is_read_is_a_note(name):
    given = {"z": 1.0, "x": ones(3)} if name == "by keyword" else {"x": ones(3)}
    findings = check(jax.jit(SHAPES[name]), **given, y=ones(3), run=False)
    assert findings.kinds == ()
    assert findings.notes == (
        "Only the shape and dtype of `x` are read: its values do not reach the result.",
    )


def test_a_body_with_side_effects_is_not_traced_for_other_shapes():
    shapes = []

    @jax.jit
    def remember(x, y):
        shapes.append(x.shape)
        return jnp.zeros(x.shape) + y

    assert check(remember, ones(3), ones(3), run=False).kinds == ("unused argument", "impure body")
    assert set(shapes) == {(3,)}


def test_the_example_of_an_init_is_there_for_its_shape():
    nn = pytest.importorskip("flax.linen")
    model = nn.Sequential([nn.Dense(8), nn.relu, nn.Dense(1)])
    findings = check(jax.jit(model.init), jax.random.key(0), ones(2, 3), run=False)
    assert findings.kinds == ()
    assert findings.notes == (
        "Only the shape and dtype of `args[0]` are read: its values do not reach the result.",
    )


def test_a_donated_array_that_is_passed_twice_is_found():
    step = jax.jit(lambda state, x: ({k: v + x.sum() for k, v in state.items()}, x.sum()), donate_argnums=0)
    weights = ones(4)
    shared = {"params": weights, "target": weights}
    found = only(step, shared, ones(3))
    assert found.kind == "donation"
    pairs = {name: {"w": weights, "b": shared} for name in ("params", "target")}
    assert only(jax.jit(lambda x: jax.tree.map(jnp.sin, x), donate_argnums=0), pairs).kind == "donation"
    assert "`state['params']` and `state['target']` are the same array, and it is donated" in found.sentence
    with pytest.raises(jax.errors.JaxRuntimeError, match="donate the same buffer twice"):
        step(shared, ones(3))
    assert check(step, {"params": ones(4), "target": ones(4)}, ones(3), run=False).kinds == ()
    assert only(jax.jit(lambda a, b: a + b, donate_argnums=1), weights, weights).kind == "donation"
    assert check(jax.jit(lambda a, b: a + b), weights, weights, run=False).kinds == ()
    unused = jax.jit(lambda a, _b: a + 1, donate_argnums=0)
    assert check(unused, weights, weights, run=False).kinds == ()


def test_a_donation_in_vain_is_found():
    found = only(jax.jit(lambda x: x.sum(), donate_argnums=0), ones(3))
    assert found.sentence == ("`x` is donated without effect: no result has the size of its float32[3].")
    for reused in (lambda x: x.reshape(2, 8) * 2, lambda x: x.astype(int), lambda x: (x.sum(), x + 1)):
        assert check(jax.jit(reused, donate_argnums=0), ones(16), run=False).kinds == ()
    state = {"weights": ones(400_000), "step": jnp.int32(0)}
    kept = jax.jit(lambda state: state["weights"] * (1.0 + state["step"]), donate_argnums=0)
    assert check(kept, state, run=False).kinds == ()
    assert check(jax.jit(lambda x: x * 2, donate_argnums=0), ones(3), run=False).kinds == ()


def test_a_donation_in_vain_beside_one_that_took_the_result_says_so():
    fn = jax.jit(lambda a, b: ((a + b).sum(), b * 2), donate_argnums=(0, 1))
    found = only(fn, ones(3), ones(3))
    assert found.sentence == (
        "`b` is donated without effect: no result is left that has the size of its float32[3]."
    )


def test_a_result_of_four_bits_does_not_take_the_memory_of_eight():
    narrowed = jax.jit(lambda x: x.astype(jnp.int4), donate_argnums=0)
    assert only(narrowed, jax.ShapeDtypeStruct((1024, 1024), jnp.int8)).kind == "donation"


def test_results_that_differ_without_jit_are_found(monkeypatch):
    timed_as(monkeypatch, 1.0, 10.0)
    fn = jax.jit(lambda x: x * (2 if isinstance(x, jax.core.Tracer) else 3))
    found = check(fn, ones(3)).findings
    assert [f.kind for f in found] == ["disagreement"]
    assert "differ: up to 1.0 at a largest value of 3.0." in found[0].sentence


def test_a_key_of_a_static_seed_is_the_same_for_each_seed():
    def draw(x, seed):
        return x + jax.random.normal(jax.random.key(seed), x.shape)

    found = only(jax.jit(draw, static_argnums=1), ones(3), 7)
    assert found.sentence == (
        "The function makes its random key itself: it draws the same numbers in each call with the same static "
        "arguments."
    )


def test_a_global_that_changed_after_the_trace_is_found(monkeypatch):
    timed_as(monkeypatch, 1.0, 10.0)
    fn = jax.jit(lambda x: x * LIMITS[1])
    fn(ones(3))
    monkeypatch.setattr(sys.modules[__name__], "LIMITS", [1.0, 5.0])
    assert check(fn, ones(3)).kinds == ("disagreement",)


@pytest.mark.parametrize(
    "beside",
    [-jnp.inf, jnp.nan, jnp.int32(10_000_000)],
    ids=["inf", "nan", "step"],
)
def test_nothing_beside_it_hides_a_result_that_differs(monkeypatch, beside):
    timed_as(monkeypatch, 1.0, 10.0)
    fn = jax.jit(lambda x: (jnp.full(3, beside), x.mean() * LIMITS[1]))
    fn(ones(3))
    monkeypatch.setattr(sys.modules[__name__], "LIMITS", [1.0, 5.0])
    assert check(fn, ones(3)).kinds == ("disagreement",)


@pytest.mark.parametrize(
    ("fn", "x"),
    [
        (lambda a: (a + 1) - 1e8, np.float64([1e8 + 0.25])),
        (lambda a: a * a, 100_000),
        (lambda a: jnp.sin(a - 1e7), 1e7 + np.linspace(0, 1, 5)),
    ],
    ids=["float64", "int", "float64 at first"],
)
def test_a_plain_function_that_computes_in_64_bits_is_named(monkeypatch, fn, x):
    timed_as(monkeypatch, 1.0, 10.0)
    found = check(jax.jit(fn), x).findings[0]
    assert found.kind == "disagreement"
    assert found.advice.startswith("Pass `jax.Array`s")


def test_many_small_constants_are_a_large_one():
    tables = [jnp.full((450, 512), i, "float32") for i in range(4)]
    found = only(jax.jit(lambda x: x + sum(t[0, 0] for t in tables)), ones(3))
    assert found.kind == "constant"
    assert found.sentence.endswith("and 1 more: 3.52 MiB in all.")


def test_a_64_bit_number_of_numpy_that_jax_rounds_is_found():
    phase = jax.jit(lambda t: (t - 1.7e9) / 3)
    assert check(phase, np.float64(1.7e9 + 50)).kinds == ("disagreement",)


def test_an_impure_body_explains_a_disagreement(monkeypatch):
    timed_as(monkeypatch, 1.0, 10.0)
    impure, differs = check(jax.jit(lambda x: (x, np.random.rand())), ones(3))  # noqa: NPY002
    assert (impure.kind, differs.kind) == ("impure body", "disagreement")
    assert differs.advice == "The impure body may be the cause: fix that first, and check again."


def test_an_unrolled_loop_is_not_to_become_a_larger_function(monkeypatch):
    timed_as(monkeypatch, 1.0, 1.0)

    def steps(x):
        for _ in range(30):
            x = jnp.sin(x) * 1.5 + 1
        return x

    assert check(jax.jit(steps), ones(3)).kinds == ("unrolled loop",)


def test_integers_that_do_not_fit_the_dtype_in_jax_are_found():
    total = jax.jit(lambda batch, _offset: jnp.sum(batch["t"]))
    times = {"t": np.array([1_795_699_500_000_000_000])}
    found = only(total, times, np.int64(5))
    assert found.sentence == (
        "`batch['t']` is int64 and becomes int32, which is too small for its numbers: they silently become others."
    )
    assert int(total(times, 0)) != times["t"].sum()
    assert check(total, {"t": np.array([5])}, np.int64(5), run=False).kinds == ()
    static = jax.jit(total.__wrapped__, static_argnames="_offset")
    assert check(static, {"t": np.array([5])}, np.int64(2**40), run=False).kinds == ()
    with jax.enable_x64(True):
        assert check(total, times, np.int64(5), run=False).kinds == ()


def test_a_callable_object_has_the_name_of_its_class():
    class Scale:
        def __call__(self, x):
            return x * 2

    assert check(jax.jit(Scale()), ones(3), run=False).function == "Scale"


def test_a_dtype_that_jax_truncates_is_found_and_other_warnings_are_passed_on():
    def double(x):
        warnings.warn("of the body", UserWarning, stacklevel=2)
        return x.astype(jnp.float64) * 2

    with pytest.warns(UserWarning, match="of the body") as caught:
        found = only(jax.jit(double), ones(3))
    assert [str(one.message) for one in caught] == ["of the body"]
    assert found.sentence == (
        "The body asks for float64 and gets float32: JAX truncates 64-bit dtypes by default."
    )
    with jax.enable_x64(True), pytest.warns(UserWarning, match="of the body"):
        assert check(jax.jit(double), ones(3), run=False).kinds == ()


class Model:
    def __init__(self):
        self.steps, self.key, self.history = 0, jax.random.PRNGKey(0), []

    def draw(self, x):
        return x + jax.random.normal(self.key, x.shape)

    def count(self, x):
        self.steps += 1
        return 2 * x

    def keep(self, x):
        self.history.append(x)
        return 2 * x


@pytest.mark.parametrize(
    ("method", "kind"), [("draw", "captured key"), ("keep", "impure body"), ("count", "impure body")]
)
def test_what_a_bound_method_takes_from_its_object_is_found(method, kind):
    assert check(jax.jit(getattr(Model(), method)), ones(3), run=False).kinds == (kind,)


def test_what_a_callable_object_counts_is_found():
    class Layer:
        calls = 0

        def __call__(self, x):
            self.calls += 1
            return 2 * x

    found = only(jax.jit(Layer()), ones(3))
    assert found.sentence.startswith("The body changes `self.calls`")


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Point:
    x: jax.Array


def act_on_dict(d):
    d["y"] = 2 * d["x"]
    return d["y"]


def act_on_list(d):
    d[0] = 2 * d[0]
    return d[0]


def act_on_dataclass(d):
    d.x = 2 * d.x
    return d.x


@pytest.mark.parametrize("donate", [(), (0,)], ids=["kept", "donated"])
@pytest.mark.parametrize(
    ("fn", "wrap"),
    [(act_on_dict, lambda x: {"x": x}), (act_on_list, lambda x: [x]), (act_on_dataclass, Point)],
)
def test_an_argument_that_the_body_changes_is_found_and_stays_as_it_was(fn, wrap, donate):
    x = ones(3)
    argument = wrap(x)
    findings = check(jax.jit(fn, donate_argnums=donate), argument).findings
    assert "changes its argument `d`" in next(f.sentence for f in findings if f.kind == "impure body")
    assert jax.tree.leaves(argument)[0] is x
    assert jax.tree.structure(argument) == jax.tree.structure(wrap(x))


def test_a_local_copy_of_an_argument_may_change():
    def scale(d):
        d = dict(d, y=2 * d["x"])
        return d["y"]

    assert "impure body" not in check(jax.jit(scale), {"x": ones(3)}).kinds


def test_a_cache_of_arrays_that_the_body_fills_is_found():
    table = functools.lru_cache(jnp.arange)
    found = check(jax.jit(lambda x: x + table(3)), ones(3))
    assert [f.kind for f in found.findings] == ["impure body"]
    assert "functools.lru_cache" in found.findings[0].sentence
    assert "not run" in found.notes[-1]


@pytest.mark.parametrize(
    ("method", "words"), [(Model.count, "changes `self.steps`"), (Model.keep, "in `self.history`")]
)
def test_what_the_body_does_to_a_static_object_is_found(method, words):
    found = check(jax.jit(method, static_argnums=0), Model(), ones(3), run=False).findings
    assert [f.kind for f in found] == ["static", "impure body"]
    assert words in found[1].sentence


def test_an_old_key_is_found_by_what_is_done_with_it():
    rng = jax.random.PRNGKey(0)
    assert check(jax.jit(lambda x: x + jax.random.normal(rng)), ones(3), run=False).kinds == ("captured key",)


def in_a_batched_branch(use):
    """Return a function of a key that passes each of four keys through a branch, batched, and then uses it."""

    def one(key, done):
        key = jax.lax.cond(done, lambda k: k, lambda k: jax.random.split(k)[0], key)
        return use(key)

    return lambda key: jax.vmap(one)(jax.random.split(key, 4), jnp.arange(4) > 1)


def in_a_loop(keys):
    return jax.lax.fori_loop(0, len(keys), lambda i, x: x + jax.random.normal(keys[i]), 0.0)


def stepped(key, split):
    """Return the sum of three draws in a loop that carries the first part of `split(key)` and draws from the second."""

    def step(carry, _):
        key, total = carry
        key, own = split(key)
        return (key, total + jax.random.normal(own)), None

    return jax.lax.scan(step, (key, 0.0), None, length=3)


KEY_ONCE = {
    "split": lambda key: [jax.random.normal(k) for k in jax.random.split(key)],
    "fold_in": lambda key: [jax.random.normal(jax.random.fold_in(key, i)) for i in range(3)],
    "scan": lambda key: jax.lax.scan(lambda c, k: (c, jax.random.normal(k)), 0, jax.random.split(key, 4)),
    "cond": lambda key: jax.lax.cond(True, jax.random.normal, jax.random.uniform, key),
    "two kinds of keys": lambda key: jax.random.normal(key) + jax.random.normal(jax.random.fold_in(key, 1)),
    "a batched branch": in_a_batched_branch(jax.random.normal),
    "where": lambda key: jax.random.normal(jnp.where(key == key, *jax.random.split(key))),
    "a choice by a branch": lambda key: jax.random.normal(
        jax.lax.cond(True, lambda a, b: a, lambda a, b: b, *jax.random.split(key))
    ),
    "an index in a loop": lambda key: in_a_loop(jax.random.split(key, 4)),
    "a carry": lambda key: stepped(key, jax.random.split),
    "a stack": lambda key: jax.vmap(jax.random.normal)(jnp.stack([*jax.random.split(key, 3)][1:])),
    "an inner jit": lambda key: [jax.random.normal(k) for k in jax.jit(jax.random.split)(key)],
}
KEY_TWICE = {
    "two draws": lambda key: jax.random.normal(key) + jax.random.uniform(key),
    "split after a draw": lambda key: (jax.random.normal(key), jax.random.split(key)),
    "a loop": lambda key: jax.lax.fori_loop(0, 3, lambda i, x: x + jax.random.normal(key), 0.0),
    "a carry that stays": lambda key: stepped(key, lambda key: (key, key)),
    "a carry of which one part is dropped": lambda key: stepped(key, lambda k: (k, jax.random.split(k)[0])),
    "a loop over keys, and then one of them": lambda key: (
        jax.lax.map(jax.random.normal, jax.random.split(key, 3)),
        jax.random.normal(key),
    ),
    "two jitted draws": lambda key: jax.jit(jax.random.normal)(key) + jax.jit(jax.random.normal)(key),
    "a batched branch": in_a_batched_branch(lambda key: jax.random.normal(key) + jax.random.uniform(key)),
}


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
@pytest.mark.parametrize("fn", KEY_ONCE.values(), ids=KEY_ONCE)
def test_a_key_used_once_is_fine(fn, make):
    assert check(jax.jit(fn), make(0), run=False).kinds == ()


@pytest.mark.parametrize("make", [jax.random.key, jax.random.PRNGKey])
@pytest.mark.parametrize("fn", KEY_TWICE.values(), ids=KEY_TWICE)
def test_a_key_used_twice_is_found(fn, make):
    findings = check(jax.jit(fn), make(0), run=False)
    assert findings.kinds == ("key used twice",)
    assert findings.notes == ()


def test_integers_that_look_like_raw_keys_are_no_keys():
    def mix(x):
        mixed = jax.lax.scan(lambda c, _: (c ^ x[0], None), x[1], None, length=3)[0]
        return jnp.concatenate([x, x])[:2] + x[1:3], mixed, x.sum()

    assert check(jax.jit(mix), jnp.ones((4, 2), jnp.uint32), run=False).kinds == ()


def test_what_is_not_checked_inside_a_librarys_wrapper_is_not_called_checked():
    eqx = pytest.importorskip("equinox")

    names = "sin cos tan sinh cosh tanh arctan arcsinh exp exp2 expm1 square abs sqrt log1p cbrt sinc i0 sign floor"

    def many_steps(x, mask):  # so many that jit pays off on a busy machine, too
        for name in names.split():
            x = getattr(jnp, name)(x) / 8
        return x

    step = eqx.filter_jit(many_steps)
    findings = check(step, ones(3), ones(3))
    assert findings.kinds == ()
    _, title, *_ = re.split(": nothing found. |[.] ", repr(findings).replace("\n", " "))
    assert "random keys" in title
    assert "agreement" in title
    assert "unused arguments" not in title
    assert "unused arguments" in repr(findings.notes)
    assert "agreement" not in repr(check(step, ones(3), ones(3), run=False))


def test_a_long_list_of_numbers_is_found():
    total = jax.jit(lambda values, n: jnp.sum(jnp.asarray(values)) * n)
    (found,) = check(total, [0.5] * 60, 3, run=False)
    assert (found.kind, found.page) == ("many numbers", "howto/slower-with-jit")
    assert "`values` contains 60 single numbers" in found.sentence
    assert check(total, [0.5] * 5, 3, run=False).kinds == ()
    assert check(total, list(np.arange(60.0)), 3, run=False).kinds == ("many numbers",)
    assert check(total, [np.ones(2)] * 60, 3, run=False).kinds == ()
    assert check(total, np.full(60, 0.5, np.float32), 3, run=False).kinds == ()


ROUNDED = {
    "a zero gradient": lambda x: {"w": x, "b": (x - x.mean()).sum()},
    "bfloat16": lambda x: (x.astype("bfloat16") * 1.1 + 0.3) ** 3,
    "nan": lambda x: jnp.log(-x),
    "no arrays": lambda x: (),
    "numbers of Python": lambda x: 1.5,
    "keys": lambda x: jax.random.key(0),
}


@pytest.mark.parametrize("fn", ROUNDED.values(), ids=ROUNDED)
def test_rounding_is_no_disagreement(monkeypatch, fn):
    timed_as(monkeypatch, 1.0, 10.0)
    assert "disagreement" not in check(jax.jit(fn), jnp.linspace(0.1, 9, 1000)).kinds


def all_rounding_in_part(x):
    compiled = isinstance(x, jax.core.Tracer)
    return {"chaos": jnp.sin(1e7 * x + (1.0 if compiled else 0.0)), "w": x * 2}


def test_what_is_all_rounding_is_no_disagreement_but_noted(monkeypatch):
    timed_as(monkeypatch, 1.0, 10.0)
    findings = check(jax.jit(all_rounding_in_part), ones(64) + 0.5)
    assert "disagreement" not in findings.kinds
    assert any("it is all rounding" in note for note in findings.notes)


scale_by = {"now": 2.0}


def reads_a_global(x):
    return {"chaos": jnp.sin(1e7 * x), "right": x * scale_by["now"]}


def test_a_fault_beside_what_is_all_rounding_is_found(monkeypatch):
    timed_as(monkeypatch, 1.0, 10.0)
    jitted = jax.jit(reads_a_global)
    jitted(ones(100))
    monkeypatch.setitem(scale_by, "now", 3.0)
    assert "disagreement" in check(jitted, ones(100)).kinds


def test_what_differs_from_call_to_call_is_not_all_rounding(monkeypatch):
    timed_as(monkeypatch, 1.0, 10.0)
    chance = np.random.default_rng(0)
    assert "disagreement" in check(jax.jit(lambda x: x * chance.normal()), ones(3)).kinds


def test_a_callback_in_a_branch_is_no_round_trip():
    def guarded(x):
        return jax.lax.cond(x.sum() < 0, lambda x: jax.pure_callback(np.sin, x, x), lambda x: x, x)

    findings = check(jax.jit(guarded), ones(3))
    assert "host round trip" not in findings.kinds
    assert findings.plain is not None


def test_a_reference_is_traced_and_not_run():
    @jax.jit
    def add(ref):
        ref[...] += 1
        return ref[...].sum()

    ref = jax.new_ref(ones(3))
    findings = check(add, ref)
    assert findings.notes == (
        "It was not run: it takes or captures a reference, whose array a run may change.",
    )
    assert ref[...].tolist() == [1, 1, 1]


def test_a_function_that_captured_a_reference_is_not_run():
    ref = jax.new_ref(ones(3))

    @jax.jit
    def add(x):
        return jax.lax.fori_loop(0, 2, lambda i, x: x + step(i), x)

    def step(i):
        ref[...] += i
        return ref[...].sum()

    findings = check(add, ones(3))
    assert findings.notes == (
        "It was not run: it takes or captures a reference, whose array a run may change.",
    )
    assert ref[...].tolist() == [1, 1, 1]


def equinox_step():
    eqx, optax = pytest.importorskip("equinox"), pytest.importorskip("optax")
    model, optimizer = eqx.nn.MLP(3, 1, 8, 1, key=jax.random.key(0)), optax.adam(1e-3)

    @eqx.filter_jit
    def step(model, state, x):
        x = eqx.error_if(x, jnp.any(jnp.isnan(x)), "NaN")
        grads = eqx.filter_grad(lambda model: (jax.vmap(model)(x) ** 2).mean())(model)
        updates, state = optimizer.update(grads, state, model)
        return eqx.apply_updates(model, updates), state

    return step, (model, optimizer.init(eqx.filter(model, eqx.is_array)), ones(8, 3))


def nnx_step():
    nnx, optax = pytest.importorskip("flax.nnx"), pytest.importorskip("optax")
    model = nnx.Sequential(nnx.Linear(3, 8, rngs=nnx.Rngs(0)), nnx.Dropout(0.5, rngs=nnx.Rngs(1)))
    optimizer = nnx.Optimizer(model, optax.adam(1e-3), wrt=nnx.Param)

    @nnx.jit
    def step(model, optimizer, x):
        loss, grads = nnx.value_and_grad(lambda model: (model(x) ** 2).mean())(model)
        optimizer.update(model, grads)
        return loss

    return step, (model, optimizer, ones(8, 3))


def linen_step():
    optax, nn = pytest.importorskip("optax"), pytest.importorskip("flax.linen")
    from flax.training.train_state import TrainState

    model = nn.Sequential([nn.Dense(8), nn.BatchNorm(use_running_average=True), nn.Dense(1)])
    variables = model.init(jax.random.key(0), ones(8, 3))
    state = TrainState.create(apply_fn=model.apply, params=variables, tx=optax.adamw(1e-3))

    @jax.jit
    def step(state, x):
        grads = jax.grad(lambda params: (state.apply_fn(params, x) ** 2).mean())(state.params)
        return state.apply_gradients(grads=grads)

    return step, (state, ones(8, 3))


@pytest.mark.parametrize("make", [equinox_step, nnx_step, linen_step])
def test_a_sound_training_step_of_a_library_gives_no_alarm(monkeypatch, make):
    timed_as(monkeypatch, 1.0, 10.0)
    step, args = make()
    findings = check(step, *args)
    assert findings.findings == ()
    assert findings.plain == 10.0, findings.notes
    check(step, *args, calls=[args], run=False)


def test_the_text_fits_into_80_columns():
    found = check(jax.jit(lambda x, lr, y: x * lr, static_argnames="lr"), ones(2), lr=0.1, y=1.0)
    assert max(map(len, repr(found).splitlines())) <= 80


def test_the_path_of_a_leaf_fits_into_80_columns():
    tree = {"transformer_decoder_layer_with_long_name_0": {"multi_head_self_attention_projection": ones(2)}}
    found = check(jax.jit(lambda s: jnp.float32(1), donate_argnums=0), {"params": tree}, run=False)
    assert max(map(len, repr(found).splitlines())) <= 80


def test_shapes_may_stand_for_arrays():
    findings = check(jax.jit(lambda x: jnp.sin(x) * 2), jax.ShapeDtypeStruct((3,), "float32"))
    assert findings.kinds == ()
    assert findings.notes[0].startswith("It was not run: a `jax.ShapeDtypeStruct` has no numb")
    assert findings.phases is None


def test_a_watched_function_and_a_method_are_checked_too():
    f = watch(jax.jit(lambda x: jnp.sin(x) * 2))
    assert check(f, ones(3), run=False).kinds == ()
    assert f.calls == ()

    class Model:
        @jax.jit
        def apply(self, x):
            return x

    jax.tree_util.register_static(Model)
    assert check(Model().apply, ones(3), run=False).kinds == ()


def test_findings_are_readable_as_text_html_and_data():
    findings = check(jax.jit(lambda x, lr: x * lr, static_argnames="lr"), ones(2), lr=0.1, run=False)
    lines = repr(findings).splitlines()
    assert lines[0] == "<lambda>: 1 finding"
    assert lines[1].startswith("1. static: Static `lr` = 0.1 is a float")
    assert "(See learn/static-and-traced-values.)" in " ".join(repr(findings).split())
    assert html.escape("<lambda>: 1 finding") in findings._repr_html_()
    assert str(findings.findings[0]).startswith("static: Static")
    assert json.loads(json.dumps(findings.to_dict()))["findings"][0]["kind"] == "static"


def test_every_kind_has_a_page_without_an_address():
    assert all(page.startswith(("howto/", "learn/", "reference/")) for page in findings.PAGES.values())


def plain(x):
    return x


BAD = {
    "not callable": ((3,), "`fn` is 3 of type int, which cannot be called."),
    "not jitted": ((plain, 1), "`plain` is not jitted. Write check(jax.jit(plain), ...)."),
    "too few arguments": ((jax.jit(plain),), "missing a required argument: 'x'. Pass example arguments"),
    "no array": (
        (jax.jit(plain), "abc"),
        "argument `x` is 'abc' of type str, which isn't an array, a number or a tree of them. Pass an array, or make "
        "it static with `static_argnames='x'`.",
    ),
    "another byte order": (
        (jax.jit(plain), np.arange(3, dtype=">f4")),
        "of type ndarray, which JAX refuses in a first call, and may misread in a later one. Convert it before the "
        "call: `x.astype('float32')`.",
    ),
    "a mask": (
        (jax.jit(plain), np.ma.masked_array([1.0, 2.0], [False, True])),
        "Convert it before the call: `x.filled(0)`.",
    ),
    "no array, and no hash": (
        (jax.jit(plain), {1, 2}),
        "Pass an array, or make it a tuple or a frozen dataclass and static with `static_argnames='x'`.",
    ),
    "no array, and no name": ((jax.jit(lambda x, /: x), "abc"), "make it static with `static_argnums=0`."),
}


@pytest.mark.parametrize(("args", "message"), BAD.values(), ids=BAD)
def test_what_cannot_be_checked_is_refused_in_words(args, message):
    with pytest.raises(TypeError) as caught:
        check(*args)
    assert str(caught.value).startswith("check(fn, ...) ")
    assert message in str(caught.value)


def test_an_option_that_is_a_parameter_too_is_told_of():
    told = "`run` is an option of `check` and did not reach the function. To pass one on, check "
    with pytest.raises(TypeError, match="missing a required argument: 'run'") as caught:
        check(jax.jit(lambda x, run: x), 1.0, run=False)
    assert told in str(caught.value)
    assert check(jax.jit(lambda x, run=1: x), 1.0, run=False).notes[0].startswith(told)
    with pytest.raises(TypeError, match="`run` must be True or False, got 3 of type int") as caught:
        check(jax.jit(lambda x, run=1: x), 1.0, run=3)
    assert told in str(caught.value)


def test_a_compiled_program_is_refused_in_words():
    with pytest.raises(TypeError, match="is a Compiled object, which stands for one executable"):
        check(jax.jit(plain).lower(1.0).compile(), 1.0)


def test_a_check_inside_a_trace_is_refused_in_words():
    with pytest.raises(RuntimeError, match="`check` was called inside a function that JAX is tracing"):
        jax.jit(lambda x: check(jax.jit(plain), x) and x)(1.0)


def test_an_error_of_the_function_reaches_the_reader_unchanged():
    with pytest.raises(jax.errors.TracerBoolConversionError):
        check(jax.jit(lambda x: 1 if x else 2), True)


@pytest.mark.parametrize("inner", [True, False], ids=["jitted", "plain"])
def test_an_unrolled_loop_of_jitted_calls_names_what_is_called(inner):
    def relax(x):
        return jnp.sin(x) * 2

    step = jax.jit(relax) if inner else relax

    def simulate(x):
        for _ in range(40):
            x = step(x)
        return x

    assert f"from `{'relax' if inner else 'sin'}` at" in only(jax.jit(simulate), ones(3)).sentence


@pytest.mark.parametrize("times", [7, 8])
def test_seven_copies_are_ordinary_code(times):
    def repeat(x):
        for _ in range(times):
            x = jnp.sin(x) * 2 + jnp.cos(x)
        return x

    found = jaxpr_scan.unrolled(jax.jit(repeat).trace(1.0).jaxpr)
    assert (found and found.times) == (None if times == 7 else 8)


KEY = jax.random.key(0)
KEYS = jax.random.split(KEY, 4)


def in_a_scan(draw):
    def run(x, *key):
        def body(carry, i):
            return carry + draw(i, *key), None

        return jax.lax.scan(body, x, jnp.arange(3))[0]

    return run


def carried(x, key):
    def body(carry, _):
        value, key = carry
        key, own = jax.random.split(key)
        return (value + jax.random.normal(own), key), None

    return jax.lax.scan(body, (x, key), length=3)[0][0]


@pytest.mark.parametrize(
    ("fn", "more", "alike"),
    [
        (lambda x: x + jax.random.normal(KEY), (), True),
        (lambda x: x + jax.random.normal(jax.random.split(KEY)[0]), (), True),
        (lambda x: x + jax.random.normal(jax.random.key(0)), (), True),
        (in_a_scan(lambda i: jax.random.normal(jax.random.fold_in(KEY, i))), (), True),
        (lambda x: carried(x, KEY), (), True),
        (lambda x: jax.lax.cond(x > 0, lambda: jax.random.normal(KEY), lambda: 0.0), (), True),
        (lambda x, step: x + jax.random.normal(jax.random.fold_in(KEY, step)), (1,), False),
        (lambda x, i: x + jax.random.normal(KEYS[i]), (1,), False),
        (in_a_scan(lambda i, key: jax.random.normal(jax.random.fold_in(key, i))), (KEY,), False),
        (carried, (KEY,), False),
        (lambda x: (x, KEY), (), False),
    ],
)
def test_a_key_that_no_argument_reaches_draws_the_same_numbers(fn, more, alike):
    assert ("captured key" in check(jax.jit(fn), jnp.float32(1), *more, run=False).kinds) is alike


@pytest.mark.parametrize("branches", [1, 2])
def test_a_function_whose_branch_calls_back_is_not_run(branches):
    calls = []

    def tell(v):
        jax.debug.callback(calls.append, v)
        return v

    def plain(v):
        return v

    fn = jax.jit(lambda x: jax.lax.cond(x.sum() > 0, tell, tell if branches == 2 else plain, x))
    found = check(fn, ones(3))
    jax.effects_barrier()
    assert calls == []
    assert found.kinds == (("host round trip",) if branches == 2 else ())
    assert any("calls back to Python" in note for note in found.notes)


ENTRIES, TALLY, CELLS = [], [0], np.zeros(3)


class Shared:
    used = 0


def appends(x):
    ENTRIES.append(1)
    return x


def counts(x):
    TALLY[0] += 1
    return x


def writes(x):
    CELLS[0] += 1
    return x


def sets(x):
    Shared.used += 1
    return x


def calls_one_that_counts(x):
    return counts(x)


@pytest.mark.parametrize(
    ("fn", "what"),
    [
        (appends, "ENTRIES"), (counts, "TALLY"), (writes, "CELLS"), (sets, "Shared.used"),
        (calls_one_that_counts, "TALLY"),
    ],
)  # fmt: skip
def test_lists_arrays_and_classes_that_the_body_changes_are_named(fn, what):
    assert f"The body changes `{what}`" in str(check(jax.jit(fn), ones(3), run=False))
    assert check(jax.jit(lambda x: x * len(ENTRIES) + CELLS.sum()), ones(3), run=False).kinds == ()


def test_a_small_function_is_not_told_to_do_without_jit():
    assert "break-even" not in check(jax.jit(lambda x: x + 1), ones(3)).kinds


def test_findings_can_be_pickled():
    found = check(jax.jit(lambda x: jnp.sin(x) * 2), ones(3))
    assert repr(pickle.loads(pickle.dumps(found))) == repr(found)


class Labelled:
    """Has a field that JAX cannot flatten, because its keys do not sort."""

    def __init__(self):
        self.tables = {1: "a", "b": 2}

    def __call__(self, x):
        return x + 1


def test_an_object_with_a_dict_of_mixed_keys_may_be_captured():
    model = Labelled()
    assert check(jax.jit(lambda x: model(x)), jnp.ones(3), run=False).kinds == ()


def test_an_object_that_jax_does_not_know_is_to_be_a_pytree():
    config = dataclasses.make_dataclass("Cosmology", ["h", "omega"])(0.7, 0.3)
    with pytest.raises(TypeError, match=r"Register its class with `jax\.tree_util\.register_dataclass`"):
        check(jax.jit(lambda c, z: z / c.h), config, ones(3))
    with pytest.raises(TypeError, match=r"register_pytree_node_class`, so that .* If it has no arrays, make"):
        check(jax.jit(Model.draw), Model(), ones(3))


@pytest.mark.filterwarnings("ignore:Python iterable type:DeprecationWarning")
def test_what_is_no_container_to_jax_is_to_become_one():
    total = jax.jit(lambda xs: sum(xs))
    for xs in (iter([1.0]), (x for x in (1.0, 2.0)), {"a": 1.0}.values()):
        with pytest.raises(TypeError, match=r"tree of them\. Pass a list made of it\.$"):
            check(total, xs)
    with pytest.raises(TypeError, match="Pass a dict made of it, or make it a tuple"):
        check(total, collections.Counter("ab"))


@jax.tree_util.register_pytree_node_class
class Surface:
    def __init__(self, points, faces):
        self.points, self.faces = points, faces

    def tree_flatten(self):
        return (self.points,), self.faces

    @classmethod
    def tree_unflatten(cls, faces, points):
        return cls(*points, faces)


def test_static_arrays_that_cannot_be_compared_raise_an_error():
    area = jax.jit(lambda surface: surface.points[surface.faces].sum())
    first, second = (Surface(ones(3), np.arange(3)) for _ in range(2))
    found = check(area, first, calls=[(second,)], run=False).findings[0]
    assert found.sentence.endswith("It makes 1 of 2 example calls raise an error.")
    area(first)
    with pytest.raises(ValueError, match="equality of metadata"):
        area(second)


def test_a_number_of_too_many_bits_is_called_that():
    with pytest.raises(TypeError, match=r"which doesn't fit into 32 bits\. Pass a float"):
        check(jax.jit(lambda n: n * 3), 2**40)


def test_a_loop_that_lengthens_an_array_is_unrolled():
    def trajectory(x):
        states = jnp.zeros((0, 3))
        for _ in range(120):
            x = jnp.tanh(x) * 0.9
            states = jnp.concatenate([states, x[None]])
        return states

    assert only(jax.jit(trajectory), ones(3)).kind == "unrolled loop"


class Proxy:
    def __getattribute__(self, name):
        raise RuntimeError(name)


class Table:
    @functools.cached_property
    def numbers(self):
        return np.arange(3.0, dtype="float32")


TABLE = Table()


def test_what_refuses_to_be_looked_at_is_passed_over():
    proxy, mock, cycle = Proxy(), unittest.mock.MagicMock(), []
    cycle.append(cycle)

    def body(x):
        return x if (proxy, cycle, mock.call) is None else 2 * x

    assert check(jax.jit(body), ones(3), run=False).kinds == ()


def test_a_cached_property_is_no_side_effect():
    assert check(jax.jit(lambda x: x + TABLE.numbers), ones(3), run=False).kinds == ()


def test_a_tracer_that_another_function_left_is_not_held_against_this_one():
    jax.jit(act_on_an_attribute_of_a_class)(ones(3))
    assert check(jax.jit(lambda x: x if Registry.last is None else 2 * x), ones(3), run=False).kinds == ()
    Registry.last = None


def test_half_precision_inside_is_rounding_and_no_disagreement():
    w, x = (jax.random.normal(jax.random.key(i), (64, 64)) for i in (0, 1))

    def loss(w, x):
        half = jnp.tanh(x.astype(jnp.bfloat16) @ w.astype(jnp.bfloat16))
        return (half / (half.std(-1, keepdims=True) + 1)).astype(jnp.float32).sum()

    found = check(jax.jit(jax.grad(loss)), w, x)
    assert "disagreement" not in {one.kind for one in found.findings}


def test_an_index_that_jit_clamps_is_a_disagreement():
    found = check(jax.jit(lambda x, i: x[i] * 2), np.arange(4.0, dtype=np.float32), 9)
    assert [one.kind for one in found.findings] == ["disagreement"]
    assert "raises IndexError: index 9 is out" in str(found)


def test_a_string_in_a_dict_is_named_with_its_place():
    with pytest.raises(
        TypeError, match=r"argument `cfg\['name'\]` is 'adam' of type str.*static argument of its own"
    ):
        check(jax.jit(lambda cfg, x: x * cfg["lr"]), {"lr": 0.1, "name": "adam"}, jnp.ones(3))


def test_a_captured_array_inside_an_object_has_its_name():
    params = {"w": jnp.ones((512, 512))}
    found = check(jax.jit(lambda x: x @ params["w"]), jnp.ones(512))
    assert "`params['w']`" in str(found)
