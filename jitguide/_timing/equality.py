"""Do two results agree? A fast function that computes something else is the most common false speedup."""

import math
from collections.abc import Callable, Iterable, Iterator
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jitguide._arguments import is_number
from jitguide._timing.rounding import Rounding, as_numpy, wide

Check = float | Callable[[Any, Any], Any] | None

# Results that were rounded differently differ by a few units in the last place of their dtype.
_ROUNDINGS = 8
# Relative, however coarse the dtype inside: eight roundings of an 8-bit dtype would allow any result.
_MOST = 0.1
_SMALL_LEAF = 0.01  # of the scale of the whole result: a leaf as small as this may be all rounding
_NUMBERS = (bool, int, float, complex)  # Python's own: their dtype follows from what they meet
_ADVICE = (
    "Fix the wrong one; pass `setup` if one of them changes its arguments, a larger `check` if both are "
    "right, or `check=None` to time them all the same."
)


def validate_check(check: Any) -> None:
    """Raise unless `check` is a tolerance, a function of two results, or None."""
    if check is None or callable(check):
        return
    if not is_number(check):
        raise TypeError(
            f"`check` must be a relative tolerance such as 1e-3, a function of two results, or None, got "
            f"{check!r} of type {type(check).__name__}. Leave it out for a tolerance of 1e-3."
        )
    if not 0 <= check < math.inf:
        raise ValueError(
            f"`check` must be a relative tolerance of at least 0, got {check!r}. Pass `check=None` to "
            "time the variants without comparing their results."
        )


def require_agreement(
    check: Check,
    first: tuple[str, Any],
    second: tuple[str, Any],
    rounding: Rounding | None = None,
    coarsest: Callable[[], tuple[float, str]] = lambda: (0.0, ""),
) -> tuple[str, ...]:
    """Raise unless two results agree; return notes on what was let pass.

    Floating-point leaves agree when they differ by at most `check` times the largest of the value itself, the
    mean magnitude of its leaf, and a hundredth of that of the largest leaf: values near zero are not held to
    more than their neighbours, and a gradient that is zero but for rounding is not held to itself. The
    tolerance is never finer than eight roundings of the dtype. Integers and booleans must be equal. NaN
    agrees with NaN. Functions, such as the activation in a model, are not compared.

    Both come with the name of their variant; the first is the one that is trusted. `coarsest` returns rounding and
    name of the coarsest dtype that they compute in, which is asked for where they differ, and loosens the tolerance.
    """
    if check is None:
        return ()
    (name_a, a), (name_b, b) = first, second
    names = f"The variants {name_a!r} and {name_b!r}"
    if callable(check):
        _ask(check, names, a, b)
        return ()
    pairs = _pairs(names, a, b)
    least = _SMALL_LEAF * max((_typical(as_numpy(leaf)) for _, leaf, _ in pairs), default=0.0)
    notes = []
    for place, (where, *leaves) in enumerate(pairs):
        has_nan, problem = _compare_leaf(check, names, where, least, *leaves)
        if problem and rounding is not None and rounding.explains(place, *leaves):
            how = f"differ at {where} about as far as {name_a!r} does when its arguments change by rounding"
        elif problem:
            eps, dtype = coarsest()
            room = min(_ROUNDINGS * eps, _MOST)
            if room <= check or _compare_leaf(room, names, where, least, *leaves)[1]:
                raise ValueError(problem)
            how = (
                f"differ at {where}, within the {room:.2g} that is allowed as one of them computes in {dtype}"
            )
        elif has_nan:
            how = f"both have NaN at {where}"
        else:
            continue
        notes.append(f"{names} {how}; this counts as agreement.")
    return tuple(notes)


def _pairs(names: str, a: Any, b: Any) -> list[tuple[str, Any, Any]]:
    """Return place and both leaves, of the leaves of two results that are not functions; raise if the trees differ."""
    leaves_a, tree_a = jax.tree_util.tree_flatten_with_path(a)
    leaves_b, tree_b = jax.tree_util.tree_flatten_with_path(b)
    if tree_a != tree_b:
        raise ValueError(
            f"{names} return different structures: {tree_a} against {tree_b}. Make them return the same "
            "containers, or pass a function of both results as `check`."
        )
    return [
        (f"result{jax.tree_util.keystr(path)}", leaf_a, leaf_b)
        for (path, leaf_a), (_, leaf_b) in zip(leaves_a, leaves_b, strict=True)
        if not callable(leaf_a)
    ]


