#!/usr/bin/env -S uv run --script
# /// script
# dependencies = ["nox>=2024.10"]
# ///
"""What you can do with the guide: `nox -l` lists it.

The sessions that need JAX share one environment, `.nox/env`, made for the Python that runs nox.
Arguments after `--` go to the tool of the session.
"""

from __future__ import annotations

import difflib
import hashlib
import json
import os
import platform
import re
import shutil
import subprocess
import sys
import time
import zipfile
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nox
from nox.command import CommandFailed

nox.needs_version = ">=2024.10"  # the first with `requires`
nox.options.default_venv_backend = "uv|virtualenv"  # uv is quicker where it is installed, and never needed
nox.options.reuse_venv = "yes"
nox.options.error_on_missing_interpreters = True  # `lowest` needs Python 3.11, and must not pass without it

ROOT = Path(__file__).parent
PROJECT = nox.project.load_toml(ROOT / "pyproject.toml")
CONSTRAINTS = "constraints.txt"
CUDA = "jax[cuda13]"
OLDEST_PYTHON = (3, 11)  # JAX 0.10 supports nothing older

BUILD = ROOT / "docs" / "_build"
HTML = BUILD / "html"
# -W: a warning is an error; --keep-going: all of them in one run; -n: a reference without a target is one.
STRICT = ["-n", "-W", "--keep-going", "-j", "2"]


def group(*names: str) -> tuple[str, ...]:
    """Return the requirements of dependency groups of pyproject.toml."""
    return nox.project.dependency_groups(PROJECT, *names)


@nox.session(default=False)
def env(session: nox.Session) -> None:
    """Make the environment that the other sessions use; `-- cuda` with JAX for NVIDIA GPUs."""
    if sys.version_info < OLDEST_PYTHON:
        found, needed = (".".join(map(str, v[:2])) for v in (sys.version_info, OLDEST_PYTHON))
        session.error(
            f"The guide needs Python {needed} or later; nox runs on {found}. Install nox for a newer Python"
        )
    # One environment for many sessions, because JAX and Sphinx take 800 MB; the stamp lets a session start
    # without asking pip, which would need the network to build the package.
    wanted = group("docs", "tests", "ecosystem")
    place = Path(session.virtualenv.location)
    has_cuda = any(place.glob("lib/python*/site-packages/jax_cuda*_plugin"))
    if has_cuda or "cuda" in session.posargs:
        wanted += (CUDA,)
    elif has_gpu():
        print(
            "An NVIDIA GPU is here. To run the pages on it, run `nox -s env -- cuda` once (it downloads a few GB)."
        )
    stamp = place / "installed"
    # Compiled once here: a third of the time to start a build or a kernel where Python may not write bytecode, as in
    # many containers. pip does so by itself.
    compiled = {"UV_COMPILE_BYTECODE": "1"}
    settings = repr((wanted, compiled)).encode() + (ROOT / CONSTRAINTS).read_bytes()
    digest = hashlib.sha256(settings).hexdigest()
    if stamp.exists() and stamp.read_text() == digest:
        return
    stamp.unlink(missing_ok=True)
    session.install("-c", CONSTRAINTS, *wanted, env=compiled)
    session.install("-c", CONSTRAINTS, "-e", ".")
    stamp.write_text(digest)


def has_gpu() -> bool:
    """Return whether a working NVIDIA driver lists a GPU."""
    tool = shutil.which("nvidia-smi")
    listed = tool and subprocess.run([tool, "-L"], check=False, capture_output=True, text=True)
    return bool(listed) and listed.returncode == 0 and "GPU" in listed.stdout


def env_python(session: nox.Session) -> str:
    """Return the path of the shared environment's Python."""
    folder = session.cache_dir.parent / "env"
    return str(folder / ("Scripts/python.exe" if sys.platform == "win32" else "bin/python"))


def python(session: nox.Session, *arguments: str | Path, **options: object) -> None:
    """Run the shared environment's Python."""
    session.run(env_python(session), *map(str, arguments), external=True, **options)


def sphinx(session: nox.Session, *arguments: str | Path, **options: object) -> None:
    """Run Sphinx in the shared environment."""
    need_fork(session)
    python(session, "-m", "sphinx", *arguments, **options)


