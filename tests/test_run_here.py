"""What `tools/run_here.py` says of its steps, on a machine that lacks something, or where a step fails."""

import run_here


def test_a_step_says_how_it_went(monkeypatch, tmp_path):
    monkeypatch.setattr(run_here, "RESULTS", tmp_path)
    assert (
        run_here.run("site", [], ("sphinx", "no_such_module"))
        == "left out: no_such_module is not installed here"
    )
    good = run_here.run("good step", ["-c", "import jitguide; print('fine')"], ("jitguide",))
    assert good.startswith("done in ")
    assert good.endswith(" s: fine")
    assert run_here.run("bad", ["-c", "raise SystemExit('it broke')"], ()).startswith("exit code 1 in ")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.txt", "good-step.txt"]


def test_a_step_that_hangs_is_ended(monkeypatch, tmp_path):
    monkeypatch.setattr(run_here, "RESULTS", tmp_path)
    monkeypatch.setattr(run_here, "HOUR", 1)
    assert run_here.run("slow", ["-c", "import time; time.sleep(100)"], ()) == "did not end within 0 minutes"


def test_the_steps_name_what_is_there():
    names = {name: arguments for name, arguments, _ in run_here.steps("a laptop")}
    assert list(names)[:3] == ["report", "recording", "claims"]
    assert "a laptop" in names["recording"]
    assert {f"example {path.stem}" for path in (run_here.ROOT / "examples").glob("[!t]*.py")} <= set(names)


def test_what_the_figures_drew_comes_back_with_the_results():
    site = {name: arguments for name, arguments, _ in run_here.steps("a laptop")}["site"]
    assert "guide_machine=a laptop" in site
    assert f"guide_figures={run_here.RESULTS / 'figures.json'}" in site
