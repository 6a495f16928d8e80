"""What a recording measures: small functions whose times tell machines apart."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from statistics import median
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from jitguide._display import AsData
from jitguide._hardware.peaks import copier, into_donated, peaks
from jitguide._timing.compare import compare
from jitguide._timing.comparison import Comparison
from jitguide._timing.phases import phases
from jitguide._timing.scaling import scaling
from jitguide._timing.statistics import Ratio

_CALLS, _STEPS, _REPEATS = 100, 50, 20
_State = tuple[Any, Any]  # position and velocity
_SIZES = [10**n for n in range(1, 8)]
# Elements of the fused functions' argument: 16 MiB on a CPU, and on an accelerator more than its caches hold.
_LARGE_CPU, _LARGE = 2**22, 2**26


@dataclass(frozen=True)
class Effort:
    """How much time to spend."""

    budget: float  # seconds for each variant of a comparison
    compiles: int  # how often each function is compiled
    quick: bool  # whether the ceilings are measured quickly


QUICK = Effort(0.08, 1, quick=True)
THOROUGH = Effort(1.0, 5, quick=False)


@dataclass(frozen=True)
class Row(AsData):
    """One measured number."""

    group: str  # the question that it answers
    what: str  # what was measured
    unit: str  # "speedup", "ratio", "s", "B/s", "FLOP/s" or "runs"
    value: float
    # The ends of the 95 % interval of a ratio, of the middle 80 % of times, of several passes.
    low: float | None = None
    high: float | None = None


def _ratio(group: str, what: str, found: Ratio, unit: str = "speedup") -> Row:
    return Row(group, what, unit, found.value, found.low, found.high)


def calls(effort: Effort) -> Iterator[Row]:
    """Time a call that computes next to nothing: waited for each time, and once for many calls."""
    add, x = jax.jit(lambda x: x + 1), jnp.ones(8)

    def many(x: jax.Array) -> jax.Array:
        for _ in range(_CALLS):
            x = add(x)
        return x

    found = compare({"one": add, "many": many}, x, budget=effort.budget, check=None)
    for name, what, count in (("one", "each call waited for", 1), ("many", "one wait for 100 calls", _CALLS)):
        timing = found[name]
        low, mid, high = (seconds / count for seconds in (timing.low, timing.median, timing.high))
        yield Row("What does a call cost?", what, "s", mid, low, high)


def polynomial(x: Any) -> Any:
    """Return the start of the exponential series, up to x⁷/5040, by Horner's rule; of a NumPy array too.

    Seven multiplications and seven additions: run one by one, each reads and writes a whole array.
    """
    total = x * (1 / 5040) + (1 / 720)
    for factorial in (120, 24, 6, 2, 1, 1):
        total = total * x + 1 / factorial
    return total


def selu(x: jax.Array) -> jax.Array:
    """Return the scaled exponential linear unit, with the constants of Klambauer et al. (2017) to six digits."""
    scale, alpha = 1.050701, 1.673263
    return scale * jnp.where(x > 0, x, alpha * (jnp.exp(x) - 1))


def softmax(x: jax.Array) -> jax.Array:
    """Return the softmax of each row."""
    shifted = jnp.exp(x - x.max(-1, keepdims=True))
    return shifted / shifted.sum(-1, keepdims=True)


def layer_norm(x: jax.Array) -> jax.Array:
    """Return each row with mean 0 and variance 1."""
    centred = x - x.mean(-1, keepdims=True)
    return centred * jax.lax.rsqrt((centred * centred).mean(-1, keepdims=True) + 1e-6)


_FUSED = {"selu": selu, "polynomial": polynomial, "softmax": softmax, "layer norm": layer_norm}


def fusion(effort: Effort) -> Iterator[Row]:
    """Compare fused functions with a copy of the same bytes, both into donated memory, and with the same functions without jit."""
    elements = _LARGE_CPU if jax.default_backend() == "cpu" else _LARGE
    x = jax.random.normal(jax.random.key(0), (elements // 1024, 1024))
    copy = copier(x.nbytes)
    for name, fn in _FUSED.items():
        both = {"copy": copy, "fused": into_donated(fn, x)}
        found = compare(both, baseline="fused", budget=effort.budget, check=None, control=False)
        copied = found.speedup("copy")
        yield _ratio("How close to a copy of its bytes?", f"{name}: time ÷ copy", copied, "ratio")
    for name, fn in _FUSED.items():
        variants = {"eager": fn, "jit": jax.jit(fn)}
        gain = compare(variants, x, budget=effort.budget, check=None).speedup("jit")
        yield _ratio("What does jit gain on large arrays?", name, gain)


def _spring_step(state: _State) -> _State:
    """Return position and velocity of a stiffening spring 0.01 s later (semi-implicit Euler)."""
    position, velocity = state
    velocity = velocity - 0.01 * (position + position * position * position)
    return position + 0.01 * velocity, velocity


def _simulate(state: _State, step: Callable[[_State], _State] = _spring_step) -> _State:
    for _ in range(_STEPS):
        state = step(state)
    return state


def _simulate_in_one(state: _State) -> Any:
    return jax.lax.fori_loop(0, _STEPS, lambda _, current: _spring_step(current), state)


def ladder(effort: Effort) -> Iterator[Row]:
    """Compare an ODE solved step by step, with a jitted step, and in one jitted loop."""
    variants = {
        "eager": _simulate,
        "step": partial(_simulate, step=jax.jit(_spring_step)),
        "loop": jax.jit(_simulate_in_one),
    }
    found = compare(variants, (jnp.ones(1000), jnp.zeros(1000)), budget=effort.budget)
    group = "How much to jit, in an ODE of 50 steps?"
    yield _ratio(group, "jitted step, over no jit", found.speedup("step"))
    yield _ratio(group, "one jitted loop, over a jitted step", found.speedup("loop", over="step"))


def sizes(effort: Effort) -> Iterator[Row]:
    """Compare a polynomial under jit with NumPy, from few numbers to many."""
    compiled = jax.jit(polynomial)
    variants: Mapping[str, Callable[..., Any]] = {
        "NumPy": lambda host, _: polynomial(host),
        "jit": lambda _, device: compiled(device),
    }

    def arguments(size: float) -> tuple[Any, Any]:
        host = np.linspace(0, 1, int(size), dtype=np.float32)
        return host, jnp.asarray(host)

    found = scaling(variants, arguments, _SIZES, budget=effort.budget / 3)
    group = "From which size on does jit beat NumPy?"
    for size, compared in zip(found.sizes, found.comparisons, strict=True):
        yield _ratio(group, f"{size:,.0f} numbers", compared.speedup("jit"))


def _loss(weights: tuple[jax.Array, ...], x: jax.Array) -> jax.Array:
    for w in weights:
        x = jnp.tanh(x @ w)
    return (x * x).mean()


def compiling(effort: Effort) -> Iterator[Row]:
    """Time the steps of the first call of three functions."""
    weights = tuple(jnp.full((64, 64), 0.01) for _ in range(4))
    cases: dict[str, tuple[Callable[..., Any], tuple[Any, ...]]] = {
        "polynomial": (polynomial, (jnp.ones(1000),)),
        "gradient of 4 layers": (jax.grad(_loss), (weights, jnp.ones((32, 64)))),
        "loop of 50 steps": (_simulate_in_one, ((jnp.ones(8), jnp.zeros(8)),)),
    }
    for name, (fn, args) in cases.items():
        found = [phases(jax.jit(fn), *args) for _ in range(effort.compiles)]
        for step in ("trace", "lower", "compile"):
            seconds = [getattr(one, step) for one in found]
            what = f"{name}: {step}"
            yield Row("How long does compiling take?", what, "s", median(seconds), min(seconds), max(seconds))


def ceilings(effort: Effort) -> Iterator[Row]:
    """Measure what the device reaches at best."""
    found, group = peaks(quick=effort.quick), "What does the device reach at best?"
    for copy in found.copies:
        what = f"copy, {copy.working_set // 2**20} MiB read and written"
        yield Row(group, what, "B/s", copy.bytes_per_second, copy.lowest, copy.bytes_per_second)
    for product in found.matmuls:
        what = f"matrix product, {product.name}"
        yield Row(group, what, "FLOP/s", product.flops_per_second, product.lowest, product.flops_per_second)


def precision(effort: Effort) -> Iterator[Row]:
    """Compare matrix products at the default and at the highest precision: time and error."""
    rows = 1024 if jax.default_backend() == "cpu" else 4096
    a = jax.random.normal(jax.random.key(1), (rows, rows))
    products = {name: jax.jit(partial(jnp.matmul, precision=name)) for name in ("default", "highest")}
    exact = np.asarray(a, np.float64) @ np.asarray(a, np.float64)
    group = "What does full float32 precision cost?"
    found: Comparison = compare(products, a, a, baseline="highest", budget=effort.budget, check=None)
    yield _ratio(group, "default, over highest precision", found.speedup("default"))
    for name, product in products.items():
        error = np.abs(np.asarray(product(a, a), np.float64) - exact).max() / np.abs(exact).max()
        yield Row(group, f"largest error, {name} ÷ largest result", "ratio", float(error))


def repeats(_: Effort) -> Iterator[Row]:
    """Count how many runs of a compiled function give the bits of the first."""
    x = jax.random.normal(jax.random.key(2), (2**18,))
    where = jax.random.randint(jax.random.key(3), x.shape, 0, 16)
    programs = {
        "sum": jax.jit(jnp.sum),
        "softmax": jax.jit(lambda x: softmax(x.reshape(-1, 1024))),
        "sum into 16 places": jax.jit(lambda x: jnp.zeros(16).at[where].add(x)),
    }
    for name, program in programs.items():
        first, *others = (np.asarray(program(x)).tobytes() for _ in range(_REPEATS + 1))
        same = float(sum(other == first for other in others))
        yield Row("Does a program repeat its bits?", f"{name}: of {_REPEATS} runs", "runs", same)


def control(effort: Effort) -> Iterator[Row]:
    """Compare a function with itself."""
    twice = {"a": jax.jit(polynomial), "b": jax.jit(polynomial)}
    found = compare(twice, jnp.ones(10**6), budget=effort.budget)
    yield _ratio("Control", "a function ÷ itself, compiled twice", found.speedup("b"), "ratio")


EXPERIMENTS = (calls, fusion, ladder, sizes, compiling, ceilings, precision, repeats, control)