def need_fork(session: nox.Session) -> None:
    """Stop with one sentence on a system where no build can run."""
    if not hasattr(os, "fork"):
        session.error(
            "The build runs pages in forked processes, which Windows does not have: run it in WSL "
            "(https://learn.microsoft.com/windows/wsl)"
        )


def build(session: nox.Session, builder: str, *arguments: str, files: Iterable[str] = ()) -> None:
    """Run one builder of Sphinx, on all or some files; all share what the pages gave and what was read of them."""
    # What was read for html serves these as well; other formats choose other forms of an output.
    same = builder in ("html", "dirhtml", "singlehtml", "epub", "doctest", "linkcheck")
    doctrees = BUILD / (".doctrees" if same else f".doctrees-{builder}")
    sphinx(session, "-b", builder, *STRICT, "-d", doctrees, *arguments, "docs", BUILD / builder, *files)


@nox.session(venv_backend="none", requires=["env"])
def docs(session: nox.Session) -> None:
    """Build the site; `-- learn/shapes` runs and builds one page, `-b NAME` another builder, `--fresh` runs all again."""
    arguments = list(session.posargs)
    if "--fresh" in arguments:
        arguments.remove("--fresh")
        for folder in (BUILD, ROOT / "build" / "execution"):
            shutil.rmtree(folder, ignore_errors=True)
    builder = "html"
    if "-b" in arguments:
        at = arguments.index("-b")
        if at + 1 == len(arguments):
            session.error("`-b` needs the name of a builder")
        builder = arguments[at + 1]
        del arguments[at : at + 2]
    options, pages = split_pages(session, arguments)
    if pages:
        options += ["-D", f"guide_only={','.join(pages)}"]
    build(session, builder, *options, files=[f"docs/{page}.md" for page in pages])
    if builder == "html":
        places = [HTML / f"{page}.html" for page in pages or ["index"]]
        print("\nThe guide is built. Open it with your browser:", *places, sep="\n" if pages else " ")


def split_pages(session: nox.Session, arguments: list[str]) -> tuple[list[str], list[str]]:
    """Return the options for Sphinx, and the pages that are named among them."""
    sources = (path.relative_to(ROOT / "docs") for path in (ROOT / "docs").rglob("*.md"))
    known = {str(path.with_suffix("")) for path in sources if not path.parts[0].startswith("_")}
    options: list[str] = []
    pages: list[str] = []
    for word in arguments:
        page = word.removeprefix("./").removeprefix("docs/").removesuffix(".md")
        if word.startswith("-") or (options and options[-1] in WITH_VALUE):
            options.append(word)
        elif page in known:
            pages.append(page)
        else:
            by_end = {name: name.rpartition("/")[2] for name in sorted(known)}
            ends = difflib.get_close_matches(page.rpartition("/")[2], by_end.values(), 4)
            near = difflib.get_close_matches(page, known, 2) + [n for n, end in by_end.items() if end in ends]
            hint = f"; near it are {', '.join(dict.fromkeys(near))}" if near else ""
            session.error(f"There is no page {word!r}{hint}. Name a page as in `nox -s docs -- learn/shapes`")
    return options, pages


WITH_VALUE = ("-D", "-A", "-t", "-w", "-d", "-j", "-c")  # options of Sphinx that take the next word


@nox.session(venv_backend="none", requires=["env"], default=False)
def live(session: nox.Session) -> None:
    """Serve the site and rebuild it whenever docs, jitguide, examples or claims change."""
    watched = [word for folder in ("jitguide", "examples", "tests/claims") for word in ("--watch", folder)]
    ignored = [
        word for glob in ("*/_build/*", "*/__pycache__/*", "*/_ipython/*/db/*") for word in ("--ignore", glob)
    ]
    arguments = ["-n", "-j", "2", *watched, *ignored, *(session.posargs or ["--open-browser"])]
    need_fork(session)
    python(session, ROOT / "tools" / "live.py", *arguments, "docs", BUILD / "live")


