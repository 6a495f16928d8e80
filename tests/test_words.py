"""The check of words sees each phrase of the old vocabulary, and leaves alone the good uses of the same words."""

import pytest
import words


def found(text):
    return [phrase.lower() for phrase, _ in words.words(text)]


@pytest.mark.parametrize(
    ("text", "phrase"),
    [
        ("One compiled program for each shape.", "compiled program"),
        ("The loop starts a program of its own.", "program of its own"),
        ("The value is written into the program.", "into the program"),
        ("The start of an operation takes 5 µs.", "start of an operation"),
        ("A list grows in each turn.", "each turn"),
        ("Two spellings of one call.", "spellings"),
        ("The loop is written out.", "written out"),
        ("JAX writes down what the function does.", "writes down"),
        ("The repair costs a copy.", "repair"),
        ("It is mended by a tuple.", "mended"),
        ("Recompiling is dear.", "dear"),
        ("A wrapper that is made anew.", "anew"),
        ("`watch` says why.", "`x` says"),
        ("The reader sees a tracer.", "the reader"),
        ("Nobody looks at it.", "nobody"),
        ("`TracerBoolConversionError` and its kin.", "kin"),
        ("A constant is no input.", "is no"),
        ("JAX knows neither.", "neither"),
        ("You may not pass a list.", "may not"),
        ("It took 3 times as long.", "times as long"),
        ("Two calls with the waits included.", "waits included"),
        ("It runs for ever.", "for ever"),
        ("`n` must be an integer, and got 'a'.", "must be an integer, and got"),
        ("In a jitted function live two kinds of values.", "in a jitted function live two"),
        ("The commonest mistake.", "commonest"),
    ],
)
def test_each_phrase_is_found(text, phrase):
    assert phrase in found(text)


@pytest.mark.parametrize(
    "text",
    [
        "A training program of 300 lines, and your program.",
        "Turn off the check; the devices work in turn.",
        "There is no copy, and it is no longer slow.",
        "The greatest common divisor.",
        "The error says “stand-in”, and `repair = 1` is code.",
        "See [the page](every-call-recompiles.md#cure) and {claim}`nobody-knows`.",
        "After warm-up a call takes 5 µs: None of this is new.",
        "In a jitted function, values live until the call returns.",
    ],
)
def test_good_uses_are_left_alone(text):
    assert found(text) == []


def test_a_page_is_read_without_its_code(tmp_path):
    page = tmp_path / "page.md"
    page.write_text(
        '---\nmyst:\n  html_meta:\n    description: "A cure."\n---\n# Repairs\n\n```{code-cell}\n:alt: A dear figure.\nrepair = "cure"\n```\n\n'
        ":::{takeaway}\nNobody knows.\n:::\n\n```{glossary}\ntrace\n  What kin?\n```\n"
    )
    assert [line for line, _ in words.problems(page)] == [4, 6, 9, 14, 19]


def test_sentences_of_python_are_read_without_its_names_and_patterns(tmp_path):
    module = tmp_path / "module.py"
    module.write_text(
        '"""The contract.\n\nThe repair is here.\n"""\nrepair = "repair"\nraise ValueError(f"use {repair} or mend it")  # for ever\n'
        'pattern = r"no repair found"\n'
    )
    assert sorted(line for line, _ in words.problems(module)) == [3, 6, 6]


def test_the_catalogue_is_read_without_messages_and_code(tmp_path):
    entries = tmp_path / "x.toml"
    entries.write_text(
        "[[entry]]\nkey = 'k'\n".replace("'", '"')
        + 'title = "A cure."\npatterns = ["nobody home"]\ncause = "It is so."\nrepair = "anew"\ncost = "Dear."\n'
    )
    assert [line for line, _ in words.problems(entries)] == [3, 7]


def test_all_that_is_rewritten_uses_the_words_of_the_field():
    assert [(path.name, *problem) for path in words.files() for problem in words.problems(path)] == []
