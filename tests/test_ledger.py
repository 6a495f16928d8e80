"""What was recorded is merged, compared and told in words; the recorder goes on where it stopped."""

import importlib.util
import json
import os
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
    claims = {
        name: {"digest": digest, "verdict": verdict, "reason": "" if verdict == "holds" else "why"}
        for name, verdict in verdicts.items()
    }
    return {"jax": jax, "python": "3.11.1", "numpy": "2.0.0", "device": "cpu", "count": 4} | {
        "claims": claims
    }


OLD = record("0.9.2", snow="does not hold", rain="holds", ice="not applicable")
NEW = record("0.10.2", snow="holds", rain="holds", ice="holds")


def test_releases_are_merged_in_their_order_and_flips_found():
    document = merge.merge([NEW, OLD])
    assert [r["jax"] for r in document["releases"]] == ["0.9.2", "0.10.2"]
    assert document["claims"]["snow"] == {"verdicts": "-+", "reasons": {"0.9.2": "why"}}
    assert document["claims"]["rain"] == {"verdicts": "++"}
    assert merge.flips(document) == {"0.10.2": ["snow"]}  # ice could not be tried before


def test_the_document_is_json_with_one_claim_a_line():
    document = merge.merge([OLD, NEW])
    text = merge.dump(document)
    assert json.loads(text) == document
    assert '"rain": {"verdicts": "++"},' in text.splitlines()


def test_records_of_different_experiments_are_refused():
    with pytest.raises(
        merge.MergeError, match=r"different experiments for ice, rain, snow: run `nox -s versions` again"
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


def test_a_few_claims_are_recorded_beside_the_others(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(merge, "_DATA", tmp_path / "claims.json")
    merge._DATA.write_text(merge.dump(merge.merge([OLD, NEW])))
    before = json.loads(merge._DATA.read_text())
    run = tmp_path / "run"
    run.mkdir()
    for one in (OLD, NEW):
        few = record(one["jax"], hail="holds", rain="does not hold")
        (run / f"{one['jax']}.json").write_text(json.dumps(few))
    assert merge.main([str(run), "--some"]) == 0
    after = json.loads(merge._DATA.read_text())
    assert after["releases"] == before["releases"]
    assert after["claims"]["hail"]["verdicts"] == "++"
    assert after["claims"]["rain"]["verdicts"] == "--"
    assert {n: c for n, c in before["claims"].items() if n != "rain"}.items() <= after["claims"].items()
    (run / f"{NEW['jax']}.json").unlink()
    assert merge.main([str(run), "--some"]) == 1
    assert "must be run on the releases" in capsys.readouterr().err


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
    ("0.4.30", "0.9.2", "0.10.2"),
    {"a": "-++", "b": "+++", "c": "0-+", "d": "-0+", "e": "~~~"},
    {"a": {"0.4.30": "r"}, "e": {"0.9.2": "not seen: x"}},
    dict.fromkeys(("0.4.30", "0.9.2", "0.10.2"), ("3.11.7", "2.0.0", "a CPU")),
)


def test_the_releases_of_a_claim_are_told_in_words():
    assert RECORDING.in_words("a") == "Seen to hold on JAX 0.9.2 – 0.10.2 (2 of 3 releases tried), on a CPU."
    assert RECORDING.in_words("b") == "Seen to hold on JAX 0.4.30 – 0.10.2 (all 3 releases tried), on a CPU."
    assert (
        RECORDING.in_words("e") == "Seen to happen on JAX 0.4.30, 0.10.2 (2 of 3 releases tried), on a CPU."
    )
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


def test_only_what_began_or_ceased_to_hold_is_a_flip():
    flips = [(flip.claim, flip.before, flip.since) for flip in RECORDING.flips()]
    assert flips == [("a", "0.4.30", "0.9.2"), ("d", "0.4.30", "0.10.2"), ("c", "0.9.2", "0.10.2")]


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

ODD = """
import jax, pytest
from hostile import CannotRun

@pytest.fixture
def helper(): assert False, "no such file"

@pytest.mark.claim("helpless", "Its helper fails.")
def test_helpless(helper): pass

@pytest.mark.claim("api", "It needs a name that is not there.")
def test_api(): jax.no_such_name

@pytest.mark.claim("alone", "Its own Python does not start.")
def test_alone(child): child("import nothing_of_that_name")

@pytest.mark.claim("refused", "It raises nothing.")
def test_refused(): raise TypeError("missing 1 required positional argument: 'fun'")

@pytest.mark.claim("race", "It is seen.")
@pytest.mark.measured("the weather")
def test_race(): assert 1 == 2

@pytest.mark.claim("won", "It is seen.")
@pytest.mark.measured("the weather")
def test_won(): pass

@pytest.mark.claim("elsewhere", "It is so on a TPU.")
@pytest.mark.platform("tpu")
def test_elsewhere(): assert False

@pytest.mark.claim("cases", "All are vectors.")
@pytest.mark.hostile("scalar", "split", "matrix")
def test_cases(case): assert case.array.ndim == 1

@pytest.mark.claim("most", "All are arrays.")
@pytest.mark.hostile("scalar", "split")
def test_most(case): assert isinstance(case.array, jax.Array)
"""


@pytest.fixture
def record_of(tmp_path):
    """Return a function that runs files of claims with the recorder; it returns what pytest printed and the record."""
    folder, out = tmp_path / "claims", tmp_path / "record.json"
    folder.mkdir()
    for path in (ROOT / "tests" / "claims").iterdir():
        if path.is_file() and not path.name.startswith("test_"):
            (folder / path.name).write_bytes(path.read_bytes())

    def run(*options, **files):
        for name, text in files.items():
            (folder / f"test_{name}.py").write_text(text)
        command = [sys.executable, "-m", "pytest", str(folder), "-q", "-p", "no:cacheprovider", "--tb=short"]
        command += ["-c", str(folder / "pytest.ini"), "--record", str(out), *options]
        settings = {"JAX_PLATFORMS": "cpu", "XLA_FLAGS": "", "PYTEST_ADDOPTS": ""}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=os.environ | settings)
        return done.stdout, json.loads(out.read_text())["claims"]

    return run


