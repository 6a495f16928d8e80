"""What was recorded is merged, compared and told in words; the recorder goes on where it stopped."""

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest
from _ext.claims import recording

ROOT = Path(__file__).parents[1]
_SPEC = importlib.util.spec_from_file_location("claims_merge", ROOT / "tests" / "claims" / "merge.py")
merge = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(merge)


def record(jax, digest="d1", **verdicts):
    rows = {
        name.replace("_", "-"): [verdict, "" if verdict == "holds" else "why"]
        for name, verdict in verdicts.items()
    }
    files = {"test_a.py": {"digest": digest, "verdicts": rows}}
    return {"jax": jax, "python": "3.11.1", "numpy": "2.0.0", "files": files}


OLD = record("0.9.2", snow="does not hold", rain="holds", ice="not applicable")
NEW = record("0.10.2", snow="holds", rain="holds", ice="holds")


def test_releases_are_merged_in_their_order_and_flips_found():
    document = merge.merge([NEW, OLD])
    assert [r["jax"] for r in document["releases"]] == ["0.9.2", "0.10.2"]
    assert document["claims"]["snow"] == {"verdicts": "-+", "reasons": {"0.9.2": "why"}}
    assert document["claims"]["rain"] == {"verdicts": "++"}
    assert merge.flips(document) == {"0.10.2": ["ice", "snow"]}


def test_the_document_is_json_with_one_claim_a_line():
    document = merge.merge([OLD, NEW])
    text = merge.dump(document)
    assert json.loads(text) == document
    assert '"rain": {"verdicts": "++"},' in text.splitlines()


def test_records_of_different_experiments_are_refused():
    with pytest.raises(
        merge.MergeError, match=r"different experiments in test_a\.py: run `nox -s versions` again"
    ):
        merge.merge([OLD, record("0.10.2", "d2", snow="holds")])


def test_a_shorter_recording_does_not_replace_a_longer_one(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(merge, "_DATA", tmp_path / "data" / "claims.json")
    for release in (OLD, NEW):
        (tmp_path / f"{release['jax']}.json").write_text(json.dumps(release))
    assert merge.main([str(tmp_path)]) == 0
    (tmp_path / "0.9.2.json").unlink()
    assert merge.main([str(tmp_path)]) == 1
    assert "has 2 releases and only 1 were run here" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("newest", "code", "line"),
    [
        (NEW, 0, ""),
        (
            record("0.11.0", snow="does not hold", rain="holds", ice="holds"),
            1,
            "- `snow`: holds → does not hold. why",
        ),
        (record("0.11.0", hail="does not hold"), 1, "- `hail`: not recorded → does not hold. why"),
        (record("0.11.0", hail="holds"), 0, ""),
    ],
    ids=["same", "changed", "new and false", "new and true"],
)
def test_the_newest_release_is_compared_with_the_last_recorded(tmp_path, monkeypatch, newest, code, line):
    monkeypatch.setattr(merge, "_DATA", tmp_path / "claims.json")
    merge._DATA.write_text(merge.dump(merge.merge([OLD, NEW])))
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / "newest.json").write_text(json.dumps(newest))
    assert merge.main([str(tmp_path / "run"), "--newest"]) == code
    changes = tmp_path / "run" / "changes.md"
    assert (changes.read_text().splitlines()[-1] if changes.exists() else "") == line


RECORDING = recording.Recording(
    ("0.4.30", "0.9.2", "0.10.2"), {"a": "-++", "b": "+++", "c": "0-+"}, {"a": {"0.4.30": "r"}}
)


def test_the_releases_of_a_claim_are_told_in_words():
    assert RECORDING.in_words("a") == "Seen to hold on JAX 0.9.2 – 0.10.2 (2 of 3 releases tried)."
    assert RECORDING.in_words("b") == "Seen to hold on JAX 0.4.30 – 0.10.2 (all 3 releases tried)."
    assert RECORDING.in_words("new") == "Not recorded across releases yet."


def test_a_flip_names_both_releases_and_the_reason():
    first = RECORDING.flips()[0]
    assert (first.claim, first.before, first.since, first.old, first.new) == (
        "a",
        "0.4.30",
        "0.9.2",
        "-",
        "+",
    )
    assert first.reason == "r"
    assert [flip.claim for flip in RECORDING.flips()] == ["a", "c", "c"]


@pytest.mark.parametrize(
    ("jax", "verdict"), [("0.10.2", "+"), ("0.11.9", "+"), ("0.5.0", "0"), ("0.4.1", "")]
)
def test_a_release_between_two_has_the_verdict_of_the_one_before(jax, verdict):
    assert RECORDING.on("c", jax) == verdict


CLAIMS = """
import pytest

@pytest.mark.claim("good", "It is so.")
def test_good(): print("ran")

@pytest.mark.claim("bad", "It is not so.")
def test_bad():
    two = 2
    assert two == 3

@pytest.mark.claim("lacking", "It needs more.")
def test_lacking(): pytest.skip("not applicable: no snow here")

@pytest.mark.wrong_twin("good")
def test_wrong_twin(): assert False
"""


def test_the_recorder_tells_verdicts_with_reasons_and_repeats_only_what_changed(tmp_path):
    folder, out = tmp_path / "claims", tmp_path / "record.json"
    folder.mkdir()
    for name in ("conftest.py", "pytest.ini"):
        (folder / name).write_bytes((ROOT / "tests" / "claims" / name).read_bytes())
    (folder / "test_one.py").write_text(CLAIMS)
    (folder / "test_two.py").write_text(
        CLAIMS.replace('"good', '"fine').replace('"bad', '"poor').replace('"lack', '"miss')
    )

    def run():
        command = [sys.executable, "-m", "pytest", str(folder), "-q", "-p", "no:cacheprovider", "--tb=short"]
        command += ["-c", str(folder / "pytest.ini"), "--record", str(out)]
        return subprocess.run(command, capture_output=True, text=True, check=False).stdout

    assert "2 failed, 2 passed, 2 skipped, 2 xfailed" in run()
    assert json.loads(out.read_text())["files"]["test_one.py"]["verdicts"] == {
        "good": ["holds", ""],
        "bad": ["does not hold", "assert two == 3 – here: 2 == 3"],
        "lacking": ["not applicable", "no snow here"],
    }
    assert "8 deselected" in run()
    (folder / "test_two.py").write_text(
        CLAIMS.replace('"good', '"fine').replace('"bad', '"poor').replace('"lack', '"gone')
    )
    assert "4 deselected" in run()
    assert set(json.loads(out.read_text())["files"]["test_two.py"]["verdicts"]) == {"fine", "poor", "goneing"}


def test_the_freshness_workflow_is_valid_by_its_schema():
    workflow = str(ROOT / ".github" / "workflows" / "freshness.yml")
    command = [
        sys.executable,
        "-m",
        "check_jsonschema",
        "--builtin-schema",
        "vendor.github-workflows",
        workflow,
    ]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert run.returncode == 0, run.stdout + run.stderr
