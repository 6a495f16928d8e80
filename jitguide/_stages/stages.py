"""See through `jax.jit`: source, jaxpr, StableHLO and optimized HLO of one function, linked line by line."""

from collections.abc import Callable
from typing import Any

import jax

from jitguide._arguments import refuse_tracing
from jitguide._callables import held_in, is_jitted, peeled, require_function, through
from jitguide._stages.build import build
from jitguide._stages.result import Stages


def stages(fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Stages:
    """Return what becomes of `fn` on its way to the machine, as four texts linked line by line.

    The function is traced, lowered and compiled for these arguments; it is not run. Each equation is
    followed by a label that JAX and XLA carry along. XLA keeps one label per instruction, so an operation
    that it merged into another shows under the other's name; what had to be deduced is marked as such.

    Args:
        fn: A function, plain or jitted, also a method or a `functools.partial` of one,
            `equinox.filter_jit` and `flax.nnx.jit` included. Every keyword goes to
            it, so options of `jax.jit` are set by passing the jitted function:
            ``stages(jax.jit(f, static_argnames="n"), x, n=2)``.
        *args: Its arguments: arrays, or `jax.ShapeDtypeStruct` in their place.
        **kwargs: Its keyword arguments.

    Returns:
        A `Stages`. Its `repr` shows for each source line what it became; in a notebook it shows four columns.

    Raises:
        TypeError: If `fn` is not callable, or already traced, lowered or compiled.
        RuntimeError: If it is called inside a trace. JAX's own errors, and those of `fn`, come through as they are.

    Example:
        >>> import jax.numpy as jnp
        >>> from jitguide import stages
        >>> result = stages(lambda x: jnp.sin(x) + 1, jnp.ones(8))
        >>> [equation.primitive for equation in result.equations]
        ['sin', 'add']
        >>> print(result.jaxpr)
        { lambda ; a:f32[8]. let b:f32[8] = sin a; c:f32[8] = add b 1.0:f32[] in (c,) }
    """
    require_function("stages(fn, ...)", fn)
    refuse_tracing("stages", (args, kwargs))
    library = peeled(fn)[0] if held_in(peeled(fn)[0]) else None  # its own name and source, not the wrapper's

    def use(inner: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Stages:
        return build(library or inner, inner if is_jitted(inner) else jax.jit(inner), args, kwargs)

    return through(fn, args, kwargs, use)