@nox.session(venv_backend="none", requires=["env"], default=False)
def tests(session: nox.Session) -> None:
    """Test all but the slow; `-- --slow` these too, `-- --claims` all claims too, `-- --full` all with coverage, `-- tests/test_watch.py` one file.

    Slow are tests that start whole programs or builds, and a second run, with eight simulated devices, of those
    that depend on the number of devices. A claim whose verdict is recorded on this JAX is left out until its
    experiment changes. `--full` also tries more generated examples.
    """
    kinds = {"--slow": ["--recorded-claims"], "--claims": [], "--full": []}
    full, kind = session.posargs == ["--full"], " ".join(session.posargs)
    if session.posargs and kind not in kinds:
        python(session, "-m", "pytest", *session.posargs)
        return
    both_cores = ["-m", "pytest", "-n", "2", "--dist", "worksteal"]
    if kind:
        several = [ROOT / "tests" / f"test_{name}.py" for name in DEVICE_SENSITIVE]
        python(session, *both_cores, *several, env={"XLA_FLAGS": EIGHT_DEVICES})
    run = [*both_cores, "--durations=10"]
    if not full:
        python(session, *run, *kinds.get(kind, ["--recorded-claims", "-m", "not slow"]))
        return
    # Both are for CI: more examples, and coverage, which adds a fifth of the time to whatever runs under it.
    options = {"env": {"HYPOTHESIS_PROFILE": "ci"}}
    covered = [p for p in sorted(ROOT.glob("tests/test_*.py")) if "jitguide" in p.read_text("utf-8")]
    cover = ["--cov", "--cov-config=pyproject.toml", "--cov-fail-under=95"]
    python(session, *run, *cover, "jitguide", *covered, **options)
    python(session, *run, "tests", *(f"--ignore={p}" for p in covered), **options)


# Tests of what can depend on the number of devices; with eight simulated ones they take 20 seconds.
DEVICE_SENSITIVE = ("watch", "phases", "roofline", "device", "reasons", "scaling")
EIGHT_DEVICES = "--xla_force_host_platform_device_count=8"


@nox.session(venv_backend="none", requires=["env"], default=False)
def doctest(session: nox.Session) -> None:
    """Run the guide's doctests."""
    build(session, "doctest", *session.posargs)


@nox.session(venv_backend="none", requires=["env"], default=False)
def linkcheck(session: nox.Session) -> None:
    """Check the guide's links, telling broken from not reachable from here; `-- --strict` accepts neither."""
    strict = [word for word in session.posargs if word == "--strict"]
    out = BUILD / "linkcheck"
    sphinx(
        session, "-b", "linkcheck", "-q", "-j", "2", "-d", BUILD / ".doctrees", "docs", out,
        success_codes=[0, 1],  # 1 says that some link is broken; the next line judges which
    )  # fmt: skip
    python(session, ROOT / "tests" / "site" / "links.py", out / "output.json", *strict)


@nox.session(venv_backend="none", requires=["env"], default=False)
def site(session: nox.Session) -> None:
    """Check the built site: everything that needs no browser; `-- --quick` runs a share of the programs."""
    quick = session.posargs == ["--quick"]
    chosen = [] if quick else session.posargs
    need_site(session)
    # What surrounds a build, and builds after a change, are the same on every Python.
    less = [f"--ignore=tests/site/test_{name}.py" for name in ("rebuild", "survival")] if quick else []
    workers = [] if chosen else ["-n", "2"]
    python(session, "-m", "pytest", "tests/site", "-o", "norecursedirs=.* bench", *workers, *less, *chosen)
    if not chosen:  # a chosen test is wanted alone
        share = ["--share", "10"] if quick else []
        python(session, ROOT / "tests" / "site" / "snippets.py", HTML, *share)
        python(session, ROOT / "tests" / "site" / "downloads.py", HTML)


@nox.session(venv_backend="none", requires=["env"], default=False)
def downloads(session: nox.Session) -> None:
    """Open and run the files that every page offers for download; `site` runs those of a few pages."""
    need_site(session)
    python(session, ROOT / "tests" / "site" / "downloads.py", HTML, "--all")


