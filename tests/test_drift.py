"""What a page gives may not change silently: what is kept, what is left out, and what is told."""

import json
import shutil
from pathlib import Path

import pytest
from _ext.execution import drift

pytestmark = pytest.mark.timeout(300)  # builds small sites with kernels; 40 s on a quiet machine
ROOT = Path(__file__).parents[1]


def stream(text):
    return {"output_type": "stream", "name": "stdout", "text": text}


def test_errors_keep_their_class_and_first_line():
    error = {
        "output_type": "error",
        "ename": "TypeError",
        "evalue": "It took 3.2 ms.\nMore.",
        "traceback": [],
    }
    assert drift.facts([[], [error]]) == ["cell 2: TypeError: It took #."]


def test_jaxprs_are_kept_whole_and_apart():
    inner = "{ lambda ; a:f32[]. let\n    b:f32[] = jit[jaxpr={ lambda ; . }] a\n  in (b,) }"
    assert drift.facts([[stream(f"first {inner}\nsecond {inner}\n")]]) == [f"cell 1: {inner}"] * 2


def test_counts_are_kept_and_measurements_are_not():
    text = "f: 4 calls (2 hit, 2 compiled)\n1 compiled 330 ms 12 rounds ×1.87\n5 jaxpr equations → 3 StableHLO operations\n"
    (fact,) = drift.facts([[stream(text)]])
    assert fact == "cell 1: 4 calls, 2 hit, 2 compiled, 1 compiled, 5 jaxpr equations, 3 StableHLO operations"
    assert drift.facts([[stream("earned back after 27 calls, in 1.3 s, 80% of it compiling\n")]]) == []


def test_a_half_printed_jaxpr_does_no_harm():
    assert drift.facts([[stream("{ lambda ; a:f32[]. let")]]) == []


OLD = {
    "a": {"code": "1", "facts": ["cell 1: 2 compiles"]},
    "b": {"code": "1", "facts": ["cell 1: 1 compiles"]},
}


def test_the_same_code_with_other_facts_is_told_with_a_diff():
    new = {**OLD, "a": {"code": "1", "facts": ["cell 1: 3 compiles"]}}
    (page, diff), = drift.compare(OLD, new).items()  # fmt: skip
    assert page == "a"
    assert diff.splitlines()[-2:] == ["-cell 1: 2 compiles", "+cell 1: 3 compiles"]


def test_other_code_may_give_other_facts():
    assert drift.compare(OLD, {"a": {"code": "2", "facts": []}, "new": OLD["a"]}) == {}


CONF = """
import sys
from pathlib import Path
sys.path.insert(0, {docs!r})
from _ext.execution import drift
drift._FOLDER = Path({folder!r}) / "drift"
project = "small"
extensions = ["myst_nb", "_ext.execution"]
nb_execution_mode = "off"
nb_custom_formats = {{".md": ["_ext.execution.read", {{}}, False]}}
guide_store = {folder!r} + "/store"
html_theme = "basic"
"""
PAGE = """---
file_format: mystnb
kernelspec: {name: python3, display_name: Python 3}
---

# Page

```{code-cell}
print("2 compiles")
```
"""


@pytest.mark.slow
def test_a_build_is_recorded_compared_and_accepted_again(tmp_path, sphinx):
    source = tmp_path / "docs"
    source.mkdir()
    (source / "conf.py").write_text(CONF.format(docs=str(ROOT / "docs"), folder=str(tmp_path)))
    (source / "index.md").write_text(PAGE)

    def build(*options):
        return sphinx("-W", "--keep-going", *options, source, tmp_path / "out")

    code, printed = build()
    assert code == 0, printed
    assert "0 pages compared, 1 not recorded" in printed
    assert build("-D", "guide_drift=accept")[0] == 0
    (recorded,) = (tmp_path / "drift").iterdir()
    changed = json.loads(recorded.read_text())
    changed["index"]["facts"] = ["cell 1: 1 compiles"]
    recorded.write_text(json.dumps(changed))
    code, printed = build()
    assert code != 0
    assert "-cell 1: 1 compiles\n+cell 1: 2 compiles" in printed
    assert "accept it: nox -s docs -- -D guide_drift=accept" in printed
    assert build("-D", "guide_drift=accept")[0] == 0
    assert build()[0] == 0


@pytest.mark.slow
def test_accepting_one_page_keeps_what_is_recorded_of_the_others(tmp_path, sphinx):
    source = tmp_path / "docs"
    source.mkdir()
    (source / "conf.py").write_text(CONF.format(docs=str(ROOT / "docs"), folder=str(tmp_path)))
    (source / "index.md").write_text(PAGE + "\n```{toctree}\nother\n```\n")
    (source / "other.md").write_text(PAGE)
    accept = ["-D", "guide_drift=accept", source, tmp_path / "out"]
    assert sphinx(*accept)[0] == 0
    (recorded,) = (tmp_path / "drift").iterdir()
    old = json.loads(recorded.read_text())
    for built in ("store", "out"):
        shutil.rmtree(tmp_path / built)  # as in a new clone, where no page has been run
    (source / "other.md").write_text(PAGE.replace("2 compiles", "3 compiles"))
    assert sphinx("-D", "guide_only=other", *accept)[0] == 0
    new = json.loads(recorded.read_text())
    assert new["index"] == old["index"]
    assert new["other"]["facts"] == ["cell 1: 3 compiles"]
