"""Recordings: made, read back, refused without their origin, shown side by side."""

import json
import math
import re
import subprocess
import sys

import jax
import pytest

from jitguide import Recording, __main__, record
from jitguide._recording import experiments, recording
from jitguide._recording.experiments import EXPERIMENTS, Effort, Row

MACHINE = {
    "jax": "0.10.2", "jaxlib": "0.10.2", "platform": "gpu", "device_kind": "NVIDIA X", "device_count": 1,
    "cpu": "Fast", "cores": 16, "settings": {"XLA_FLAGS": "--a=b"},
}  # fmt: skip
ROWS = (
    Row("Cost?", "a call", "s", 2e-6, 1e-6, 3e-6),
    Row("Gain?", "selu", "speedup", 0.5, 0.4, 0.6),
    Row("Gain?", "softmax: time ÷ copy", "ratio", 1.25, 1.2, 1.3),
    Row("Peaks?", "copy", "B/s", 2e12, 1e12, 2e12),
    Row("Error?", "largest", "ratio", 1.4e-6),
)
FAST = Recording("fast", "2026-01-31", MACHINE, ROWS, 12.0, quick=False)


def changed(**parts):
    return FAST.to_dict() | parts


def without(part):
    return {key: value for key, value in MACHINE.items() if key != part}


def test_a_recording_is_the_same_after_json():
    assert Recording.from_dict(json.loads(json.dumps(FAST.to_dict()))) == FAST


def test_a_recording_is_not_shown_beside_itself():
    assert FAST.beside(FAST).recordings == (FAST,)


@pytest.mark.parametrize(
    ("data", "part"),
    [
        ([], "not a recording of format 1"),
        (changed(format=2), "not a recording of format 1"),
        ({"format": 1, "name": "x"}, "lacks date, machine, rows"),
        *((changed(machine=without(part)), f"made: {part}.") for part in MACHINE),
        (changed(machine=MACHINE | {"jax": None}), "made: jax."),
        (changed(machine="a GPU"), "made: jax, jaxlib"),
        (changed(rows=[]), "other fields"),
        (changed(rows=[{"group": "x"}]), "other fields"),
        (changed(rows=[Row("a", "b", "furlongs", 1.0).to_dict()]), "unknown unit"),
        (changed(rows=[Row("a", "b", "s", "fast").to_dict()]), "no numbers"),
    ],
)
def test_a_recording_without_its_origin_or_with_other_rows_is_refused(data, part):
    with pytest.raises(ValueError, match="Make it again with `python -m jitguide record FILE`") as caught:
        Recording.from_dict(data)
    assert part in str(caught.value)


def test_recordings_stand_side_by_side_and_what_one_lacks_is_said():
    rows = (Row("Gain?", "new", "speedup", 3.0, 2.9, 3.1),)
    slow = Recording("slow", "2026-02-01", MACHINE | {"platform": "cpu"}, rows, 1.0, quick=True)
    text = repr(FAST.beside(slow))
    assert text.splitlines()[1].split() == ["measured", "fast", "slow"]
    assert [line for line in text.splitlines() if line.endswith("?")] == [
        "Cost?", "Gain?", "Peaks?", "Error?"
    ]  # fmt: skip
    for shown in (
        "2.0 µs not measured", "2.00× slower (1.67–2.50) not measured", "1.25 (1.20–1.30)",
        "not measured ×3.00 (2.90–3.10)", "1–2 TB/s", "1.4e-06",
        "fast: 1 × NVIDIA X (gpu), Fast, 16 cores, JAX 0.10.2, 2026-01-31, XLA_FLAGS=--a=b.",
        "slow: 1 × NVIDIA X (cpu), Fast, 16 cores, JAX 0.10.2, 2026-02-01, the short form, XLA_FLAGS=--a=b.",
    ):  # fmt: skip
        assert shown in re.sub(" +", " ", text), text


def test_the_recordings_of_the_guide_are_whole_and_thorough():
    found = recording.shipped()
    assert found
    assert not any(one.quick for one in found)
    assert len({one.name for one in found}) == len(found)
    asked = {row.group for one in found for row in one.rows}
    assert all({row.group for row in one.rows} == asked for one in found)


@pytest.fixture
def short(monkeypatch):
    monkeypatch.setattr(recording, "EXPERIMENTS", (lambda effort: [Row("Q?", "x", "s", effort.budget)],))


def test_a_recording_says_on_what_it_was_made(short):
    thorough, quick = record(name="mine"), record(quick=True)
    assert (thorough.name, quick.name, thorough.quick, quick.quick) == ("mine", "here", False, True)
    assert thorough.machine["device_kind"] == jax.devices()[0].device_kind
    assert thorough.rows[0].value > quick.rows[0].value
    assert Recording.from_dict(json.loads(json.dumps(quick.to_dict()))) == quick


def test_beside_shows_the_recordings_of_the_guide(short):
    _, header, *_ = repr(record(name="mine").beside()).splitlines()
    assert all(one.name in header for one in recording.shipped())


def test_the_command_writes_the_recording_and_shows_it(short, tmp_path, capsys):
    path = tmp_path / "mine.json"
    assert __main__.main(["record", str(path), "--name", "lab", "--quick"]) == __main__.FOUND
    assert Recording.from_dict(json.loads(path.read_text("utf-8"))).name == "lab"
    assert capsys.readouterr().out.splitlines()[1].split()[:2] == ["measured", "lab"]


@pytest.mark.parametrize("name", [".", "no-such-folder/mine.json"])
def test_a_file_that_cannot_be_written_is_refused_before_measuring(name, capsys, monkeypatch):
    monkeypatch.setattr(__main__, "record", None)
    assert __main__.main(["record", name]) == __main__.USAGE
    assert "name a file in a folder that exists" in capsys.readouterr().err


def test_a_missing_device_ends_the_command_with_a_sentence(tmp_path):
    code = "import sys; from jitguide.__main__ import main; sys.exit(main(['record']))"
    done = subprocess.run(
        [sys.executable, "-c", code],
        env={"JAX_PLATFORMS": "nonsense"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == __main__.USAGE
    assert done.stderr.startswith("jitguide: JAX could not start a device: ")


@pytest.mark.slow
@pytest.mark.parametrize("experiment", EXPERIMENTS, ids=lambda experiment: experiment.__name__)
def test_every_experiment_measures_something_sensible(experiment, monkeypatch):
    monkeypatch.setattr(experiments, "_LARGE_CPU", 2**16)
    monkeypatch.setattr(experiments, "_SIZES", (10, 10**6))
    rows = list(experiment(Effort(0.01, 1, quick=True)))
    assert rows
    for row in rows:
        assert row.unit in recording._UNITS
        numbers = [n for n in (row.value, row.low, row.high) if n is not None]
        assert all(math.isfinite(n) and n >= 0 for n in numbers), row
        assert numbers == [] or min(numbers) <= row.value <= max(numbers)
        assert recording._shown(row)