@nox.session(default=False)
def browser(session: nox.Session) -> None:
    """Look at each page of the built site in Chromium, wide and on a phone, and use its parts."""
    need_site(session)
    session.install("-q", "-c", CONSTRAINTS, *group("browser"))
    workers = [] if session.posargs else ["-n", "2", "--dist", "worksteal"]
    # A configuration of its own: neither JAX nor Sphinx is needed, and the other tests' fixtures are not.
    options = ["-c", "tests/browser/pytest.ini", "-p", "no:cacheprovider"]
    session.run("python", "-m", "pytest", "tests/browser", *options, *workers, *session.posargs)


def need_site(session: nox.Session) -> None:
    """Stop with one sentence where there is nothing to check."""
    if not HTML.joinpath("index.html").exists():
        session.error("There is no built site yet: run `nox -s docs` first")


@nox.session(venv_backend="none", requires=["env"], default=False)
def bench(session: nox.Session) -> None:
    """Run benchmarks: `-- NAME`, or all but those of builds; `--quick` one short pass; writes build/bench/NAME.json."""
    names = sorted(path.stem for path in (ROOT / "tests" / "bench").glob("[a-z]*.py"))
    named = [word for word in session.posargs if not word.startswith("-")]
    # Those of builds take many minutes each, and Lighthouse needs Node and a network.
    chosen = named or [
        name for name in names if name not in ("build", "first", "lighthouse", "rebuild", "refresh")
    ]
    if unknown := [name for name in chosen if name not in names]:
        session.error(f"No benchmark is called {', '.join(unknown)}; there are {', '.join(names)}")
    for name in chosen:
        options = [word for word in session.posargs if word.startswith("-")]
        nox_python = {"NOX_PYTHON": sys.executable}  # `rebuild` measures nox as well
        python(session, ROOT / "tests" / "bench" / f"{name}.py", *options, env=nox_python)


# The releases of JAX on which the claims are recorded, with the Pythons to choose from and what pip does not
# know of them: the NumPy and SciPy of their time, and absl, which jax.export imported without requiring it.
OLD, NEW = ">=3.11,<3.13", ">=3.12"
RELEASES = {
    "0.4.30": (OLD, "numpy<2.1", "scipy<1.14", "absl-py"),
    "0.4.38": (OLD, "numpy<2.3", "scipy<1.16", "absl-py"),
    "0.5.3": (OLD, "numpy<2.3", "scipy<1.16", "absl-py"),
    "0.6.2": (OLD, "numpy<2.4"),
    "0.7.2": (OLD, "numpy<2.4"),
    "0.8.3": (OLD,),
    "0.9.2": (OLD,),
    "0.10.2": (OLD,),
    "0.11.2": (NEW,),  # the first minor release without Python 3.11
    "0.12.0.1": (NEW,),
}


@nox.session(venv_backend="none", requires=["env"], default=False)
def record(session: nox.Session) -> None:
    """Measure this machine for the tables and figures that compare machines; `-- "8-core laptop"` names it.

    `--quick` takes seconds and leaves the figures out. `-- "8-core laptop" howto/start-up` records the figures of one
    page only. `-- results.zip` adds what tools/run_here.py brought from another machine.
    """
    name, *rest = session.posargs or [f"{os.cpu_count()}-core CPU"]
    if name.endswith(".zip"):
        unpack_recording(session, name)
        return
    options, pages = split_pages(session, rest)
    machine, figures = recording_files(session, name)
    if not pages:
        python(session, "-m", "jitguide", "record", machine, "--name", name, *options)
        sources = [path for path in sorted((ROOT / "docs").rglob("*.md")) if "_build" not in path.parts]
        marked = [path for path in sources if ":recorded-data:" in path.read_text("utf-8")]
        pages = split_pages(session, [str(path.relative_to(ROOT)) for path in marked])[1]
    if "--quick" not in options:
        settings = {"only": ",".join(pages), "machine": name, "figures": figures}
        words = [word for key, value in settings.items() for word in ("-D", f"guide_{key}={value}")]
        build(session, "html", *words, files=[f"docs/{page}.md" for page in pages])
    print(f"\nThis machine is recorded as {name!r}. Commit that only if it did nothing else meanwhile.")


