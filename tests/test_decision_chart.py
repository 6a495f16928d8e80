"""A decision chart is a list whose items know what they are, and refuses what is no tree of decisions."""

import pytest
from _ext.directives import decision_chart
from docutils import nodes


def item(text, *branches, answer=""):
    paragraph = nodes.paragraph(
        "", "", nodes.Text(""), *([nodes.strong(text=answer)] if answer else []), nodes.Text(text)
    )
    return nodes.list_item("", paragraph, *([nodes.bullet_list("", *branches)] if branches else []))


def chart(*content):
    directive = object.__new__(decision_chart.DecisionChart)
    directive.assert_has_content = lambda: None
    directive.parse_content_to_nodes = lambda: list(content)
    directive.error = ValueError
    return directive.run()[0]


def test_questions_answers_and_advice_are_told_apart():
    tree = chart(
        nodes.bullet_list("", item("Wet?", item("umbrella", answer="yes"), item("hat", answer="no")))
    )
    assert [i["classes"] for i in tree.findall(nodes.list_item)] == [
        ["chart-question"],
        ["chart-advice"],
        ["chart-advice"],
    ]
    assert [s["classes"] for s in tree.findall(nodes.strong)] == [["chart-answer"]] * 2
    assert tree["classes"] == ["decision-chart"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ([nodes.paragraph(text="no list")], "one nested list"),
        ([nodes.bullet_list("", item("One?"), item("Two?"))], "one nested list"),
        (
            [nodes.bullet_list("", item("Wet?", item("umbrella", answer="yes")))],
            "'Wet\\?' has a single answer",
        ),
        (
            [nodes.bullet_list("", item("Wet?", item("umbrella", answer="yes"), item("hat")))],
            "'hat' needs the answer",
        ),
    ],
)
def test_what_is_no_tree_of_decisions_is_refused(content, complaint):
    with pytest.raises(ValueError, match=complaint):
        chart(*content)
