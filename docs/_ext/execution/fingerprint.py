"""A digest of everything outside a page that can change the outputs of its cells.

`digest` is of what can change any page, `uses` of what this page names: of `jitguide`, the examples and the tools.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import re
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution, entry_points
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from _ext import DATA, DOCS, ROOT, build

from . import package

# Sources that shape the outputs of cells.
_SOURCES = (DOCS / "_ipython", Path(__file__).parent)
_EXAMPLES = ROOT / "examples"  # each counts for the pages that name it, and so does a tool or a library
FIGURES = DATA / "figures"  # what figures drew on other machines; it counts for the pages with such figures
_TOOLS = ("pytest", "equinox", "flax", "optax")
# Packages that cells import or that shape their outputs, each with everything it requires.
_PACKAGES = ("jax", "libtpu", "numpy", "matplotlib", "ipykernel", "ipython", "nbclient")
# Packages of which only their own version counts: they require Sphinx, which never sees a cell run.
_ALONE = ("myst-nb", "myst-parser")
_VARIABLES = re.compile("JAX_|XLA_|LIBTPU|CUDA_|NVIDIA_|TF_|OMP_|MKL_|OPENBLAS_|PYTHONHASHSEED")


def environment() -> dict[str, object]:
    """Return the environment as data: versions, processor and devices.

    Raises:
        RuntimeError: JAX cannot start on this machine; the message quotes its last line.
    """
    return {
        "python": platform.python_version(),
        "machine": platform.machine(),
        "processor": build.processor(),
        "cores": os.cpu_count(),
        "devices": build.devices(),
        "packages": packages(),
    }


def digest() -> str:
    """Return a hexadecimal digest of the environment, its variables and the sources."""
    variables = {k: v for k, v in sorted(os.environ.items()) if _VARIABLES.match(k)}
    text = json.dumps([environment(), variables, sources(*_SOURCES)], sort_keys=True)
    return hashlib.sha256(text.encode()).hexdigest()


def sources(*folders: Path) -> dict[str, str]:
    """Return a digest of each file below the folders by its path."""
    paths = (path for folder in folders for path in sorted(folder.rglob("*")))
    files = (p for p in paths if p.is_file() and "__pycache__" not in p.parts)
    return {str(p.relative_to(ROOT)): hashlib.sha256(p.read_bytes()).hexdigest() for p in files}


def uses(code: str) -> dict[str, str]:
    """Return what the code of a page names, each with its digest or version: parts of `jitguide`, examples and tools.

    Example:
        >>> list(uses("run('training_loop.py')"))
        ['jitguide.watch', 'training_loop']
    """
    texts = {path.stem: path.read_text("utf-8") for path in sorted(_EXAMPLES.glob("*.py"))}
    found: set[str] = set()
    new = {name for name in (*texts, *_TOOLS) if name in code}
    if not new and re.search(r"\bexamples\b", code):
        new = set(texts)
    while new:  # an example may use another
        found |= new
        new = {name for name in texts if any(name in texts.get(one, "") for one in new)} - found
    everything = "\n".join([code, *(texts.get(name, "") for name in found)])
    return state(found | package.uses(everything))


def state(names: Iterable[str]) -> dict[str, str]:
    """Return the present digest or version of what a page uses: what `uses` names, or the recorded figures."""
    found = {}
    for name in sorted(names):
        if name == FIGURES.name:
            texts = [path.read_bytes() for path in sorted(FIGURES.glob("*.json"))]
            found[name] = hashlib.sha256(b"".join(texts)).hexdigest()
        elif name.partition(".")[0] == "jitguide":
            found[name] = package.digest(name)
        elif name in _TOOLS:
            tool = _installed(name)
            found[name] = tool.version if tool else ""
        else:
            path = _EXAMPLES / f"{name}.py"
            found[name] = hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else ""
    return found


def packages() -> list[str]:
    """Return `name==version` of each installed package that can change an output.

    A linter or a theme is not among them: a new release of one must not run every page again.
    """
    found: dict[str, str] = {}
    wanted = [(name, frozenset[str]()) for name in _PACKAGES]
    # The libraries of an accelerator are extras of its plugin.
    plugins = [entry.dist for entry in entry_points(group="jax_plugins") if entry.dist]
    wanted += [(p.metadata["Name"], frozenset(p.metadata.get_all("Provides-Extra") or [])) for p in plugins]
    seen = set()
    while wanted:
        name, extras = wanted.pop()
        installed = _installed(name)
        if installed is None or (name, extras) in seen:
            continue
        seen.add((name, extras))
        found[canonicalize_name(name)] = installed.version
        for needed in map(Requirement, installed.requires or []):
            if needed.marker is None or any(needed.marker.evaluate({"extra": e}) for e in ("", *extras)):
                wanted.append((needed.name, frozenset(needed.extras)))
    found |= {name: alone.version for name in _ALONE if (alone := _installed(name))}
    return sorted(f"{name}=={version}" for name, version in found.items())


def _installed(name: str) -> Distribution | None:
    try:
        return distribution(name)
    except PackageNotFoundError:
        return None