def recording_files(session: nox.Session, name: str) -> tuple[Path, Path]:
    """Return where the recording of a machine lies, and what the figures of the pages drew on it."""
    file = re.sub(r"[^a-z0-9]+", "-", name.lower()).strip("-")
    if not file:
        session.error('Name the machine first: nox -s record -- "8-core laptop"')
    folders = ROOT / "jitguide" / "_recording" / "machines", ROOT / "docs" / "_data" / "figures"
    return folders[0] / f"{file}.json", folders[1] / f"{file}.json"


def unpack_recording(session: nox.Session, results: str) -> None:
    """Put the recording and the figures' numbers of another machine beside those that are here."""
    with zipfile.ZipFile(results) as packed:
        there = {
            part: packed.read(part) for part in packed.namelist() if part in ("machine.json", "figures.json")
        }
    if "machine.json" not in there:
        session.error(
            f"{results} holds no machine.json: its recording failed, and recording.txt in it says why"
        )
    machine, figures = recording_files(session, json.loads(there["machine.json"])["name"])
    for part, path in (("machine.json", machine), ("figures.json", figures)):
        if part in there:
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(there[part])
        print(
            f"{path.relative_to(ROOT)}:",
            "written" if part in there else "nothing: the site was not built there",
        )


@nox.session(default=False)
def bundle(session: nox.Session) -> None:
    """Make a folder to run on a machine without a network, such as one with a GPU; `-- --wheels` adds all but JAX.

    `-- --wheels 3.12` takes the wheels of that Python, which must be installed here too.
    """
    folder = ROOT / "build" / "jit-guide"
    shutil.rmtree(folder, ignore_errors=True)
    for name in session.run("git", "ls-files", external=True, silent=True).splitlines():
        if name == "biome.jsonc":
            continue  # lint refuses a second one below the project
        target = folder / name
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(ROOT / name, target)
    if "--wheels" in session.posargs:
        session.install(*group("lock"))
        wheels = folder / "wheels"
        # Type checkers see no device, and are a quarter of all bytes.
        needs = [n for n in group("docs", "tests", "ecosystem") if not n.startswith(("mypy", "pyright"))]
        wheels.mkdir()
        version = [word for word in session.posargs if word[0].isdigit()] or [platform.python_version()]
        session.run(
            "uv", "run", "-q", "--no-project", "--isolated", "--python", *version, "--with", "pip",
            "python", "-m", "pip", "download", "-q", "-d", str(wheels), "-c", CONSTRAINTS, *needs,
            env={"PATH": search_path()},
        )  # fmt: skip
        for path in (*wheels.glob("jax-*"), *wheels.glob("jaxlib-*")):
            path.unlink()  # that machine's own can use its device
        (wheels / "requirements.txt").write_text("\n".join(needs) + "\n", "utf-8")
    print(f"\nCopy {folder} to the machine and run there: python tools/run_here.py NAME")


@nox.session(default=False)
def versions(session: nox.Session) -> None:
    """Run the claims on many releases of JAX and record them in docs/_data/claims.json.

    `-- tests/claims/test_loops.py` runs and records the claims of this file only. `-- 0.6.2 0.7.2` takes these
    releases only, `-- --again` repeats what is recorded already, and `-- --newest` tries the newest release there
    is and reports what it changes. A run goes on where the last one stopped, and repeats the experiments that
    changed since. `-- --device 8 0.10.2` records 8 simulated CPU devices on this release as a column of its
    own; `-- --device results.zip` adds what tools/run_here.py brought from another machine.
    """
    if "--device" in session.posargs:
        record_devices(session)
        return
    newest = "--newest" in session.posargs
    files = [word for word in session.posargs if word.endswith(".py")]
    chosen = [word for word in session.posargs if not word.startswith("-") and word not in files]
    chosen = chosen or (["newest"] if newest else list(RELEASES))
    if unknown := [release for release in chosen if release not in {*RELEASES, "newest"}]:
        session.error(f"No such release on the list: {', '.join(unknown)}. There are {', '.join(RELEASES)}")
    session.install(*group("lock"))
    folder = ROOT / "build" / ("claims-of-files" if files else "claims")
    if files:
        shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True, exist_ok=True)
    for number, release in enumerate(chosen, 1):
        print(f"\n{number} of {len(chosen)}: the claims on JAX {release}", flush=True)
        record = folder / f"{release}.json"
        if newest or "--again" in session.posargs:
            record.unlink(missing_ok=True)
        run_claims(session, release, record, files or ["tests/claims"])
    how = ["--newest"] * newest or ["--some"] * bool(files)
    session.run("python", "tests/claims/merge.py", str(folder), *how)


