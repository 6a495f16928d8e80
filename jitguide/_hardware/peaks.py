"""What this device reaches at best: bytes copied and floating-point operations per second, measured."""

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jitguide import _display
from jitguide._arguments import refuse_tracing
from jitguide._hardware.device_report import memory_limit

_MIB = 2**20
# Sizes of one array. Below 1 MiB the cost of a call dominates. On a CPU 64 MiB is beyond all caches of common
# processors; accelerators have larger caches and need larger arrays to hide the call.
_CPU_ARRAYS = (_MIB, 4 * _MIB, 16 * _MIB, 64 * _MIB)
_ACCELERATOR_ARRAYS = (*_CPU_ARRAYS, 256 * _MIB, 1024 * _MIB)
_MATMUL_SIZES = (256, 512, 1024, 2048)
_ACCELERATOR_MATMUL_SIZES = (1024, 2048, 4096, 8192)
# Types and precisions; the last is left out on a CPU, where both precisions are the same.
_MATMULS: tuple[tuple[str, str | None], ...] = (("float32", None), ("bfloat16", None), ("float32", "highest"))
# A ceiling is the best of short bursts: other programs only ever make a burst slower, and on a shared machine
# the median was half of the best.
_BURST_SECONDS = 0.01
_QUICK_BURSTS, _THOROUGH_BURSTS = 2, 15
# Everything is measured this often, some time apart, because the best of one moment may be half that of another.
_PASSES = 3
_LARGEST_SHARE = 1 / 16  # of the device's memory for one array; two functions with two arrays each are alive
# A matrix product that would take longer than this for one call is left out, so that `peaks` stays short.
_LONGEST_CALL = 0.1


@dataclass(frozen=True)
class CopyPeak(_display.AsData):
    """The highest rate seen for arrays of one size.

    Attributes:
        working_set: Bytes of source and destination together.
        bytes_per_second: Bytes read plus bytes written, per second.
        lowest: The same in the slowest of several passes.
    """

    working_set: int
    bytes_per_second: float
    lowest: float


@dataclass(frozen=True)
class MatmulPeak(_display.AsData):
    """The highest rate seen for products of square matrices of one type.

    Attributes:
        dtype: Type of the elements.
        size: Rows of the matrix with which it was reached.
        flops_per_second: Additions and multiplications per second, 2 × size³ for a product.
        lowest: The same in the slowest of several passes.
        precision: "highest", or None for the default, at which a GPU may round float32 to TF32.
    """

    dtype: str
    size: int
    flops_per_second: float
    lowest: float
    precision: str | None = None

    @property
    def name(self) -> str:
        """The type, and the precision if it is not the default."""
        return f"{self.dtype}, {self.precision} precision" if self.precision else self.dtype


@dataclass(frozen=True, repr=False)
class Peaks(_display.Displayed, _display.AsData):
    """The measured ceilings of one device.

    Attributes:
        device: What the backend calls the device.
        copies: One `CopyPeak` per working set, smallest first.
        matmuls: One `MatmulPeak` per type at the default precision; on an accelerator also float32 at the highest.
    """

    device: str
    copies: tuple[CopyPeak, ...]
    matmuls: tuple[MatmulPeak, ...]

    def bandwidth(self, working_set: int) -> CopyPeak:
        """Return the peak for the measured working set that is nearest to `working_set` bytes, by ratio."""
        return min(self.copies, key=lambda c: abs(math.log(c.working_set / max(working_set, 1))))

    def flops(self, dtype: str) -> MatmulPeak | None:
        """Return the peak for elements of type `dtype` at the default precision, or None if it was not measured."""
        return next((m for m in self.matmuls if m.dtype == dtype and m.precision is None), None)

    def _table(self) -> _display.Table:
        copies = [
            ("copy", _display.size(c.working_set), rates(c.lowest, c.bytes_per_second, "B/s"))
            for c in self.copies
        ]
        matmuls = [
            (f"matmul {m.name}", f"{m.size} × {m.size}", rates(m.lowest, m.flops_per_second, "FLOP/s"))
            for m in self.matmuls
        ]
        title = f"Best of short bursts on {self.device}, lowest and highest of {_PASSES} passes"
        return _display.Table(["peak", "size", "rate"], copies + matmuls, numeric=[1, 2], title=title)


def rate(per_second: float, unit: str) -> str:
    """Return a rate with a decimal prefix.

    Example:
        >>> rate(4.5e10, "B/s"), rate(9.99e11, "FLOP/s")
        ('45 GB/s', '1 TFLOP/s')
    """
    for scale, prefix in ((1e12, "T"), (1e9, "G"), (1e6, "M")):
        if per_second >= 0.995 * scale:
            return f"{float(_display.significant(per_second / scale)):g} {prefix}{unit}"
    return f"{float(_display.significant(per_second)):g} {unit}"


def rates(low: float, high: float, unit: str) -> str:
    """Return a range of rates, or one rate where both read the same."""
    first, second = rate(low, unit), rate(high, unit)
    return first if first == second else _display.span(first, second)


