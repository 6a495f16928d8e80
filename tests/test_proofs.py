"""The file of a claim that a page loads: small, whole, and the same data as the recording."""

import dataclasses
import json
from types import SimpleNamespace

import pytest
from _ext import DATA, build
from _ext.claims import experiments, proofs, recording

CLAIMS = experiments.load()
RECORDED = recording.load(DATA / recording.CLAIMS)


def taken(text):
    """Return what the file hands over, as the browser would get it."""
    name, found = text.removeprefix("GuideProofs.take(").removesuffix(");\n").split(",", 1)
    return json.loads(name), json.loads(found)


def test_every_file_is_small_and_says_what_it_is():
    for claim in CLAIMS.values():
        text = proofs.script(claim, RECORDED)
        assert len(text.encode()) <= proofs.LARGEST, claim.id
        name, found = taken(text)
        assert name == claim.id
        assert found["sentence"] == claim.sentence
        assert found["code"] or found["plain"]


def test_verdicts_are_those_of_the_recording():
    name, row = next((n, row) for n, row in RECORDED.verdicts.items() if n in CLAIMS and "-" in row)
    _, found = taken(proofs.script(CLAIMS[name], RECORDED))
    assert [short for _, short, *_ in found["verdicts"]] == list(row)
    assert [release for release, *_ in found["verdicts"]] == list(RECORDED.releases)
    assert any(reason for *_, reason in found["verdicts"])


def test_a_large_experiment_loses_its_colours_only():
    claim = next(iter(CLAIMS.values()))
    large = dataclasses.replace(claim, shown="f(1)\n" * 2000)
    _, found = taken(proofs.script(large, RECORDED))
    assert found["code"] == ""
    assert found["plain"] == large.shown


def test_a_claim_that_was_never_recorded_has_no_verdicts():
    claim = next(iter(CLAIMS.values()))
    _, found = taken(proofs.script(claim, recording.Recording()))
    assert found["verdicts"] == []
    assert "Not recorded" in found["seen"]


def test_what_was_made_of_the_same_facts_is_not_made_again(tmp_path):
    app = SimpleNamespace(doctreedir=tmp_path, outdir=tmp_path / "html", builder=SimpleNamespace(name="html"))

    def is_made(name, facts):
        with build.making(app, name, facts) as new:
            return new

    assert is_made("proofs", {"a": 1})
    assert not is_made("proofs", {"a": 1})
    assert is_made("errors", {"a": 1})
    with pytest.raises(KeyboardInterrupt), build.making(app, "proofs", {"a": 2}):
        raise KeyboardInterrupt
    assert is_made("proofs", {"a": 2})
    app.outdir = tmp_path / "elsewhere"
    assert is_made("proofs", {"a": 2})
