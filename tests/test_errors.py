"""`expect_error` passes only for the announced error; `explain` finds, ranks, or says that it cannot."""

from __future__ import annotations

import gc
import json
import traceback
import weakref
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import Explanation, expect_error, explain
from jitguide._errors import entries, frames
from jitguide._errors.entries import catalogue
from jitguide._text import clean, first_sentence, jax_link

BOOL = jax.errors.TracerBoolConversionError


@jax.jit
def branches(x: jax.Array) -> jax.Array:
    if x > 0:
        return x
    return -x


# --- expect_error ------------------------------------------------------------------------------------------


def test_the_expected_error_is_printed_with_line_caret_and_link(capsys: pytest.CaptureFixture[str]) -> None:
    with expect_error(BOOL) as caught:
        branches(1.0)
    kind, place, line, caret, link = capsys.readouterr().out.splitlines()
    assert (
        kind == "TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]."
    )
    assert place.startswith("  at test_errors.py:")
    assert place.endswith(", in branches")
    assert line == "    if x > 0:"
    assert caret == "       ^^^^^"
    assert link.startswith("  See https://docs.jax.dev/")
    assert repr(caught).splitlines() == [kind, place, line, caret, link]


def test_the_caught_error_keeps_class_message_and_explanation() -> None:
    with expect_error(ValueError, BOOL) as caught:
        branches(1.0)
    assert caught.type is BOOL
    assert "depends on the value of the argument x" in caught.message
    assert str(Path(__file__).parent) not in caught.message
    assert caught.explanation.key == "python-if-on-tracer"
    assert caught.line is not None
    assert caught.line.text == "if x > 0:"


def test_a_subclass_of_the_expected_class_passes() -> None:
    with expect_error(TypeError) as caught:
        branches(1.0)
    assert caught.type is BOOL


def test_a_block_without_an_error_fails() -> None:
    message = (
        "The block was to raise TracerBoolConversionError or ValueError, but it ended without an error. "
        "Remove expect_error, or change the block so that it fails."
    )
    with pytest.raises(AssertionError) as failure, expect_error(BOOL, ValueError):
        pass
    assert str(failure.value) == message


def test_another_class_fails_and_is_chained() -> None:
    with pytest.raises(AssertionError) as failure, expect_error(BOOL):
        raise ValueError("No room left. Try again.")
    assert str(failure.value) == (
        "The block was to raise TracerBoolConversionError, but it raised ValueError: No room left. "
        "Expect that class instead, or change the block."
    )
    assert isinstance(failure.value.__cause__, ValueError)


def test_an_interrupt_stays_an_interrupt() -> None:
    with pytest.raises(KeyboardInterrupt), expect_error(BOOL):
        raise KeyboardInterrupt


def test_nothing_is_printed_when_the_expectation_fails(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(AssertionError), expect_error(BOOL):
        pass
    assert capsys.readouterr().out == ""


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((), "expect_error needs at least one exception class. Write for example expect_error(TypeError)."),
        (
            ((TypeError, ValueError),),
            "expect_error needs exception classes, got (<class 'TypeError'>, <class 'ValueError'>) of type tuple. Give them one by one, as in "
            "expect_error(TypeError, ValueError).",
        ),
        (
            (TypeError("x"),),
            "expect_error needs exception classes, got TypeError('x') of type TypeError. Give them one by one, as in "
            "expect_error(TypeError, ValueError).",
        ),
        (
            ("TypeError",),
            "expect_error needs exception classes, got 'TypeError' of type str. Give them one by one, as in "
            "expect_error(TypeError, ValueError).",
        ),
        (
            (int,),
            "expect_error needs exception classes, got <class 'int'> of type type. Give them one by one, as in "
            "expect_error(TypeError, ValueError).",
        ),
    ],
)
def test_what_is_no_exception_class_is_refused_at_once(arguments: tuple[object, ...], message: str) -> None:
    with pytest.raises(TypeError) as refused:
        expect_error(*arguments)  # type: ignore[arg-type]
    assert str(refused.value) == message


def test_attributes_are_refused_before_the_block_has_ended() -> None:
    with expect_error(ValueError) as caught:
        assert repr(caught) == "CaughtError(nothing yet)"
        with pytest.raises(RuntimeError, match=r"Nothing is caught yet.*Read the attributes after"):
            _ = caught.type
        raise ValueError("now")
    assert caught.type is ValueError


def test_an_error_without_a_message_prints_its_class(capsys: pytest.CaptureFixture[str]) -> None:
    with expect_error(ValueError):
        raise ValueError
    assert capsys.readouterr().out.splitlines()[0] == "ValueError"


def test_the_caret_counts_characters_and_not_bytes() -> None:
    with expect_error(ZeroDivisionError) as caught:
        _ = "äöü×" and 1 / 0
    line = caught.line
    assert line is not None
    assert line.text[line.start : line.end] == "1 / 0"


def test_a_failing_part_of_several_lines_is_marked_to_the_end_of_the_first() -> None:
    with expect_error(ValueError) as caught:
        _ = int(
            "x",
            10,
        )
    assert caught.line is not None
    assert caught.line.text == "_ = int("
    assert str(caught.line).splitlines()[-1] == "        ^^^^"


def test_a_program_without_source_prints_no_line() -> None:
    with expect_error(ZeroDivisionError) as caught:
        exec(compile("1 / 0", "<nowhere>", "exec"), {"__name__": "elsewhere"})
    assert "at " not in repr(caught) or "test_errors" in repr(caught)


