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
