"""Keep MyST-NB from importing jupyter-cache and, with it, SQLAlchemy: a second of every build, and nothing uses them.

Must be the first extension. With `nb_execution_mode = "off"` MyST-NB calls nothing of jupyter-cache.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.util.typing import ExtensionMetadata

from _ext import build

_UNUSED = "jupyter_cache"


class _Placeholder(ModuleType):
    """A module in which each name is a class that does nothing."""

    def __getattr__(self, name: str) -> type:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _Finder(MetaPathFinder, Loader):
    """Finds a placeholder for the package and for each of its modules."""

    def find_spec(self, name: str, _path: Sequence[str] | None, _target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self, is_package=True) if name.partition(".")[0] == _UNUSED else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _Placeholder(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        """Leave the placeholder as it is."""


if _UNUSED not in sys.modules:
    sys.meta_path.insert(0, _Finder())


def setup(_app: Sphinx) -> ExtensionMetadata:
    """Register the extension with Sphinx: importing it was all."""
    return build.PARALLEL_SAFE
