"""Directives that the pages of the guide use."""

from __future__ import annotations

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from _ext import build

from . import admonitions, answers, decision_chart, error_finder, error_index, flags, questions


def setup(app: Sphinx) -> ExtensionMetadata:
    """Register the directives, the check of the flags, the folds and the lists of questions with Sphinx."""
    for name in admonitions.TITLES:
        app.add_directive(name, admonitions.GuideAdmonition)
    app.add_directive("decision-chart", decision_chart.DecisionChart)
    app.add_directive("error-finder", error_finder.ErrorFinder)
    app.connect("build-finished", error_finder.write)
    app.add_directive("error-index", error_index.ErrorIndex)
    app.add_directive("error-list", error_index.ErrorList)
    app.connect("missing-reference", error_index.resolve)
    app.add_directive("flags", flags.Flags)
    app.add_directive("question-index", questions.QuestionIndex)
    app.connect("builder-inited", flags.check)
    app.connect("doctree-read", answers.fold, priority=300)
    app.add_post_transform(answers.FoldAnswers)
    app.connect("doctree-read", questions.append, priority=600)  # after the tables of contents are made
    return build.PARALLEL_SAFE
