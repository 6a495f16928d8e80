"""Scripts that only some pages need."""

from __future__ import annotations

from sphinx.application import Sphinx

_NEEDED_BY = {
    "stages.js": ('class="jgs',),
    "pairs.js": ('class="call-pairs"',),
    "recording.js": ("recording-drop",),
    "questions.js": ('dl class="simple question-list"',),
    "predict.js": ('class="guide-guesses', "guide-exercise", "lesson-progress"),
}


def add(app: Sphinx, _page: str, _template: str, context: dict, _doctree: object) -> None:
    """Load a script on a page that has what it works on."""
    for script, marks in _NEEDED_BY.items():
        if any(mark in context.get("body", "") for mark in marks):
            app.add_js_file(script, loading_method="defer")
