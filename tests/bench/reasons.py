"""Does `watch` name the cause of a recompilation? Two calls each, of what users of JAX, Flax, Equinox and Optax do."""

import collections
import contextlib
import dataclasses
import functools
import os
import types
from typing import NamedTuple

os.environ.setdefault("JAX_NUM_CPU_DEVICES", "4")  # before JAX starts; some causes need several devices

import equinox as eqx
import flax.linen as nn
import flax.struct
import jax
import jax.numpy as jnp
import numpy as np
import optax
from _bench import arguments, exit_code, write
from flax import nnx
from flax.training.train_state import TrainState
from jax.experimental import sparse
from jax.experimental.layout import Format, Layout
from jax.sharding import AxisType, NamedSharding, SingleDeviceSharding
from jax.sharding import PartitionSpec as P

from jitguide import watch

TARGET = 0.95
X = np.ones(4, np.float32)
CASES = {}


class Case(NamedTuple):
    """Two calls of a function: what the reason of the second must say, and what it must not."""

    make: object  # without arguments; returns the jitted function
    first: object  # given the watched function
    second: object
    words: tuple
    wrong: tuple


def case(name, make, first, second, *words, wrong=()):
    assert name not in CASES, name
    CASES[name] = Case(make, first, second, words, tuple(wrong))


def total(tree):
    return sum(jnp.sum(leaf) for leaf in jax.tree.leaves(tree))


def plain(**options):
    return lambda: jax.jit(lambda x: total(x) * 2, **options)


def scaled_by(factor):
    return lambda x: x * factor


def fixed(x, n=None):
    return x * 2


def static():
    return jax.jit(lambda x, n: x * 2, static_argnames="n")


def args(make, name, first, second, *words, **options):
    """Add a case whose calls differ in what stands for `x`."""
    case(name, make, lambda f: f(first()), lambda f: f(second()), *words, **options)


def of(name, first, second, *words, **options):
    args(plain(), name, lambda: first, lambda: second, *words, **options)


def statics(name, first, second, *words, **options):
    case(name, static, lambda f: f(X, first()), lambda f: f(X, second()), *words, **options)


A = jnp.asarray(X)

# Types of arrays and numbers.
of("longer", A, jnp.ones(8), "`x` changed shape", "float32[4] → float32[8]", "Pad")
of("another rank", A, jnp.ones((2, 2)), "`x` changed shape", "float32[2,2]")
of("an axis of one", A, jnp.ones((1, 4)), "`x` changed shape", "float32[1,4]")
of("empty", A, jnp.ones(0), "`x` changed shape", "float32[0]")
for dtype in ("int32", "bfloat16", "bool", "complex64", "uint8"):
    of(f"float32 to {dtype}", A, A.astype(dtype), "`x` changed dtype", f"→ {dtype}[4]", "Convert")
of("NumPy int64 after float32", X, np.arange(4), "`x` changed dtype", "int32[4]")
of("NumPy of another shape", X, np.ones(5, np.float32), "`x` changed shape", "float32[5]")
of("number to array", 1.0, jnp.float32(1), "`x` changed between weak and strong", "Python float")
of("array to number", jnp.float32(1), 1.0, "`x` changed between weak and strong", "→ weak float32[]")
of("weak array", jnp.float32(1), jnp.asarray(1.0), "`x` changed between weak and strong")
of("float to int", 1.0, 1, "`x` changed dtype", "int32")
of("int to bool", 1, True, "`x` changed dtype", "bool")
of("float to complex", 1.0, 1j, "`x` changed dtype", "complex64")
of("NumPy scalar", 1.0, np.float32(1), "`x` changed between weak and strong")
KEYS = functools.partial(jax.jit, lambda x: x)
args(
    KEYS,
    "a new kind of random key",
    lambda: jax.random.key(0),
    lambda: jax.random.PRNGKey(0),
    "`x` changed dtype",
    "uint32[2]",
)
args(
    KEYS,
    "another implementation of keys",
    lambda: jax.random.key(0),
    lambda: jax.random.key(0, impl="rbg"),
    "`x` changed dtype",
    "rbg",
)
case(
    "a carry that turns strong",
    plain(),
    lambda f: f(0.0),
    lambda f: f(f(0.0) + jnp.float32(1)),
    "weak and strong",
)

