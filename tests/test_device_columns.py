"""Verdicts of other devices stand beside the releases: merged from a record, kept, dropped, and told in words."""

import importlib.util
import json
import zipfile
from pathlib import Path

import pytest
from _ext.claims import experiments, proofs, recording

_SPEC = importlib.util.spec_from_file_location("claims_merge", Path(__file__).parent / "claims" / "merge.py")
merge = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(merge)

DIGESTS = {"snow": "aaaaaaaa-1", "rain": "bbbbbbbb-1", "ice": "cccccccc-1"}


def record(device="cpu", count=8, jax="0.10.2", digests=DIGESTS, **verdicts):
    claims = {
        name: {"digest": digests[name], "verdict": verdict, "reason": "" if verdict == "holds" else "why"}
        for name, verdict in verdicts.items()
    }
    return {
        "device": device,
        "count": count,
        "jax": jax,
        "python": "3.11.1",
        "numpy": "2.0.0",
        "claims": claims,
    }


@pytest.fixture
def data(tmp_path, monkeypatch):
    """Write a document of two releases where merge.py looks for it, and return its path."""
    path = tmp_path / "claims.json"
    monkeypatch.setattr(merge, "_DATA", path)
    monkeypatch.setattr(merge, "digests_of_all", lambda: DIGESTS)
    all_hold = dict.fromkeys(DIGESTS, "holds")
    path.write_text(
        merge.dump(merge.merge([record(count=4, jax=jax, **all_hold) for jax in ("0.9.2", "0.10.2")]))
    )
    return path


@pytest.fixture
def add(data, tmp_path):
    """Return a function that merges a record from a file; it returns the exit code."""

    def run(found, *options, name="record.json"):
        path = tmp_path / name
        if path.suffix == ".zip":
            with zipfile.ZipFile(path, "w") as packed:
                packed.writestr("claims.json", json.dumps(found))
        else:
            path.write_text(json.dumps(found))
        return merge.main(["--device", str(path), *options])

    return run


GPU = record("NVIDIA H100 80GB HBM3", 1, snow="holds", rain="not applicable", ice="does not hold")


def test_a_record_becomes_a_column_and_the_releases_stay(data, add, capsys):
    before = json.loads(data.read_text())
    assert add(record(snow="holds", rain="holds", ice="holds")) == 0
    assert add(GPU, name="results.zip") == 0  # as tools/run_here.py packs it
    assert "does not hold there: ice. why" in capsys.readouterr().out
    after = json.loads(data.read_text())
    assert after["releases"] == before["releases"]
    assert [(one["device"], one["count"], one["jax"]) for one in after["devices"]] == [
        ("NVIDIA H100 80GB HBM3", 1, "0.10.2"),
        ("cpu", 8, "0.10.2"),
    ]
    assert {name: claim["devices"] for name, claim in after["claims"].items()} == {
        "snow": "++", "rain": "0+", "ice": "-+",
    }  # fmt: skip
    assert after["claims"]["snow"] == {"verdicts": "++", "devices": "++", "digest": "aaaaaaaa"}
    assert after["claims"]["ice"]["reasons"] == {"1 NVIDIA H100 80GB HBM3, JAX 0.10.2": "why"}


def test_a_column_is_renewed_by_a_record_of_a_few_claims(data, add):
    add(record(snow="holds", rain="does not hold"))
    add(record(count=1, snow="holds"))
    add(record(rain="holds", ice="measured"))
    claims = json.loads(data.read_text())["claims"]
    assert {name: claim["devices"] for name, claim in claims.items()} == {
        "snow": "++",
        "rain": " +",
        "ice": " ~",
    }
    assert "reasons" not in claims["rain"]


@pytest.mark.parametrize("lost", ["device", "count", "jax"])
def test_a_record_that_does_not_say_on_what_it_was_made_is_refused(data, add, capsys, lost):
    before = data.read_text()
    assert add({key: value for key, value in GPU.items() if key != lost}) == 1
    assert f"doesn't say on what it was made: it lacks {lost}. Make it again" in capsys.readouterr().err
    assert data.read_text() == before


def test_a_record_of_other_experiments_is_refused_or_its_rest_is_taken(data, add, capsys):
    before = data.read_text()
    old = record(digests=DIGESTS | {"ice": "dddddddd-1"}, snow="holds", ice="holds")
    assert add(old) == 1
    message = capsys.readouterr().err
    assert (
        "of other experiments than those in tests/claims for 1 of its 2 claims (ice). Record again" in message
    )
    assert data.read_text() == before
    assert add(old, "--unchanged") == 0
    claims = json.loads(data.read_text())["claims"]
    assert claims["snow"]["devices"] == "+"
    assert "devices" not in claims["ice"]


@pytest.mark.parametrize(("name", "text"), [("x.json", "{"), ("x.zip", "no zip"), ("gone.json", None)])
def test_a_file_that_is_no_record_is_refused(data, tmp_path, capsys, name, text):
    if text:
        (tmp_path / name).write_text(text)
    assert merge.main(["--device", str(tmp_path / name)]) == 1
    assert "is neither a record of claims nor the results.zip" in capsys.readouterr().err
    (tmp_path / "empty.json").write_text("{}")
    assert merge.main(["--device", str(tmp_path / "empty.json")]) == 1
    assert "the record has no claims" in capsys.readouterr().err


