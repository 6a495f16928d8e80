"""How the parts of an argument are written in Python: `batch['x']`, `problem.geometry.scale`."""

import re
from typing import Any

import jax.tree_util as tree

from jitguide._watch.static_diff import attributes, unflattened

_FLAT = re.compile(r"\[<flat index (\d+)>\]")  # of containers that do not name their parts


def step(structure: Any, i: int) -> str:
    """Return how a child of a node is written in Python, such as `.weights` or `['x']`."""
    try:
        return _steps(unflattened(structure))[i][0]
    except Exception:  # a container may refuse any leaf but an array
        return f"[{i}]"


def _steps(node: Any) -> list[tuple[str, str, Any]]:
    """Return the children of a node: as written in Python, as JAX writes them, and themselves.

    JAX numbers the children of a class that does not name them; here they have the name of the attribute.
    """
    found = []
    for path, child in tree.tree_flatten_with_path(node, is_leaf=lambda part: part is not node)[0]:
        own = (*attributes(node), *getattr(node, "__dict__", ()))
        names = [f".{name}" for name in own if getattr(node, name, None) is child]
        by_jax = tree.keystr(path)
        flat = _FLAT.fullmatch(by_jax)
        found.append((names[0] if flat and names else _FLAT.sub(r"[\1]", by_jax), by_jax, child))
    return found


def written(structure: Any, path: str) -> str:
    """Return the path of a leaf as it is written in Python."""
    if not _FLAT.search(path):
        return path
    try:
        node, found, left = unflattened(structure), "", path
        while left:
            fitting = [one for one in _steps(node) if one[1] and left.startswith(one[1])]
            name, by_jax, node = max(fitting, key=lambda one: len(one[1]))  # `.ab` rather than `.a`
            found, left = found + name, left[len(by_jax) :]
        return found
    except Exception:
        return _FLAT.sub(r"[\1]", path)