# Containers.
Point = collections.namedtuple("Point", "a b")
OtherPoint = type("Point", (collections.namedtuple("Point", "a b"),), {"__module__": "elsewhere"})


@jax.tree_util.register_dataclass
@dataclasses.dataclass
class Model:
    w: object
    mode: object = dataclasses.field(default="train", metadata={"static": True})
    rate: object = dataclasses.field(default=0.1, metadata={"static": True})


@jax.tree_util.register_pytree_node_class
class Own:
    def __init__(self, w, config):
        self.w, self.config = w, config

    def tree_flatten(self):
        return (self.w,), self.config

    @classmethod
    def tree_unflatten(cls, config, children):
        return cls(*children, config)


of("list to tuple", [A, A], (A, A), "`x` changed structure", "list of 2 → tuple of 2")
of("tuple to named tuple", (A, A), Point(A, A), "`x` changed structure", "Point of 2")
of(
    "two classes of one name",
    Point(A, A),
    OtherPoint(A, A),
    "`x` changed structure",
    "another class of that name",
)
of("longer list", [A], [A, A], "`x` changed structure", "list of 1 → list of 2")
of("another key", {"a": A}, {"b": A}, "`x` changed structure", "['a']", "['b']")
of("one more key", {"a": A}, {"a": A, "b": A}, "`x` changed structure", "['a', 'b']")
many = {f"layer_{i:02}": A for i in range(30)}
of(
    "one more key of many",
    many,
    {**many, "layer_99": A},
    "`x` changed structure",
    "with ['layer_99']",
    "31 keys",
)
of(
    "one key of many renamed",
    many,
    {k.replace("07", "xx"): v for k, v in many.items()},
    "'layer_07'",
    "'layer_xx'",
)
of("dict to OrderedDict", {"a": A}, collections.OrderedDict(a=A), "`x` changed structure", "OrderedDict")
of(
    "order of an OrderedDict",
    collections.OrderedDict(a=A, b=A),
    collections.OrderedDict(b=A, a=A),
    "['b', 'a']",
)
of("keys of a defaultdict", collections.defaultdict(list, a=A), collections.defaultdict(list, b=A),
   "defaultdict with keys ['a'] → defaultdict with keys ['b']", wrong=["<class"])  # fmt: skip
of("None in place of a leaf", {"a": A, "b": A}, {"a": A, "b": None}, "`x['b']` changed structure", "None")
of("a nested leaf", {"a": [A, (A, A)]}, {"a": [A, (A, jnp.ones(2))]}, "`x['a'][1][1]` changed shape")
of("a leaf in place of a list", {"a": [A]}, {"a": A}, "`x['a']` changed structure", "a leaf")
of("deep in a list", [[A], [A]], [[A], [A, A]], "`x[1]` changed structure")
of("a leaf of a dataclass", Model(A), Model(jnp.ones(2)), "`x.w` changed shape")
of("a static string field", Model(A), Model(A, "test"), "`x.mode`", "'train' → 'test'", "Keep to a few values",
   wrong=["leaf", "array"])  # fmt: skip
of("a static number field", Model(A), Model(A, rate=0.2), "`x.rate`", "0.1 → 0.2", "a leaf")
of(
    "a static function field",
    Model(A, jnp.sin),
    Model(A, jnp.cos),
    "`x.mode`",
    "`sin` → `cos`",
    wrong=["leaf"],
)
of(
    "a static lambda field",
    Model(A, scaled_by(2)),
    Model(A, scaled_by(2)),
    "`x.mode`",
    "another",
    "function",
    wrong=["leaf"],
)
of("a static tuple field", Model(A, ("relu", 3, 64)), Model(A, ("relu", 4, 64)), "`x.mode[1]`", "3 → 4")
of("a long static tuple", Model(A, tuple(range(99))), Model(A, (*range(98), 7)), "`x.mode[98]`", "98 → 7")
of("a static dict in a field", Model(A, {"depth": 2, "name": "a" * 60}), Model(A, {"depth": 3, "name": "a" * 60}),
   "`x.mode['depth']`", "2 → 3")  # fmt: skip