@pytest.mark.parametrize("some", [[], ["--some"]])
def test_recording_releases_again_drops_only_verdicts_of_changed_experiments(data, add, tmp_path, some):
    add(GPU)
    run = tmp_path / "run"
    run.mkdir()
    changed = DIGESTS | {"ice": "dddddddd-1"}
    verdicts = {"rain": "holds", "ice": "holds"} if some else dict.fromkeys(DIGESTS, "holds")
    for jax in ("0.9.2", "0.10.2"):
        (run / f"{jax}.json").write_text(json.dumps(record(count=4, jax=jax, digests=changed, **verdicts)))
    assert merge.main([str(run), *some]) == 0
    after = json.loads(data.read_text())
    assert [one["count"] for one in after["devices"]] == [1]
    assert {name: claim.get("devices") for name, claim in after["claims"].items()} == {
        "snow": "+", "rain": "0", "ice": None,
    }  # fmt: skip
    assert list(after["claims"]["rain"]["reasons"].values()) == ["why"]
    assert "reasons" not in after["claims"]["ice"]


def test_a_column_without_a_verdict_goes(data, add, tmp_path):
    add(record(ice="holds"))
    run = tmp_path / "run"
    run.mkdir()
    for jax in ("0.9.2", "0.10.2"):
        again = record(count=4, jax=jax, digests=DIGESTS | {"ice": "dddddddd-1"}, ice="holds")
        (run / f"{jax}.json").write_text(json.dumps(again))
    assert merge.main([str(run), "--some"]) == 0
    assert "devices" not in json.loads(data.read_text())


def test_the_site_reads_what_was_merged(data, add):
    add(GPU)
    add(record(snow="holds", rain="holds"))
    add(record(count=1, snow="holds", rain="measured"))
    read = recording.load(data)
    assert [one.name for one in read.devices] == ["NVIDIA H100", "one CPU device", "8 CPU devices"]
    assert (
        read.elsewhere_in_words("snow")
        == "Also on NVIDIA H100, one CPU device and 8 CPU devices (JAX 0.10.2)."
    )
    assert read.elsewhere_in_words("rain") == (
        "Also on 8 CPU devices (JAX 0.10.2). Not applicable on NVIDIA H100 (JAX 0.10.2): why. "
        "Measured on one CPU device (JAX 0.10.2): why."
    )
    assert read.elsewhere_in_words("ice") == "Does not hold on NVIDIA H100 (JAX 0.10.2): why."
    assert recording.Recording().elsewhere_in_words("snow") == ""
    assert (
        read.in_words("snow")
        == "Seen to hold on JAX 0.9.2 – 0.10.2 (all 2 releases tried), on 4 CPU devices."
    )


def test_a_panel_has_a_chip_for_each_device_that_was_recorded(data, add):
    claim = next(iter(experiments.load().values()))
    named = experiments.Claim("rain", claim.sentence, claim.topic, claim.code, (), claim.path)
    assert proofs.data(named, recording.load(data))["devices"] == []
    add(GPU)
    found = proofs.data(named, recording.load(data))
    assert found["devices"] == [["NVIDIA H100", "0.10.2", "0", "not applicable", "why"]]
    assert "Not applicable on NVIDIA H100 (JAX 0.10.2): why." in found["seen"]


COMPILED = "the TPU compiler, nothing run"


def test_what_ran_on_no_release_but_was_compiled_for_a_tpu_says_so(data, add):
    lacking = {"rain": "not applicable"}
    releases = [record(count=4, jax=jax, snow="holds", **lacking) for jax in ("0.9.2", "0.10.2", "0.11.2")]
    data.write_text(merge.dump(merge.merge(releases)))
    for jax, verdict in (("0.9.2", "holds"), ("0.10.2", "holds"), ("0.11.2", "does not hold")):
        add(record(COMPILED, 1, jax, rain=verdict))
    read = recording.load(data)
    assert read.in_words("rain") == "Not applicable on the 3 releases tried, on 4 CPU devices: why."
    assert read.elsewhere_in_words("rain") == (
        f"Seen to hold on {COMPILED} (JAX 0.9.2 and 0.10.2). Does not hold on {COMPILED} (JAX 0.11.2): why."
    )
    claim = next(iter(experiments.load().values()))
    named = experiments.Claim("rain", claim.sentence, claim.topic, claim.code, (), claim.path)
    assert proofs.data(named, read)["devices"] == [
        [COMPILED, "0.9.2 and 0.10.2", "+", "holds", ""],
        [COMPILED, "0.11.2", "-", "does not hold", "why"],
    ]
    # Who uses one of these releases is told what its compiler did, not that the claim does not apply.
    assert proofs.differing(read)["claims"] == {"rain": "++-"}


def test_a_reason_of_several_releases_in_a_row_stands_once(data):
    lacking = [record(count=4, jax=jax, snow="not applicable") for jax in ("0.8.3", "0.9.2", "0.10.2")]
    lacking[1]["claims"]["snow"]["reason"] = "another"
    later = [record(count=4, jax=jax, snow="not applicable") for jax in ("0.11.2", "0.12.0")]
    document = merge.merge([*lacking, *later])
    assert document["claims"]["snow"]["reasons"] == {
        "0.8.3": "why",
        "0.9.2": "another",
        "0.10.2..0.12.0": "why",
    }
    data.write_text(merge.dump(document))
    assert recording.load(data).reasons["snow"] == {
        "0.8.3": "why", "0.9.2": "another", "0.10.2": "why", "0.11.2": "why", "0.12.0": "why",
    }  # fmt: skip