def test_a_cell_of_a_notebook_is_named_as_such() -> None:
    assert frames._file_name("/tmp/ipykernel_4711/123.py") == "<cell>"
    assert frames._file_name("<ipython-input-3-abc>") == "<cell>"
    assert frames._file_name("/home/me/train.py") == "train.py"


def test_the_exception_is_not_kept_alive() -> None:
    class Big:
        pass

    def fail() -> None:
        big = Big()
        alive.append(weakref.ref(big))
        raise ValueError("with a local")

    alive: list[weakref.ref[Big]] = []
    with expect_error(ValueError) as caught:
        fail()
    gc.collect()
    assert caught.type is ValueError
    assert alive[0]() is None


# --- explain -----------------------------------------------------------------------------------------------


def test_an_unknown_text_says_so_and_points_to_the_index() -> None:
    found = explain("the printer is on fire")
    assert not found.found
    assert found.key is None
    assert found.foreign
    first, *more = repr(found).splitlines()
    assert first == "This is not an error of JAX: it names nothing of JAX."
    assert "docs/howto/index.md" in "".join(more)  # a symptom in words has its page
    unknown = explain("ValueError: the sharding of jit is purple")
    assert (unknown.found, unknown.foreign) == (False, False)
    assert repr(unknown) == (
        "This text matches no entry of the error catalogue.\n"
        "Try:    Print what the line passes, `print(jax.typeof(x))`: shapes and dtypes\n"
        "        are known inside jit too.\n"
        "Page:   docs/reference/errors.md in the source of the guide, the error index"
    )
    assert "reference/errors" in unknown._repr_html_()


def test_the_failing_line_decides_between_entries_with_one_message() -> None:
    text = (
        'File "a.py", line 3, in f\n    {}\njax.errors.TracerBoolConversionError: '
        "Attempted boolean conversion of traced array with shape bool[]."
    )
    assert explain(text.format("while x < 3:")).key == "python-while-on-tracer"
    assert explain(text.format("assert x > 0")).key == "assert-on-tracer"
    assert explain(text.format("y = max(x, 0)")).key == "builtin-max-on-tracer"
    assert explain(text.format("something(x)")).key == "python-if-on-tracer"


@pytest.mark.parametrize(
    ("line", "key"),
    [
        ('assert (x > 0).all(), "x must be positive, not zero"', "assert-on-tracer"),
        ("assert x > 0 and y > 0", "assert-on-tracer"),
        ("if x > 0:  # nothing to do, or almost", "python-if-on-tracer"),
        ("if x > 0:  # range(n) and max(n) don't matter", "python-if-on-tracer"),
        ("if names['and \\' or'] > x:", "python-if-on-tracer"),
        ("if limit is not None:", "python-if-on-tracer"),
        ("if x not in [1, 2]:", "membership-of-tracer"),
        ("if not x > 0:", "python-if-on-tracer"),
        ("y = not x", "python-and-or-not-on-tracer"),
        ("drop = nn.Dropout(0.5, deterministic=not train)(x)", "flag-from-tracer"),
        ("if 'a' == name or x > 0:  # 'why'", "python-and-or-not-on-tracer"),
        ("print(f'{{or}} {max(x, y):{width}.3f} and')", "builtin-max-on-tracer"),
        ("print(f\"{names['or']} {max(x, y)}\")", "builtin-max-on-tracer"),
    ],
)
def test_words_in_strings_and_comments_do_not_decide(line: str, key: str) -> None:
    error = "TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]."
    assert explain(f'File "a.py", line 3, in f\n    {line}\njax.errors.{error}').key == key


def test_words_in_a_message_of_an_assertion_do_not_decide_for_an_exception() -> None:
    def positive(x: jax.Array) -> jax.Array:
        assert x > 0, "x must be positive, not zero"
        return x

    with pytest.raises(BOOL) as caught:
        jax.jit(positive)(1.0)
    assert explain(caught.value).key == "assert-on-tracer"


def test_further_matches_are_listed_after_the_best() -> None:
    found = explain("Attempted boolean conversion of traced array with shape bool[].")
    assert found.key == "python-if-on-tracer"
    assert "python-while-on-tracer" in found.others
    assert len(found.others) <= 4
    assert "See also: " in repr(found)


def test_the_cause_of_an_unknown_error_is_explained() -> None:
    def train() -> None:
        try:
            branches(1.0)
        except TypeError as error:
            raise LookupError("training failed") from error

    with pytest.raises(LookupError) as caught:
        train()
    assert explain(caught.value).key == "python-if-on-tracer"


def test_the_last_of_chained_tracebacks_is_explained_first() -> None:
    first = "TypeError: unhashable type: 'DynamicJaxprTracer'"
    last = "TypeError: JAX arrays are immutable and do not support in-place item assignment."
    joint = "\n\nDuring handling of the above exception, another exception occurred:\n\n"
    assert explain(first + joint + last).key == "item-assignment"
    assert explain(last + joint + first).key == "tracer-as-key"
    assert explain(last + joint + "KeyError: 3").key == "item-assignment"


@pytest.mark.parametrize(
    "text",
    [
        "\x1b[31mTypeError\x1b[0m: JAX arrays are immutable and do not support in-place item assignment.",
        "TypeError: JAX arrays are immutable and do\r\nnot support",
        "E       TypeError: JAX arrays are immutable and do not support in-place item assignment.",
        "typeerror: jax arrays are immutable",
    ],
)
def test_colours_line_ends_and_test_reports_do_no_harm(text: str) -> None:
    assert explain(text).key == "item-assignment"