def peaks(*, quick: bool = True) -> Peaks:
    """Measure what the default device reaches at best.

    Two functions are tried per size, a copy and a multiplication by a constant. Each reads and writes every
    byte once, into a donated buffer, so that no time goes into fresh memory; the faster one counts. The
    result is kept for the life of the process, one per device and default precision of matrix products.
    `jax.disable_jit` and transfer guards make no difference.

    Args:
        quick: Take a few seconds. With False, take several times longer and find slightly higher rates,
            which every later call returns, and `roofline` uses.

    Returns:
        A `Peaks`.

    Raises:
        TypeError: If `quick` is not True or False.
        RuntimeError: If it is called inside a function that JAX traces, or under a mesh of several devices.

    Example:
        >>> from jitguide import peaks
        >>> [copy.working_set // 2**20 for copy in peaks().copies][:3]
        [2, 8, 32]
    """
    if not isinstance(quick, bool):
        raise TypeError(
            f"quick must be True or False, not {quick!r}. Write peaks(quick=False) for a longer measurement."
        )
    refuse_tracing("peaks", ())
    with jax.disable_jit(False), jax.transfer_guard("allow"):
        devices = jnp.zeros(()).devices()
        if len(devices) > 1:
            raise RuntimeError(
                f"`peaks` measures one device, and a mesh of {len(devices)} is set. Call it outside "
                "`jax.set_mesh`."
            )
        (device,) = devices
        key = (device, jax.config.jax_default_matmul_precision)
        known = _known.get((*key, False)) or _known.get((*key, quick))
        if known is None:
            known = _known[(*key, quick)] = _measure(device, quick)
        return known


# What was measured, by device, precision of matrix products, and whether it was quick.
_known: dict[tuple[Any, Any, bool], Peaks] = {}


def _measure(device: Any, quick: bool) -> Peaks:
    bursts = _QUICK_BURSTS if quick else _THOROUGH_BURSTS
    on_cpu = device.platform == "cpu"
    with jax.default_device(device):
        arrays = _CPU_ARRAYS if on_cpu else [n for n in _ACCELERATOR_ARRAYS if _fits(n, device)]
        sizes = _MATMUL_SIZES if on_cpu else _ACCELERATOR_MATMUL_SIZES
        products = _MATMULS[:2] if on_cpu else _MATMULS
        passes = [
            (
                [_copy_peak(n, bursts) for n in arrays],
                [_matmul_peak(*product, sizes, bursts) for product in products],
            )
            for _ in range(_PASSES)
        ]
    copies, matmuls = (zip(*kind, strict=True) for kind in zip(*passes, strict=True))
    return Peaks(device.device_kind, tuple(map(_best, copies)), tuple(map(_best, matmuls)))


def _best(found: Sequence[Any]) -> Any:
    """Return the best of several passes, whose `lowest` is each its own rate, with the lowest of all."""
    return replace(max(found, key=lambda one: one.lowest), lowest=min(one.lowest for one in found))


def _fits(nbytes: int, device: Any) -> bool:
    limit = memory_limit(device)
    return limit is None or nbytes <= _LARGEST_SHARE * limit


def copier(nbytes: int, device: Any = None) -> Callable[[], Any]:
    """Return a function that copies `nbytes` bytes per call, on `device` or on the default device."""
    return into_donated(jnp.copy, jnp.ones((max(nbytes, 1),), "uint8", device=device))


def into_donated(fn: Callable[[Any], Any], source: Any) -> Callable[[], Any]:
    """Return a function that computes `fn(source)` into the memory of its previous result.

    The result has the shape and dtype of `source`. Fresh memory costs more than a copy from about 32 MiB on, and
    from less where the allocator gives memory back to the system, which changes from process to process.
    """
    program, out = _with_destination(fn), jnp.zeros_like(source)

    def step() -> Any:
        nonlocal out
        out = program(source, out)
        return out

    return step


@cache  # a pass does not compile again what an earlier one has
def _with_destination(fn: Callable[[Any], Any]) -> Any:
    return jax.jit(lambda source, _: fn(source), donate_argnums=1, keep_unused=True)


def _scaled(array: Any) -> Any:
    return array * 1.5


def _squared(matrix: Any) -> Any:
    return matrix @ matrix


def _copy_peak(nbytes: int, bursts: int) -> CopyPeak:
    steps = (copier(nbytes), into_donated(_scaled, jnp.ones(nbytes // 4, "float32")))
    best = min(best_seconds(step, bursts) for step in steps)
    return CopyPeak(2 * nbytes, 2 * nbytes / best, 2 * nbytes / best)


def _matmul_peak(dtype: str, precision: str | None, sizes: tuple[int, ...], bursts: int) -> MatmulPeak:
    found = MatmulPeak(dtype, sizes[0], 0.0, 0.0, precision)
    default = jax.config.jax_default_matmul_precision
    # Random numbers: with equal ones, a GPU needs less power and runs faster than it does on yours.
    block = np.random.default_rng(0).standard_normal((256, 256), "float32")
    for size in sizes:
        matrix = jnp.tile(jnp.asarray(block, dtype), (size // len(block),) * 2)
        with jax.default_matmul_precision(precision or default):
            seconds = best_seconds(into_donated(_squared, matrix), bursts)
        reached = 2 * size**3 / seconds
        peak = MatmulPeak(dtype, size, reached, reached, precision)
        found = max(found, peak, key=lambda m: m.flops_per_second)
        if 8 * seconds > _LONGEST_CALL:  # the next one has twice the rows
            break
    return found


def best_seconds(
    step: Callable[[], Any], bursts: int, clock: Callable[[], float] = time.perf_counter
) -> float:
    """Return the seconds of one call in the fastest of `bursts` bursts; each burst waits once, at its end."""

    def burst(calls: int) -> float:
        start = clock()
        for _ in range(calls):
            result = step()
        jax.block_until_ready(result)
        return (clock() - start) / calls

    burst(1)  # compiles
    calls = max(1, math.ceil(_BURST_SECONDS / max(burst(1), 1e-6)))
    return min(burst(calls) for _ in range(bursts))
