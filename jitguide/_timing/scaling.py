"""How times grow with the size of the problem: `scaling` finds where one variant overtakes another."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from itertools import pairwise, permutations
from typing import TYPE_CHECKING, Any

import numpy as np

from jitguide._arguments import is_number, refuse_tracing
from jitguide._display import AsData, Displayed, Table, duration
from jitguide._timing.compare import compare
from jitguide._timing.comparison import CALL_OVERHEAD, SYSTEM_LOAD, Comparison, load_notes

if TYPE_CHECKING:
    from matplotlib.axes import Axes

# Seconds for each variant at each size: with many points on a curve, each needs less care.
_BUDGET = 0.2
_OPTIONS = {"baseline", "budget", "check", "control", "seed"}


@dataclass(frozen=True, repr=False)
class Scaling(Displayed, AsData):
    """A comparison at each of several sizes.

    Attributes:
        sizes: The sizes, increasing.
        comparisons: The `Comparison` at each size.
    """

    sizes: tuple[float, ...]
    comparisons: tuple[Comparison, ...]

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the variants."""
        return tuple(timing.name for timing in self.comparisons[0].timings)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on what to bear in mind, each with its sizes unless it holds for all of them."""
        sizes: dict[str, list[float]] = {}
        for size, found in zip(self.sizes, self.comparisons, strict=True):
            for note in found.notes:
                # That small calls cost what any call costs is seen where the curves level off.
                if getattr(note, "kind", "") not in (CALL_OVERHEAD, SYSTEM_LOAD):
                    sizes.setdefault(note, []).append(size)
        busiest = max(found.busy_cores or 0.0 for found in self.comparisons)
        return (*map(self._with_sizes, sizes, sizes.values()), *load_notes(busiest, "up to "))

    def _with_sizes(self, note: str, sizes: list[float]) -> str:
        if len(sizes) == len(self.sizes):
            return note
        return f"{'Size' if len(sizes) == 1 else 'Sizes'} {', '.join(f'{size:g}' for size in sizes)}: {note}"

    def crossover(self, a: str, b: str) -> float | None:
        """Return the size from which on `b` is faster than `a`; None if there is none.

        Only sizes at which one of the two is clearly faster count. The crossing is interpolated between
        the last one that `a` wins and the next one, from which on `b` wins, on logarithmic axes.

        Args:
            a: Name of the variant that is faster at small sizes.
            b: Name of the variant that is faster at large sizes.

        Raises:
            KeyError: There is no variant of that name.
        """
        clear = [
            (size, math.log(found.speedup(b, over=a).value))
            for size, found in zip(self.sizes, self.comparisons, strict=True)
            if found.verdict(b, over=a) in ("faster", "slower")
        ]
        if clear and clear[-1][1] < 0:  # in the end `a` is faster, even if it is slower before
            return None
        for (size, gain), (next_size, next_gain) in reversed(list(pairwise(clear))):
            if gain < 0 < next_gain:
                part = gain / (gain - next_gain)
                return math.exp((1 - part) * math.log(size) + part * math.log(next_size))
        return None

    def plot(self, ax: Axes | None = None) -> Axes:
        """Draw one line for each variant on logarithmic axes; needs matplotlib."""
        from jitguide._timing.plots import plot_scaling

        times = {
            name: [(found[name].low, found[name].median, found[name].high) for found in self.comparisons]
            for name in self.names
        }
        pairs = {(a, b): self.crossover(a, b) for a, b in permutations(self.names, 2)}
        return plot_scaling(self.sizes, times, {k: size for k, size in pairs.items() if size is not None}, ax)

    def _table(self) -> Table:
        header = ("size", *self.names, "fastest")
        rows = [
            (f"{size:g}", *(duration(timing.median) for timing in found.timings), _winner(found))
            for size, found in zip(self.sizes, self.comparisons, strict=True)
        ]
        first, *rest = (found._method for found in self.comparisons)
        common = [part for part in first if all(part in parts for parts in rest)]  # the same at all sizes
        rounds = min(found.timings[0].n for found in self.comparisons)
        notes = [*self.notes, ", ".join(["medians", *common, f"at least {rounds} rounds"])]
        return Table(header, rows, numeric=range(len(self.names) + 1), notes=notes, fit=True)


def scaling(
    variants: Mapping[str, Callable[..., Any]],
    make_args: Callable[[Any], Any],
    sizes: Iterable[float],
    **compare_options: Any,
) -> Scaling:
    """Compare functions at several sizes.

    Args:
        variants: Names and functions, as for `compare`.
        make_args: Takes a size and returns the positional arguments: a tuple of them, or a single one (such
            as a named tuple).
        sizes: Positive numbers, increasing.
        **compare_options: Options of `compare`, except `setup`; `budget` is 0.2 seconds for each variant and
            size by default.

    Returns:
        A `Scaling`.

    Raises:
        TypeError: `make_args` is not a function, `sizes` is not a series of numbers, or there is no such option.
        ValueError: `sizes` is empty, or not positive, finite and increasing.

    Example:
        >>> import jax, jax.numpy as jnp
        >>> from jitguide import scaling
        >>> def f(x):
        ...     return jnp.sin(x) + jnp.cos(x)
        >>> curve = scaling({"plain": f, "jit": jax.jit(f)}, jnp.ones, [10, 100], budget=0.02)
        >>> curve.sizes, curve.names
        ((10, 100), ('plain', 'jit'))
    """
    refuse_tracing("scaling", ())
    _validate_options(compare_options)
    sizes = _validated(make_args, sizes)
    options = {"budget": _BUDGET, **compare_options}
    comparisons = []
    for size in sizes:
        made = make_args(size)
        comparisons.append(compare(variants, *(made if type(made) is tuple else (made,)), **options))
    return Scaling(sizes, tuple(comparisons))


def _validate_options(options: dict[str, Any]) -> None:
    if "setup" in options:
        raise TypeError(
            "`setup` makes arguments without knowing the size, so `scaling` cannot use it. Make fresh "
            "arguments in `make_args`, and let the variants copy what they change."
        )
    if unknown := sorted(set(options) - _OPTIONS):
        raise TypeError(
            f"`scaling` has no option {', '.join(map(repr, unknown))}. Use those of `compare`: "
            f"{', '.join(sorted(_OPTIONS))}; what the variants need comes from `make_args`."
        )


def _validated(make_args: Any, sizes: Any) -> tuple[Any, ...]:
    if not callable(make_args):
        raise TypeError(
            f"`make_args` must be a function from a size to arguments, got {type(make_args).__name__}. "
            "Write `lambda n: (jnp.ones(n),)`."
        )
    if isinstance(sizes, str) or not isinstance(sizes, Iterable):
        raise TypeError(f"`sizes` must be a series of numbers, got {sizes!r}. Write `[100, 1000, 10_000]`.")
    values = tuple(n.item() if isinstance(n, np.generic | np.ndarray) and n.ndim == 0 else n for n in sizes)
    if not values:
        raise ValueError("`sizes` is empty, so there is nothing to compare. Give at least one size.")
    for size in values:
        if not is_number(size):
            raise TypeError(
                f"`sizes` must hold numbers, and holds {size!r}. Make the arguments in `make_args`."
            )
    if not (values[0] > 0 and values[-1] < math.inf and all(a < b for a, b in pairwise(values))):
        raise ValueError(
            f"`sizes` must be positive, finite and increasing, got {list(values)}. Sort them, and leave "
            "out what is not a size."
        )
    return values


def _winner(found: Comparison) -> str:
    """Return the variant that is clearly faster than every other one, if there is one."""
    for timing in found.timings:
        others = [t.name for t in found.timings if t.name != timing.name]
        if others and all(found.verdict(timing.name, over=other) == "faster" for other in others):
            return timing.name
    return "no clear winner"
