"""What the second of two calls of one jitted function does, for every pair of some calls."""

import itertools
import json
from collections import Counter
from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jitguide import watch
from jitguide._display import escape
from jitguide._watch.reasons import Call

_Run = Callable[[Callable[..., Any]], object]
_KINDS = {
    "hit": "a hit: the compiled function runs at once",
    "path": "leaves the fast path: JAX's Python code runs once, and nothing is compiled",
    "compile": "compiles without a trace: XLA compiles the trace that is there for another placement",
    "trace": "traces and compiles again",
}


class Pairs:
    """The second calls of pairs, as a table and a chooser.

    Args:
        names: The calls, as they are written in Python.
        found: What `watch` saw of the second call, by the names of the first and the second.

    Example:
        >>> from jitguide.demos.cache_key import pairs
        >>> pairs.run(["f(1.0)", "f(2.0)", "f(1)"])
        3 calls, 9 pairs; the second call: 5 hit, 4 trace
    """

    def __init__(self, names: list[str], found: dict[tuple[str, str], Call]):
        self.names = names
        self.found = found

    def kinds(self) -> Counter[str]:
        """Return how many second calls were of each kind."""
        return Counter(map(_kind, self.found.values()))

    def __repr__(self) -> str:
        counts = ", ".join(f"{count} {kind}" for kind, count in sorted(self.kinds().items()))
        return f"{len(self.names)} calls, {len(self.found)} pairs; the second call: {counts}"

    def _repr_html_(self) -> str:
        numbered = list(enumerate(self.names, 1))
        head = "".join(f'<th scope="col" title="{escape(name)}">{i}</th>' for i, name in numbered)
        rows = ""
        for i, first in numbered:
            kinds = (_kind(self.found[first, second]) for second in self.names)
            cells = "".join(f'<td class="pair-{kind}">{kind}</td>' for kind in kinds)
            rows += f'<tr><th scope="row">{i}&nbsp; <code>{escape(first)}</code></th>{cells}</tr>'
        legend = "".join(f'<li><span class="pair-{k}">{k}</span> {text}</li>' for k, text in _KINDS.items())
        calls = [self.found[first, second] for first in self.names for second in self.names]
        reasons = list(dict.fromkeys(str(call.reason or "") for call in calls))
        found = [[_kind(call), reasons.index(str(call.reason or "")), *_milliseconds(call)] for call in calls]
        said = {"names": self.names, "reasons": reasons, "found": found}
        data = json.dumps(said, ensure_ascii=False).replace("<", "\\u003c")
        return (
            '<div class="call-pairs"><details class="pairs-all"><summary>All pairs as a table</summary>'
            f'<div class="pst-scrollable-table-container" tabindex="0"><table><thead><tr><th scope="col">first call ↓ '
            f"second call →</th>{head}</tr></thead><tbody>{rows}</tbody></table></div><ul>{legend}</ul></details>"
            f'<script type="application/json">{data}</script></div>'
        )


def _kind(call: Call) -> str:
    if call.outcome == "hit":
        return "hit"
    if call.trace is not None:
        return "trace"
    return "path" if call.compile is None else "compile"


def _milliseconds(call: Call) -> list[float | None]:
    """Return those of the whole call, of its trace, and of its lowering and compile."""
    steps = [call.seconds, call.trace, None if call.compile is None else (call.lower or 0) + call.compile]
    return [None if step is None else float(f"{1e3 * step:.2g}") for step in steps]


def calls() -> dict[str, _Run]:
    """Return calls of a function `f(x, n=1)`, whose `n` is static, by how they are written."""
    x, longer, whole = jnp.ones(4), jnp.ones(5), jnp.ones(4, jnp.int32)
    double = np.ones(4)
    committed = jax.device_put(x, jax.devices()[0])
    two = jax.devices()[:2]  # or the only one
    mesh = jax.make_mesh((len(two),), ("i",), devices=two)
    split = jax.device_put(x, jax.NamedSharding(mesh, jax.P("i")))
    return {
        "f(jnp.ones(4))": lambda f: f(x),
        "f(jnp.ones(5))": lambda f: f(longer),
        "f(jnp.ones(4, jnp.int32))": lambda f: f(whole),
        "f(np.ones(4))  # float64": lambda f: f(double),
        "f(1.0)": lambda f: f(1.0),
        "f(2.0)": lambda f: f(2.0),
        "f(1)": lambda f: f(1),
        "f(jnp.float32(1.0))": lambda f: f(jnp.float32(1.0)),
        "f(x=jnp.ones(4))": lambda f: f(x=x),
        "f([1.0, 2.0])": lambda f: f([1.0, 2.0]),
        "f((1.0, 2.0))": lambda f: f((1.0, 2.0)),
        "f(jnp.ones(4), n=2)": lambda f: f(x, n=2),
        "f(jnp.ones(4), n=3)": lambda f: f(x, n=3),
        "f(jax.device_put(jnp.ones(4), jax.devices()[0]))": lambda f: f(committed),
        "f(split)  # over two devices": lambda f: f(split),
        'with jax.default_matmul_precision("highest"): f(jnp.ones(4))': lambda f: _under(
            jax.default_matmul_precision("highest"), f, x
        ),
    }


def _under(setting: AbstractContextManager[object], f: Callable[..., object], x: object) -> object:
    with setting:
        return f(x)


def second_call(first: _Run, second: _Run) -> Call:
    """Return what JAX did at the second of two calls of a new function."""

    def scaled(x: Any, n: int = 1) -> Any:
        return jax.tree.map(lambda leaf: n * leaf, x)

    f = watch(jax.jit(scaled, static_argnames="n"))
    first(f)
    second(f)
    second_one: Call = f.calls[1]
    return second_one


def run(names: list[str] | None = None) -> Pairs:
    """Run every pair of the named calls, or of all."""
    chosen = {name: call for name, call in calls().items() if names is None or name in names}
    pairs = itertools.product(chosen, repeat=2)
    return Pairs(list(chosen), {(a, b): second_call(chosen[a], chosen[b]) for a, b in pairs})