of(
    "nan in a static field",
    Model(A, rate=float("nan")),
    Model(A, rate=-float("nan")),
    "`x.rate`",
    "nan",
    "not equal",
)
of("own node: data", Own(A, ("a", 0)), Own(A, ("b", 0)), "`x.config[0]`", "'a' → 'b'")
of("a sparse matrix of another nse", sparse.BCOO.fromdense(jnp.eye(3)), sparse.BCOO.fromdense(jnp.ones((3, 3))),
   "`x", "changed shape", "float32[3] → float32[9]", wrong=["flat index"])  # fmt: skip
of("a Partial of another function", jax.tree_util.Partial(jnp.sin, A), jax.tree_util.Partial(jnp.cos, A),
   "`x", "sin", "cos")  # fmt: skip


# Static arguments.
@dataclasses.dataclass(frozen=True)
class Config:
    width: int = 8
    name: str = "a very long name of a configuration that fills more than a line of text"
    act: object = None
    inner: object = None


class Plain:
    """Compared by identity."""

    def __init__(self, factor=2):
        self.factor = factor


class Equal(Plain):
    """Compared by what it holds."""

    def __eq__(self, other):
        return self.factor == other.factor

    def __hash__(self):
        return 0


statics("a number", lambda: 2, lambda: 3, "Static `n` changed", "2 → 3", "traced argument")
statics("a float", lambda: 0.5, lambda: 0.25, "Static `n` changed", "0.5 → 0.25", "traced argument")
statics("a string", lambda: "a", lambda: "b", "Static `n` changed", "'a' → 'b'", wrong=["traced argument"])
statics(
    "a flag", lambda: True, lambda: False, "Static `n` changed", "True → False", wrong=["traced argument"]
)
statics("None to a value", lambda: None, lambda: 3, "Static `n` changed", "None → 3")
statics("2 to 2.0", lambda: 2, lambda: 2.0, "Static `n` is equal but of another type", "float")
statics("1 to True", lambda: 1, lambda: True, "Static `n` is equal but of another type", "bool")
statics("2 to NumPy 2", lambda: 2, lambda: np.int64(2), "Static `n` is equal but of another type", "int64")
statics("nan", lambda: float("nan"), lambda: float("nan"), "Static `n`", "not equal to nan")
statics("a tuple", lambda: (8, 16), lambda: (8, 32), "Static `n[1]` changed", "16 → 32")
statics("a longer tuple", lambda: (8, 16), lambda: (8, 16, 32), "Static `n` changed", "(8, 16) → (8, 16, 32)")
statics(
    "a dtype",
    lambda: np.dtype("float32"),
    lambda: np.dtype("int32"),
    "Static `n` changed",
    "float32",
    "int32",
)
statics(
    "a scalar type", lambda: jnp.float32, lambda: jnp.bfloat16, "Static `n` changed", "float32", "bfloat16"
)
statics(
    "another function", lambda: jnp.sin, lambda: jnp.cos, "Static `n` changed", "`sin` → `cos`", "functions"
)
statics(
    "a lambda made again",
    lambda: scaled_by(2),
    lambda: scaled_by(2),
    "Static `n` is another",
    "function",
    wrong=["__eq__"],
)
statics(
    "one lambda, another value", lambda: scaled_by(2), lambda: scaled_by(3), "`n(factor)` changed", "2 → 3"
)
statics(
    "one closure made again",
    lambda: scaled_by(2),
    lambda: scaled_by(2),
    "another function",
    "same code",
    wrong=["__eq__"],
)
statics("a partial made again", lambda: functools.partial(fixed, n=2), lambda: functools.partial(fixed, n=2),
        "`n` is another partial", "Make it once", wrong=["__eq__"])  # fmt: skip
statics("a partial of another value", lambda: functools.partial(fixed, n=2), lambda: functools.partial(fixed, n=3),
        "`n.keywords['n']`", "2 → 3")  # fmt: skip
