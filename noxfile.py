#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2024.10"]
# ///
"""What can be done with the guide: `nox -l` lists it.

All sessions that need JAX share one environment, `.nox/env`, made for the interpreter that runs nox. Arguments
after `--` go to the tool of the session.
"""

from __future__ import annotations

import hashlib
import shutil
import subprocess
import sys
from pathlib import Path

import nox

nox.needs_version = ">=2024.10"  # the first with `requires`
nox.options.default_venv_backend = "uv|virtualenv"  # uv is quicker where it is installed, and never needed
nox.options.sessions = ["docs"]
nox.options.reuse_venv = "yes"

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
CONSTRAINTS = "constraints.txt"
OLDEST_PYTHON = (3, 11)  # JAX 0.10 supports nothing older

HTML = ROOT / "docs" / "_build" / "html"
# -W: a warning is an error; --keep-going: all of them in one run; -n: a reference without a target is one.
STRICT = ["-n", "-W", "--keep-going", "-j", "2"]


@nox.session(default=False)
def env(session: nox.Session) -> None:
    """Make the environment that the other sessions use."""
    if sys.version_info < OLDEST_PYTHON:
        found, needed = (".".join(map(str, v[:2])) for v in (sys.version_info, OLDEST_PYTHON))
        session.error(f"The guide needs Python {needed} or later; nox runs on {found}. Install nox for a newer Python.")
    groups = nox.project.dependency_groups(PROJECT, "docs", "tests", "lint")
    stamp = Path(session.virtualenv.location) / "installed"
    wanted = hashlib.sha256(repr(groups).encode() + (ROOT / CONSTRAINTS).read_bytes()).hexdigest()
    if stamp.exists() and stamp.read_text() == wanted:
        return
    stamp.unlink(missing_ok=True)
    session.install("-c", CONSTRAINTS, *groups)
    session.install("-c", CONSTRAINTS, "-e", ".")
    stamp.write_text(wanted)


def python(session: nox.Session, *arguments: str | Path, **options: object) -> None:
    """Run the shared environment's Python."""
    folder = session.cache_dir.parent / "env"
    program = folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python")
    session.run(str(program), *map(str, arguments), external=True, **options)


def build(session: nox.Session, builder: str, *arguments: str) -> None:
    """Run one builder of Sphinx; all share what the pages gave and what was read of them."""
    out = ROOT / "docs" / "_build" / builder
    # What was read for html serves these two as well; other formats choose other forms of an output.
    doctrees = ".doctrees" if builder in ("html", "doctest", "linkcheck") else f".doctrees-{builder}"
    python(session, "-m", "sphinx", "-b", builder, *STRICT, "-d", out.parent / doctrees, *arguments, "docs", out)


@nox.session(venv_backend="none", requires=["env"])
def docs(session: nox.Session) -> None:
    """Build the site; `-- -b NAME` another builder, `-- --fresh` runs every page again."""
    arguments = list(session.posargs)
    if "--fresh" in arguments:
        arguments.remove("--fresh")
        for folder in (ROOT / "docs" / "_build", ROOT / "build" / "execution"):
            shutil.rmtree(folder, ignore_errors=True)
    builder = "html"
    if "-b" in arguments:
        at = arguments.index("-b")
        builder = arguments[at + 1] if at + 1 < len(arguments) else session.error("`-b` needs the name of a builder.")
        del arguments[at : at + 2]
    build(session, builder, *arguments)
    if builder == "html":
        print(f"\nThe guide is built. Open it with your browser: {HTML / 'index.html'}")


@nox.session(venv_backend="none", requires=["env"], default=False)
def live(session: nox.Session) -> None:
    """Serve the site and rebuild it whenever docs, jitguide, examples or claims change."""
    out = ROOT / "docs" / "_build" / "live"
    watched = [word for folder in ("jitguide", "examples", "tests/claims") for word in ("--watch", folder)]
    ignored = [word for glob in ("*/_build/*", "*/__pycache__/*", "*/_ipython/*/db/*") for word in ("--ignore", glob)]
    arguments = session.posargs or ["--open-browser"]
    python(session, "-m", "sphinx_autobuild", "-n", "-j", "2", *watched, *ignored, *arguments, "docs", out)


@nox.session(venv_backend="none", requires=["env"], default=False)
def tests(session: nox.Session) -> None:
    """Test the package, the extensions, the claims and the examples."""
    python(session, "-m", "pytest", *session.posargs)


@nox.session(venv_backend="none", requires=["env"], default=False)
def doctest(session: nox.Session) -> None:
    """Run the guide's doctests."""
    build(session, "doctest", *session.posargs)


@nox.session(venv_backend="none", requires=["env"], default=False)
def linkcheck(session: nox.Session) -> None:
    """Check the guide's links, telling broken from not reachable from here; `-- --strict` accepts neither."""
    strict = "--strict" in session.posargs
    out = ROOT / "docs" / "_build" / "linkcheck"
    python(
        session, "-m", "sphinx", "-b", "linkcheck", "-q", "-j", "2", "-d", out.parent / ".doctrees", "docs", out,
        success_codes=[0, 1],  # 1 says that some link is broken; the next line judges which
    )  # fmt: skip
    python(session, ROOT / "tests" / "site" / "links.py", out / "output.json", *(["--strict"] if strict else []))


@nox.session(venv_backend="none", requires=["env"], default=False)
def site(session: nox.Session) -> None:
    """Check the built site: everything that needs no browser."""
    if not HTML.joinpath("index.html").exists():
        session.error("There is no built site yet: run `nox -s docs` first.")
    python(session, "-m", "pytest", "tests/site", "-o", "norecursedirs=bench", *session.posargs)