def test_the_notebook_arrow_marks_the_failing_line() -> None:
    text = (
        "TracerBoolConversionError                 Traceback (most recent call last)\n"
        "Cell In[1], line 3\n      2 def f(x):\n----> 3     while x < 10:\n      4         x = x * 2\n\n"
        "TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]."
    )
    assert explain(text).key == "python-while-on-tracer"


def test_an_unknown_error_that_mentions_a_tracer_stays_unknown() -> None:
    assert not explain("ValueError: the temperature JitTracer(float32[]) is too high").found
    assert not explain(ValueError("the temperature JitTracer(float32[]) is too high")).found
    assert explain("the temperature is JitTracer(float32[])").key == "formatted-tracer"


@pytest.mark.parametrize(
    "text",
    [
        "TypeError: 'tuple' object does not support item assignment",
        "ValueError: setting an array element with a sequence. The requested array has an inhomogeneous "
        "shape after 1 dimensions. The detected shape was (2,) + inhomogeneous part.",
        "AssertionError: embed_dim should be divisible by num_heads",
        "grpc: StatusCode.RESOURCE_EXHAUSTED: Received message larger than max",
        "google.api_core.exceptions: RESOURCE_EXHAUSTED: Quota exceeded for quota metric 'Queries'",
        "ValueError: Unknown backend 'Qt7Agg'",
    ],
)
def test_an_error_that_has_nothing_to_do_with_jax_stays_unknown(text: str) -> None:
    assert not explain(text).found


def test_errors_of_python_and_numpy_in_a_program_that_uses_jax_stay_unknown() -> None:
    def body(carry: tuple[float, ...], x: jax.Array) -> tuple[tuple[float, ...], None]:
        carry[0] = x  # type: ignore[index]
        return carry, None

    with pytest.raises(TypeError, match="'tuple' object") as caught:
        jax.lax.scan(body, (1.0, 2.0), jnp.ones(3))
    assert not explain(caught.value).found
    with pytest.raises(ValueError, match="inhomogeneous") as ragged:
        np.array([[1, 2], [3]])
    assert not explain(ragged.value).found


@pytest.mark.parametrize(
    ("text", "key"),
    [
        (
            "ValueError: One of pjit outputs was given the sharding of NamedSharding(...), which implies that "
            "the global size of its dimension 0 should be divisible by 2, but it is equal to 3",
            "dimension-not-divisible",
        ),
        ("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 4.00TiB.", "out-of-memory"),
        ("RESOURCE_EXHAUSTED: Attempting to reserve 6.48G at the bottom of memory.", "out-of-memory"),
        ("RESOURCE_EXHAUSTED: Failed to allocate request for 2.0GiB on device ordinal 0", "out-of-memory"),
        (
            "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm.",
            "out-of-memory",
        ),
        ("RuntimeError: Unknown backend chip. Available backends are ['cpu']", "backend-missing"),
        (
            "RuntimeError: Unknown backend: 'gpu' requested, but no platforms that are instances of gpu are "
            "present. Platforms present are: cpu",
            "backend-missing",
        ),
        (
            "RuntimeError: Backend 'tpu' failed to initialize: INTERNAL: Failed to open libtpu.so.",
            "backend-missing",
        ),
        ("RuntimeError: Unable to initialize backend 'cuda': no such file", "backend-missing"),
        (
            "TypeError: '<class 'jaxlib.xla_extension.ArrayImpl'>' object does not support item assignment. "
            "JAX arrays are immutable.",
            "item-assignment",
        ),
        ("ValueError: setting an array element with a sequence.\nmore", "tracer-into-numpy-array"),
    ],
)
def test_the_other_ways_in_which_jax_says_it_are_recognised(text: str, key: str) -> None:
    assert explain(text).key == key


def test_a_local_function_that_was_never_jitted_is_told_why_it_is_not_pickled() -> None:
    found = explain("AttributeError: Can't pickle local object 'main.<locals>.worker'")
    assert "local function" in found.title
    assert "defined inside another" in found.cause


def test_a_warning_object_is_explained() -> None:
    warning = UserWarning("Some donated buffers were not usable: float32[3].")
    assert explain(warning).key == "donation-not-usable"


@pytest.mark.timeout(30)  # a log of 10 MB, in less than a second where only its ends are read
def test_the_error_at_the_end_of_a_long_log_is_found() -> None:
    log = "step 7: nothing to see here / or there \\ at all.\n" * 200_000
    assert not explain(log).found
    assert explain(f"{log}TypeError: unhashable type: 'DynamicJaxprTracer'").key == "tracer-as-key"


@pytest.mark.parametrize(
    ("given", "kind", "message"),
    [
        (
            3,
            TypeError,
            "explain takes an exception or a text, not int. "
            "Pass the exception that you caught, not its class, or the text of the traceback.",
        ),
        (
            TypeError,
            TypeError,
            "explain takes an exception or a text, not type. "
            "Pass the exception that you caught, not its class, or the text of the traceback.",
        ),
        (
            "  \n",
            ValueError,
            "The text given to explain is empty. Paste the error message or the whole traceback.",
        ),
    ],
)
def test_what_cannot_be_explained_is_refused(given: object, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as refused:
        explain(given)  # type: ignore[arg-type]
    assert str(refused.value) == message


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.key)
def test_an_explanation_keeps_eighty_columns_but_for_code(entry) -> None:
    names = ("key", "title", "error", "cause", "fix", "cost", "page")
    known = {name: getattr(entry, name) for name in names}
    found = Explanation(found=True, others=("a-long-key-of-another-entry",) * 4, **known)
    lines = [line for line in repr(found).splitlines() if not line.startswith("    ")]
    assert max(map(len, lines)) <= 80


