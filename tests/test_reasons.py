"""Reasons are full sentences with an advice, and the nearest earlier call is the one compared."""

import dataclasses
import json
import re
from collections import defaultdict
from functools import partial
from typing import Any, NamedTuple

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax.sharding import PartitionSpec as P

from jitguide import Reason
from jitguide._watch.reasons import COMPILE, FAST, KINDS, TRACE, reaches, reason
from jitguide._watch.signature import signature_of
from jitguide._watch.signature_diff import differences, reason_for


@jax.jit
def fn(x, y=1.0, *rest):
    return x


def sign(*args, **kwargs):
    return signature_of(fn, args, kwargs)


@partial(jax.jit, static_argnames="n")
def choose(x, n=2):
    return x


def chosen(*args, **kwargs):
    return signature_of(choose, args, kwargs)


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
    assert str(reason_for("fn", sign(zeros(12)), [sign(zeros(8))], TRACE)) == (
        "`x` changed shape, float32[8] → float32[12]: jit compiles once per shape. "
        "Pad to a few sizes, or mask."
    )


def test_no_earlier_call_is_a_first_call():
    assert reason_for("fn", sign(1.0), [], TRACE).kind == "first call"
    assert reason_for("fn", sign(1.0), [], FAST).advice.startswith("the program was there before")
    assert reason_for("fn", sign(1.0), [], COMPILE).advice.startswith("its trace was there before")


def test_the_nearest_earlier_call_is_compared_not_the_last():
    near, far = sign(zeros(8), zeros(3)), sign([1.0, 2.0])
    found = reason_for("fn", sign(zeros(8), zeros(4)), [near, far], TRACE)
    assert (found.kind, found.argument, found.also) == ("shape", "y", ())


def test_of_two_equally_near_calls_the_later_is_compared():
    found = reason_for("fn", sign(zeros(3)), [sign(zeros(1)), sign(zeros(2))], TRACE)
    assert found.before == "float32[2]"


def test_further_differences_are_told_and_cut():
    before = sign({k: zeros(2) for k in "abcde"})
    found = reason_for("fn", sign({k: zeros(3) for k in "abcde"}), [before], TRACE)
    assert found.argument == "x['a']"
    assert len(found.also) == 3
    assert str(found).endswith("Also: 2 further differences.")
    assert "Also: `x['b']` changed shape, float32[2] → float32[3]." in str(found)


def test_a_difference_that_cannot_cause_a_trace_is_not_blamed_for_one():
    found = reason_for("fn", sign(np.zeros(3, np.float32)), [sign(zeros(3))], TRACE)
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


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Train:
    a: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Eval:
    a: Any


@pytest.mark.parametrize("layer", [TRACE, COMPILE, FAST])
def test_classes_that_jax_takes_for_equal_are_named_with_what_that_can_do(layer):
    # `register_dataclass` leaves the class out of the comparison; JAX 0.10 then runs the program of the other one
    # in some calls, which have no trace.
    found = reason_for("f", sign([Eval(zeros(3))]), [sign([Train(zeros(3))])], layer)
    assert (found.kind, found.argument) == ("class", "x[0]")
    assert found.sentence == "`x[0]` changed class, Train of 1 → Eval of 1"
    assert "Give each class a static field with a value of its own." in found.advice


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


class Pair(NamedTuple):
    a: Any
    b: Any


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    w: Any
    b: Any
    act: str = dataclasses.field(default="relu", metadata={"static": True})


@jax.tree_util.register_pytree_node_class
class Guarded:
    """A container that takes no numbers in place of its leaves, and has no names for its children."""

    def __init__(self, *children):
        if any(isinstance(child, int) for child in children):
            raise TypeError("no number")
        self.children = children

    def tree_flatten(self):
        return self.children, None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


