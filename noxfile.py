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
        session.error(
            f"The guide needs Python {needed} or later; nox runs on {found}. Install nox for a newer Python."
        )
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
    # What was read for html serves these as well; other formats choose other forms of an output.
    same = builder in ("html", "dirhtml", "singlehtml", "epub", "doctest", "linkcheck")
    doctrees = ".doctrees" if same else f".doctrees-{builder}"
    python(
        session, "-m", "sphinx", "-b", builder, *STRICT, "-d", out.parent / doctrees, *arguments, "docs", out
    )


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
        builder = (
            arguments[at + 1]
            if at + 1 < len(arguments)
            else session.error("`-b` needs the name of a builder.")
        )
        del arguments[at : at + 2]
    build(session, builder, *arguments)
    if builder == "html":
        print(f"\nThe guide is built. Open it with your browser: {HTML / 'index.html'}")


@nox.session(venv_backend="none", requires=["env"], default=False)
def live(session: nox.Session) -> None:
    """Serve the site and rebuild it whenever docs, jitguide, examples or claims change."""
    out = ROOT / "docs" / "_build" / "live"
    watched = [word for folder in ("jitguide", "examples", "tests/claims") for word in ("--watch", folder)]
    ignored = [
        word for glob in ("*/_build/*", "*/__pycache__/*", "*/_ipython/*/db/*") for word in ("--ignore", glob)
    ]
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
    python(
        session, ROOT / "tests" / "site" / "links.py", out / "output.json", *(["--strict"] if strict else [])
    )


@nox.session(venv_backend="none", requires=["env"], default=False)
def site(session: nox.Session) -> None:
    """Check the built site: everything that needs no browser; `-- --quick` runs a share of the programs."""
    quick = session.posargs == ["--quick"]
    chosen = [] if quick else session.posargs
    if not HTML.joinpath("index.html").exists():
        session.error("There is no built site yet: run `nox -s docs` first.")
    python(session, "-m", "pytest", "tests/site", "-o", "norecursedirs=.* bench", *chosen)
    if not chosen:  # a chosen test is wanted alone
        share = ["--share", "10"] if quick else []
        python(session, ROOT / "tests" / "site" / "snippets.py", HTML, *share)
        python(session, ROOT / "tests" / "site" / "downloads.py", HTML)


@nox.session(venv_backend="none", requires=["env"], default=False)
def downloads(session: nox.Session) -> None:
    """Open and run the files that every page offers to take away; `site` runs those of a few pages."""
    python(session, ROOT / "tests" / "site" / "downloads.py", HTML, "--all")


@nox.session(venv_backend="none", requires=["env"], default=False)
def bench(session: nox.Session) -> None:
    """Run one benchmark: `-- NAME`; writes build/bench/NAME.json."""
    names = sorted(p.stem for p in (ROOT / "tests" / "bench").glob("[a-z]*.py"))
    if not session.posargs or session.posargs[0] not in names:
        session.error(f"Name one benchmark after `--`: {', '.join(names)}.")
    name, *arguments = session.posargs
    python(session, ROOT / "tests" / "bench" / f"{name}.py", *arguments)


# The releases on which the claims are recorded, each with the first Python to try and what pip does not know
# of it: the NumPy and SciPy of its time, and absl, which jax.export imported without requiring it.
RELEASES = {
    "0.4.30": ("3.11", "numpy<2.1", "scipy<1.14", "absl-py"),
    "0.4.38": ("3.11", "numpy<2.3", "scipy<1.16", "absl-py"),
    "0.5.3": ("3.11", "numpy<2.3", "scipy<1.16", "absl-py"),
    "0.6.2": ("3.11", "numpy<2.4"),
    "0.7.2": ("3.11", "numpy<2.4"),
    "0.8.3": ("3.11",),
    "0.9.2": ("3.11",),
    "0.10.2": ("3.11",),
    "0.11.2": ("3.13",),  # the first minor release without Python 3.11
    "0.12.0.1": ("3.13",),
}
NEWEST = ("3.13",)
ALSO = {"3.11": ["3.11", "3.12"], "3.13": ["3.13", "3.12", "3.14"]}  # 3.12 serves every release


