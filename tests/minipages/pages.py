"""Small pages about histories of calls, for the tests of the slicer. Cells begin with `# %%`."""

PAGES = {
    "second call": """
import jax
# %%
@jax.jit
def f(x):
    print("tracing", x)
    return x + 1
# %%
print(f(1))
# %%
print(f(2))
# %%
print(f(2.0))
# %%
print(f(3))
""",
    "a call long before": """
import jax
import jax.numpy as jnp

f = jax.jit(lambda x: x * 2)
# %%
f(jnp.ones(2))
# %%
unrelated = [1, 2]
# %%
f(jnp.ones(3)).shape
# %%
f._cache_size()
""",
    "stale global": """
import jax
# %%
scale = 2

@jax.jit
def f(x):
    return x * scale
# %%
print(f(3.0))
# %%
scale = 10
# %%
print(f(3.0), "with", scale)
# %%
print(f(jax.numpy.ones(2)))
""",
    "stale self": """
import jax
from functools import partial
# %%
class Calculator:
    def __init__(self):
        self.mul = True

    @partial(jax.jit, static_argnums=0)
    def calc(self, x):
        return x * 2 if self.mul else x
# %%
c = Calculator()
print(c.calc(3))
# %%
c.mul = False
print(c.calc(3))
""",
    "stale closure": """
import jax
# %%
def make():
    box = [1]
    return box, jax.jit(lambda x: x + box[0])

box, f = make()
# %%
print(f(1))
# %%
box[0] = 100
# %%
print(f(1), box)
""",
    "global read later": """
def f():
    return y
# %%
y = 1
a = f()
# %%
y = 2
# %%
print(a, f())
""",
    "mutation": """
seen = []
# %%
seen.append(1)
# %%
other = 5
# %%
seen += [2]
# %%
seen[0] = 7
print("changed")
# %%
print(seen)
""",
    "alias": """
import jax

def g(x):
    print("tracing")
    return x

a = jax.jit(g)
# %%
b = jax.jit(g)
# %%
print(a(1))
# %%
print(b(1))
""",
    "wrapped inside": """
import jax

@jax.jit
def inner(x):
    print("inner")
    return x + 1

@jax.jit
def outer(x):
    print("outer")
    return inner(x) * 2
# %%
print(inner(1))
# %%
print(outer(1))
# %%
print(outer(1), inner(1.0))
""",
    "donation": """
import jax
import jax.numpy as jnp

f = jax.jit(lambda x: x + 1, donate_argnums=0)
x = jnp.ones(3)
# %%
y = f(x)
# %%
print(x.is_deleted(), y)
# %% raises
x + 1
# %%
print(y.sum())
""",
    "trace counter": """
import jax

runs = 0

@jax.jit
def f(x):
    global runs
    runs += 1
    return x
# %%
f(1), f(2), f(1.0)
# %%
print(runs)
# %%
f("no") if runs > 100 else f(1)
print(runs)
""",
    "list counter": """
import jax

log = []

def note(x):
    log.append(x)
    return x

f = jax.jit(lambda x: note(x) + 1)
# %%
for x in (1, 2.0, 3):
    f(x)
# %%
len(log)
""",
    "failed trace": """
import jax
# %%
@jax.jit
def f(x):
    print("tracing")
    return 1 if x > 0 else 0
# %% raises
f(1)
# %%
@jax.jit
def f(x):
    print("tracing again")
    return x
# %%
print(f(2))
""",
    "raising in the middle": """
import jax
import jax.numpy as jnp
x = jnp.arange(3)
# %% raises
x[0] = 5
# %%
x = x.at[0].set(5)
print(x)
""",
    "warm-up in a loop": """
import jax

f = jax.jit(lambda x: (print("tracing"), x)[1])
# %%
for x in (1, 1.0):
    f(x)
# %%
print(f(3))
""",
    "warm-up in a helper": """
import jax

def warm(function, *values):
    for value in values:
        function(value)

f = jax.jit(lambda x: (print("tracing"), x)[1])
# %%
warm(f, 1, 2.0)
# %%
print(f(3))
""",
    "functions in a dict": """
import jax

fs = {"a": jax.jit(lambda x: (print("tracing a"), x)[1])}
# %%
fs["b"] = jax.jit(lambda x: (print("tracing b"), x)[1])
# %%
print(fs["a"](1))
# %%
print(fs["a"](2), fs["b"](2))
""",
    "lower, then call": """
import jax

@jax.jit
def f(x):
    print("tracing")
    return x * 2
# %%
lowered = f.lower(1.0)
# %%
print(f(1.0))
""",
    "grad after a call": """
import jax

@jax.jit
def f(x):
    print("tracing")
    return x * x
# %%
print(f(2.0))
# %%
print(jax.grad(f)(2.0))
# %%
print(jax.grad(f)(3.0))
""",
    "custom rule": """
import jax

@jax.custom_jvp
def f(x):
    return x
# %%
def rule(primals, tangents):
    return f(*primals), 10 * tangents[0]

f.defjvp(rule)
# %%
print(jax.grad(f)(1.0))
""",
    "listener": """
import jax

events = []

def listen(name, seconds, **details):
    if "backend_compile" in name:
        events.append(name)

jax.monitoring.register_event_duration_secs_listener(listen)
# %%
f = jax.jit(lambda x: x * 3)
before = len(events)
f(1)
# %%
f(2)
# %%
print("compiles:", len(events) - before)
""",
    "watched": """
import jax
from jitguide import watch

f = watch(jax.jit(lambda x: x + 1))
# %%
f(1)
f(2.0)
# %%
[f.compiles]
""",
    "ambient": """
import jax
import jax.numpy as jnp
# %%
jax.config.update("jax_debug_nans", True)
# %%
import warnings

warnings.filterwarnings("error", message="careful")
# %% raises
jnp.zeros(1) / 0
# %% raises
warnings.warn("careful")
""",
    "generator": """
import numpy as np
rng = np.random.default_rng(0)
# %%
a = rng.normal()
# %%
b = rng.integers(10)
# %%
print(rng.normal())
""",
    "global generator": """
import numpy as np
np.random.seed(0)
# %%
a = np.random.randn()
# %%
b = 1
# %%
print(np.random.randn(), b)
""",
    "iterator": """
numbers = iter([1, 2, 3])
# %%
next(numbers)
# %%
print(next(numbers))
""",
    "conditional binding": """
import sys
mode = "plain"
# %%
if len(sys.argv) > 100:
    mode = "other"
# %%
print(mode)
""",
    "loop variable": """
x = [0]
for x in ([1], [2]):
    x.append(3)
# %%
for x in "ab":
    print(x)
# %%
print([x for x in range(2)], x)
""",
    "cache": """
import functools

@functools.cache
def slow(n):
    print("computing", n)
    return n * n
# %%
slow(2)
# %%
print(slow(2), slow(3))
""",
    "counter class": """
class Counter:
    def __init__(self):
        self.n = 0

    def hit(self):
        self.n += 1
        return self.n

c = Counter()
# %%
c.hit()
# %%
hits = [c.hit() for _ in range(2)]
# %%
print(c.n)
""",
    "files": """
from pathlib import Path
used = "print(1)"
unused = "print(2)"
# %%
_ = Path("used.py").write_text(used)
Path("used.py").write_text(used)
Path("unused.py").write_text(unused)
# %%
print(Path("used.py").read_text())
""",
    "a draw too late": """
import numpy as np
rng = np.random.default_rng(0)
# %%
values = rng.normal(size=3)
# %%
later = rng.normal(size=9)
# %%
print(values)
# %%
print(rng.normal())
""",
    "comprehension in a function": """
import jax.numpy as jnp
unrelated = 1
# %%
def pieces(n):
    return [jnp.ones(2) for _ in range(n)]
# %%
print(pieces(2))
""",
    "lambda in a loop": """
for form in (1, 2):
    print("unrelated", form)
# %%
for form in (abs, float):
    print((lambda x: form(x))(-1))
""",
    "a name with two lives": """
import jax

@jax.jit
def f(x):
    print("the first")
    return x

f(1)
# %%
@jax.jit
def f(x):
    print("the second")
    return x
# %%
print(f(1))
""",
    "values": """
import jax.numpy as jnp
x = jnp.arange(3)
# %%
x  # the whole of it
# %%
(
    x
    + 1
)
# %%
{"a": x, "b": [int]}
# %%
type(x.sum)
# %%
x.sum();
""",
    "comments and lines": """
# This belongs to nothing.

# Two names on a line;
# a comment of two lines.
a = 1; b = 2
text = '''
# no comment
'''
# %%
# the sum
print(a + b, text)
""",
}
