"""What a user may write with each public name. Type checkers read it; nothing runs it.

A line that a checker must refuse says so in a comment, and that comment is an error where the checker does not.
"""

from collections.abc import Callable
from typing import assert_type

import jax
import jax.numpy as jnp

import jitguide
from jitguide import (
    Call,
    CaughtError,
    Comparison,
    DeviceReport,
    Explanation,
    Finding,
    Findings,
    Peaks,
    Phases,
    Ratio,
    Reason,
    Recording,
    Roofline,
    Scaling,
    Stages,
    Timing,
    Watched,
    WatchedBlock,
    assert_compiles,
    assert_traces,
    check,
    compare,
    device_report,
    expect_error,
    explain,
    peaks,
    phases,
    record,
    roofline,
    scaling,
    stages,
    watch,
)


def scale(x: jax.Array, by: float = 2.0) -> jax.Array:
    return x * by


x = jnp.ones(3)
assert_type(jitguide.__version__, str)

# Time.
result = compare({"plain": scale, "twice": lambda x: x + x}, x, baseline="plain", budget=0.1, check=None)
assert_type(result, Comparison)
assert_type(result["plain"], Timing)
assert_type(result["plain"].median, float)
assert_type(result.speedup("twice"), Ratio)
assert_type(result.speedup("twice").low, float)
assert_type(result.verdict("twice"), str)
cost = phases(scale, x, by=3.0)
assert_type(cost, Phases)
assert_type(cost.break_even(1e-3), float)
curve = scaling({"plain": scale}, jnp.ones, [10, 100], budget=0.1)
assert_type(curve, Scaling)
assert_type(curve.crossover("plain", "plain"), float | None)

# Calls. A watched function keeps the signature of the function.
watched = watch(scale)
assert_type(watched(x, by=3.0), jax.Array)
keeps: Callable[[jax.Array, float], jax.Array] = watched
takes: Watched[[jax.Array, float], jax.Array] = watch(scale)
watched("not an array")  # type: ignore[arg-type]  # pyright: ignore[reportArgumentType]
watched(x, times=3.0)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
assert_type(watched.last, Call | None)
assert_type(watched.calls[0].reason, Reason | None)
assert_type(watched.calls, tuple[Call, ...])
assert_type(watched.compiles, int)
watched.assert_compiles(1)
jitted = watch(jax.jit(scale, static_argnames="by"))
jitted(x, by=3.0).block_until_ready()  # JAX does not keep the types of the function
with watch() as block:
    watched(x)
assert_type(block, WatchedBlock)
assert_type(block.traces, int)
with assert_compiles(1, of=watched) as compiled, assert_traces(1, of="scale") as traced:
    watched(x)
assert_type(compiled, WatchedBlock)
assert_type(traced, WatchedBlock)
findings = check(scale, x, calls=[(x,), (x, 3.0)], run=False)
assert_type(findings, Findings)
for finding in findings:
    assert_type(finding, Finding)

# Code, hardware, errors.
found = stages(scale, x)
assert_type(found, Stages)
assert_type(found.notes, tuple[str, ...])
assert_type(roofline(scale, x), Roofline)
assert_type(roofline(scale, x).copy_ratio, Ratio)
assert_type(peaks(quick=True), Peaks)
assert_type(device_report(), DeviceReport)
assert_type(record(name="mine", quick=True), Recording)
number: int = explain("JAX arrays are immutable").title  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]
with expect_error(TypeError, ValueError) as caught:
    jax.jit(scale)(None)
assert_type(caught, CaughtError)
assert_type(caught.message, str)
assert_type(explain("JAX arrays are immutable"), Explanation)
