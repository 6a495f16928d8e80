"""A watched call, and why it was not a hit, in words: each kind of reason with its sentence and its advice."""

from dataclasses import dataclass, replace
from typing import ClassVar, Literal, get_args

from jitguide._display import AsData

# From the least to the most work; the last two say that a call cannot be placed on this scale.
Outcome = Literal[
    "hit", "left the fast path", "traced", "lowered", "read from the persistent cache", "compiled",
    "raised", "not counted",
]  # fmt: skip
OUTCOMES: tuple[Outcome, ...] = get_args(Outcome)
_SENTENCES = {
    "first call": "This is the first call of {argument}",
    "first call without error": "this is the first call of {argument} that did not raise",
    "new function object": "{argument} is a new function object, from the same code as one before",
    "captured value": "{argument} is a new function object with another captured value, {before} → {now}",
    "configuration": "the setting {argument} changed, {before} → {now}",
    "number of arguments": "{argument} {before} and {now}",
    "default left out": "{argument} {before} and {now}",
    "keyword or positional": "{argument} was passed {before} and is now passed {now}",
    "tree structure": "{argument} changed structure, {before} → {now}",
    "class": "{argument} changed class, {before} → {now}",
    "static field": "{argument} is static in its container and changed, {before} → {now}",
    "static value": "static {argument} changed, {before} → {now}",
    "static type": "static {argument} is equal but of another type, {before} → {now}",
    "static identity": "static {argument} is {now}",
    "dtype": "{argument} changed dtype, {before} → {now}",
    "shape": "{argument} changed shape, {before} → {now}",
    "weak type": "{argument} changed between weak and strong type, {before} → {now}",
    "sharding": "{argument} changed sharding, {before} → {now}",
    "device": "{argument} moved, {before} → {now}",
    "committedness": "{argument} changed commitment to its device, {before} → {now}",
    "memory": "{argument} moved to another kind of memory, {before} → {now}",
    "layout": "{argument} changed its layout in memory, {before} → {now}",
    "options": "{argument} was jitted again with other options",
    "input kind": "{argument} is another kind of input, {before} → {now}",
    "no fast path": "{argument} has no fast path for this call",
    "failed first call": "the first such call of {argument} raised, and JAX has kept such calls off the fast path since",
    "other thread": "another thread traced or compiled {argument} during this call, which may have waited for it",
    "disabled": "`jax.disable_jit` is in effect",
    "transformed": "{argument} was called under `{now}`, which compiles it for itself",
    "raised": "{argument} raised {now}",
    "caches cleared": "the same call was compiled before, and its cache entry is gone",
    "not watched then": "{argument} is called in another way than before it was watched",
    "unknown": "{argument} did more work than its arguments explain",
}
_ADVICE = {
    "first call": "jit traces, lowers and compiles once for each kind of call. Warm up before you time.",
    "first call without error": "a call that raises while tracing caches nothing, so this call did all the work.",
    "new function object": (
        "jit caches by function object. If both are meant to be one, create and jit the function once, "
        "outside the loop."
    ),
    "captured value": (
        "jit caches by function object, and what a function captures is compiled in. Pass the value as an "
        "argument."
    ),
    "configuration": "settings are part of the cache key. Set them once, before the first call.",
    "number of arguments": "jit compiles once per number of arguments. Pass the same ones each time, or one stacked array.",
    "default left out": "passing a default and leaving it out are compiled separately. Choose one of them.",
    "keyword or positional": "passing it by keyword and by position are compiled separately. Choose one of them.",
    "tree structure": "jit compiles once per structure. Keep the same containers and keys.",
    "class": (
        "jit compiles once per class, but to JAX their trees are equal, and 0.10 may run the program of "
        "one for the other. Give each class a static field with a value of its own."
    ),
    "static field": "static fields are compiled in. Keep to a few values.",
    "static value": "each static value compiles. Keep to a few values, or pass it as a traced argument.",
    "static type": "type and value both count. Convert it before the call.",
    "static identity": (
        "define `__eq__` and `__hash__`, as a frozen dataclass does, or pass the same object again. "
        "If it holds arrays, make it a pytree."
    ),
    "dtype": "jit compiles once per dtype. Convert it before the call.",
    "shape": "jit compiles once per shape. Pad to a few sizes, or mask.",
    "weak type": "a Python number has a weak type. Start from an array with a dtype.",
    "sharding": "an executable is compiled for the placement of its inputs. Place them the same way each time.",
    "device": "an executable is compiled for one device. Put the inputs on the same device each time.",
    "committedness": "the trace is reused but XLA compiles again. Commit all inputs or none: `jax.device_put(x, device)`.",
    "memory": "the kind of memory is a part of an array's type. Keep each input in one kind.",
    "layout": "the trace is reused but XLA compiles again. Produce the input in one layout.",
    "options": "options such as `compiler_options` are compiled in. Jit once, with the final options.",
    "input kind": "the executable is reused; only the first such call is slower.",
    "no fast path": (
        "`jax.debug.print`, `io_callback`, ordered effects and `Ref` arguments go through Python each "
        "time. Keep them out of the hot loop."
    ),
    "failed first call": "`clear_cache()` of the function brings them back. Call it once after the cause is fixed.",
    "other thread": "call the function once before the threads start.",
    "disabled": "the body ran operation by operation, and nothing was compiled for {argument} as a whole.",
    "transformed": (
        "each transformation compiles it again, for each shape. Jit the whole, as in "
        "`jax.jit(jax.vmap(f))` or `jax.jit(jax.grad(f))`, and watch that for reasons."
    ),
    "raised": "nothing was compiled.",
    "caches cleared": "`jax.clear_caches()` or `clear_cache()` ran, or too many entries pushed it out.",
    "not watched then": (
        "the earlier calls are not known here. Watch the function from its first call on to see what changed."
    ),
    "unknown": (
        "no difference to an earlier call explains it. Set `jax_explain_cache_misses` and repeat: JAX "
        "logs its own view."
    ),
}
KINDS = tuple(_SENTENCES)
# How deep a difference can reach. A new device compiles again but never traces again, for example.
FAST, COMPILE, TRACE = "fast path", "compile", "trace"
_AT_ANY_DEPTH = (
    "first call without error", "configuration", "class", "sharding", "memory",
    "caches cleared", "not watched then", "unknown",
)  # fmt: skip
_LAYERS: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(KINDS, (TRACE,)),
    **dict.fromkeys(_AT_ANY_DEPTH, (TRACE, COMPILE, FAST)),
    **dict.fromkeys(("device", "committedness", "layout", "options"), (COMPILE, FAST)),
    **dict.fromkeys(("input kind", "no fast path", "failed first call", "other thread", "disabled"), (FAST,)),
    "transformed": (TRACE, COMPILE),
    "raised": (),
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
        text = _SENTENCES[self.kind].format(argument=f"`{self.argument}`", before=self.before, now=self.now)
        return text[:1].upper() + text[1:]

    @property
    def rest(self) -> str:
        """The further differences in words, each after a space; "" without one."""
        return "".join(f" Also: {text[:1].lower() + text[1:]}." for text in self.also)

    def __str__(self) -> str:
        return f"{self.sentence}: {self.advice}{self.rest}"