def test_an_explanation_shows_everything_the_entry_knows() -> None:
    entry = next(e for e in catalogue() if e.key == "item-assignment")
    found = explain("JAX arrays are immutable")
    text, page = repr(found), found._repr_html_()
    for part in (entry.title, entry.error, entry.cause, entry.cost, entry.page):
        assert part is not None
        assert " ".join(part.split()) in " ".join(text.split())
    assert max(map(len, text.splitlines())) <= 80
    assert "x.at[0].set(1)" in text
    assert "x.at[0].set(1)" in page
    assert json.loads(json.dumps(found.to_dict()))["key"] == "item-assignment"


def test_html_is_escaped() -> None:
    page = explain("unsupported format string passed to DynamicJaxprTracer.__format__")._repr_html_()
    assert "{x:.2f}&#x27;" in page
    with_angle = explain("A large amount of constants were captured during lowering")._repr_html_()
    assert "dense&lt;" in with_angle
    assert "<script" not in page


# --- text --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        ("f at /home/me/a b.py", "f at <directory> b.py"),
        ("f at /home/me/train.py:7 for jit", "f at train.py:7 for jit"),
        (
            "see https://docs.jax.dev/en/latest/errors.html#a",
            "see https://docs.jax.dev/en/latest/errors.html#a",
        ),
        ('File "/home/my name/train.py", line 3', 'File "train.py", line 3'),
        ("in ~/work/train.py:3", "in train.py:3"),
        ("in C:\\Users\\me\\train.py:3", "in train.py:3"),
        ("file:///home/me/train.py", "train.py"),
        ("in /tmp/ipykernel_4711/123.py:2", "in <cell>:2"),
        ("under /home/me", "under <directory>"),
        ("under /home/me.", "under <directory>."),
        ("<function f at 0x7f00deadbeef>", "<function f>"),
        ("a / b / c and 3/4 and x/y", "a / b / c and 3/4 and x/y"),
        ("kept\n--------------------\nFor simplicity, JAX has removed its internal frames from it.", "kept"),
    ],
)
def test_texts_lose_directories_addresses_and_notes(raw: str, expected: str) -> None:
    assert clean(raw) == expected


def test_the_first_sentence_ends_before_the_next_one_begins() -> None:
    assert first_sentence("\n  Shapes of jax.Array e.g. (3,) differ. Try again.") == (
        "Shapes of jax.Array e.g. (3,) differ."
    )
    assert first_sentence("no full stop") == "no full stop"
    assert first_sentence("") == ""


def test_the_link_is_taken_from_the_message() -> None:
    assert (
        jax_link("See https://docs.jax.dev/101/errors.html, or ask.")
        == "https://docs.jax.dev/101/errors.html"
    )
    assert jax_link("See https://numpy.org/doc") is None


def test_a_leaked_tracer_is_explained_from_the_line_that_uses_it() -> None:
    kept = []

    @jax.jit
    def f(x: jax.Array) -> jax.Array:
        kept.append(x * 2)
        return x

    f(jnp.ones(()))
    with expect_error(jax.errors.UnexpectedTracerError) as caught:
        kept[0] + 1
    assert caught.explanation.key == "leaked-tracer"
    assert caught.line is not None
    assert caught.line.text == "kept[0] + 1"


def test_an_entry_that_lacks_a_field_is_named_with_its_file() -> None:
    with pytest.raises(
        ValueError, match=r"catalogue/arrays.toml: the entry 'ragged' needs title, cause, examples, "
    ):
        entries._entry("arrays", {"key": "ragged"})


def branch(x):
    return 1 if x > 0 else 2


def raised_by(fn, *args) -> BaseException:
    try:
        fn(*args)
    except Exception as error:
        return error
    raise AssertionError("nothing was raised")


def test_the_errors_in_a_group_are_explained() -> None:
    error = raised_by(jax.jit(branch), 1.0)
    group = ExceptionGroup("unhandled errors in a TaskGroup", [KeyError("loss"), error])
    text = "".join(traceback.format_exception(ExceptionGroup("of one", [error])))
    for given in (group, text):
        found = explain(given)
        assert found.key == "python-if-on-tracer"
        assert found.line is not None
        assert found.line.endswith("return 1 if x > 0 else 2")


def test_of_a_wrapped_error_the_line_and_argument_are_its_own() -> None:
    def train() -> None:
        try:
            jax.jit(branch)(1.0)
        except Exception as error:
            raise RuntimeError("step 12 failed") from error

    found = explain(raised_by(train))
    assert found.key == "python-if-on-tracer"
    assert str(found.line).endswith("return 1 if x > 0 else 2")
    assert found.argument == "x"


@pytest.mark.parametrize(
    ("argument", "key", "path"),
    [
        ({"net": {"name": "mlp"}, "width": 3}, "object-as-argument", "cfg['net']['name']"),
        ([1.0, "mean"], "object-as-argument", "cfg[1]"),
        ("mean", "string-as-argument", "cfg"),
    ],
)
def test_what_jax_refuses_inside_an_argument_has_its_path(argument: object, key: str, path: str) -> None:
    error = raised_by(lambda: jax.jit(lambda cfg, x: x)(argument, 1.0))
    for given in (error, f"{type(error).__name__}: {error}"):
        found = explain(given)
        assert found.key == key
        assert found.cause.endswith(f" Here, `{path}` is of type `str`.")