statics(
    "a method of another object", lambda: Plain().__init__, lambda: Plain().__init__, "`n", "another", "Plain"
)
statics("a frozen dataclass", Config, lambda: Config(9), "Static `n.width` changed", "8 → 9")
statics(
    "a function in a dataclass",
    lambda: Config(act=jnp.sin),
    lambda: Config(act=jnp.cos),
    "`n.act`",
    "`sin` → `cos`",
)
statics("a lambda in a dataclass", lambda: Config(act=scaled_by(2)), lambda: Config(act=scaled_by(2)), "`n.act` is another",
        "function", wrong=["__eq__"])  # fmt: skip
statics("a dataclass in a dataclass", lambda: Config(inner=Config(1)), lambda: Config(inner=Config(2)),
        "`n.inner.width`", "1 → 2")  # fmt: skip
statics(
    "a long string, at its end",
    lambda: "a" * 90 + "b",
    lambda: "a" * 90 + "c",
    "Static `n` changed",
    "ab'",
    "ac'",
)
statics("an object by identity", Plain, Plain, "Static `n` is another Plain object", "__eq__")
statics("an object that holds another value", Equal, lambda: Equal(3), "Static `n.factor` changed", "2 → 3")
statics("a frozenset", lambda: frozenset("a"), lambda: frozenset("ab"), "Static `n` changed", "frozenset")
statics("a module of Python", lambda: np, lambda: jnp, "Static `n` changed", "numpy")
statics("an own class", lambda: Plain, lambda: Equal, "Static `n` changed", "`Plain` → `Equal`")
statics(
    "a simple namespace that grew", lambda: ("a", None), lambda: ("a", "b"), "`n[1]` changed", "None → 'b'"
)

# How the function is called.
case(
    "by keyword",
    lambda: jax.jit(fixed),
    lambda f: f(X, 1.0),
    lambda f: f(X, n=1.0),
    "`n` was passed by position",
    "keyword",
)
case(
    "static by keyword",
    static,
    lambda f: f(X, 2),
    lambda f: f(X, n=2),
    "`n` was passed by position",
    "keyword",
)
case(
    "a default written",
    lambda: jax.jit(fixed),
    lambda f: f(X),
    lambda f: f(X, 1.0),
    "`n` was left to its default None",
)
case(
    "a default left out",
    lambda: jax.jit(fixed),
    lambda f: f(X, 1.0),
    lambda f: f(X),
    "`n`",
    "is now left to its default",
)
case(
    "one more argument",
    lambda: jax.jit(lambda *xs: total(xs)),
    lambda f: f(X),
    lambda f: f(X, X),
    "`xs[1]` was absent",
)
case(
    "one less",
    lambda: jax.jit(lambda *xs: total(xs)),
    lambda f: f(X, X),
    lambda f: f(X),
    "`xs[1]`",
    "now absent",
)
case(
    "another keyword",
    lambda: jax.jit(lambda **k: total(k)),
    lambda f: f(a=X),
    lambda f: f(b=X),
    "`a`",
    "absent",
)


# Where the data are.
def device(i=0):
    return jax.devices()[i]


def mesh(axes="i", kind=AxisType.Auto, devices=None):
    shape = (4,) if len(axes) == 1 else (2, 2)
    return jax.make_mesh(shape, tuple(axes), axis_types=(kind,) * len(axes), devices=devices)


def put(*where):
    return jax.device_put(A, where[0] if len(where) == 1 else NamedSharding(*where))


def memory(kind):
    return SingleDeviceSharding(device(), memory_kind=kind)


args(
    plain(),
    "committed",
    lambda: A,
    lambda: put(device()),
    "`x` changed commitment",
    "not committed → committed",
)
args(plain(), "not committed", lambda: put(device()), lambda: A, "`x` changed commitment", "→ not committed")
args(plain(), "another device", lambda: put(device()), lambda: put(device(1)), "`x` moved", "cpu:0 → cpu:1")
args(
    plain(),
    "split",
    lambda: put(device()),
    lambda: put(mesh(), P("i")),
    "`x` changed sharding",
    "P('i') on mesh",
)
args(
    plain(),
    "replicated",
    lambda: put(mesh(), P("i")),
    lambda: put(mesh(), P()),
    "`x` changed sharding",
    "P('i')",
    "P()",
)
args(
    plain(),
    "another mesh",
    lambda: put(mesh(), P("i")),
    lambda: put(mesh("j"), P("j")),
    "`x` changed sharding",
    "(j: 4)",
)
args(plain(), "another order of devices", lambda: put(mesh(devices=jax.devices()[:4]), P("i")),
     lambda: put(mesh(devices=jax.devices()[:4][::-1]), P("i")), "`x` changed sharding", "[0, 1, 2, 3]", "[3, 2, 1, 0]")  # fmt: skip
