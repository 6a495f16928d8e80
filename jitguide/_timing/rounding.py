"""Is a difference between two results one of rounding? A function may enlarge it beyond any fixed tolerance."""

import math
from collections.abc import Callable, Iterable
from functools import cached_property
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jitguide._arguments import Arguments
from jitguide._otherwise import otherwise

# The arguments are changed by at most two roundings, in so many ways; another order of the operations may move a
# result farther, by this factor.
_NUDGES, _WAYS, _FARTHER = (-2, -1, 1, 2), 3, 4


class Rounding:
    """How far each leaf of a result moves when the arguments move by rounding; it is found when it is first asked.

    Such a leaf can differ between two compiled versions as well. Adam, for example, divides a gradient by its own
    size, also one that is zero but for rounding.

    Args:
        function: A function and, in `fresh`, what makes the arguments of a call.
        result: What it returned.
        leaves: Returns what to look at in a result, all leaves but functions if left out.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        fresh: Callable[[], Arguments],
        result: Any,
        leaves: Callable[[Any], Iterable[Any]] | None = None,
    ):
        self._function, self._fresh, self._result = function, fresh, result
        self._leaves = leaves or (lambda tree: [x for x in jax.tree.leaves(tree) if not callable(x)])
        self.explained = False  # whether it was the reason of a difference

    def explains(self, place: int, a: Any, b: Any) -> bool:
        """Return whether the leaf at `place` of the result moves about as far as `a` is from `b`."""
        a, b = wide(as_numpy(a)), wide(as_numpy(b))
        apart = _distance(a, b)
        explains = (
            math.isfinite(apart) and place < len(self._reach) and apart <= _FARTHER * self._reach[place]
        )
        self.explained |= explains
        return explains

    @cached_property
    @otherwise([])  # its own checks may refuse other arguments
    def _reach(self) -> list[float]:
        first = self._wide(self._result)  # before the calls: one may change a result in place
        chance = np.random.default_rng(0)
        nudges = [lambda leaf: _nudged(leaf, chance)] * _WAYS
        again, *moved = map(self._moved, [lambda leaf: leaf, *nudges])
        if any(map(_distance, first, again)):  # it differs from call to call
            return []
        return [
            max(_distance(leaf, other) for other in others)
            for leaf, *others in zip(first, *moved, strict=False)
        ]

    def _moved(self, change: Callable[[Any], Any]) -> list[np.ndarray]:
        args, kwargs = jax.tree.map(change, self._fresh())
        return self._wide(self._function(*args, **kwargs))

    def _wide(self, result: Any) -> list[np.ndarray]:
        return [wide(as_numpy(leaf)) for leaf in self._leaves(result)]


def _nudged(leaf: Any, chance: np.random.Generator) -> Any:
    """Return an array or a number with each value a rounding or two away; what has no rounding as it is."""
    if isinstance(leaf, float) and not isinstance(leaf, np.generic):
        return float(leaf * (1 + jnp.finfo(jnp.float32).eps * chance.choice(_NUDGES)))
    if isinstance(leaf, jax.Array | np.ndarray | np.generic) and jnp.issubdtype(leaf.dtype, jnp.inexact):
        factors = 1 + float(jnp.finfo(leaf.dtype).eps) * chance.choice(_NUDGES, leaf.shape)
        return leaf * factors.astype(leaf.dtype)
    return leaf


def _distance(a: np.ndarray, b: np.ndarray) -> float:
    """Return the largest difference; infinite if only one of two values is finite, or the shapes differ."""
    if a.shape != b.shape:
        return math.inf
    equal = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(invalid="ignore"):
        apart = np.where(equal, 0.0, np.abs(a - b))
    return float(np.where(np.isnan(apart), math.inf, apart).max(initial=0.0))


def as_numpy(leaf: Any) -> np.ndarray:
    if isinstance(leaf, jax.Array) and jnp.issubdtype(leaf.dtype, jax.dtypes.prng_key):
        leaf = jax.random.key_data(leaf)
    with jax.transfer_guard("allow"):  # a guard is about what the variants do, and this is not their doing
        return np.asarray(leaf)


def wide(array: np.ndarray) -> np.ndarray:
    return array.astype(complex if jnp.issubdtype(array.dtype, jnp.complexfloating) else float)
