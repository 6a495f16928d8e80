"""Reasons are full sentences with an advice, and the nearest earlier call is the one compared."""

import json

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide._differences import differences, explain
from jitguide._reasons import COMPILE, FAST, KINDS, TRACE, Reason, reaches, reason
from jitguide._signature import signature_of


@jax.jit
def fn(x, y=1.0, *rest):
    return x


def sign(*args, **kwargs):
    return signature_of(fn, args, kwargs)


def zeros(*shape, dtype="float32"):
    return jnp.zeros(shape, dtype)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_makes_a_sentence_and_an_advice(kind):
    text = str(reason(kind, "x", "one", "two"))
    sentence, _, advice = text.partition(": ")
    assert sentence[0].isupper() or sentence[0] == "`"
    assert advice.endswith(".")
    assert "{" not in text


def test_the_sample_sentence():
    assert str(explain("fn", sign(zeros(12)), [sign(zeros(8))], TRACE)) == (
        "`x` changed shape, float32[8] → float32[12]: jit compiles once per shape. "
        "Pad to a few sizes, or mask."
    )


def test_no_earlier_call_is_a_first_call():
    assert explain("fn", sign(1.0), [], TRACE).kind == "first call"
    assert "done before" in explain("fn", sign(1.0), [], FAST).advice


def test_the_nearest_earlier_call_is_compared_not_the_last():
    near, far = sign(zeros(8), zeros(3)), sign([1.0, 2.0])
    found = explain("fn", sign(zeros(8), zeros(4)), [near, far], TRACE)
    assert (found.kind, found.argument, found.also) == ("shape", "y", ())


def test_of_two_equally_near_calls_the_later_is_compared():
    found = explain("fn", sign(zeros(3)), [sign(zeros(1)), sign(zeros(2))], TRACE)
    assert found.before == "float32[2]"


def test_further_differences_are_told_and_cut():
    before = sign({k: zeros(2) for k in "abcde"})
    found = explain("fn", sign({k: zeros(3) for k in "abcde"}), [before], TRACE)
    assert found.argument == "x['a']"
    assert len(found.also) == 3
    assert str(found).endswith("Also: 2 further differences.")
    assert "Also: `x['b']` changed shape, float32[2] → float32[3]." in str(found)


def test_a_difference_that_cannot_cause_a_trace_is_not_blamed_for_one():
    found = explain("fn", sign(np.zeros(3, np.float32)), [sign(zeros(3))], TRACE)
    assert found.kind == "unknown"
    assert "jax_explain_cache_misses" in str(found)


def test_equal_calls_have_no_differences():
    assert differences(sign(zeros(3), 2.0), sign(zeros(3), 5.0)) == []


def test_several_kinds_come_in_a_fixed_order():
    found = differences(sign(zeros(3), y=1.0), sign(zeros(3, dtype="int32")))
    assert [d.kind for d in found] == ["default left out", "dtype"]


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        ((1.0, 2.0), [1.0, 2.0], ("tuple of 2", "list of 2")),
        ((1.0,), (1.0, 2.0), ("tuple of 1", "tuple of 2")),
        ({"a": 1.0}, {"b": 1.0}, ("dict with keys ['a']", "dict with keys ['b']")),
        (1.0, None, ("a leaf", "None")),
        (1.0, [1.0], ("a leaf", "list of 1")),
    ],
)
def test_structures_are_described_where_they_differ(before, now, words):
    (found,) = differences(sign(before), sign(now))
    assert (found.kind, found.before, found.now) == ("tree structure", *words)


def test_a_structure_is_named_by_its_path():
    (found,) = differences(sign({"a": (1.0, [2.0])}), sign({"a": (1.0, [2.0, 3.0])}))
    assert found.argument == "x['a'][1]"


def test_layers_are_ordered_by_what_they_redo():
    assert reaches("shape", TRACE)
    assert not reaches("committedness", TRACE)
    assert reaches("committedness", COMPILE)
    assert not reaches("input kind", COMPILE)
    assert reaches("input kind", FAST)


def test_a_reason_is_data():
    found = reason("dtype", "x", "float32[]", "int32[]")
    assert isinstance(found, Reason)
    assert json.loads(json.dumps(found.to_dict()))["sentence"] == "`x` changed dtype, float32[] → int32[]"