@pytest.mark.slow
def test_the_recorder_tells_verdicts_with_reasons_and_repeats_only_what_changed(record_of):
    printed, claims = record_of(one=CLAIMS)
    assert "1 failed, 1 passed, 1 skipped, 1 deselected" in printed  # wrong twins are not recorded
    assert {name: (claim["verdict"], claim["reason"]) for name, claim in claims.items()} == {
        "good": ("holds", ""),
        "bad": ("does not hold", "assert two == 3 – here: 2 == 3"),
        "lacking": ("not applicable", "no snow here"),
    }
    words = '"It is so."'
    other_words = CLAIMS.replace(words, '"It is"\n "so, always."').replace(
        "import pytest", "import pytest, json"
    )
    assert "4 deselected" in record_of(one=other_words)[0]
    printed, claims = record_of(one=CLAIMS.replace("two = 2", "two = 4").replace('"lacking"', '"goneing"'))
    assert "1 failed, 1 skipped, 2 deselected" in printed
    assert set(claims) == {"good", "bad", "goneing"}
    assert "4 == 3" in claims["bad"]["reason"]
    assert "1 failed, 1 passed, 1 skipped, 1 deselected" in record_of(one=CLAIMS + "\nSHARED = 1\n")[0]


@pytest.mark.slow
def test_an_experiment_that_could_not_be_run_says_nothing_about_its_claim(record_of):
    claims = record_of("-n", "2", odd=ODD)[1]  # verdicts of two workers make one record
    assert {name: claim["verdict"] for name, claim in claims.items()} == {
        "helpless": "not applicable",
        "api": "not applicable",
        "alone": "not applicable",
        "refused": "does not hold",
        "race": "measured",
        "won": "measured",
        "elsewhere": "not applicable",
        "cases": "does not hold",
        "most": "holds",  # although one of its cases needs several devices
    }
    assert "ModuleNotFoundError: No module named 'nothing_of_that_name'" in claims["alone"]["reason"]
    assert claims["race"]["reason"].startswith("not seen: ")
    assert claims["race"]["reason"].endswith("here: 1 == 2")
    assert claims["won"]["reason"] == ""
    assert claims["elsewhere"]["reason"] == "a property of the backend tpu"


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
