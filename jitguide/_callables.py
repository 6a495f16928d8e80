"""What the caller passed as a function: unwrap it, and refuse what an instrument cannot use."""

import functools
import inspect
import types
import warnings
import weakref
from collections.abc import Callable, Iterator, Mapping
from copy import copy
from typing import Any, TypeVar

import jax
import jax.stages

from jitguide._jax import NO_OPTIONS, jit_options
from jitguide._otherwise import otherwise
from jitguide._text import show

# Where libraries keep the jitted function inside their own: `flax.nnx.jit`, `equinox.filter_jit`.
_HELD = ("jitted_fn", "_cached")
T = TypeVar("T")
_STAGED = (jax.stages.Traced, jax.stages.Lowered, jax.stages.Compiled)


def require_function(caller: str, fn: Any, kind: str = "a function") -> None:
    """Raise unless `fn` is `kind`, which can be called and traced; `caller` is such as "stages(fn, ...)"."""
    if isinstance(fn, _STAGED):
        raise TypeError(
            f"{caller} needs {kind}, and `fn` is a {type(fn).__name__} object, which stands for one executable "
            "and never traces again. Pass the function that it was made from."
        )
    if not callable(fn):
        mistaken = "its name" if isinstance(fn, str) else "the result of calling it"
        raise TypeError(
            f"{caller} needs {kind}, and `fn` is {show(fn)} of type {type(fn).__name__}, which cannot be "
            f"called. Pass the function itself, not {mistaken}."
        )
    try:
        weakref.ref(fn)  # JAX's caches need one, and a second `jax.jit` of what has none ends the process
    except TypeError:
        name = _in_code(fn)
        kind = f"a {type(fn).__name__} has no weak references, which the caches of JAX need"
        if isinstance(fn, staticmethod):
            advice = "Put `@staticmethod` above the other decorators"
        elif hasattr(jax.numpy, name):
            advice = f"Write it with `jnp.{name}`"
        else:
            advice = f"Pass `lambda x: {name}(x)`"
        raise TypeError(f"{caller} cannot jit `{name}`: {kind}. {advice}.") from None


def _in_code(fn: Any) -> str:
    name = getattr(fn, "__name__", "")
    return name if name.isidentifier() else "fn"


def is_watched(fn: Any) -> bool:
    """Return whether `fn` is what `watch(fn)` returned."""
    return hasattr(type(fn), "__jitguide_wrapped__")


def unwatched(fn: Any) -> Any:
    """Return the function given to `watch`, or `fn` itself if it is not watched."""
    return fn.__jitguide_wrapped__ if is_watched(fn) else fn


def is_jitted(fn: Any) -> bool:
    """Return whether `fn` can be traced and lowered, as the result of `jax.jit` can."""
    return hasattr(fn, "trace") and hasattr(fn, "lower")


def bound_in(fn: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]] | None:
    """Return what a method or a partial calls and what it adds to the arguments; None for anything else.

    By their attributes, because Equinox has classes of its own for both.
    """
    if hasattr(fn, "__func__") and hasattr(fn, "__self__"):
        return fn.__func__, (fn.__self__,), {}
    if hasattr(fn, "func") and hasattr(fn, "args") and hasattr(fn, "keywords"):
        return fn.func, tuple(fn.args), dict(fn.keywords)
    return None


def held_in(fn: Any) -> str | None:
    """Return the attribute in which a library's wrapper holds its jitted function; None for anything else."""
    held = {} if isinstance(fn, types.FunctionType) else getattr(fn, "__dict__", {})
    return next((name for name in _HELD if isinstance(held.get(name), jax.stages.Wrapped)), None)


def shares_cache(fn: Any) -> bool:
    """Return whether the jitted function in a wrapper serves other functions of the same name too, as Equinox's."""
    return held_in(peeled(fn)[0]) == "_cached"


