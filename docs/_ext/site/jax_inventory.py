"""Make the inventory through which names such as `jax.jit` link to JAX's own documentation.

JAX publishes an inventory, but fetching it would make the build depend on the network. The guide names few
objects, and their pages follow one scheme, so a list of names is enough.
"""

from __future__ import annotations

import zlib
from pathlib import Path

_HEADER = "# Sphinx inventory version 2\n# Project: JAX\n# Version: latest\n# The remainder of this file is compressed using zlib.\n"
JAX_DOCS = "https://docs.jax.dev/en/latest/"


def write(names: Path, target: Path) -> str:
    r"""Write the inventory of the functions listed in `names`, one a line, and return its path.

    Example:
        >>> import tempfile
        >>> folder = Path(tempfile.mkdtemp())
        >>> _ = (folder / "names").write_text("jax.jit\n")
        >>> (folder / "jax.inv").samefile(write(folder / "names", folder / "jax.inv"))
        True
    """
    lines = [
        f"{name} py:function 1 _autosummary/{name}.html#$ -" for name in names.read_text("utf-8").split()
    ]
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_bytes(_HEADER.encode() + zlib.compress("\n".join(lines).encode() + b"\n"))
    return str(target)
