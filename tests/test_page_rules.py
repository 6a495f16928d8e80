"""Each rule of the pages sees the page that breaks it."""

import page_rules
import pytest

GOOD = ":::{question}\nWhy?\n:::\n\n:::{takeaway}\nUse it.\n:::\n"


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
        (GOOD + f"\n```{{code-cell}}\nx = {'1' * 80}\n```\n", "columns of code"),
    ],
)
def test_each_rule_sees_the_page_that_breaks_it(lesson, text, complaint):
    assert any(complaint in found for found in lesson(text))


def test_folded_code_may_be_wide(lesson):
    folded = ":tags: [hide-input]\n"
    assert lesson(GOOD + f"\n```{{code-cell}}\n{folded}x = {'1' * 80}\n```\n") == []


def test_words_in_code_are_free(lesson):
    assert lesson(GOOD + "\n```{code-cell}\njust = 1\n```\n") == []


def test_every_page_of_the_guide_keeps_the_rules(capsys):
    assert page_rules.main() == 0, capsys.readouterr().err


RULE = "a rule without a mark"


@pytest.mark.parametrize(
    "text",
    [
        "jit compiles every function twice.\n",
        "A first sentence {claim}`snow-is-white`. Results never change.\n",
        "| case | cost |\n| --- | --- |\n| a scalar | none |\n",
        "- It works. Nothing is copied.\n- Read [the page](https://docs.jax.dev/en/latest/jit.html).\n",
        ":::{old-new}\n*A belief.*\nOnly the first call traces.\n:::\n",
        ":::{takeaway}\nCopies go away.\n:::\n",
        "The function `every` is all that XLA sees.\n",
        "Alone, the tracer has no value; `jnp` is never run.\n",
        ":::{exercise} Count\nHow many?\n:::\n\nAll of them.\n",
    ],
)
def test_a_rule_needs_a_mark(lesson, text):
    found = lesson(GOOD + "\n" + text)
    assert sum(RULE in complaint for complaint in found) == 1


@pytest.mark.parametrize(
    "text",
    [
        "jit compiles every function once {claim}`snow-is-white`.\n",
        "On a GPU all memory is reserved.\nSo says [JAX](https://docs.jax.dev/en/latest/gpu_memory_allocation.html).\n",
        "Does every call compile?\n",
        "Pass every array as an argument.\n",
        "Never reuse a key. To do so, always split it.\n",
        "*All of jit is tracing.*\n",
        "Here all three agree. In this table every row is a call.\n",
        "It took {glue:text}`x` times as long as all the others.\n",
        "See [Every call recompiles](every-call-recompiles.md): `all(x)` returns at all times “only” that.\n",
        "Some calls compile, and it fails at all if not.\n",
        "## Every call\n\n% all of it\n\n```python\nall(every)\n```\n",
        ":::{predict}\nDo all of them fail? Every one.\n:::\n",
        ":::{takeaway}\nUse jit. Copies go away {claim}`snow-is-white`.\n:::\n",
    ],
)
def test_what_is_marked_or_no_rule_is_free(lesson, text):
    assert not [found for found in lesson(GOOD + "\n" + text) if RULE in found]


def test_pages_about_the_guide_state_no_rules_of_jax(tmp_path):
    for name, rules in (
        ("howto/index.md", 0),
        ("howto/page.md", 1),
        ("examples/page.md", 0),
        ("ten-minutes.md", 1),
    ):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        path.write_text("All of it.\n")
        assert len(page_rules.problems(path)) == rules


def test_a_renamed_heading_is_missed_where_data_name_it(tmp_path):
    (tmp_path / "_data").mkdir()
    (tmp_path / "page.md").write_text("# A page\n\n## What `jit` does\n\n```python\n# a comment\n```\n")
    sources, questions = tmp_path / "_data" / "sources.json", tmp_path / "_data" / "questions.json"
    sources.write_text('[\n{"id": "S1", "page": "page", "heading": "What jit does"}\n]\n')
    questions.write_text('[\n {"places": [\n  "page#what-jit-does"\n ]}\n]\n')
    assert not list(page_rules.moved(tmp_path))
    sources.write_text('[\n{"id": "S1", "page": "page", "heading": "What jit did"}\n]\n')
    questions.write_text('[\n {"places": [\n  "page#what-jit-did",\n  "gone#at-all"\n ]}\n]\n')
    found = [(path.name, line) for path, line, _ in page_rules.moved(tmp_path)]
    assert found == [("sources.json", 2), ("questions.json", 3), ("questions.json", 4)]
