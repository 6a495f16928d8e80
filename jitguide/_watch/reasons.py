"""Why a call was not a hit, in words: each kind of reason with its sentence and its advice."""

from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from jitguide._display import AsData

# How deep a difference can reach. A new device compiles again but never traces again, for example.
FAST, COMPILE, TRACE = "fast path", "compile", "trace"
_ANY = (TRACE, COMPILE, FAST)


class _Kind(NamedTuple):
    sentence: str
    advice: str
    layers: tuple[str, ...] = (TRACE,)


_KINDS = {
    "first call": _Kind(
        "This is the first call of {argument}",
        "jit traces, lowers and compiles once for each kind of call. Warm up before you time.",
    ),
    "first call without error": _Kind(
        "this is the first call of {argument} that did not raise",
        "a call that raises while tracing caches nothing, so this call did all the work.",
        _ANY,
    ),
    "new function object": _Kind(
        "{argument} is a new function object, from the same code as one before",
        "jit caches by function object. If both are meant to be one, create and jit the function once, "
        "outside the loop.",
    ),
    "captured value": _Kind(
        "{argument} is a new function object with another captured value, {before} → {now}",
        "jit caches by function object, and what a function captures is compiled in. Pass the value as an argument.",
    ),
    "configuration": _Kind(
        "the setting {argument} changed, {before} → {now}",
        "settings are part of the cache key. Set them once, before the first call.",
        _ANY,
    ),
    "number of arguments": _Kind(
        "{argument} {before} and {now}",
        "jit compiles once per number of arguments. Pass the same ones each time, or one stacked array.",
    ),
    "default left out": _Kind(
        "{argument} {before} and {now}",
        "passing a default and leaving it out are compiled separately. Choose one of them.",
    ),
    "keyword or positional": _Kind(
        "{argument} was passed {before} and is now passed {now}",
        "passing it by keyword and by position are compiled separately. Choose one of them.",
    ),
    "tree structure": _Kind(
        "{argument} changed structure, {before} → {now}",
        "jit compiles once per structure. Keep the same containers and keys.",
    ),
    "class": _Kind(
        "{argument} changed class, {before} → {now}",
        "jit compiles once per class, but to JAX their trees are equal, and 0.10 may run the program of one for the "
        "other. Give each class a static field with a value of its own.",
        _ANY,
    ),
    "static field": _Kind(
        "{argument} is static in its container and changed, {before} → {now}",
        "static fields are compiled in. Keep to a few values.",
    ),
    "static value": _Kind(
        "static {argument} changed, {before} → {now}",
        "each static value compiles. Keep to a few values, or pass it as a traced argument.",
    ),
    "static type": _Kind(
        "static {argument} is equal but of another type, {before} → {now}",
        "type and value both count. Convert it before the call.",
    ),
    "static identity": _Kind(
        "static {argument} is {now}",
        "define `__eq__` and `__hash__`, as a frozen dataclass does, or pass the same object again.",
    ),
    "dtype": _Kind(
        "{argument} changed dtype, {before} → {now}",
        "jit compiles once per dtype. Convert it before the call.",
    ),
    "shape": _Kind(
        "{argument} changed shape, {before} → {now}",
        "jit compiles once per shape. Pad to a few sizes, or mask.",
    ),
    "weak type": _Kind(
        "{argument} changed between weak and strong type, {before} → {now}",
        "a Python number has a weak type. Start from an array with a dtype.",
    ),
    "sharding": _Kind(
        "{argument} changed sharding, {before} → {now}",
        "an executable is compiled for the placement of its inputs. Place them the same way each time.",
        _ANY,
    ),
    "device": _Kind(
        "{argument} moved, {before} → {now}",
        "an executable is compiled for one device. Put the inputs on the same device each time.",
        (COMPILE, FAST),
    ),
    "committedness": _Kind(
        "{argument} changed commitment to its device, {before} → {now}",
        "the trace is reused but XLA compiles again. Commit all inputs or none: `jax.device_put(x, device)`.",
        (COMPILE, FAST),
    ),
    "memory": _Kind(
        "{argument} moved to another kind of memory, {before} → {now}",
        "the kind of memory is a part of an array's type. Keep each input in one kind.",
        _ANY,
    ),
    "layout": _Kind(
        "{argument} changed its layout in memory, {before} → {now}",
        "the trace is reused but XLA compiles again. Produce the input in one layout.",
        (COMPILE, FAST),
    ),
    "options": _Kind(
        "{argument} was jitted again with other options",
        "options such as `compiler_options` are compiled in. Jit once, with the final options.",
        (COMPILE, FAST),
    ),
    "input kind": _Kind(
        "{argument} is another kind of input, {before} → {now}",
        "the executable is reused; only the first such call is slower.",
        (FAST,),
    ),
    "no fast path": _Kind(
        "{argument} has no fast path for this call",
        "`jax.debug.print`, `io_callback`, ordered effects and `Ref` arguments go through Python each time. "
        "Keep them out of the hot loop.",
        (FAST,),
    ),
    "failed first call": _Kind(
        "the first such call of {argument} raised, and JAX has kept such calls off the fast path since",
        "`clear_cache()` of the function brings them back. Call it once after the cause is fixed.",
        (FAST,),
    ),
    "other thread": _Kind(
        "another thread traced or compiled {argument} during this call, which may have waited for it",
        "call the function once before the threads start.",
        (FAST,),
    ),
    "disabled": _Kind(
        "`jax.disable_jit` is in effect",
        "the body ran operation by operation, and nothing was compiled for {argument} as a whole.",
        (FAST,),
    ),
    "transformed": _Kind(
        "{argument} was called under `{now}`, which compiles it for itself",
        "each transformation compiles it again, for each shape. Jit the whole, as in `jax.jit(jax.vmap(f))` or `jax.jit(jax.grad(f))`, "
        "and watch that for reasons.",
        (TRACE, COMPILE),
    ),
    "raised": _Kind("{argument} raised {now}", "nothing was compiled.", ()),
    "caches cleared": _Kind(
        "the same call was compiled before, and its cache entry is gone",
        "`jax.clear_caches()` or `clear_cache()` ran, or too many entries pushed it out.",
        _ANY,
    ),
    "not watched then": _Kind(
        "{argument} is called in another way than before it was watched",
        "the earlier calls are not known here. Watch the function from its first call on to see what changed.",
        _ANY,
    ),
    "unknown": _Kind(
        "{argument} did more work than its arguments explain",
        "no difference to an earlier call explains it. Set `jax_explain_cache_misses` and repeat: JAX logs "
        "its own view.",
        _ANY,
    ),
}