NEAREST = {
    "a spelling and a value": (
        [sign(zeros(3), 0.5), sign(zeros(3))],
        sign(zeros(3), zeros(2)),
        ("shape", "y", "float32[]"),
    ),
    "the last call of two that differ in one argument": (
        [sign(zeros(3)), sign(zeros(3), 0.5)],
        sign(zeros(3), jnp.float32(0.5)),
        ("weak type", "y", "weak float32[] (Python float)"),
    ),
    "a structure and a leaf": (
        [sign(Pair(1.0, zeros(3))), sign(Pair(1.0, (zeros(3), 1.0))), sign(Pair(1.0, zeros(3)))],
        sign(Pair(1.0, (zeros(3), zeros(2)))),
        ("shape", "x.b[1]", "float32[]"),
    ),
    "many leaves before a structure": (
        [sign({k: zeros(2) for k in "abcdef"}), sign({k: zeros(2) for k in "abcde"})],
        sign({k: zeros(3) for k in "abcdef"}),
        ("shape", "x['a']", "float32[2]"),
    ),
    "a static field before a structure": (
        [sign(Model(zeros(3), 1.0)), sign(Model(zeros(3), None))],
        sign(Model(zeros(3), 1.0, "gelu")),
        ("static field", "x.act", "'relu'"),
    ),
    "a NumPy array does not count": (
        [sign(np.zeros(8, np.float32)), sign(zeros(8, dtype="bfloat16"))],
        sign(zeros(9)),
        ("shape", "x", "float32[8]"),
    ),
}


@pytest.mark.parametrize(("earlier", "now", "expected"), NEAREST.values(), ids=NEAREST)
def test_the_call_to_compare_with_is_the_one_that_tells_most(earlier, now, expected):
    found = reason_for("fn", now, earlier, TRACE)
    assert (found.kind, found.argument, found.before) == expected


def committed(x):
    return jax.device_put(x, jax.devices()[0])


def test_a_reused_trace_is_explained_by_a_call_with_that_trace():
    earlier = [sign(zeros(8)), sign(committed(zeros(4)))]
    found = reason_for("fn", sign(committed(zeros(8))), earlier, COMPILE)
    assert (found.kind, found.advice) == (
        "committedness",
        reason("committedness", "x").advice,
    )


def test_a_trace_from_elsewhere_is_named_where_no_earlier_call_has_it():
    found = reason_for("fn", sign(committed(zeros(8))), [sign(zeros(4))], COMPILE)
    assert (found.kind, found.also) == ("shape", ())
    assert found.advice.startswith("its trace was there before, from `lower`, `trace`, another jit")
    found = reason_for("fn", sign(zeros(8)), [sign(zeros(4))], FAST)
    assert found.advice == "the program was there before. Only the fast path is new."


def test_a_trace_is_not_blamed_on_a_far_call_when_a_near_one_explains_nothing():
    earlier = [sign(zeros(3)), sign(zeros(4))]
    assert reason_for("fn", sign(np.zeros(3, np.float32)), earlier, TRACE).kind == "unknown"
    found = reason_for("fn", sign(np.zeros(3, np.float32)), earlier, COMPILE)
    assert (found.kind, found.advice) == (
        "input kind",
        "that alone makes no new program, and no other difference was found.",
    )


def test_a_committed_array_in_place_of_a_numpy_array_is_another_program():
    found = reason_for("fn", sign(committed(zeros(3))), [sign(np.zeros(3, np.float32))], COMPILE)
    assert (found.kind, found.before, found.now) == ("committedness", "not committed", "committed")


@pytest.mark.parametrize(
    ("before", "now", "argument"),
    [
        (Model(1.0, 2.0), Model(1.0, None), "x.b"),
        (Model((1.0, Pair(1.0, 2.0)), None), Model((1.0, Pair(1.0, None)), None), "x.w[1].b"),
        (Guarded(1.0, 2.0), Guarded(1.0, None), "x[1]"),
        ((None, {"a": 1.0}), (None, {"a": None}), "x[1]['a']"),
    ],
)
def test_an_argument_is_written_as_in_python(before, now, argument):
    (found,) = differences(sign(before), sign(now))
    assert (found.kind, found.argument) == ("tree structure", argument)