args(plain(), "explicit axes", lambda: put(mesh(), P("i")), lambda: put(mesh(kind=AxisType.Explicit), P("i")),
     "`x` changed sharding", "Explicit")  # fmt: skip
args(plain(), "host memory", lambda: put(memory("device")), lambda: put(memory("pinned_host")),
     "`x` moved to another kind of memory", "device → pinned_host")  # fmt: skip
args(plain(), "a layout", lambda: jax.device_put(jnp.ones((2, 2)), device()),
     lambda: jax.device_put(jnp.ones((2, 2)), Format(Layout(major_to_minor=(1, 0)), memory(None))), "`x` changed", "layout")  # fmt: skip
of("NumPy in place of JAX", A, X, "`x` is another kind of input", "is reused", wrong=["Convert"])
args(plain(), "a committed leaf in a tree", lambda: {"a": A, "b": A}, lambda: {"a": A, "b": put(device())},
     "`x['b']` changed commitment")  # fmt: skip


# Settings, options and what was done to the function.
def under(context, first=None):
    def call(f):
        with context():
            return f(X)

    return call


def setting(name, context, *words):
    case(name, plain(), lambda f: f(X), under(context), "The setting", *words)


setting("x64", lambda: jax.enable_x64(True), "jax_enable_x64", "False → True")
setting(
    "precision", lambda: jax.default_matmul_precision("highest"), "jax_default_matmul_precision", "highest"
)
setting("promotion", lambda: jax.numpy_dtype_promotion("strict"), "jax_numpy_dtype_promotion", "strict")
setting("rank promotion", lambda: jax.numpy_rank_promotion("warn"), "jax_numpy_rank_promotion", "warn")
setting("threefry", lambda: jax.threefry_partitionable(False), "jax_threefry_partitionable", "False")
setting("a mesh around the call", lambda: jax.set_mesh(mesh()), "mesh")
setting("default device", lambda: jax.default_device(device(1)), "jax_default_device")
case("cleared", plain(), lambda f: f(X), lambda f: (f.clear_cache(), f(X)), "compiled before", "gone")
case(
    "all cleared",
    plain(),
    lambda f: f(X),
    lambda f: (jax.clear_caches(), f(X)),
    "compiled before",
    "gone",
)
case(
    "a side effect",
    lambda: jax.jit(lambda x: jax.debug.callback(id, x)),
    lambda f: f(X),
    lambda f: f(X),
    "no fast path",
)
case("disable_jit", plain(), lambda f: f(X), under(jax.disable_jit), "`jax.disable_jit` is in effect")
case("vmap", plain(), lambda f: f(X), lambda f: jax.vmap(f)(jnp.ones((2, 4))), "vmap")
case("grad", plain(), lambda f: f(X), lambda f: jax.grad(f)(X), "grad")
case("a call that raised", lambda: jax.jit(lambda x: x.missing if x.ndim else x), lambda f: f(1.0),
     lambda f: suppressed(f, X), "raised AttributeError")  # fmt: skip


def suppressed(f, *args):
    with contextlib.suppress(AttributeError):
        f(*args)


def made_again(jit, make):
    """Return a case's calls: of one function, and of another that the same code made."""
    watched = []

    def second(f):
        watched.append(watch(jit(make())))
        watched[0](X)
        return watched[0]

    return second


for name, jit in {"jit": jax.jit, "filter_jit": eqx.filter_jit, "nnx.jit": nnx.jit}.items():
    maker = types.FunctionType((lambda: lambda x: x * 2).__code__, {})
    case(f"{name} in a loop", functools.partial(lambda jit, maker: jit(maker()), jit, maker), lambda f: f(X),
         made_again(jit, maker), "new function object", "outside the loop")  # fmt: skip

# Optax and Flax.
PARAMS = {"w": A}


def train_state(tx=None, apply=None):
    dense = nn.Dense(1)
    return TrainState.create(apply_fn=apply or dense.apply, params=PARAMS, tx=tx or optax.adam(0.1))


