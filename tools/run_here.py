"""Run what this machine can run, without a network, and pack the results: `python tools/run_here.py [NAME]`.

For a machine with Python and JAX, such as one with a GPU, to which a clone of the project, or the folder that
`nox -s bundle` makes, was copied. With pytest it also runs the claims, and with the folder's wheels the tests and the
whole site. NAME says what the machine is called in tables. What was printed, the recording of the machine, what
the site's figures drew and the verdicts on the claims are in `results.zip`, the site in `site.zip`. With
`nox -s record -- results.zip` and `nox -s versions -- --device results.zip` the next build shows the numbers and the
verdicts.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from itertools import groupby
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
WHEELS, RESULTS, SITE = ROOT / "wheels", ROOT / "build" / "results", ROOT / "build" / "site"
# Plugins that are installed here may warn, and a warning is an error in these tests: pytest-benchmark does beside xdist.
PYTEST = ("-m", "pytest", "-p", "no:cacheprovider", "-p", "no:benchmark", "-q", "--tb=short")
CORES = os.cpu_count() or 1
SEVERAL = ("-n", str(min(8, CORES))) if importlib.util.find_spec("xdist") else ()
HOUR = 3600  # seconds: a step that takes longer hangs


# Its name, arguments for Python, and the modules that it needs beside JAX.
Step = tuple[str, list[str], tuple[str, ...]]


def steps(name: str) -> Iterator[Step]:
    """Yield all steps; those of the tests may run beside each other, the others measure."""
    yield "report", ["-m", "jitguide", "report"], ()
    yield "recording", ["-m", "jitguide", "record", str(RESULTS / "machine.json"), "--name", name], ()
    yield from tests()
    figures = ["-D", f"guide_machine={name}", "-D", f"guide_figures={RESULTS / 'figures.json'}"]
    build = ["-m", "sphinx", "-b", "html", "-q", "-d", str(ROOT / "build" / "doctrees"), *figures]
    yield "site", [*build, "docs", str(SITE)], ("sphinx", "myst_nb")


def tests() -> Iterator[Step]:
    """Yield the steps that only pass or fail, the longest first."""
    needed = ("pytest", "hypothesis", "sphinx", "equinox", "xdist")
    yield "tests", [*PYTEST, *SEVERAL, "tests", "jitguide", "--ignore=tests/claims"], needed
    verdicts = ["--record", str(RESULTS / "claims.json")]
    yield (
        "claims",
        [*PYTEST, *SEVERAL, "tests/claims", "-c", "tests/claims/pytest.ini", *verdicts],
        ("pytest",),
    )
    for example in sorted((ROOT / "examples").glob("*.py")):
        if not example.stem.startswith("test_"):
            yield f"example {example.stem}", [str(example)], ()


def install_wheels() -> None:
    """Go on in an environment that has the wheels beside this machine's own JAX; without it where they do not fit."""
    place = ROOT / "build" / "environment"
    python = place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    if Path(sys.prefix) == place or not WHEELS.is_dir():
        return
    if not (installed := place / "installed").exists():  # an interrupted installation begins again
        shutil.rmtree(place, ignore_errors=True)
        # Not all systems can put pip into an environment; the one that is here installs from outside.
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", place], check=True)
        # What is installed here comes after what the wheels bring; it may itself be in an environment.
        own = next(place.rglob("site-packages"))
        (own / "beside.pth").write_text(
            "\n".join(p for p in sys.path if p.endswith("-packages")) + "\n", "utf-8"
        )
        offline = ["--no-index", "--find-links", WHEELS, "-q", "-r", WHEELS / "requirements.txt"]
        pip = [sys.executable, "-m", "pip", "--python", python, "install"]
        if subprocess.run([*pip, *offline], check=False).returncode:
            version = ".".join(map(str, sys.version_info[:2]))
            print(
                f"The wheels don't fit Python {version} on this machine, as pip says above. Make the folder again with "
                f"`nox -s bundle -- --wheels`, on Python {version} and the same kind of system. Now runs what needs "
                "no wheels.",
                file=sys.stderr,
            )
            return
        installed.touch()
    sys.exit(subprocess.run([python, *sys.argv], check=False).returncode)


def run(name: str, arguments: list[str], needed: tuple[str, ...]) -> str:
    """Run a step and return in words how it went."""
    if missing := [module for module in needed if importlib.util.find_spec(module) is None]:
        return f"left out: {', '.join(missing)} is not installed here"
    # A step may start further processes: the first must not take the memory of a GPU for itself.
    own = {"PYTHONPATH": str(ROOT), "XLA_PYTHON_CLIENT_PREALLOCATE": "false"}
    start = time.perf_counter()
    with (RESULTS / f"{name.replace(' ', '-')}.txt").open("w", encoding="utf-8") as log:
        command = [sys.executable, *arguments]
        try:
            code = subprocess.run(
                command, cwd=ROOT, env=os.environ | own, stdout=log, stderr=subprocess.STDOUT, timeout=HOUR, check=False
            ).returncode  # fmt: skip
        except subprocess.TimeoutExpired:
            return f"did not end within {HOUR // 60} minutes"
    last = (Path(log.name).read_text("utf-8").strip().splitlines() or [""])[-1]
    return (
        f"{'done' if code == 0 else f'exit code {code}'} in {time.perf_counter() - start:.0f} s: {last[:100]}"
    )


def groups(all_steps: Sequence[Step]) -> list[list[Step]]:
    """Return the steps in groups, one after the other; what measures is a group of its own."""
    beside = {name for name, *_ in tests()}
    return [list(some) for _, some in groupby(all_steps, lambda step: step[0] in beside or step[0])]


def main() -> int:
    """Run the steps and pack what they gave; return 1 without JAX, and where a step did not pass."""
    if importlib.util.find_spec("jax") is None:
        print("JAX is not installed for this Python: run this with the Python that has it.", file=sys.stderr)
        return 1
    install_wheels()
    shutil.rmtree(RESULTS, ignore_errors=True)
    RESULTS.mkdir(parents=True)
    failed = []
    for group in groups([*steps(sys.argv[1] if len(sys.argv) > 1 else "this machine")]):
        print(f"running: {', '.join(name for name, *_ in group)}", flush=True)
        with ThreadPoolExecutor(max(1, CORES // 4)) as pool:
            running = {pool.submit(run, *step): step[0] for step in group}
            for done in as_completed(running):
                line = f"{running[done]}: {done.result()}"
                print(f"  {line}", flush=True)
                failed += [running[done]] if done.result().startswith(("exit code", "did not end")) else []
                with (RESULTS / "summary.txt").open("a", encoding="utf-8") as summary:
                    summary.write(f"{line}\n")
    for folder in (RESULTS, SITE):
        if folder.is_dir():
            print("packed:", shutil.make_archive(str(ROOT / folder.name), "zip", folder))
    if failed:
        print(f"did not pass: {', '.join(failed)}. {RESULTS} has what they printed, and so has results.zip.")
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