def test_colours_around_a_class_or_a_file_do_no_harm() -> None:
    text = (
        'Traceback (most recent call last):\n  File \x1b[35m"/home/me/a.py"\x1b[0m, line \x1b[35m7\x1b[0m, in f\n'
        "    for i in range(n):\n"
        "\x1b[1;35mjax.errors.TracerIntegerConversionError\x1b[0m: The __index__() method was called on traced array."
    )
    found = explain(text)
    assert (found.key, found.line) == ("range-of-tracer", "a.py:7: for i in range(n):")


@pytest.mark.parametrize(
    "prefix", ["[rank0]: ", "[0] ", "2026-03-01 10:00:01,123 ERROR ", "2026-03-01T10:00:01.5Z "]
)
def test_what_a_launcher_puts_before_each_line_does_no_harm(prefix: str) -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/me/a.py", line 7, in f\n    for i in range(n):\n'
        "jax.errors.TracerIntegerConversionError: The __index__() method was called on traced array."
    )
    found = explain("\n".join(prefix + line for line in text.splitlines()))
    assert (found.key, found.line) == ("range-of-tracer", "a.py:7: for i in range(n):")


def test_a_frame_without_its_source_takes_no_other_line_for_it() -> None:
    text = (
        "jax.errors.JaxRuntimeError: INTERNAL: CpuCallback error calling callback: Traceback (most recent call last):\n"
        '  File "/home/me/a.py", line 91, in host\n  File "/x/site-packages/jax/_src/callback.py", line 9, in call\n'
        "ValueError: no"
    )
    assert explain(text).line == "a.py:91"


def test_of_a_message_alone_it_is_not_sure() -> None:
    found = explain("ValueError: could not convert string to float: 'a'")
    assert repr(found).splitlines() == [
        "This is probably not an error of JAX: it is your `ValueError`.",
        "If JAX raised it, paste the whole traceback: its last file tells.",
    ]


@pytest.mark.parametrize(
    "text",
    [
        "TypeError: reduce_window window_strides and window_dimensions must have same length",
        "ValueError: jnp.tril_indices: n must be positive, got -1",
        "TypeError: cotangent type does not match, got float16[3]",
        "ValueError: Mismatch of axis_name and the bound names",
    ],
)
def test_a_message_that_names_something_of_jax_is_not_called_yours(text: str) -> None:
    found = explain(text)
    assert not found.foreign
    assert found.found or "jax.typeof" in repr(found)


def test_your_own_error_on_its_way_through_jit_is_yours() -> None:
    def choose(x: jax.Array) -> jax.Array:
        raise ValueError("unknown mode: fast")

    error = raised_by(jax.jit(choose), 1.0)
    assert explain(error).foreign
    assert explain("".join(traceback.format_exception(error))).foreign


def test_your_own_raise_is_yours_also_if_its_message_speaks_of_jit() -> None:
    def load(name: str) -> None:
        raise RuntimeError(f"no traced run called {name}, jit it first")

    error = raised_by(load, "a")
    for found in (explain(error), explain("".join(traceback.format_exception(error)))):
        assert found.foreign
        assert "your `RuntimeError` in test_errors.py:" in repr(found)


@pytest.mark.parametrize(
    "text",
    [
        "ModuleNotFoundError: No module named 'jaxopt'",
        "ModuleNotFoundError: No module named 'jax_md'",
        "ImportError: cannot import name 'jit_step' from 'mylib' (mylib.py)",
    ],
)
def test_another_package_that_is_missing_is_not_jax(text: str) -> None:
    assert explain(text).foreign


@pytest.mark.parametrize("name", ["jax", "jax.experimental.maps", "jaxlib"])
def test_a_missing_part_of_jax_is_found(name: str) -> None:
    assert explain(f"ModuleNotFoundError: No module named '{name}'").found


def test_the_package_that_raised_an_error_is_named() -> None:
    text = (
        'Traceback (most recent call last):\n  File "/home/u/train.py", line 2, in <module>\n    net(x)\n'
        '  File "/venv/lib/python3.12/site-packages/haiku/_src/base.py", line 9, in next_rng_key\n'
        '    raise MissingRNGError("...")\n'
        "haiku._src.base.MissingRNGError: You must pass a non-None PRNGKey to init and/or apply."
    )
    found = explain(text)
    assert (found.foreign, found.where) == (True, "haiku")
    first = "This is not an error of JAX: `haiku` raised the `MissingRNGError` in train.py:2."
    assert repr(found) == f"{first}\n    net(x)"


def test_too_many_arguments_are_explained_where_jax_called() -> None:
    text = "TypeError: body() takes 1 positional argument but 2 were given"
    assert explain(text).foreign
    error = raised_by(lambda: jax.lax.scan(lambda c: c, 0, jnp.ones(3)))
    assert explain("".join(traceback.format_exception(error))).key == "loop-body-arguments"


def test_an_error_that_a_message_quotes_is_not_the_error() -> None:
    error = raised_by(jax.jit(lambda x, c: x, static_argnums=1), 1.0, [1])
    assert (
        explain(error).key == explain(f"{type(error).__name__}: {error}").key == "unhashable-static-argument"
    )


def test_a_line_of_an_installed_package_is_not_yours() -> None:
    optax = pytest.importorskip("optax")
    optimizer = optax.adam(1e-3)
    state = optimizer.init({"w": 1.0})
    found = explain(raised_by(lambda: optimizer.update({"v": 1.0}, state)))
    assert "optimizer.update" in str(found.line)


