"""Whose a file of Python code is."""

import functools
import os
import sysconfig
from pathlib import Path

import jax
import jaxlib
import numpy as np

_INSTALLED = ("site-packages", "dist-packages")
_FOLDERS = {
    "jax": tuple(f"{Path(module.__file__).parent}{os.sep}" for module in (jax, jaxlib)),
    "jitguide": (f"{Path(__file__).parent}{os.sep}",),
    "python": (f"{Path(np.__file__).parent}{os.sep}",),
}
_PYTHON = ("<frozen", *(sysconfig.get_path(key) for key in ("stdlib", "platstdlib")))


@functools.lru_cache(maxsize=4096)  # thousands of frames name a handful of files
def owner(file: str) -> str:
    """Return whose a file is: "jax", "jitguide", "python" (or NumPy), "library" (another installed package) or "you".

    Example:
        >>> owner("/home/me/.local/lib/python3.11/site-packages/optax/_src/base.py"), owner("/home/me/train.py")
        ('library', 'you')
    """
    if known := [name for name, folders in _FOLDERS.items() if file.startswith(folders)]:
        return known[0]
    if any(name in file for name in _INSTALLED):
        return "library"
    return "python" if file.startswith(_PYTHON) else "you"