def test_two_structures_never_read_the_same():
    found = differences(sign(Model(1.0, None)), sign(Model(1.0, 2.0, "gelu")))
    assert [(d.argument, d.before, d.now) for d in found] == [
        ("x.b", "None", "a leaf"),
        ("x.act", "'relu'", "'gelu'"),
    ]


def test_calls_that_raised_make_the_next_one_not_the_first():
    found = reason_for("fn", sign(1.0), [], TRACE, raised=True)
    assert found.sentence == "This is the first call of `fn` that did not raise"
    assert "or a call that raised" in reason_for("fn", sign(1.0), [], COMPILE, raised=True).advice


@pytest.mark.parametrize(
    ("before", "now", "kind", "also"),
    [
        (sign(zeros(3)), sign(x=zeros(4)), "keyword or positional", ["shape"]),
        (sign(0.0), sign(zeros(4, dtype="int32")), "dtype", ["shape"]),
        (sign({"a": zeros(3)}), sign({"a": zeros(4), "b": zeros(3)}), "tree structure", ["shape"]),
        (sign([zeros(3)]), sign((zeros(3),)), "tree structure", []),
        (chosen(1.0), chosen(1.0, n=3), "default left out", []),  # its sentence has both values
        (chosen(1.0, n=3), chosen(1.0), "default left out", []),
        (chosen(1.0), chosen(1.0, n=2), "default left out", []),
        (chosen(1.0, 2), chosen(1.0, n=3), "keyword or positional", ["2"]),
        (sign(0.0), sign(jnp.float32(0)), "weak type", []),  # and another kind of input, which goes with it
        (sign(0.0), sign(jnp.int32(0)), "dtype", []),  # and a strong type
    ],
)
def test_what_the_advice_leaves_different_is_named_too(before, now, kind, also):
    found = reason_for("fn", now, [before], TRACE)
    assert found.kind == kind
    assert [re.split(r"changed,? ", text)[1].split()[0].strip(",") for text in found.also] == also


def test_the_parts_of_a_partial_are_named():
    before, now = (sign(jax.tree_util.Partial(lambda a, x: a * x, 2.0)) for _ in range(2))
    found = reason_for("fn", now, [before], TRACE)
    assert found.sentence == "Static `x.func` is another function `<lambda>`, of the same code"
    before, now = (sign(jax.tree_util.Partial(jnp.add, {"a": zeros(n)}, scale=zeros(3 - n))) for n in (1, 2))
    found = differences(before, now)
    assert [one.argument for one in found] == ["x.args[0]['a']", "x.keywords['scale']"]


@pytest.mark.parametrize(
    ("before", "now", "advice"),
    [
        (chosen(1.0), chosen(1.0, n=3), "each static value compiles"),
        (chosen(1.0, n=3), chosen(1.0), "each static value compiles"),
        (chosen(1.0), chosen(1.0, n=2), "Choose one of them"),
        (sign(0.0), sign(0.0, y=5.0), "Choose one of them"),  # traced: any value serves
    ],
)
def test_the_advice_for_a_default_left_out_fits_its_value(before, now, advice):
    assert advice in reason_for("fn", now, [before], TRACE).advice


def test_a_long_default_is_shown_where_it_differs():
    names = tuple(f"layer{i}" for i in range(9))
    before, now = chosen(1.0), chosen(1.0, n=(*names, "last"))
    before.defaults["n"] = (*names, "first")
    sentence = reason_for("fn", now, [before], TRACE).sentence
    assert "'first'" in sentence
    assert "'last'" in sentence