def test_a_long_word_in_a_message_takes_no_time() -> None:
    words = 'jax.errors.JaxRuntimeError: INTERNAL: stablehlo.constant dense<"0x' + "0A" * 200_000 + '">'
    explain(words)  # without a limit to words it runs into the timeout of the tests
    explain(RuntimeError(words))


IN_A_FOLDER = """Traceback (most recent call last):
  File "/opt/{folder}/train.py", line 3, in <module>
    jnp.max(jnp.array([]))
  File "/opt/{folder}/.venv/lib/python3.12/site-packages/{last}", line 9, in f
    raise ValueError(...)
ValueError: zero-size array to reduction operation max which has no identity"""


@pytest.mark.parametrize("folder", ["torch", "keras/examples", "pandas-notes", "work"])
def test_a_folder_called_as_another_library_is_not_that_library(folder: str) -> None:
    found = explain(IN_A_FOLDER.format(folder=folder, last="jax/_src/numpy/reductions.py"))
    assert found.key == "reduction-of-an-empty-array"
    assert explain(IN_A_FOLDER.format(folder=folder, last="torch/functional.py")).foreign


def test_the_address_in_a_message_of_flax_does_not_make_it_foreign() -> None:
    nnx = pytest.importorskip("flax.nnx")
    layer = nnx.BatchNorm(3, rngs=nnx.Rngs(0))
    error = raised_by(jax.jit(lambda x: layer(x)), jnp.ones((2, 3)))
    for given in (error, "".join(traceback.format_exception(error))):
        assert explain(given).key == "flax-module-not-an-argument"


@pytest.mark.parametrize("wrapper", ["XlaRuntimeError", "jax.errors.JaxRuntimeError", "ValueError"])
@pytest.mark.parametrize("raised", ["EqxRuntimeError", "equinox._errors._EquinoxRuntimeError"])
def test_a_check_of_equinox_is_found_inside_the_error_of_its_callback(wrapper: str, raised: str) -> None:
    text = f"{wrapper}: INTERNAL: CpuCallback error calling callback: {raised}: x must be positive"
    assert explain(text).key == "equinox-check"
    assert explain(text.replace(raised, "KeyError")).key == "callback-raises"


@pytest.mark.parametrize(
    ("start", "stop", "key"),
    [
        ("float32[4]", "float32[4@i]", "carry-changes-sharding"),
        ("float32[4@i,3]", "float32[4,3]", "carry-changes-sharding"),
        ("float32[4@i]", "float32[8@i]", "carry-changes-type"),
        ("float32[4@i]", "int32[4@i]", "carry-changes-type"),
        ("float32[4]", "float32[5]", "carry-changes-type"),
    ],
)
def test_a_carry_that_changes_its_sharding_alone_is_told_apart(start: str, stop: str, key: str) -> None:
    text = (
        "TypeError: scan body function carry input and carry output must have equal types, but they differ:\n\n"
        f"The input carry c has type {start} but the corresponding output carry component has type {stop}.\n"
    )
    assert explain(text).key == key


def test_a_backend_that_was_asked_for_is_missing_and_one_that_was_tried_is_not() -> None:
    tried = "Unable to initialize backend 'rocm': NOT_FOUND: Could not find registered platform"
    asked = f"{tried} (set JAX_PLATFORMS='' to automatically choose an available backend)"
    assert explain(tried).key == "backend-not-on-this-machine"
    assert explain(asked).key == explain(f"RuntimeError: {asked}").key == "backend-missing"


@pytest.mark.parametrize(
    ("option", "key"),
    [("check_rep", "shard-map-option"), ("auto", "shard-map-option"), ("check_vma", "jax-too-old")],
)
def test_an_option_of_shard_map_is_old_or_too_new(option: str, key: str) -> None:
    assert explain(f"TypeError: shard_map() got an unexpected keyword argument '{option}'").key == key


def test_a_class_that_a_text_only_mentions_is_no_error() -> None:
    assert not explain("see UnexpectedTracerError in the docs of jax").found
    assert explain("jax.errors.UnexpectedTracerError: a new message").key == "leaked-tracer"


def test_a_wrong_keyword_is_the_users_unless_jax_handed_it_on() -> None:
    text = 'Traceback (most recent call last):\n  File "/home/me/train.py", line 9, in <module>\n    step(x, lr=1)\n'
    message = "TypeError: step() got an unexpected keyword argument 'lr'"
    handed_on = '  File "/venv/site-packages/jax/_src/linear_util.py", line 9, in call\n'
    assert explain(text + message).foreign
    assert explain(text + handed_on + message).key == "missing-argument"


def test_a_message_of_jax_that_names_a_class_of_pandas_is_not_foreign() -> None:
    text = (
        "TypeError: Argument '0    1.0' of type <class 'pandas.core.series.Series'> is not a valid JAX type."
    )
    assert explain(text).found


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("ModuleNotFoundError: No module named 'jax'", "jax-not-installed"),
        ("/usr/bin/python3: No module named jax", "jax-not-installed"),
        ("ModuleNotFoundError: No module named 'jax.numpy'; 'jax' is not a package", "own-file-called-jax"),
        ("TypeError: cannot create weak reference to 'numpy.ufunc' object", "callable-with-slots"),
        ("ModuleNotFoundError: No module named 'jaxlib'", "jaxlib-import"),
        ("ModuleNotFoundError: No module named 'jax.config'", "removed-name"),
        ("ModuleNotFoundError: No module named 'jaxtyping'", None),
    ],
)
def test_a_missing_module_is_told_from_its_neighbours(text, key):
    assert explain(text).key == key


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("AttributeError: module 'jax.sharding' has no attribute 'AxisType'", "jax-too-old"),
        ("AttributeError: module 'jax.tree' has no attribute 'map_with_path'", "jax-too-old"),
        ("ImportError: cannot import name 'key' from 'jax.random' (/x/jax/random.py)", "jax-too-old"),
        ("ModuleNotFoundError: No module named 'jax.numpy.linalg'", "jax-too-old"),
        ("AttributeError: module 'jax.random' has no attribute 'KeyArray'", "removed-name"),
        ("AttributeError: module 'jax' has no attribute '_src'", "removed-name"),
        ("ModuleNotFoundError: No module named 'jax.config'", "removed-name"),
        ("AttributeError: module 'jax.experimental' has no attribute 'transfer'", "submodule-not-imported"),
        ("ImportError: cannot import name 'tree_multimap' from 'jax.tree_util'", "removed-name"),
    ],
)
def test_a_name_that_this_jax_has_was_missed_by_an_older_one(text: str, key: str) -> None:
    assert explain(text).key == key


