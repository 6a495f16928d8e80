"""What answers an exercise or a prediction is folded as a whole, and nothing else is."""

import pytest
from _ext.directives import answers
from docutils import nodes
from docutils.utils import new_document


def box(kind):
    return nodes.admonition(classes=["admonition", "guide-box", f"guide-{kind}"])


def cell(name, *classes, **options):
    return nodes.container("", nodes.Text(name), nb_element="cell_code", classes=list(classes), **options)


def prose(text, *, strong=""):
    return nodes.paragraph("", "", *([nodes.strong(text=strong)] if strong else []), nodes.Text(text))


def folded(*content):
    """Return the texts in each answer, and the texts that stand in the open."""
    section = nodes.section("", *content)
    document = new_document("page")
    document += section
    answers.fold(None, document)
    inside = [node for node in section if answers.CLASS in node.attributes.get("classes", [])]
    return [[n.astext() for n in one] for one in inside], [
        n.astext() for n in section if n not in inside and n.astext()
    ]


@pytest.mark.parametrize(
    "end",
    [
        nodes.section("", prose("end")),
        prose(" end", strong="Next:"),
        # As MyST writes it:
        nodes.paragraph("", "", nodes.Text(""), nodes.strong(text="Next:"), nodes.Text(" end")),
        *(box(kind) for kind in ("exercise", "predict", "takeaway", "question")),
    ],
)
def test_an_exercise_folds_prose_and_cells_up_to_what_follows(end):
    inside, _ = folded(box("exercise"), cell("code"), prose("why"), cell("more"), prose("end of it"), end)
    assert inside[0] == ["code", "why", "more", "end of it"]


def test_a_prediction_folds_the_next_cells_and_what_is_said_of_them():
    content = (
        prose("before"),
        cell("run"),
        cell("plot"),
        prose("why"),
        prose("also"),
        cell("next"),
        prose("on"),
    )
    inside, outside = folded(box("predict"), *content)
    assert inside == [["before", "run", "plot", "why", "also"]]
    assert outside == ["next", "on"]


def test_a_rule_ends_an_answer_and_is_not_drawn():
    inside, outside = folded(box("predict"), cell("run"), nodes.transition(), prose("the lesson goes on"))
    assert inside == [["run"]]
    assert outside == ["the lesson goes on"]


def test_a_solution_needs_no_fold_of_its_own():
    solution, other = cell("a", "tag_solution", hide_mode="all"), cell("b", hide_mode="input")
    folded(box("exercise"), solution, other)
    assert "hide_mode" not in solution
    assert other["hide_mode"] == "input"


def test_other_boxes_and_boxes_without_an_answer_fold_nothing():
    assert folded(box("takeaway"), prose("a"))[0] == []
    assert folded(prose("a"), box("exercise"))[0] == []


def guesses(*texts):
    items = [
        nodes.definition_list_item("", nodes.term(text=t), nodes.definition("", prose("why"))) for t in texts
    ]
    return nodes.definition_list("", *items)


def test_guesses_stay_in_their_box_without_the_mark_and_reasons_open_the_answer():
    asked = box("predict")
    asked += [prose("How often?"), guesses("once", "✔ twice", "never")]
    inside, _ = folded(asked, cell("run"), nodes.transition())
    assert [item.astext() for item in asked.findall(nodes.list_item)] == ["once", "twice", "never"]
    assert inside == [["once\n\nwhy\n\n✔ twice\n\nwhy\n\nnever\n\nwhy", "run"]]


def test_which_guess_is_right_is_known_to_the_answer_only():
    asked = box("predict")
    asked += guesses("once", "✔ twice")
    section = nodes.section("", asked)
    document = new_document("page")
    document += section
    answers.fold(None, document)
    assert [term["classes"] for term in section[1].findall(nodes.term)] == [["wrong"], ["right"]]
    assert "✔" not in asked.astext()