def reason(kind: str, argument: str, before: str = "", now: str = "", advice: str = "") -> Reason:
    """Return a reason of a kind, with the advice that belongs to the kind unless one is given."""
    return Reason(kind, argument, before, now, advice or _ADVICE[kind].format(argument=f"`{argument}`"))


def reaches(kind: str, layer: str) -> bool:
    """Return whether a difference of this kind can make JAX work down to `layer`."""
    return layer in _LAYERS[kind]


@dataclass(frozen=True)
class Call(AsData):
    """One call of a watched function.

    Attributes:
        index: Its number, from 1.
        outcome: The deepest thing it made JAX do, or "raised"; one of `OUTCOMES`.
        seconds: Until the call returned. JAX may still be computing the result then.
        trace: Seconds of tracing; None if there was none.
        lower: Seconds of lowering to StableHLO; None if there was none.
        compile: Seconds in XLA, or of reading from the persistent cache; None without either.
        compiled: Whether XLA compiled it, which a call that raised when its program ran did as well.
        reason: Why it was not a hit; None for a hit.
        signature: The call as jit sees it; empty for a hit, which is too quick to write one down.
    """

    index: int
    outcome: Outcome
    seconds: float
    trace: float | None = None
    lower: float | None = None
    compile: float | None = None
    reason: Reason | None = None
    signature: str = ""
    compiled: bool = False


def call_at(index: int, seconds: float, other: Call | Reason | None) -> Call:
    """Return the call of that index; `other` is what it was unless it was a hit."""
    if isinstance(other, Call):
        return replace(other, index=index)
    return Call(index, "left the fast path" if other else "hit", seconds, reason=other)
