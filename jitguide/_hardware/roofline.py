"""How close a function comes to what the device can do: against a copy of its bytes and against peaks."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import jax

from jitguide import _display
from jitguide._arguments import Arguments, copies, donates_any, refuse_deleted, refuse_tracing, traced
from jitguide._callables import jitted_in, reached, require_function, through
from jitguide._hardware import program_cost
from jitguide._hardware.peaks import CopyPeak, MatmulPeak, copier, peaks, rate, rates
from jitguide._jax import compiled_text, cost_analysis, has_loop, placeholders_explained
from jitguide._timing.compare import compare, seconds_of_nothing
from jitguide._timing.comparison import CALL_OVERHEAD, QUEUED
from jitguide._timing.statistics import Ratio

# Below this the cost of a call is most of the time of a copy: on a CPU a call took about 10 µs when measured,
# and a copy of 1 MiB as long.
_SMALL_BYTES = 2**20
# Below this fraction of both peaks, something else decides, such as the launches of many kernels.
_FAR = 0.01
_MISSING = "not available"
_SMALL_NOTE = "So few bytes are moved that the time of the copy is mostly the cost of a call."
_LOOP_NOTE = "The program has a loop: XLA counts its body once, so operations and bytes accessed are too low."
_NO_TEXT_NOTE = "Whether the program has a loop is not known. XLA counts the body of one once."
# From here on the C library was seen to hand out fresh pages for each result, at 5 times the time.
_FRESH_BYTES = 32 * 2**20
_FRESH_NOTE = "So large a result is fresh memory on each call, which the copy is spared; donation spares it."
_ABOVE_NOTE = (
    "More than the peak: the function reads only parts of its arguments, as `t[i]` does, or the peak was "
    "measured while other programs ran. `peaks(quick=False)` measures it for longer."
)
_ESTIMATE = "XLA's counts are estimates: what stays in cache counts as accessed, sin or exp as no operation."


@dataclass(frozen=True, repr=False)
class Roofline(_display.Displayed, _display.AsData):
    """One function against the ceilings of the device.

    Attributes:
        copy_ratio: Time of the function over the time of copying the same bytes, with its interval.
        seconds: Median time of a call, wait included.
        bytes_in: Bytes of the arguments that the function uses.
        bytes_out: Bytes of the results.
        bytes_accessed: What XLA counts for all its kernels, None where not available.
        flops: Operations that XLA counts, None where not available.
        dtype: Type of the largest result, which picks the peak for operations.
        copy_peak: The measured peak for a working set of about this size.
        matmul_peak: The measured peak for that type, None where that type was not measured.
        device: What the backend calls the device.
        notes: Sentences on what limits these numbers.
        no_ceiling: Why no ceiling can be named, in a few words; empty where one can.
    """

    copy_ratio: Ratio
    seconds: float
    bytes_in: int
    bytes_out: int
    bytes_accessed: float | None
    flops: float | None
    dtype: str
    copy_peak: CopyPeak
    matmul_peak: MatmulPeak | None
    device: str
    notes: tuple[str, ...] = ()
    no_ceiling: str = ""
    _derived: ClassVar = ("bytes_moved", "passes", "bandwidth_fraction", "flops_fraction", "bound_by")

    @property
    def bytes_moved(self) -> int:
        """Bytes of arguments and results; a function that reads parts of an argument, as `t[i]`, moves less."""
        return self.bytes_in + self.bytes_out

    @property
    def passes(self) -> float | None:
        """How often the program goes over its data, which is bytes accessed over bytes moved."""
        return None if self.bytes_accessed is None else self.bytes_accessed / self.bytes_moved

    @property
    def bandwidth_fraction(self) -> float:
        """Bytes moved per second over the peak for this working set."""
        return self.bytes_moved / self.seconds / self.copy_peak.bytes_per_second

    @property
    def flops_fraction(self) -> float | None:
        """Operations per second over the peak for this type."""
        if self.flops is None or self.matmul_peak is None:
            return None
        return self.flops / self.seconds / self.matmul_peak.flops_per_second

    @property
    def bound_by(self) -> str | None:
        """Which ceiling is nearer, "memory" or "arithmetic"; None where it cannot be told."""
        if self.flops_fraction is None or self.no_ceiling:
            return None
        return "memory" if self.bandwidth_fraction >= self.flops_fraction else "arithmetic"

    def _table(self) -> _display.Table:
        copy, matmul = self.copy_peak, self.matmul_peak
        of_copy = rates(copy.lowest, copy.bytes_per_second, "B/s")
        of_copy += f" ({_display.size(copy.working_set)} copied)"
        of_matmul = rates(matmul.lowest, matmul.flops_per_second, "FLOP/s") if matmul else ""
        of_matmul += f" ({matmul.dtype} matmul)" if matmul else ""
        passes = _MISSING
        if self.passes is not None:
            passes = f"{_display.significant(self.passes)} passes over bytes in and out"
        what, _, why = self.no_ceiling.partition(": ")
        operations = _MISSING if self.flops is None else rate(self.flops, "FLOP")
        rows = [
            ("time of a call", _display.duration(self.seconds), ""),
            ("bytes in and out", _display.size(self.bytes_moved), _percent(self.bandwidth_fraction, of_copy)),
            ("bytes accessed", _display.size(self.bytes_accessed), passes),
            ("operations", operations, _percent(self.flops_fraction, of_matmul)),
            ("nearer ceiling", self.bound_by or what or _MISSING, why),
        ]
        ratio, header = self.copy_ratio, ["what", "amount", "against"]
        value, low, high = (_display.significant(x) for x in (ratio.value, ratio.low, ratio.high))
        title = f"takes {value}× the time of copying the same bytes ({low}–{high})"
        return _display.Table(header, rows, title=title, notes=self.notes, fit=True)


def roofline(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Roofline:
    """Measure `fn` against a copy of the same bytes and against the peaks of the device.

    The copy is one more variant of the same interleaved measurement, so their ratio does not inherit the
    drift of the machine. The fractions of the peaks do, and are rougher. The model is the roofline of
    Williams, Waterman and Patterson (2009): a program can be no faster than its bytes at the peak bandwidth
    and no faster than its operations at the peak rate. The compiled function is measured, under
    `jax.disable_jit` too.

    Args:
        fn: A function that `jax.jit` accepts, or one that is jitted already, as it must be if it has static
            arguments.
        *args: Its arguments. If `fn` donates them, copies are passed.
        **kwargs: Its keyword arguments.

    Returns:
        A `Roofline`, in bytes and seconds.

    Raises:
        TypeError: If `fn` is not a function or is a compiled one, or an argument is not an array.
        ValueError: If `fn` runs on several devices, if an argument was deleted, or if there are no bytes to
            copy.
        RuntimeError: If it is called inside a function that JAX traces.

    Example:
        >>> import jax.numpy as jnp
        >>> from jitguide import roofline
        >>> result = roofline(lambda x: x * 2, jnp.ones(2**18))
        >>> result.bytes_in, result.bytes_out
        (1048576, 1048576)
    """
    require_function("roofline(fn, ...)", fn)
    inner, bound, named = reached(fn)
    args, kwargs = (*bound, *args), {**named, **kwargs}
    refuse_tracing("roofline", (args, kwargs))
    refuse_deleted((args, kwargs), "Make it again.")
    if any(isinstance(leaf, jax.ShapeDtypeStruct) for leaf in jax.tree.leaves((args, kwargs))):
        raise TypeError(
            "roofline runs `fn`, and an argument is a `jax.ShapeDtypeStruct`, which has a shape but no "
            "numbers. Pass an array of that shape."
        )
    with jax.disable_jit(False):
        return _measured(jax.jit(inner) if jitted_in(inner) is None else inner, args, kwargs)


def _measured(jitted: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Roofline:
    lowered, compiled = through(jitted, args, kwargs, _compiled)
    with placeholders_explained():
        device = program_cost.only_device(compiled)
        inputs, outputs = program_cost.leaves(lowered, compiled)
    bytes_in, bytes_out, dtype = program_cost.traffic(inputs, outputs)
    moved = bytes_in + bytes_out
    with jax.default_device(device), jax.transfer_guard("allow"):
        copy, ceilings = copier(moved // 2, device), peaks()
    variants = {"function": lambda pair: jitted(*pair[0], **pair[1]), "copy": lambda _: copy()}
    seconds, ratio, notes = _timed(variants, (args, kwargs), donates_any(lowered.args_info))
    nothing = seconds_of_nothing(len(inputs), len(outputs))
    hlo = compiled_text(compiled)
    cost = cost_analysis(compiled, hlo)
    found = Roofline(
        copy_ratio=ratio,
        seconds=seconds,
        bytes_in=bytes_in,
        bytes_out=bytes_out,
        bytes_accessed=cost["bytes accessed"],
        flops=cost["flops"],
        dtype=dtype,
        copy_peak=ceilings.bandwidth(moved),
        matmul_peak=ceilings.flops(dtype),
        device=ceilings.device,
        no_ceiling=program_cost.why_no_ceiling(hlo, seconds, nothing),
    )
    if found.bound_by and max(found.bandwidth_fraction, found.flops_fraction or 0) < _FAR:
        found = replace(found, no_ceiling="not known: under 1 % of both peaks")
    if not found.no_ceiling and found.flops is not None and found.matmul_peak is None:
        found = replace(found, no_ceiling=f"not known: no peak for {dtype}")
    return replace(found, notes=(*notes, *_notes(hlo, found)))


def _timed(
    variants: dict[str, Callable[..., Any]], arguments: Arguments, donates: bool
) -> tuple[float, Ratio, tuple[str, ...]]:
    """Return the seconds of a call, its time over that of the copy, and the notes on the measurement."""
    how: dict[str, Any] = {"setup": lambda: (copies(arguments),)} if donates else {}
    given = () if donates else (arguments,)
    found = compare(variants, *given, baseline="function", check=None, control=False, **how)
    notes = tuple(n for n in found.notes if getattr(n, "kind", "") not in (CALL_OVERHEAD, QUEUED))
    return found["function"].median, found.speedup("copy"), notes


def _notes(hlo: str, found: Roofline) -> tuple[str, ...]:
    counted = {found.flops, found.bytes_accessed} != {None}
    notes = {
        _ABOVE_NOTE: found.bandwidth_fraction > 1,
        _LOOP_NOTE: has_loop(hlo) and counted,
        _NO_TEXT_NOTE: not hlo and counted,
        _SMALL_NOTE: found.bytes_moved < _SMALL_BYTES,
        _FRESH_NOTE: found.bytes_out >= _FRESH_BYTES and jax.default_backend() == "cpu",
        _ESTIMATE: counted,
    }
    return tuple(note for note, holds in notes.items() if holds)


def _percent(fraction: float | None, peak: str) -> str:
    return _MISSING if fraction is None else f"{_display.significant(100 * fraction)} % of {peak}"


def _compiled(jitted: Any, args: tuple[Any, ...], kwargs: Any) -> tuple[Any, Any]:
    _refuse_refs((args, kwargs))
    found = traced("roofline", jitted, args, kwargs)
    _refuse_refs(found.jaxpr.consts)
    with placeholders_explained():
        lowered = found.lower()
    return lowered, lowered.compile()


def _refuse_refs(tree: Any) -> None:
    if any(isinstance(leaf, jax.Ref) for leaf in jax.tree.leaves(tree)):
        raise TypeError(
            "roofline counts the bytes of arguments and results, and a write into a `Ref` is not among them. "
            "Write it with an array: take `ref[...]`, and return the new value."
        )