class Mask:
    """An array as a static argument, which says itself what is equal."""

    def __init__(self, *values):
        self.values = np.array(values)

    def __eq__(self, other):
        return np.array_equal(self.values, other.values)

    def __hash__(self):
        return hash(self.values.tobytes())


def test_a_static_integer_may_set_a_shape():
    found = reason_for("fn", chosen(1.0, n=3), [chosen(1.0, n=2)], TRACE)
    assert found.advice.endswith("or pass it as a traced argument if no shape depends on it.")


def test_the_advice_for_an_array_in_a_static_argument_is_that_of_a_value():
    found = reason_for("fn", chosen(1.0, n=Mask(1, 2)), [chosen(1.0, n=Mask(1, 3))], TRACE)
    assert found.sentence == "Static `n.values` changed, array([1, 3]) → array([1, 2])"
    assert found.advice.endswith("Keep to a few values, or pass it as a traced argument.")


class Slotted:
    __slots__ = ("width",)

    def __init__(self, width):
        self.width = width

    def __eq__(self, other):
        return self.width == other.width

    def __hash__(self):
        return self.width


def test_a_field_in_slots_is_looked_at():
    found = reason_for("fn", chosen(1.0, n=Slotted(2)), [chosen(1.0, n=Slotted(3))], TRACE)
    assert found.sentence == "Static `n.width` changed, 3 → 2"


def test_an_equal_static_value_of_another_type_gets_the_advice_of_its_kind():
    @jax.jit
    def plain(x, n):
        return x

    static = jax.jit(plain, static_argnums=1)
    *before, now = (signature_of(static, (1.0, n), {}) for n in (2, 3, np.int64(2)))
    assert reason_for("fn", now, before, TRACE).advice == reason("static type", "n").advice


@pytest.mark.parametrize(
    ("before", "now", "sentence"),
    [
        (P("a"), P("b"), "Static `n` changed, P('a',) → P('b',)"),
        (jnp.add, jnp.multiply, "Static `n` changed, `add` → `multiply`"),
        (
            True,
            np.True_,
            "Static `n` is equal but of another type, True (builtins.bool) → np.True_ (numpy.bool)",
        ),
    ],
)
def test_interned_values_functions_and_like_named_types_differ_in_words(before, now, sentence):
    found = reason_for("fn", chosen(1.0, n=now), [chosen(1.0, n=before)], TRACE)
    assert re.sub(r"P\('(\w)'\)", r"P('\1',)", found.sentence) == sentence


def test_an_argument_that_became_static_is_named_so():
    traced, static = (
        signature_of(jax.jit(lambda x, n: x, **how), (1.0, 2), {}) for how in ({}, {"static_argnames": "n"})
    )
    assert reason_for("fn", static, [traced], TRACE).sentence == "Static `n` changed, traced → 2"


def test_factories_of_defaultdicts_are_compared():
    fn = jax.jit(lambda tree: tree)
    before, now = (signature_of(fn, (defaultdict(f, a=1.0),), {}) for f in (int, list))
    sentence = reason_for("fn", now, [before], TRACE).sentence
    assert sentence == "`tree` changed structure, defaultdict of `int` → defaultdict of `list`"


def keras_like(n):
    return {f"layer_{i}": {"kernel": zeros(3), "bias": zeros(3)} for i in range(n)}


def test_a_renamed_key_is_compared_with_the_tree_that_has_the_others():
    other = {name.replace("layer", "block"): part for name, part in keras_like(9).items()}
    renamed = keras_like(9) | {"layer_7": {"kernel": zeros(3), "scale": zeros(3)}}
    found = reason_for("fn", sign(renamed), [sign(keras_like(9)), sign(other)], TRACE)
    assert (found.kind, found.argument) == ("tree structure", "x['layer_7']")