DENSE = nn.Dense(1)
TX = optax.adam(0.1)


def step(state):
    return state.apply_gradients(grads=state.params)


def states(name, first, second, *words, **options):
    case(name, lambda: jax.jit(step), lambda f: f(first()), lambda f: f(second()), *words, **options)


states("a TrainState made again with another tx", lambda: train_state(apply=DENSE.apply), lambda: train_state(apply=DENSE.apply),
       "`state.tx`", "another GradientTransformation", wrong=["leaf", "__eq__"])  # fmt: skip
states(
    "another apply_fn",
    lambda: train_state(TX),
    lambda: train_state(TX),
    "`state.apply_fn`",
    "another",
    wrong=["leaf", "__eq__"],
)
states("another learning rate", lambda: train_state(optax.sgd(0.1), DENSE.apply), lambda: train_state(optax.sgd(0.2), DENSE.apply),
       "`state.tx", "0.1 → -0.2", wrong=["another GradientTransformation"])  # fmt: skip
states("a step that was a number", lambda: train_state(TX, DENSE.apply), lambda: train_state(TX, DENSE.apply).replace(step=jnp.int32(0)),
       "`state.step` changed between weak and strong")  # fmt: skip
states("params of another dtype", lambda: train_state(TX, DENSE.apply),
       lambda: train_state(TX, DENSE.apply).replace(params={"w": A.astype("bfloat16")}), "`state.params['w']` changed dtype")  # fmt: skip
case(
    "another optimizer state",
    KEYS,
    lambda f: f(TX.init(PARAMS)),
    lambda f: f(optax.sgd(0.1).init(PARAMS)),
    "`x[0]` changed structure",
    "ScaleByAdamState of 3 → EmptyState",
)
case("moments of another dtype", lambda: jax.jit(lambda g, s: optax.adam(0.1).update(g, s)), lambda f: f(PARAMS, TX.init(PARAMS)),
     lambda f: f(PARAMS, optax.adam(0.1, mu_dtype="bfloat16").init(PARAMS)), "`s[0].mu['w']` changed dtype")  # fmt: skip
statics("a linen module", lambda: nn.Dense(1), lambda: nn.Dense(2), "`n.features`", "1 → 2")
statics("a linen module with a lambda", lambda: nn.Dense(1, kernel_init=scaled_by(2)), lambda: nn.Dense(1, kernel_init=scaled_by(2)),
        "`n.kernel_init` is another", wrong=["__eq__"])  # fmt: skip
statics(
    "an optimizer",
    lambda: optax.adam(0.1),
    lambda: optax.adam(0.1),
    "`n` is another GradientTransformation",
    wrong=["__eq__"],
)


class Struct(flax.struct.PyTreeNode):
    w: object
    name: str = flax.struct.field(pytree_node=False, default="a")


of("a field of a Flax struct", Struct(A), Struct(A, "b"), "`x.name`", "'a' → 'b'", wrong=["leaf"])


class Net(nnx.Module):
    def __init__(self, width=4):
        self.linear = nnx.Linear(4, width, rngs=nnx.Rngs(0))
        self.drop = nnx.Dropout(0.1, rngs=nnx.Rngs(0))

    def __call__(self, x):
        return self.drop(self.linear(x)).sum()


def changed(name, value, module="drop"):
    net = Net()
    setattr(getattr(net, module), name, value)
    return net


def nets(name, second, *words, first=Net, **options):
    for graph in (True, False):
        case(f"nnx {name}, graph={graph}", lambda graph=graph: nnx.jit(lambda model, x: model(x), graph=graph),
             lambda f: f(first(), X), lambda f: f(second(), X), *words, **options)  # fmt: skip


def evaluated():
    net = Net()
    net.eval()
    return net


nets("eval", evaluated, "`model.drop.deterministic`", "False → True")
nets("another rate", lambda: changed("rate", 0.2), "`model.drop.rate`", "0.1 → 0.2")
nets("another width", lambda: Net(8), "`model.linear.out_features`", "4 → 8")
case("nnx split and merged", lambda: jax.jit(lambda graphdef, state, x: nnx.merge(graphdef, state)(x), static_argnums=0),
     lambda f: f(*nnx.split(Net()), X), lambda f: f(*nnx.split(evaluated()), X), "graphdef", "False → True")  # fmt: skip