def apart(
    tolerance: float, pairs: Iterable[tuple[Any, Any]], rounding: Rounding
) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield the pairs of leaves that differ by more than `require_agreement` allows, as arrays of NumPy.

    Dtypes may differ, and integers get the tolerance as well: it is for results with and without jit.
    """
    leaves = [(as_numpy(a), as_numpy(b)) for a, b in pairs]
    least = _SMALL_LEAF * max((_typical(b) for _, b in leaves), default=0.0)
    for place, (a, b) in enumerate(leaves):
        roundings = [_rounding(x) for x in (a, b) if _kind(x) == "inexact"]
        room = max([tolerance, *(_ROUNDINGS * rounding for rounding in roundings)])
        wrong = a.shape != b.shape or _too_far(room, least, a, b)[0].any()
        if wrong and not rounding.explains(place, a, b):
            yield a, b


def require_arrays(name: str, result: Any) -> None:
    """Raise unless `result`, of the variant called `name`, has leaves and all are arrays, numbers or functions."""
    leaves = [pair for pair in jax.tree_util.tree_flatten_with_path(result)[0] if not callable(pair[1])]
    if not leaves:
        raise TypeError(
            f"The variant {name!r} returns nothing to compare: {result!r}. Return its result, or pass "
            "`check=None` and let it wait by itself, with `jax.block_until_ready`."
        )
    for path, leaf in leaves:
        holds_objects = isinstance(leaf, np.ndarray) and leaf.dtype == object
        if holds_objects or not isinstance(leaf, (jax.Array, np.ndarray, np.generic, *_NUMBERS)):
            raise TypeError(
                f"The variant {name!r} returns a {type(leaf).__name__}{' of objects' * holds_objects} at "
                f"result{jax.tree_util.keystr(path)}, which isn't an array or a number. "
                "Return arrays only, or wait for what it holds inside the variant and pass a function of both "
                "results as `check`."
            )


def _ask(check: Callable[..., Any], names: str, a: Any, b: Any) -> None:
    try:
        verdict = check(a, b)
        why = f"it returned {verdict!r}"
    except AssertionError as error:
        verdict, why = False, str(error).strip() or "it raised AssertionError"
    if verdict is None:  # functions such as `numpy.testing.assert_allclose` return it when all is well
        return
    if not jax.tree_util.all_leaves([verdict]) or np.size(verdict) != 1:
        raise TypeError(
            f"`check` must return one truth value, and returned a {type(verdict).__name__} of several. Put "
            "`jnp.all` around an array, `jax.tree.all` around a tree."
        )
    if not bool(verdict):
        raise ValueError(f"{names} disagree according to `check`: {why}. {_ADVICE}")


def _compare_leaf(tolerance: float, names: str, where: str, least: float, a: Any, b: Any) -> tuple[bool, str]:
    """Return whether two leaves hold NaN, and what to raise if they differ by more than rounding; raise if by type.

    There is room for a part of `least` at least. Integers have no rounding, so a difference of theirs is raised.
    """
    loose = isinstance(a, _NUMBERS) or isinstance(b, _NUMBERS)
    a, b = as_numpy(a), as_numpy(b)
    if a.shape != b.shape:
        raise ValueError(
            f"{names} disagree in shape at {where}: {a.shape} against {b.shape}. Make both return the same "
            "shape, or pass a function of both results as `check`."
        )
    if a.dtype != b.dtype and not (loose and _kind(a) == _kind(b)):
        raise ValueError(
            f"{names} disagree in dtype at {where}: {a.dtype} against {b.dtype}. Narrower numbers take less "
            "time, so the comparison isn't fair: cast one of them, or turn on `jax_enable_x64` for 64-bit types. "
            "To race them all the same, pass a function of both results as `check`."
        )
    if _kind(a) == "exact":
        wrong, has_nan, note = a != b, False, "and they must be equal"
    else:
        tolerance = max(tolerance, _ROUNDINGS * max(_rounding(a), _rounding(b)))
        wrong, has_nan = _too_far(tolerance, least, a, b)
        note = f"beyond the relative difference of {tolerance:.2g} that is allowed"
    if not wrong.any():
        return has_nan, ""
    at = tuple(int(i) for i in np.unravel_index(np.argmax(wrong), wrong.shape))
    index = f"[{', '.join(map(str, at))}]" if at else ""
    count = f" ({int(wrong.sum())} of {wrong.size} values differ)" if wrong.size > 1 else ""
    problem = f"{names} disagree at {where}{index}: {a[at]} against {b[at]}, {note}{count}. {_ADVICE}"
    if _kind(a) == "exact":
        raise ValueError(problem)
    return has_nan, problem


def _kind(array: np.ndarray) -> str:
    # jnp, not np: it knows bfloat16 and the 8-bit types.
    return "inexact" if jnp.issubdtype(array.dtype, jnp.inexact) else "exact"


def _rounding(array: np.ndarray) -> float:
    return float(jnp.finfo(array.dtype).eps)


def _typical(array: np.ndarray) -> float:
    """Return the mean magnitude of the finite values of a floating-point leaf."""
    if _kind(array) == "exact":
        return 0.0
    size = np.abs(wide(array))
    return float(size[np.isfinite(size)].mean()) if np.isfinite(size).any() else 0.0


def _too_far(tolerance: float, least: float, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, bool]:
    room, a, b = max(_typical(a), least), wide(a), wide(b)
    relative = np.isclose(b, a, rtol=tolerance, atol=0, equal_nan=True)  # to `a`; infinities must be equal
    absolute = np.isclose(b, a, rtol=0, atol=tolerance * room, equal_nan=True)
    return ~(relative | absolute), bool(np.isnan(a).any())
