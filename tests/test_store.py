"""Outputs are complete or absent, and never those of another environment."""

import json

import pytest
from _ext.execution.store import Store


def test_what_was_saved_is_loaded_under_the_same_key_only(tmp_path):
    store = Store(tmp_path, "f" * 64)
    store.save("learn/a", {"key": "k", "outputs": [1]})
    assert store.load("learn/a", "k")["outputs"] == [1]
    assert store.load("learn/a", "other") is None
    assert store.load("learn/b", "k") is None
    assert Store(tmp_path, "e" * 64).load("learn/a", "k") is None


@pytest.mark.parametrize("damage", [b"", b'{"key": "k", "out', b"[1]", b"\xff\xfe"])
def test_a_damaged_file_counts_as_absent(tmp_path, damage):
    store = Store(tmp_path, "f" * 64)
    store.save("a", {"key": "k"})
    next(store.folder.glob("a.json")).write_bytes(damage)
    assert store.load("a", "k") is None


def test_an_interrupted_save_leaves_the_record_before(tmp_path, monkeypatch):
    store = Store(tmp_path, "f" * 64)
    store.save("a", {"key": "old"})

    def interrupted(record, file, **_):
        file.write('{"key": "ne')
        raise KeyboardInterrupt

    monkeypatch.setattr(json, "dump", interrupted)
    with pytest.raises(KeyboardInterrupt):
        store.save("a", {"key": "new"})
    monkeypatch.undo()
    assert store.load("a", "old") == {"key": "old"}
    assert store.load("a", "new") is None


def test_only_a_few_environments_are_kept(tmp_path):
    for i in range(7):
        Store(tmp_path, f"{i}" * 64).discard_old_environments()
    assert len(list(tmp_path.iterdir())) == 4
    assert (tmp_path / ("6" * 16)).is_dir()