case("nnx optimizer", lambda: nnx.jit(lambda optimizer, x: x), lambda f: f(nnx.Optimizer(Net(), TX, wrt=nnx.Param), X),
     lambda f: f(nnx.Optimizer(Net(), optax.adam(0.1), wrt=nnx.Param), X), "`optimizer.tx`", "another GradientTransformation")  # fmt: skip


# Equinox.
def mlp(seed=0, **options):
    return eqx.nn.MLP(4, 1, 4, 1, key=jax.random.key(seed), **options)


def models(name, second, *words, **options):
    case(
        f"eqx {name}",
        lambda: eqx.filter_jit(lambda model, x, n=1: model(x)),
        lambda f: f(mlp(), X),
        second,
        *words,
        **options,
    )


models("activation", lambda f: f(mlp(activation=jnp.tanh), X), "`model.activation`", "`relu` → `tanh`")
models("a lambda", lambda f: f(mlp(activation=lambda x: x), X), "`model.activation`", "<lambda>")
models("width", lambda f: f(eqx.nn.MLP(4, 1, 8, 1, key=jax.random.key(0)), X), "`model.width_size`", "4 → 8")
models("depth", lambda f: f(eqx.nn.MLP(4, 1, 4, 2, key=jax.random.key(0)), X), "`model.depth`", "1 → 2")
models("no bias", lambda f: f(mlp(use_bias=False), X), "`model", "bias")
models("a number", lambda f: f(mlp(), X, 2), "`n`")
models("dtype", lambda f: f(mlp(), X.astype("bfloat16")), "`x` changed dtype", "bfloat16")
case("eqx dropout to inference", lambda: eqx.filter_jit(lambda model: model), lambda f: f(eqx.nn.Dropout(0.1)),
     lambda f: f(eqx.nn.inference_mode(eqx.nn.Dropout(0.1))), "`model.inference`", "False → True")  # fmt: skip
case(
    "eqx number to array",
    lambda: eqx.filter_jit(lambda x: x * 2),
    lambda f: f(2.0),
    lambda f: f(jnp.float32(2)),
    "`x`",
    "2.0 → float32[]",
)
case(
    "eqx another number",
    lambda: eqx.filter_jit(lambda x, n: x * n),
    lambda f: f(X, 2),
    lambda f: f(X, 3),
    "Static `n`",
    "2 → 3",
)
case("eqx partitioned", lambda: jax.jit(lambda params, fixed: eqx.combine(params, fixed)(X), static_argnums=1),
     lambda f: f(*eqx.partition(mlp(), eqx.is_array)), lambda f: f(*eqx.partition(mlp(activation=jnp.tanh), eqx.is_array)),
     "`fixed.activation", "tanh")  # fmt: skip


def judged(found):
    """Return what the reason of the second call says, and whether it names the cause."""
    jax.clear_caches()
    watched = watch(found.make())
    found.first(watched)
    other = found.second(watched)
    last = (other if hasattr(other, "calls") else watched).last
    text = str(last.reason)
    good = all(word in text for word in found.words)
    return text, good, [word for word in found.wrong if word in text] or text.count("did more work than")


def main():
    options = arguments(__doc__, 1, 1)
    right, wrong = 0, []
    for name, found in CASES.items():
        if os.environ.get("ONLY", "") not in name:
            continue
        try:
            text, good, bad = judged(found)
        except Exception as error:
            text, good, bad = f"{type(error).__name__}: {error}", False, [type(error).__name__]
        right += bool(good and not bad)
        if bad:
            wrong.append(name)
        if bad or not good:
            print(f"  {name}: {'wrong' if bad else 'vague'}: {text}\n    wanted: {found.words}", flush=True)
    details = {"causes": len(CASES), "right": right, "wrong": wrong}
    write("reasons", right / len(CASES), TARGET, f"of {len(CASES)} causes named right", details)
    return exit_code(options, counts=right >= TARGET * len(CASES) and not wrong)


if __name__ == "__main__":
    raise SystemExit(main())