PLAIN_PROGRAMS = {
    "matmul": lambda x: x * (np.ones((3, 4)) @ np.ones((3, 4))),
    "dot": lambda x: x * np.dot(np.ones((3, 4)), np.ones((3, 4))),
    "concatenate": lambda x: x * np.concatenate([np.ones((3, 4)), np.ones((3, 5))]),
    "reshape": lambda x: x * np.ones(3).reshape(2, 2),
    "add": lambda x: x * (np.ones(3) + np.ones(4)),
    "ragged": lambda x: x * np.array([[1, 2], [3]]),
    "dtype": lambda x: x * np.ones(3).astype("foo"),
    "text": lambda x: "layer" + 1,  # type: ignore[operator]
    "none": lambda x: None + 1,  # type: ignore[operator]
    "order": lambda x: "a" < 1,  # type: ignore[operator]
}


@pytest.mark.parametrize("name", PLAIN_PROGRAMS)
def test_an_error_of_numpy_or_python_in_a_jitted_function_is_yours(name: str) -> None:
    error = raised_by(jax.jit(PLAIN_PROGRAMS[name]), 1.0)
    for given in (error, "".join(traceback.format_exception(error))):
        found = explain(given)
        assert found.foreign
        first = f"This is not an error of JAX: it is your `{type(error).__name__}` in test_errors.py:"
        assert repr(found).startswith(first)


def test_an_error_of_numpy_in_a_line_that_passes_it_to_jax_is_yours() -> None:
    targets = (np.ones(3), np.ones(4))
    error = raised_by(lambda: jnp.mean(targets[0] - targets[1]))
    for given in (error, "".join(traceback.format_exception(error))):
        assert explain(given).foreign


@pytest.mark.parametrize(
    ("call", "key"),
    [
        (lambda: jax.jit(lambda x: np.concatenate([x, x]))(jnp.ones(2)), "numpy-function-on-tracer"),
        (lambda: jnp.array([[1, 2], [3]]), "ragged-list"),
        (lambda: jax.jit(lambda x: x + jnp.array([[1, 2], [3]]))(1), "ragged-list"),
        (lambda: jnp.ones(3, "foo"), "unknown-choice"),
        (lambda: jax.lax.conv(jnp.ones((2, 2)), jnp.ones((2, 2)), (1, 1), "SAME"), "convolution-shapes"),
    ],
)
def test_what_numpy_raises_for_jax_stays_of_jax(call, key: str) -> None:
    error = raised_by(call)
    for given in (error, "".join(traceback.format_exception(error))):
        assert explain(given).key == key


IN_JAX_FILE = '  File "/x/site-packages/jax/_src/dtypes.py", line 33, in <module>\n    use(package)\n'


@pytest.mark.parametrize(
    "message",
    [
        "AttributeError: module 'ml_dtypes' has no attribute 'float4_e2m1fn'",
        "AttributeError: module 'scipy.linalg' has no attribute 'tril'",
        "ModuleNotFoundError: No module named 'opt_einsum'",
        "ImportError: cannot import name 'trapezoid' from 'numpy'",
    ],
)
def test_a_package_that_jax_imports_is_told_from_one_that_you_import(message: str) -> None:
    assert explain(IN_JAX_FILE + message).key == "package-that-jax-needs"
    assert explain(IN_JAX_FILE.replace("jax/_src", "flax") + message).foreign
    assert explain(message).foreign


@pytest.mark.parametrize(
    ("name", "library"),
    [
        ("flax.errors.ScopeParamShapeError", "flax"),
        ("torch.cuda.OutOfMemoryError", "torch"),
        ("onnxruntime.capi.onnxruntime_pybind11_state.RuntimeException", "onnxruntime"),
        ("json.decoder.JSONDecodeError", ""),
        ("__main__.DataError", ""),
    ],
)
def test_a_dotted_class_names_its_library(name: str, library: str) -> None:
    found = explain(f"{name}: the batch is empty")
    assert (found.foreign, found.where) == (True, library)
    assert ("probably" in repr(found)) is (not library)


def test_a_foreign_error_keeps_eighty_columns() -> None:
    line = "    loss = " + " + ".join(f"weights[{i}] * terms[{i}]" for i in range(12))
    text = f'Traceback (most recent call last):\n  File "/home/me/train.py", line 7, in step\n{line}\n'
    for error in ("KeyError: 'a'", "OperatorNotAllowedInTheGraphOfTheOtherLibraryError: no"):
        for given in (text + error, error):
            assert max(map(len, repr(explain(given)).splitlines())) <= 80