@dataclass(frozen=True)
class Reason(AsData):
    """Why a call was not a hit; `str(reason)` is one sentence and an advice.

    Attributes:
        kind: What differs, such as "shape"; see `KINDS`.
        argument: The argument or the leaf, as it would be written in Python: `batch['x']`.
        before: What it was in the nearest earlier call.
        now: What it is in this call.
        advice: What to do about it.
        also: Further differences to the same earlier call, as sentences.

    Example:
        >>> from jitguide._watch.reasons import reason
        >>> print(reason("shape", "x", "float32[8]", "float32[12]"))
        `x` changed shape, float32[8] → float32[12]: jit compiles once per shape. Pad to a few sizes, or mask.
    """

    kind: str
    argument: str
    before: str
    now: str
    advice: str
    also: tuple[str, ...] = ()
    _derived: ClassVar = ("sentence",)

    @property
    def sentence(self) -> str:
        """The difference in words, without the advice."""
        text = _KINDS[self.kind].sentence.format(
            argument=f"`{self.argument}`", before=self.before, now=self.now
        )
        return text[:1].upper() + text[1:]

    def __str__(self) -> str:
        also = "".join(f" Also: {text[:1].lower() + text[1:]}." for text in self.also)
        return f"{self.sentence}: {self.advice}{also}"


KINDS = tuple(_KINDS)


def reason(kind: str, argument: str, before: str = "", now: str = "", advice: str = "") -> Reason:
    """Return a reason of a kind, with the advice that belongs to the kind unless one is given."""
    return Reason(kind, argument, before, now, advice or _KINDS[kind].advice.format(argument=f"`{argument}`"))


def reaches(kind: str, layer: str) -> bool:
    """Return whether a difference of this kind can make JAX work down to `layer`."""
    return layer in _KINDS[kind].layers