def test_arguments_are_named_in_the_order_of_the_function():
    loss = jax.jit(lambda weights, bias, data: weights)

    def given(n):
        return signature_of(loss, (), {"data": zeros(n), "bias": zeros(n), "weights": zeros(n)})

    found = reason_for("loss", given(4), [given(3)], TRACE)
    assert [found.argument, *found.also] == [
        "weights",
        "`bias` changed shape, float32[3] → float32[4]",
        "`data` changed shape, float32[3] → float32[4]",
    ]


def test_settings_that_change_together_are_named_in_the_same_order_in_each_process():
    before = sign(zeros(3))
    with (
        jax.threefry_partitionable(False),
        jax.numpy_dtype_promotion("strict"),
        jax.numpy_rank_promotion("warn"),
        jax.default_matmul_precision("highest"),
    ):
        found = differences(before, sign(zeros(3)))
    assert [difference.argument for difference in found] == [
        "jax_default_matmul_precision",
        "jax_numpy_rank_promotion",
        "jax_numpy_dtype_promotion",
        "jax_threefry_partitionable",
    ]


@pytest.mark.parametrize(("number", "dtype"), [(1, "int32"), (1j, "complex64"), (1.0, "float32")])
def test_the_advice_on_a_weak_type_names_the_dtype(number, dtype):
    found = reason_for("fn", sign(jnp.asarray(number, dtype)), [sign(number)], TRACE)
    assert f"such as `jnp.{dtype}(0)`" in found.advice


@pytest.mark.parametrize("flipped", [False, True])
def test_an_array_on_a_mesh_and_one_that_is_placed_nowhere_differ_in_their_sharding(flipped):
    mesh = jax.make_mesh((1,), ("d",), axis_types=(jax.sharding.AxisType.Auto,))
    calls = [jax.device_put(zeros(8), jax.NamedSharding(mesh, P("d"))), np.zeros(8, "float32")]
    before, now = (sign(one) for one in (calls[::-1] if flipped else calls))
    found = reason_for("fn", now, [before], TRACE)
    assert (found.kind, {"a NumPy array, not placed"} & {found.before, found.now}) == (
        "sharding",
        {"a NumPy array, not placed"},
    )


class Numbered:
    """Registered without keys, so JAX numbers its children."""

    def __init__(self, a, ab):
        self.a, self.ab = a, ab


jax.tree_util.register_pytree_node(Numbered, lambda n: ((n.a, n.ab), None), lambda _, parts: Numbered(*parts))


def test_parts_that_jax_numbers_are_named_as_attributes():
    before, now = ({"net": Numbered(zeros(2), [Numbered(zeros(2), zeros(n))])} for n in (3, 4))
    assert reason_for("fn", sign(now), [sign(before)], TRACE).argument == "x['net'].ab[0].ab"


def advice_of(before, now):
    found = reason_for("fn", sign(now), [sign(before)], TRACE)
    return found.advice


def test_keys_of_two_implementations_are_named_so():
    advice = advice_of(jax.random.key(0), jax.random.key(0, impl="rbg"))
    assert advice == "the keys have different implementations. Make all keys with the same `impl`."
    assert "all with `PRNGKey`" in advice_of(jax.random.key(0), jax.random.PRNGKey(0))


@pytest.mark.parametrize(
    ("before", "now", "advice"),
    [
        (zeros(8, 3), zeros(3), "Keep the number of dimensions: `x[None]` adds one"),
        (zeros(), zeros(1), "Keep the number of dimensions"),
        (zeros(2), zeros(3), "Pad to a few sizes"),
        (jax.random.split(jax.random.key(0), 2), jax.random.split(jax.random.key(0), 3), "number of keys"),
    ],
)
def test_the_advice_on_a_shape_fits_what_changed(before, now, advice):
    assert advice in advice_of(before, now)


def doubling():
    return jax.jit(lambda v: v * 2)


