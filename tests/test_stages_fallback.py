"""Where tags do not work, `stages` shows the texts without links, and says so."""

from __future__ import annotations

import json
import re

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import _jax, stages
from jitguide._stages import build, tags

X = np.arange(1.0, 9.0, dtype=np.float32)


def two_lines(x):
    a = jnp.sin(x)
    return a * 2.0 + 1.0


@pytest.fixture
def tags_fail(monkeypatch):
    def refuse(*_args, **_kwargs):
        raise AttributeError("replace")

    monkeypatch.setattr(build, "replay", refuse)


def test_no_links_are_shown_when_tagging_raises(tags_fail):
    found = stages(two_lines, X)
    assert found.notes == (build.NO_LINKS,)
    assert not any(line.equations for line in (*found.jaxpr.lines, *found.stablehlo.lines, *found.hlo.lines))
    assert "sin a" in found.jaxpr.text
    assert [line.equations for line in found.source.lines] == [frozenset(), {0}, {1, 2}]


def test_no_status_is_told_without_tags(tags_fail):
    found = stages(two_lines, X)
    assert {e.status for e in found.equations} == {"unknown"}
    assert all(e.fusions == () for e in found.equations)


def test_no_path_reaches_an_output_of_the_fallback(tags_fail):
    found = stages(two_lines, X)
    outputs = [json.dumps(found.to_dict()), found._repr_html_(), repr(found), repr(found.show())]
    assert not any(re.search(r"\.py\b|/tests|jgq\d", text) for text in outputs)


def test_a_process_in_which_the_probe_fails_shows_no_links(monkeypatch):
    monkeypatch.setattr(build, "works", lambda: False)
    assert stages(two_lines, X).notes == (build.NO_LINKS,)


def test_the_probe_answers_no_where_jax_lacks_what_tagging_needs(monkeypatch):
    monkeypatch.setattr(tags, "as_function", lambda jaxpr: None)
    assert tags.works.__wrapped__() is False


def test_a_program_that_tagging_would_change_is_shown_untagged(monkeypatch):
    honest = build.replay

    def other(fn, traced, tagged, options):
        return honest(fn, traced, tagged, {**options, "donate_argnums": 0})

    monkeypatch.setattr(build, "replay", other)
    found = stages(two_lines, X)
    assert found.notes == (build.NO_LINKS,)
    assert found.donated == ()


def test_without_labels_in_the_compiled_text_nothing_is_guessed(monkeypatch):
    honest = _jax.compiled_text
    monkeypatch.setattr(
        _jax, "compiled_text", lambda c: re.sub(r"metadata=\{[^}]*\}", "metadata={}", honest(c))
    )
    found = stages(two_lines, X)
    assert found.notes == (build.NO_HLO_LINKS,)
    assert {e.status for e in found.equations} == {"unknown"}
    assert not any(line.equations for line in found.hlo.lines)


def test_without_a_compiled_text_the_counts_are_not_available(monkeypatch):
    monkeypatch.setattr(_jax, "compiled_text", lambda compiled: "")
    found = stages(two_lines, X)
    assert found.notes == (build.NO_HLO,)
    assert found.operations["HLO instructions"] is None
    assert "→ not available HLO instructions" in repr(found)
    assert "not available" in found._repr_html_()


def test_what_jax_removed_is_known_without_labels_in_the_compiled_text(monkeypatch):
    def dead(x):
        gone = jnp.cos(x)  # noqa: F841
        return jnp.sin(x)

    monkeypatch.setattr(build, "_has_labels", lambda module: False)
    assert {e.primitive: e.status for e in stages(dead, X).equations} == {"cos": "unused", "sin": "unknown"}


def test_without_a_compiled_text_loops_are_told_from_the_jaxpr(monkeypatch):
    monkeypatch.setattr(_jax, "compiled_text", lambda compiled: "")
    notes = stages(lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c + x[i], 0.0), X).notes
    assert notes == (build.NO_HLO, "Flops and bytes count the body of a loop once, not once per step.")