def peeled(fn: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return what is inside of watchers, methods and partials, and the arguments bound on the way."""
    fn, args, kwargs = unwatched(fn), tuple[Any, ...](), dict[str, Any]()
    while found := bound_in(fn):
        fn, args, kwargs = unwatched(found[0]), (*found[1], *args), {**found[2], **kwargs}
    return fn, args, kwargs


def jitted_in(fn: Any) -> Any:
    """Return the function of `jax.jit` that a call of `fn` reaches; None if there is none."""
    inner = peeled(fn)[0]
    if name := held_in(inner):
        return getattr(inner, name)
    return inner if is_jitted(inner) else None


def reached(fn: Any) -> tuple[Any, tuple[Any, ...], dict[str, Any]]:
    """Return the jitted function, or library's wrapper, that a call of `fn` reaches, and what is bound on the way.

    Options such as `static_argnums` count what is bound as the first arguments, so it has to be passed to the
    jitted function, not jitted away. Without one inside, the result is `fn` itself, not watched, and nothing.

    Example:
        >>> power = jax.jit(pow, static_argnums=1)
        >>> reached(functools.partial(power, 3.0)) == (power, (3.0,), {})
        True
    """
    return (unwatched(fn), (), {}) if jitted_in(fn) is None else peeled(fn)


def with_inner(wrapper: Any, inner: Callable[..., Any]) -> Any:
    """Return a copy of a library's wrapper that calls `inner` in place of its jitted function."""
    twin: Any = copy(wrapper)
    kind: Any = type(wrapper)
    # Flax finds the state of a call by its wrapper, so the copy must equal it.
    if kind.__eq__ is object.__eq__:
        same = {
            "__eq__": lambda self, other: other is self or other is wrapper,
            "__hash__": lambda _: hash(wrapper),
        }
        twin.__class__ = type(kind.__name__, (kind,), same)
    object.__setattr__(twin, held_in(wrapper) or "", inner)  # Equinox's modules are frozen
    return twin


class _LeftEarlyError(BaseException):
    """Ends a call of a library's wrapper; nothing in between may catch it."""

    result: Any = None


def through(
    fn: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any], use: Callable[[Any, tuple[Any, ...], Any], T]
) -> T:
    """Return `use(jitted, args, kwargs)` for the function of `jax.jit` and the arguments that a call of `fn` reaches.

    It looks through `watch`, methods, `functools.partial`, `equinox.filter_jit` and `flax.nnx.jit`. The last two turn
    their arguments into others, and what they traced can be traced only during a call. So `use` runs inside
    such a call, in place of the jitted function, and the call ends with it: nothing of the caller's is changed.

    Where no jitted function is inside, `use` gets `fn`, not watched, and the arguments as they are.

    Example:
        >>> power = jax.jit(pow, static_argnums=1)
        >>> through(functools.partial(power, 3.0), (2,), {}, lambda fn, args, kwargs: (fn is power, args))
        (True, (3.0, 2))
    """
    inner, bound, named = reached(fn)
    if not held_in(inner):
        return use(inner, (*bound, *args), {**named, **kwargs})
    left = _LeftEarlyError()

    def instead(*args: Any, **kwargs: Any) -> Any:
        left.result = use(jitted_in(inner), args, kwargs)
        raise left

    try:
        with_inner(inner, instead)(*bound, *args, **{**named, **kwargs})
    except _LeftEarlyError as error:
        if error is not left:
            raise
    result: T = left.result
    return result


def layers(fn: Any) -> Iterator[Any]:
    """Yield a callable and what is inside it, outermost first: of wrappers, partials, methods and callable objects."""
    for _ in range(20):  # a chain that points at itself must end
        yield fn
        parts = (getattr(fn, name, None) for name in ("__wrapped__", "func", "__func__"))
        inner = next(filter(callable, parts), None)
        if inner is None and callable(fn) and not hasattr(fn, "__code__") and not inspect.isclass(fn):
            inner = type(fn).__call__
        if inner is None or isinstance(inner, types.WrapperDescriptorType):
            return
        fn = inner


