"""Each rule of the pages sees the page that breaks it."""

import page_rules
import pytest

GOOD = ":::{question}\nWhy?\n:::\n\n:::{takeaway}\nBecause.\n:::\n"


@pytest.fixture
def lesson(tmp_path):
    def write(text):
        path = tmp_path / "learn" / "page.md"
        path.parent.mkdir(exist_ok=True)
        path.write_text(text)
        return [complaint for _, complaint in page_rules.problems(path)]

    return write


def test_a_good_page_has_no_problem(lesson):
    assert lesson(GOOD) == []


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (GOOD + "\nYou simply call it.\n", "'simply'"),
        (GOOD + "\n```{code-cell}\n%timeit f(x)\n```\n", "magic"),
        (GOOD + "\n```{code-cell}\n!pip list\n```\n", "magic"),
        (":::{takeaway}\nx\n:::\n", "opens with a question"),
        (":::{question}\nx\n:::\n", "closes with a takeaway"),
        (GOOD + "```{code-cell}\n1\n```\n" * 30, "at most"),
    ],
)
def test_each_rule_sees_the_page_that_breaks_it(lesson, text, complaint):
    assert any(complaint in found for found in lesson(text))


def test_words_in_code_are_free(lesson):
    assert lesson(GOOD + "\n```{code-cell}\njust = 1\n```\n") == []


def test_every_page_of_the_guide_keeps_the_rules(capsys):
    assert page_rules.main() == 0, capsys.readouterr().err