def record_devices(session: nox.Session) -> None:
    """Merge records of other devices into docs/_data/claims.json; a count of CPU devices is recorded here first."""
    session.install(*group("lock"))
    files = [word for word in session.posargs if word.endswith(".py")]
    releases = [word for word in session.posargs if word in RELEASES] or list(RELEASES)[-1:]
    other = (*files, *releases)
    records = [word for word in session.posargs if not word.startswith("-") and word not in other]
    if not records:
        session.error(
            "After --device, give a number of CPU devices to record here, such as 8, or a record of another "
            "machine: the results.zip that tools/run_here.py packs"
        )
    for place, word in enumerate(records):
        if word.isdigit():
            record = ROOT / "build" / "claims-of-devices" / f"{word}-cpu-{releases[0]}.json"
            record.parent.mkdir(parents=True, exist_ok=True)
            if files or "--again" in session.posargs:
                record.unlink(missing_ok=True)
            run_claims(session, releases[0], record, files or ["tests/claims"], devices=word)
            records[place] = str(record)
    how = [word for word in session.posargs if word == "--unchanged"]
    session.run("python", "tests/claims/merge.py", "--device", *records, *how)


def run_claims(
    session: nox.Session, release: str, record: Path, files: list[str], devices: str = "4"
) -> None:
    """Run those claims of a release that are not recorded yet, in an environment that uv makes for them."""
    pythons, *beside = RELEASES.get(release, (NEW,))
    try:
        session.run("uv", "python", "find", "-q", pythons, env={"PATH": search_path()}, silent=True)
    except CommandFailed:
        session.warn(f"JAX {release} is left out: no Python {pythons} starts here.")
        return
    needs = ["jax" if release == "newest" else f"jax=={release}", "pytest", *beside]
    options = [word for need in needs for word in ("--with", need)]
    if release == "newest":
        options += ["--refresh-package", "jax", "--refresh-package", "jaxlib"]
    # A configuration of its own: what an old release warns of is not the claims' business.
    session.run(
        "uv", "run", "-q", "--no-project", "--isolated", "--python", pythons, *options,
        "python", "-m", "pytest", *files, "-c", "tests/claims/pytest.ini", "-p", "no:cacheprovider",
        "-q", "--tb=short", "--no-summary", "--record", str(record),
        # Several devices, so that cases with some can be run; those that need a number of their own start a process.
        env={
            "JAX_PLATFORMS": "cpu", "PATH": search_path(),
            "XLA_FLAGS": f"--xla_force_host_platform_device_count={devices}",
        },
        success_codes=[0, 1, 5],  # 1: some claims do not hold, which is the news; 5: all are recorded already
    )  # fmt: skip


def search_path() -> str:
    """Return PATH with the Pythons that pyenv and container images install beside it, for uv to find."""
    beside = [*Path.home().glob(".pyenv/versions/3.*/bin"), *Path("/opt/python").glob("cp3*/bin")]
    return os.pathsep.join([os.environ["PATH"], *map(str, beside)])


@nox.session(requires=["env"], default=False)
def lint(session: nox.Session) -> None:
    """Check style, spelling, types, workflows and the rules of the pages; `-- --fix` fixes what can be fixed."""
    session.install("-q", "-c", CONSTRAINTS, *group("lint"))
    fix = "--fix" in session.posargs
    session.run("ruff", "check", *(["--fix"] if fix else []), ".")
    session.run("ruff", "format", *([] if fix else ["--check"]), ".")
    session.run("codespell", *(["-w"] if fix else []))
    session.run("zizmor", "--offline", "--no-progress", ".github")
    session.run("python", "tools/page_rules.py")
    session.run("python", "tools/repository.py", *([] if fix else ["--check"]))
    lint_scripts(session, fix=fix)
    # mypy needs the types of JAX, NumPy and Sphinx, which are in the shared environment only.
    session.run("mypy", "--python-executable", env_python(session))