@nox.session(venv_backend="none", default=False)
def versions(session: nox.Session) -> None:
    """Run the claims on many releases of JAX and record them in docs/_data/claims.json.

    `-- 0.6.2 0.7.2` takes these only, `-- --again` repeats what is recorded already, and `-- --newest` tries
    the newest release there is and says what it changes. Each release has an environment of its own; a run
    goes on where the last one stopped, and repeats the experiments that changed since.
    """
    newest = "--newest" in session.posargs
    chosen = [a for a in session.posargs if not a.startswith("-")] or (
        ["newest"] if newest else list(RELEASES)
    )
    if unknown := [release for release in chosen if release not in RELEASES and release != "newest"]:
        session.error(f"No such release on the list: {', '.join(unknown)}. There are {', '.join(RELEASES)}.")
    folder = ROOT / "build" / "claims"
    folder.mkdir(parents=True, exist_ok=True)
    for number, release in enumerate(chosen, 1):
        print(f"\n{number} of {len(chosen)}: the claims on JAX {release}", flush=True)
        record = folder / f"{release}.json"
        if newest or "--again" in session.posargs:
            record.unlink(missing_ok=True)
        _run_claims(session, release, record)
    session.run(sys.executable, "tests/claims/merge.py", str(folder), *(["--newest"] if newest else []))


def _run_claims(session: nox.Session, release: str, record: Path) -> None:
    """Run those claims of a release that are not recorded yet; make its environment where it is missing."""
    python_version, *beside = RELEASES.get(release, NEWEST)
    interpreter = _interpreter(ALSO[python_version])
    if interpreter is None:
        session.warn(f"JAX {release} is left out: no Python {' or '.join(ALSO[python_version])} starts here.")
        return
    place = ROOT / ".nox" / "claims" / release
    program = str(place / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))
    jax = ["--upgrade", "jax"] if release == "newest" else [f"jax=={release}", f"jaxlib=={release}"]
    wanted, stamp = " ".join([interpreter, *jax, *beside]), place / "installed"
    if release == "newest" or not stamp.exists() or stamp.read_text() != wanted:
        session.run(interpreter, "-m", "venv", "--clear", str(place))
        session.run(
            program, "-m", "pip", "install", "-q", "--disable-pip-version-check", *jax, "pytest", *beside
        )
        stamp.write_text(wanted)
    # A configuration of its own: what an old release warns of is not the claims' business.
    session.run(
        program, "-m", "pytest", "tests/claims", "-c", "tests/claims/pytest.ini", "-p", "no:cacheprovider",
        "-q", "--tb=short", "--no-summary", "--record", str(record), env={"JAX_PLATFORMS": "cpu"},
        success_codes=[0, 1, 5],  # 1: some claims do not hold, which is the news; 5: all are recorded already
    )  # fmt: skip


def _interpreter(wanted: list[str]) -> str | None:
    """Return the first interpreter of these versions that really starts: a name on PATH may be a shim."""
    for version in wanted:
        installed = sorted(
            (Path.home() / ".pyenv" / "versions").glob(f"{version}.*/bin/python"), reverse=True
        )
        for candidate in (sys.executable, f"python{version}", *map(str, installed)):
            program = f"import sys, venv; sys.exit('%d.%d' % sys.version_info[:2] != {version!r})"
            if (
                shutil.which(candidate)
                and subprocess.run([candidate, "-c", program], capture_output=True).returncode == 0
            ):
                return candidate
    return None


@nox.session(default=False)
def lint(session: nox.Session) -> None:
    """Check style and spelling of the code, and the rules of the pages; `-- --fix` mends what can be mended."""
    groups = nox.project.dependency_groups(PROJECT, "lint")
    session.install("-c", CONSTRAINTS, *groups)
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    session.run("codespell", *(["-w"] if fix else []))
    session.run("python", "tools/page_rules.py")


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


CONSTRAINTS_HEAD = (
    "# Every version the guide was tested with, on Python 3.11 and newer. Made by `nox -s lock`; do not edit."
)

if __name__ == "__main__":
    nox.main()
