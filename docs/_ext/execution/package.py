"""What code uses of `jitguide`: the names it mentions, and the modules and data behind each.

An edit of the package then executes the pages that use what was edited, and no others.
"""

from __future__ import annotations

import hashlib
import re
from functools import cache

from _ext import ROOT

_WHOLE = "jitguide"
_IMPORT = re.compile(r"^ *from (jitguide[\w.]*) import (\([^)]*\)|.*)", re.MULTILINE)
_NAME = re.compile(r"(\w+)(?:\s+as\s+\w+)?")
_ATTRIBUTE = re.compile(r"\bjitguide\.(?!__file__\b)(\w+)")
_NOTHING = re.compile(r"^ *import jitguide *$|\bjitguide\.__file__\b", re.MULTILINE)
_PUBLIC = re.compile(r"^ *from ([\w.]+) import \w+ as (\w+)", re.MULTILINE)  # in jitguide/__init__.py


def uses(code: str) -> set[str]:
    """Return what code uses: `jitguide.` and a name for each, or `jitguide` where it may use any.

    Example:
        >>> sorted(uses("from jitguide import compare, watch"))
        ['jitguide.compare', 'jitguide.watch']
        >>> sorted(uses("command = [sys.executable, '-m', 'jitguide', 'explain']"))
        ['jitguide']
    """
    found: set[str] = set()
    for module, names in _IMPORT.findall(code):
        found |= {f"{_WHOLE}.{name}" for name in _NAME.findall(names)} if module == _WHOLE else {module}
    rest = _NOTHING.sub("", _IMPORT.sub("", code))
    found |= {f"{_WHOLE}.{name}" for name in _ATTRIBUTE.findall(rest)}
    return found | {_WHOLE} if _WHOLE in _ATTRIBUTE.sub("", rest) else found


def digest(name: str) -> str:
    """Return a digest of the modules behind a name that `uses` returned, of all they import, and of their data."""
    text = "".join(module + _modules()[module][0] for module in sorted(behind(name)))
    return hashlib.sha256(text.encode()).hexdigest()


def behind(name: str) -> set[str]:
    """Return the modules behind a name, with all they import."""
    wanted, seen = _homes(name), set[str]()
    while wanted:
        seen |= wanted
        wanted = {other for one in wanted for other in _modules()[one][1]} - seen
    return seen


def _homes(name: str) -> set[str]:
    """Return the modules behind a name; all where the package doesn't have it."""
    public = dict(map(reversed, _PUBLIC.findall((ROOT / _WHOLE / "__init__.py").read_text("utf-8"))))
    home = public.get(name.removeprefix(f"{_WHOLE}."), name)
    found = {module for module in _modules() if module == home or module.startswith(f"{home}.")}
    return found or set(_modules())


@cache
def _modules() -> dict[str, tuple[str, set[str]]]:
    """Return for each module a digest of its file and what it imports; data belong to the package they lie in."""
    paths = [p for p in sorted((ROOT / _WHOLE).rglob("*")) if p.is_file() and "__pycache__" not in p.parts]
    dotted = {p: ".".join(p.relative_to(ROOT).with_suffix("").parts) for p in paths if p.suffix == ".py"}
    texts = {name.removesuffix(".__init__"): path.read_bytes() for path, name in dotted.items()}
    # Public names are imported in jitguide/__init__.py when they are used: it imports none of them.
    imports = {name: _imports(text.decode(), set(texts)) for name, text in texts.items()} | {_WHOLE: set()}
    for path in paths:
        if path not in dotted:
            folders = (".".join(folder.parts) for folder in path.relative_to(ROOT).parents)
            texts[next(folder for folder in folders if folder in texts)] += path.read_bytes()
    return {
        name: (hashlib.sha256(text).hexdigest(), imports[name] | {name.rpartition(".")[0] or name})
        for name, text in texts.items()
    }


def _imports(code: str, modules: set[str]) -> set[str]:
    """Return which of the modules a module imports, for types too."""
    pairs = [(module, name) for module, names in _IMPORT.findall(code) for name in _NAME.findall(names)]
    return {
        f"{module}.{name}" if f"{module}.{name}" in modules else module for module, name in pairs
    } & modules