def test_a_text_without_an_error_at_its_end_is_read_as_a_whole() -> None:
    text = (
        "    * 1 x AttributeError: jax.interpreters.xla.abstractify was removed in JAX v0.7.0.\n"
        "        | Traceback (most recent call last):\n"
        '        |   File "/venv/bin/voir", line 10, in <module>\n'
    )
    assert explain(text).key == "removed-name"


@pytest.mark.parametrize(
    "text",
    [
        "F external/org_tensorflow/tensorflow/stream_executor/cuda/cuda_fft.cc:439] failed to initialize plan",
        "/x/site-packages/jax/_src/cloud_tpu_init.py:84: UserWarning: Transparent hugepages are not enabled.",
    ],
)
def test_a_text_with_a_file_of_jax_is_not_called_foreign(text: str) -> None:
    assert not explain(text).foreign


@pytest.mark.parametrize(
    ("text", "key"),
    [
        ("TypeError: make_mesh() got an unexpected keyword argument 'axis_types'", "jax-too-old"),
        ("TypeError: clip() got an unexpected keyword argument 'a_min'", "removed-name"),
        (
            "TypeError: ShapedArray.__new__() got an unexpected keyword argument 'named_shape'",
            "array-pickled-by-older-jax",
        ),
        (
            "TypeError: DynamicJaxprTrace.__init__() missing 1 required positional argument: 'debug_info'",
            "removed-name",
        ),
        ("TypeError: pmean() missing 1 required positional argument: 'axis_name'", "missing-argument"),
        ("AttributeError: module 'jax' has no attribute 'numpy'", "own-file-called-jax"),
        ("AttributeError: module 'jax.random' has no attribute 'key'", "jax-too-old"),
        ("ModuleNotFoundError: No module named 'jax._src.no_such_part'", "removed-name"),
    ],
)
def test_what_knows_the_function_comes_before_the_general_entry(text, key):
    assert explain(text).key == key


PREFIXES = [
    "0: ",
    "> ",
    "[rank 3]: ",
    "2026-11-28T05:12:33Z stderr F ",
    "\x1b[36m(train pid=123)\x1b[0m ",
    "node7 | ",
]
TRACEBACK = """Traceback (most recent call last):
  File "/home/u/train.py", line 12, in <module>
    step(x, flag)
  File "/home/u/train.py", line 7, in step
    if flag:
jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]."""


@pytest.mark.parametrize("prefix", PREFIXES)
def test_what_a_log_puts_before_each_line_hides_no_line(prefix):
    found = explain("\n".join(prefix + line for line in TRACEBACK.splitlines()))
    assert (found.key, found.line) == ("python-if-on-tracer", "train.py:7: if flag:")


def test_a_sentence_before_a_traceback_stays():
    assert explain(f"It says Traceback (most recent call last):\n{TRACEBACK}").line == "train.py:7: if flag:"


def test_typographic_quotes_are_quotes():
    text = "AttributeError: module \u2018jax.core\u2019 has no attribute \u2018Shape\u2019"
    assert explain(text).key == "removed-name"


def test_the_arrow_of_ipython_marks_the_line():
    text = """TracerBoolConversionError                 Traceback (most recent call last)
File ~/work/train.py:8, in step(x, flag)
      6 def step(x, flag):
      7     y = jnp.sin(x)
----> 8     if flag:
      9         return y
     10     return -y

TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]."""
    assert explain(text).line == "train.py:8: if flag:"


def test_a_traceback_in_the_middle_of_a_long_log_is_read():
    noise = "".join(f"step {i} loss 0.1\n" for i in range(10_000))
    assert explain(f"{noise}{TRACEBACK}\n{noise}").key == "python-if-on-tracer"


def test_frames_of_short_tracebacks_of_pytest_are_read():
    text = "train.py:7: in step\n    if flag:\nE   jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced"
    assert explain(text).line == "train.py:7: if flag:"


def test_what_a_callback_raised_is_an_error_of_the_callback():
    text = "jax.errors.JaxRuntimeError: INTERNAL: CpuCallback error calling callback: KeyError: 'loss'"
    assert explain(text).key == "callback-raises"


class MuteError(Exception):
    def __str__(self):
        raise ValueError("no words")


@pytest.mark.parametrize("notes", [None, [1, None], "text"])
def test_an_exception_that_cannot_be_printed_is_explained(notes):
    error = MuteError()
    error.__notes__ = notes
    assert explain(error).foreign


@pytest.mark.parametrize(
    ("summary", "key", "foreign"),
    [
        ("TypeError: scan body output must be a pa...", "scan-body-not-a-pair", False),
        ("TypeError: Gradient only defined for scala...", None, False),  # three entries begin so
        ("TypeError: scan...", None, False),  # too short to tell
        ("jax.errors.TracerBoo...", None, False),
        ("AssertionError: Arrays are not almost eq...", None, True),
        ("ValueError: operands could not be broadcast together with sha...", None, True),  # NumPy's
        ("KeyError: 'a_long_name_of_a_pa...", None, True),
    ],
)
def test_a_message_that_pytest_cut_is_known_by_its_beginning_alone(summary, key, foreign):
    found = explain(f"FAILED tests/test_a.py::test_b - {summary}")
    assert (found.key, found.foreign) == (key, foreign)


def test_a_lack_of_memory_on_an_amd_gpu_is_one():
    assert explain("INTERNAL: Hip error: 'out of memory'(2) at gpu.cc:41").key == "out-of-memory"
    assert explain("INTERNAL: Hip error: 'invalid device function'(98) at gpu.cc:41").key == "rocm"
