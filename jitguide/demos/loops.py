"""One small simulation and the loop around it: what it costs to start many small operations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import jax

State = tuple[Any, Any]


def spring_step(state: State, dt: float = 0.01) -> State:
    """Return position and velocity of a stiffening spring one time step later (semi-implicit Euler).

    Operators only: the state may hold Python floats, NumPy arrays or JAX arrays.

    Args:
        state: Position and velocity, two numbers or two arrays of one shape.
        dt: Time step in seconds.

    Returns:
        The next position and velocity.

    Example:
        >>> from jitguide.demos.loops import spring_step
        >>> spring_step((1.0, 0.0), dt=0.5)
        (0.5, -1.0)
    """
    position, velocity = state
    velocity = velocity - dt * (position + position * position * position)
    position = position + dt * velocity
    return position, velocity


def simulate(state: State, steps: int, step: Callable[[State], State] = spring_step) -> State:
    """Return the state after `steps` steps, with the loop in Python.

    Example:
        >>> from jitguide.demos.loops import simulate
        >>> simulate((1.0, 0.0), steps=0)
        (1.0, 0.0)
    """
    for _ in range(steps):
        state = step(state)
    return state


def simulate_in_one(state: State, steps: int) -> State:
    """Return the same as `simulate`, with a loop that the compiler sees as a loop.

    Example:
        >>> from jitguide.demos.loops import simulate, simulate_in_one
        >>> position, velocity = simulate_in_one((1.0, 0.0), 50)
        >>> abs(float(position) - simulate((1.0, 0.0), 50)[0]) < 1e-5
        True
    """
    final: tuple[Any, Any] = jax.lax.fori_loop(0, steps, lambda _, current: spring_step(current), state)
    return final
