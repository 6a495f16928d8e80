"""What `tools/run_here.py` says of its steps, on a machine that lacks something, or where a step fails."""

import sys
import types

import run_here


def test_a_step_says_how_it_went(monkeypatch, tmp_path):
    monkeypatch.setattr(run_here, "RESULTS", tmp_path)
    assert (
        run_here.run("site", [], ("jax", "no_such_module"))
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
    assert list(names)[:3] == ["report", "recording", "tests"]
    assert "a laptop" in names["recording"]
    assert {f"example {path.stem}" for path in (run_here.ROOT / "examples").glob("[!t]*.py")} <= set(names)


def test_what_the_figures_drew_comes_back_with_the_results():
    site = {name: arguments for name, arguments, _ in run_here.steps("a laptop")}["site"]
    assert "guide_machine=a laptop" in site
    assert f"guide_figures={run_here.RESULTS / 'figures.json'}" in site


def test_the_end_names_what_did_not_pass(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(run_here, "ROOT", tmp_path)
    for name in ("RESULTS", "WHEELS", "SITE"):
        monkeypatch.setattr(run_here, name, tmp_path / name.lower())
    good, bad = ("good", ["-c", "print('fine')"], ()), ("claims", ["-c", "raise SystemExit(3)"], ())
    monkeypatch.setattr(sys, "argv", ["run_here.py"])
    monkeypatch.setattr(run_here, "steps", lambda _: [good, ("site", [], ("no_such_module",))])
    assert run_here.main() == 0
    monkeypatch.setattr(run_here, "steps", lambda _: [good, bad])
    assert run_here.main() == 1
    assert "did not pass: claims." in capsys.readouterr().out


def test_wheels_that_do_not_fit_leave_what_needs_none(monkeypatch, tmp_path, capsys):
    calls, codes = [], iter([0, 1, 0, 1])  # pip fails, and fails again

    def run(command, **_):
        calls.append(command[2])
        (tmp_path / "build" / "environment" / "site-packages").mkdir(parents=True, exist_ok=True)
        return types.SimpleNamespace(returncode=next(codes))

    monkeypatch.setattr(run_here.subprocess, "run", run)
    monkeypatch.setattr(run_here, "ROOT", tmp_path)
    monkeypatch.setattr(run_here, "WHEELS", tmp_path)
    for _ in range(2):
        run_here.install_wheels()
        assert "The wheels don't fit Python" in capsys.readouterr().err
    assert calls == ["venv", "pip"] * 2, "a half-made environment is made again"