@nox.session(venv_backend="none", requires=["env"], default=False)
def bench(session: nox.Session) -> None:
    """Run one benchmark: `-- NAME`; writes build/bench/NAME.json."""
    names = sorted(p.stem for p in (ROOT / "tests" / "bench").glob("[a-z]*.py"))
    if not session.posargs or session.posargs[0] not in names:
        session.error(f"Name one benchmark after `--`: {', '.join(names)}.")
    name, *arguments = session.posargs
    python(session, ROOT / "tests" / "bench" / f"{name}.py", *arguments)


# What each release of JAX needs beside it, as far as pip does not know: NumPy and SciPy of its time.
RELEASES = {
    "0.4.30": ["numpy<2.1", "scipy<1.14"],
    "0.4.38": ["numpy<2.3", "scipy<1.16"],
    "0.5.3": ["numpy<2.3", "scipy<1.16"],
    "0.6.2": ["numpy<2.4"],
    "0.7.2": ["numpy<2.4"],
    "0.8.3": [],
    "0.9.2": [],
    "0.10.2": [],
    "0.11.2": [],
    "0.12.0.1": [],
}
NEEDS_PYTHON_312 = ("0.11", "0.12")  # JAX 0.11 dropped Python 3.11


@nox.session(default=False)
def versions(session: nox.Session) -> None:
    """Run the claims on many releases of JAX and record them in docs/_data/claims.json.

    `-- 0.6.2 0.7.2` takes these only, `-- --newest` the newest release there is, `-- --again` repeats what is
    recorded already. Each release has an environment of its own; an interrupted run goes on where it stopped.
    """
    session.install("pytest", "-c", CONSTRAINTS)  # and Python only: the merging needs nothing else
    again, newest = "--again" in session.posargs, "--newest" in session.posargs
    chosen = [a for a in session.posargs if not a.startswith("-")] or (["newest"] if newest else list(RELEASES))
    folder = ROOT / "build" / "claims"
    folder.mkdir(parents=True, exist_ok=True)
    for number, release in enumerate(chosen, 1):
        record = folder / f"{release}.json"
        session.log(f"{number} of {len(chosen)}: JAX {release}")
        if record.exists() and not again and not newest:
            continue
        if interpreter := _interpreter_for(session, release):
            _run_claims(session, release, interpreter, record)
    session.run("python", "tests/claims/merge.py", str(folder), *(["--compare-only"] if newest else []))


def _interpreter_for(session: nox.Session, release: str) -> str | None:
    """Return an interpreter that really starts and that the release supports; say so where there is none."""
    modern = release == "newest" or release.startswith(NEEDS_PYTHON_312)
    candidates = [sys.executable, *(f"python3.{minor}" for minor in ((13, 12, 14) if modern else (11, 12)))]
    candidates += sorted(map(str, (Path.home() / ".pyenv" / "versions").glob("3.1[1-4].*/bin/python")))
    for candidate in candidates:
        program = "import sys; sys.exit(not ((3, 12) if %r else (3, 11)) <= sys.version_info[:2] <= (3, 13))" % modern
        if subprocess.run([candidate, "-c", program], capture_output=True, check=False).returncode == 0:
            return candidate
    session.warn(f"JAX {release} is left out: no Python {'3.12 or 3.13' if modern else '3.11 to 3.13'} starts here.")
    return None


def _run_claims(session: nox.Session, release: str, interpreter: str, record: Path) -> None:
    place = ROOT / ".nox" / "claims" / release
    program = str(place / "bin" / "python")
    if not place.exists():
        session.run(interpreter, "-m", "venv", str(place), external=True)
    jax = ["--upgrade", "jax"] if release == "newest" else [f"jax=={release}", f"jaxlib=={release}"]
    session.run(program, "-m", "pip", "install", "-q", *jax, "pytest", *RELEASES.get(release, []), external=True)
    # A configuration of its own: old releases warn of what is new, which is not the claims' business.
    session.run(
        program, "-m", "pytest", "tests/claims", "-q", "-p", "no:cacheprovider", "-c", "tests/claims/pytest.ini",
        "--record", str(record), external=True, success_codes=[0, 1], silent=True,
    )  # fmt: skip


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Check style and spelling of the code, and the rules of the pages; `-- --fix` mends what can be mended."""
    groups = nox.project.dependency_groups(PROJECT, "lint")
    session.install("-c", CONSTRAINTS, *groups)
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    session.run("codespell", *(["-w"] if fix else []))
    session.run("python", "docs/_ext/page_rules.py")


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Renew constraints.txt: the versions that the guide is tested with, on every supported Python."""
    session.install(*nox.project.dependency_groups(PROJECT, "lock"))
    groups = [word for group in ("docs", "tests", "lint") for word in ("--group", group)]
    session.run(
        "uv", "pip", "compile", "--universal", "--python-version", "3.11", "--upgrade", "pyproject.toml",
        "--extra", "plot", *groups, "-o", CONSTRAINTS, "--no-header", "--no-annotate", "--no-emit-index-url",
        "--no-emit-find-links", "-q",
    )  # fmt: skip
    text = (ROOT / CONSTRAINTS).read_text()
    (ROOT / CONSTRAINTS).write_text(f"{CONSTRAINTS_HEAD}\n{text}")


CONSTRAINTS_HEAD = "# Every version the guide was tested with, on Python 3.11 and newer. Made by `nox -s lock`; do not edit."

if __name__ == "__main__":
    nox.main()
