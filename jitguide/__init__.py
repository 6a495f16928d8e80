"""Instruments for understanding `jax.jit`: measure it, watch it, see through it."""

from __future__ import annotations

__version__ = "0.1.0"