def lint_scripts(session: nox.Session, *, fix: bool) -> None:
    """Check the site's scripts and styles with Biome, which package-lock.json pins."""
    try:
        session.run("npm", "ci", "--ignore-scripts", "--prefer-offline", "--silent")
    except CommandFailed:
        session.error(
            "The scripts and styles were not checked: npm could not install Biome from its registry"
        )
    session.run("npx", "--no-install", "biome", "check", *(["--write"] if fix else []), "--error-on-warnings")


@nox.session(default=False, reuse_venv=False)
def package(session: nox.Session) -> None:
    """Build the distributions, check them as PyPI would, and use the wheel in an environment of its own."""
    session.install("-q", "-c", CONSTRAINTS, *group("package"))
    dist = ROOT / "dist"
    shutil.rmtree(dist, ignore_errors=True)
    session.run("python", "-m", "build", "--outdir", str(dist), silent=True)
    session.run("twine", "check", "--strict", *map(str, sorted(dist.iterdir())))
    session.install("-q", "-c", CONSTRAINTS, *map(str, dist.glob("*.whl")))
    session.chdir(session.create_tmp())  # away from the sources: the wheel is what is imported
    session.run("python", "-c", USE_THE_WHEEL)
    session.run("pyright", "--verifytypes", "jitguide", "--ignoreexternal")


USE_THE_WHEEL = """
import importlib.metadata
import jitguide

metadata = importlib.metadata.metadata("jitguide")
assert metadata["Version"] == jitguide.__version__, metadata["Version"]
assert "nox" in metadata.get_payload() or "nox" in metadata["Description"], "no README in the wheel"
print(jitguide.compare.__doc__.splitlines()[0], metadata["Name"], metadata["Version"])
print("addresses:", metadata.get_all("Project-URL") or "none")
"""


@nox.session(default=False, python="3.11", reuse_venv=False)
def lowest(session: nox.Session) -> None:
    """Test the package with the lowest versions that pyproject.toml allows; `-- --quick` a tenth of the tests."""
    session.install("-q", *group("lock"))
    session.run(
        "uv", "pip", "install", "-q", "--resolution", "lowest-direct", "--python", session.virtualenv.location,
        "-e", ".[plot]", *group("tests"),
    )  # fmt: skip
    # The tests of the package only: those of the site's extensions need Sphinx.
    own = [p for p in sorted(ROOT.glob("tests/test_*.py")) if not OTHERS.search(p.read_text("utf-8"))]
    chosen = own[::10] if session.posargs == ["--quick"] else session.posargs or own
    # Old Matplotlib uses names that a new pyparsing deprecates.
    options = ["-W", "ignore::DeprecationWarning", "-n", "2"]
    session.run("python", "-m", "pytest", *options, *map(str, chosen))


# The extensions, tools and examples, and the types, which `package` checks.
OTHERS = re.compile(r"_ext\b|import (repository|page_rules|words|runpy)|import equinox|uses_everything")


@nox.session(default=False)
def lock(session: nox.Session) -> None:
    """Renew constraints.txt: the versions that the guide is tested with; `-- --keep` only adds what is missing."""
    session.install(*group("lock"))
    groups = [
        word
        for name in ("docs", "tests", "ecosystem", "browser", "lint", "package")
        for word in ("--group", name)
    ]
    upgrade = [] if "--keep" in session.posargs else ["--upgrade"]
    session.run(
        "uv", "pip", "compile", "--universal", "--python-version", "3.11", *upgrade, "pyproject.toml",
        "--extra", "plot", *groups, "-o", CONSTRAINTS, "--no-header", "--no-annotate", "--no-emit-index-url",
        "--no-emit-find-links", "-q",
    )  # fmt: skip
    text = (ROOT / CONSTRAINTS).read_text()
    (ROOT / CONSTRAINTS).write_text(f"{CONSTRAINTS_HEAD}\n{text}")


CONSTRAINTS_HEAD = (
    "# Every version the guide was tested with, on Python 3.11 and newer. Made by `nox -s lock`; do not edit."
)