def scaling(factor):
    return jax.jit(lambda v: v * factor)


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (
            doubling(),
            doubling(),
            "is another function `<lambda>`, of the same code: functions compare by identity",
        ),
        (jax.jit(jnp.sin), jax.jit(jnp.sin), "is another function `sin`, of the same code"),
        (jax.jit(jnp.sin), jax.jit(jnp.cos), "changed, `sin` → `cos`"),
        (scaling(2), scaling(3), "`n(factor)` changed, 2 → 3"),
    ],
)
def test_a_static_jitted_function_is_compared_like_a_plain_one(before, now, words):
    assert words in str(reason_for("fn", chosen(1.0, n=now), [chosen(1.0, n=before)], TRACE))


@pytest.mark.parametrize("flipped", [False, True])
def test_a_static_leaf_that_becomes_an_array_is_named_so(flipped):
    calls = [signature_of(fn, (value,), {}, only_arrays=True) for value in (1.0, zeros())]
    before, now = calls[::-1] if flipped else calls
    found = reason_for("fn", now, [before], TRACE)
    assert found.advice == (
        "an array is traced, other values are static and compiled in. Pass an array each time."
    )


def defined_again():
    return NamedTuple("Batch", [("images", Any)])


def test_a_class_that_is_defined_again_is_named_so():
    assert advice_of(defined_again()(1.0), defined_again()(1.0)).endswith("Define the class once.")
    assert advice_of([1.0], (1.0,)).endswith("Keep the same containers and keys.")


class Open:
    """Takes any attributes; arrays are its children, the rest is static."""

    def __init__(self, **attributes):
        vars(self).update(attributes)


jax.tree_util.register_pytree_with_keys(
    Open,
    lambda node: (
        [(jax.tree_util.GetAttrKey(k), v) for k, v in vars(node).items() if not isinstance(v, int)],
        tuple((k, isinstance(v, int) and v) for k, v in vars(node).items()),
    ),
    lambda data, parts: Open(
        **dict(data) | dict(zip([k for k, v in data if v is False], parts, strict=True))
    ),
)


@pytest.mark.parametrize(
    ("before", "now", "words"),
    [
        (
            {},
            {"n": 3},
            "`x.n` is static in its container and changed, absent → 3: static fields are compiled in. Set",
        ),
        ({"n": 3}, {}, "changed, 3 → absent: static fields are compiled in. Set each attribute once"),
        ({}, {"b": zeros(2)}, "`x.b` changed structure, absent → a leaf"),
        ({"b": (zeros(2),)}, {}, "`x.b` changed structure, tuple of 1 → absent"),
    ],
)
def test_an_attribute_that_only_one_of_two_objects_has_is_named(before, now, words):
    calls = (sign(Open(a=zeros(2), **more)) for more in (now, before))
    assert words in str(reason_for("fn", next(calls), [*calls], TRACE))


class Graph:
    """Keeps what it is made of as Flax's GraphDef does: counts, and attributes as names and values."""

    def __init__(self, *attributes):
        self.count, self.attributes = len(attributes), list(attributes)

    def __eq__(self, other):
        return vars(self) == vars(other)

    def __hash__(self):
        return self.count


LONG = "a" * 40  # so that not all is shown


@pytest.mark.parametrize(
    ("now", "words"),
    [
        (Graph((LONG, 1), ("act", "relu")), "`n.attributes` changed, 1 item → 2 items, with ['act']"),
        (Graph((LONG, 2)), f"`n.attributes['{LONG}']` changed, 1 → 2"),
    ],
)
def test_a_name_beside_a_value_is_named(now, words):
    found = reason_for("fn", chosen(1.0, n=now), [chosen(1.0, n=Graph((LONG, 1)))], TRACE)
    assert words in str(found)


def test_one_key_is_no_plural():
    trees = ({"a" * 50: 1.0}, {"a" * 50: 1.0, "b": 1.0})
    before, now = map(sign, trees)
    assert "dict with 1 key → dict with 2 keys" in reason_for("fn", now, [before], TRACE).sentence
