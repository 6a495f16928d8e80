"""Chains of cheap operations on each element: what fusion is for."""

from __future__ import annotations

import jax
import jax.numpy as jnp


def polynomial(x: jax.Array) -> jax.Array:
    """Return 1 + x + x²/2 + … + x⁷/5040, the start of the exponential series, by Horner's rule.

    Seven multiplications and seven additions: run one by one, each reads and writes a whole array. Plain
    operators only, so that NumPy arrays work as well.

    Args:
        x: Floating-point array of any shape.

    Returns:
        An array of the same shape and dtype.

    Example:
        >>> from jitguide.demos.elementwise import polynomial
        >>> import jax.numpy as jnp
        >>> print(polynomial(jnp.array([0.0, 1.0])))
        [1.       2.718254]
    """
    total = x * (1 / 5040) + (1 / 720)
    for factorial in (120, 24, 6, 2, 1, 1):
        total = total * x + 1 / factorial
    return total


def selu(x: jax.Array) -> jax.Array:
    """Return the scaled exponential linear unit of each element.

    The constants are those of Klambauer et al., "Self-Normalizing Neural Networks" (2017), to six digits.

    Args:
        x: Floating-point array of any shape.

    Returns:
        An array of the same shape and dtype.

    Example:
        >>> from jitguide.demos.elementwise import selu
        >>> import jax.numpy as jnp
        >>> print(selu(jnp.array([0.0, 1.0])))
        [0.       1.050701]
    """
    scale, alpha = 1.050701, 1.673263
    return scale * jnp.where(x > 0, x, alpha * (jnp.exp(x) - 1))