# What must pass before a change lands: on the Python that runs nox, and on the newest other one. What takes
# long and rarely fails is a part of its own. Steps joined by `&` use one core each, so they run side by side.
CI = {
    "first": [
        "lint & package & lowest -- --quick", "tests -- --full", "docs -- --fresh", "docs -- -b epub",
        "docs -- -b singlehtml", "doctest", "linkcheck & browser", "site", "bench -- --quick",
    ],
    "second": ["tests -- --slow", "docs -- --fresh", "site -- --quick"],
    "lowest": ["lowest"],
}  # fmt: skip


@nox.session(default=False)
def ci(session: nox.Session) -> None:
    """Run all that must pass before a change lands; `-- first`, `second` or `lowest` a part; `-- --list` nothing."""
    session.install("-q", *group("lock"))
    chosen = [part for part in CI if part in session.posargs] or ["first", "second"]
    runners = {part: [sys.executable, "-m", "nox"] for part in CI}
    missing = "no other Python from 3.12 on starts here, so the steps of the second Python cannot run"
    if "second" in chosen:
        runners["second"] = second_nox(session)
        if not runners["second"] and "second" in session.posargs:
            session.error(f"Install one: {missing}")
    steps = [(part, step) for part in chosen if runners[part] for step in CI[part]]
    if "--list" in session.posargs:
        for part, step in steps:
            print(f"{part}:", " & ".join(f"{' '.join(runners[part])} -s {one}" for one in step.split(" & ")))
        return
    seconds = {f"{part}: {step}": run_step(session, part, runners[part], step) for part, step in steps}
    record = ROOT / "build" / "ci.json"
    record.parent.mkdir(exist_ok=True)
    record.write_text(json.dumps(seconds, indent=2) + "\n", "utf-8")  # for the benchmark of the same name
    lines = [f"{name} ({taken:.0f} s)" for name, taken in seconds.items()]
    print("\n=== passed:", *lines, f"in all {sum(seconds.values()):.0f} s", sep="\n  ")
    if not all(runners.values()):
        print(f"=== not run: {missing}")


def run_step(session: nox.Session, part: str, runner: list[str], step: str) -> float:
    """Run one session, or several side by side; return the seconds that it took."""
    print(f"=== {part}: {step}", flush=True)
    start = time.monotonic()
    commands = [[*runner, "-s", *one.split()] for one in step.split(" & ")]
    # Lines of two sessions in turn cannot be read, so each of several prints when it has ended.
    kept = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True} if len(commands) > 1 else {}
    codes = []
    with ThreadPoolExecutor() as pool:
        # Not session.run, which would put this session's uv on PATH: nox would then make the environments again.
        for ran in pool.map(lambda command: subprocess.run(command, check=False, **kept), commands):
            print(ran.stdout or "", flush=True)
            codes.append(ran.returncode)
    if any(codes):
        session.error(f"=== FAILED after {time.monotonic() - start:.0f} s: {part}: {step}")
    return time.monotonic() - start


def second_nox(session: nox.Session) -> list[str]:
    """Return the command that runs nox on the newest other Python that starts; nothing where there is none."""
    listed = session.run(
        "uv", "python", "list", "--only-installed", "--output-format", "json", ">=3.12",
        env={"PATH": search_path()}, silent=True, stderr=subprocess.DEVNULL,
    )  # fmt: skip
    own = f"{sys.version_info.major}.{sys.version_info.minor}."
    others = [
        found for found in json.loads(listed)
        if found["variant"] == "default"  # not the free-threaded one
        and re.fullmatch(r"[\d.]+", found["version"]) and not found["version"].startswith(own)
    ]  # fmt: skip
    if not others:
        return []
    newest = max(others, key=lambda found: list(map(int, found["version"].split("."))))
    folder = ROOT / ".nox" / f"second-{newest['version']}"  # for a newer Python, new environments
    tool = folder / "nox"
    session.run("uv", "venv", "-q", "--allow-existing", "--seed", "--python", newest["path"], str(tool))
    session.run("uv", "pip", "install", "-q", "--python", str(tool), "nox[uv]>=2024.10")
    return [str(tool / "bin" / "nox"), "--envdir", str(folder)]


if __name__ == "__main__":
    nox.main()