def closure_of(fn: types.FunctionType) -> dict[str, Any]:
    """Return what a function took from functions around it, by name; names that are not bound yet are left out."""
    cells = zip(fn.__code__.co_freevars, fn.__closure__ or (), strict=True)
    return {name: cell.cell_contents for name, cell in cells if cell != types.CellType()}


@otherwise(list[inspect.Parameter]())
def parameters_of(fn: Any) -> list[inspect.Parameter]:
    """Return the parameters of a function; none for the few callables of C that do not tell."""
    return list(inspect.signature(fn).parameters.values())


def argument_name(parameters: list[inspect.Parameter], number: int) -> str:
    """Return the name of the argument at a position, such as `xs[0]` for the first that goes to `*xs`."""
    order = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    rest = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), "argument")
    return order[number] if -len(order) <= number < len(order) else f"{rest}[{number - len(order)}]"


def static_names(fn: Any, parameters: list[inspect.Parameter]) -> set[str]:
    """Return the names of the parameters that are static in a jitted function; none if JAX does not expose them."""
    options = jit_options(fn) or {}
    names = {argument_name(parameters, number) for number in options.get("static_argnums", ())}
    return names | {*options.get("static_argnames", ())}


def fresh_jit(fn: Any) -> tuple[Any, tuple[str, ...]]:
    """Return `fn` jitted again, as a function that no cache of JAX knows, and notes."""
    if held_in(fn):  # a library's wrapper around the jitted function
        jitted, notes = fresh_jit(jitted_in(fn))
        return with_inner(fn, jitted), notes
    if not isinstance(fn, jax.stages.Wrapped):
        return jax.jit(_copy_of(fn)), ()
    plain, options = getattr(fn, "__wrapped__", None), jit_options(fn)
    if plain is None or options is None:
        return fn, (f"{NO_OPTIONS}, so steps that are cached already show as free.",)
    return jit_with(_copy_of(plain), options), ()


def jit_with(fn: Any, options: dict[str, Any]) -> Any:
    """Return `jax.jit(fn, **options)`, where JAX has warned of a deprecated option before."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DeprecationWarning)
        return jax.jit(fn, **options)


def _copy_of(fn: Any) -> Any:
    # JAX's caches go by function object; names of parameters still come from the function inside.
    @functools.wraps(fn, updated=())
    def copy(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return copy


def require_jitted(caller: str, fn: Any) -> None:
    """Raise unless a jitted function is inside `fn`; `caller` is as for `require_function`."""
    require_function(caller, fn, "a jitted function")
    if jitted_in(fn) is not None:
        return
    name = getattr(fn, "__name__", "")
    what = f"`{name}`" if name else f"`fn`, an object of type {type(fn).__name__},"
    held = [name for name, value in getattr(fn, "__dict__", {}).items() if jitted_in(value) is not None]
    hands_on = isinstance(fn, types.FunctionType) and fn.__code__.co_flags & inspect.CO_VARARGS
    inside = closure_of(fn).values() if hands_on else ()
    if hasattr(fn, "lower") or "jitted_fn" in getattr(fn, "__dict__", {}):  # `jax.pmap`, `nnx.cached_partial`
        problem = (
            "hides the one inside it, as those of `jax.pmap` do. `with jitguide.watch():` around its calls counts "
            "what it compiles. A `jax.jit` of `jax.shard_map` hides nothing."
        )
    elif held:
        problem = (
            "is a Python function around one, as `jax.vmap` and decorators make. Write "
            f"{caller.replace('fn', f'{_in_code(fn)}.{held[0]}')}, or put `jax.jit` around the whole."
        )
    elif any(jitted_in(value) is not None for value in inside):
        problem = "is a Python function around one, as decorators make. Pass the one that was decorated."
    elif inspect.isclass(fn):
        problem = "is a class. Pass `jax.jit` of a function, or of an object that can be called."
    else:
        problem = f"is not jitted. Write {caller.replace('fn', f'jax.jit({_in_code(fn)})')}."
    raise TypeError(f"{caller} needs a jitted function, and {what} {problem}")
