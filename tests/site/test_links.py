"""The judgement of links tells broken from not reachable from here."""

import importlib.util
import json
from pathlib import Path

import pytest

_SPEC = importlib.util.spec_from_file_location("links", Path(__file__).with_name("links.py"))
links = importlib.util.module_from_spec(_SPEC)
_SPEC.loader.exec_module(links)

DEAD = {
    "uri": "https://a.example/x",
    "status": "broken",
    "info": "404 Client Error",
    "filename": "a.md",
    "lineno": 3,
}
FAR = {**DEAD, "info": "HTTPSConnectionPool: Max retries (Caused by NameResolutionError(...))"}
LOCAL = {**FAR, "uri": "http://127.0.0.1:1/", "info": "Connection refused"}
FINE = {**DEAD, "status": "working", "info": ""}


@pytest.mark.parametrize(
    ("entries", "strict", "code"),
    [
        ([FINE], False, 0),
        ([FAR], False, 0),
        ([FAR], True, 1),
        ([DEAD], False, 1),
        ([LOCAL], False, 1),
        ([FINE, DEAD], False, 1),
    ],
)
def test_exit_code(tmp_path, capsys, entries, strict, code):
    path = tmp_path / "output.json"
    path.write_text("\n".join(map(json.dumps, entries)))
    assert links.main([str(path), *(["--strict"] if strict else [])]) == code
    assert ("a.md:3" in capsys.readouterr().err) == bool(code)


def test_a_check_that_did_not_run_is_an_error(tmp_path, capsys):
    assert links.main([str(tmp_path / "output.json")]) == 1
    assert "did not run" in capsys.readouterr().err
