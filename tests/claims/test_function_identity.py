"""Which functions share a cache entry."""

import dataclasses
import functools
import gc
import weakref

import jax
import jax.numpy as jnp
import pytest

X = 1.0


def counting(body=lambda x: x * 2):
    """A copy of body, and the list that grows by one whenever its Python code runs."""
    runs = []

    def function(*args, **kwargs):
        runs.append(1)
        return body(*args, **kwargs)

    return function, runs


@pytest.mark.claim(
    "same-function-hits-through-a-new-wrapper",
    "`jax.jit(f)(x)` in a loop traces once: a new wrapper around the same function finds the earlier trace.",
    seeds="S004-31 S004-34 S004-35",
)
def test_same_function_hits_through_a_new_wrapper(counted):
    f, runs = counting()
    for _ in range(5):
        jax.jit(f)(X)
    assert len(runs) == counted()["compiles"] == 1


@pytest.mark.claim(
    "fresh-lambda-recompiles",
    "A lambda written inside a loop is a new function each time and compiles each time.",
    seeds="S002-84 S004-31 S004-33",
)
def test_fresh_lambda_recompiles(counted):
    runs = []
    for _ in range(3):
        jax.jit(lambda x: runs.append(1) or x * 2)(X)
    assert len(runs) == counted()["compiles"] == 3


@pytest.mark.wrong_twin("fresh-lambda-recompiles")
def test_wrong_twin_equal_lambdas_share_an_entry():
    runs = []
    for _ in range(3):
        jax.jit(lambda x: runs.append(1) or x * 2)(X)
    assert len(runs) == 1


@pytest.mark.claim(
    "fresh-def-recompiles",
    "A function defined inside another is a new function, and compiles again, each time the outer one runs.",
    seeds="S004-31",
)
def test_fresh_def_recompiles():
    runs = []

    def outer(x):
        @jax.jit
        def inner(x):
            runs.append(1)
            return x * 2

        return inner(x)

    outer(X), outer(X)
    assert len(runs) == 2


@pytest.mark.claim(
    "fresh-partial-recompiles",
    "A `functools.partial` made in a loop compiles each time, also if it binds the same values.",
    seeds="S004-31 S004-32 S004-35",
)
def test_fresh_partial_recompiles(counted):
    f, runs = counting(lambda x, k: x * k)
    for _ in range(3):
        jax.jit(functools.partial(f, k=2))(X)
    assert len(runs) == counted()["compiles"] == 3


@pytest.mark.claim(
    "kept-partial-hits", "One `functools.partial` that is kept and wrapped again hits.", seeds="S004-32"
)
def test_kept_partial_hits():
    f, runs = counting(lambda x, k: x * k)
    kept = functools.partial(f, k=2)
    jax.jit(kept)(X), jax.jit(kept)(X)
    assert len(runs) == 1


@pytest.mark.claim(
    "fresh-tree-partial-recompiles",
    "`jax.tree_util.Partial` as the jitted function compiles each time it is created again, like "
    "`functools.partial`.",
)
def test_fresh_tree_partial_recompiles():
    f, runs = counting(lambda k, x: x * k)
    for _ in range(3):
        jax.jit(jax.tree_util.Partial(f, 2))(X)
    assert len(runs) == 3


@pytest.mark.claim(
    "tree-partial-argument-hits",
    "`jax.tree_util.Partial` passed as an argument is data: the function in it is part of the structure, "
    "its bound arrays are traced, and a fresh one hits.",
)
def test_tree_partial_argument_hits():
    f, runs = counting(lambda k, x: x * k)
    call = jax.jit(lambda g, x: g(x))
    assert [float(call(jax.tree_util.Partial(f, k), X)) for k in (2.0, 3.0)] == [2, 3]
    assert len(runs) == 1


class Scale:
    """Doubles its argument and counts how often its code runs."""

    def __init__(self):
        self.runs = []

    def apply(self, x):
        self.runs.append(1)
        return x * 2


@pytest.mark.claim(
    "fresh-bound-method-recompiles",
    "`jax.jit(obj.method)(x)` in a loop compiles each time: each access makes a new bound method, and the "
    "one before is gone.",
)
def test_fresh_bound_method_recompiles():
    scale = Scale()
    for _ in range(3):
        jax.jit(scale.apply)(X)
    assert len(scale.runs) == 3


@pytest.mark.claim(
    "kept-bound-method-hits",
    "As long as one jitted bound method is kept, wrapping the same method of the same object again hits: "
    "the two are equal.",
    seeds="S004-31",
)
def test_kept_bound_method_hits():
    scale = Scale()
    kept = jax.jit(scale.apply)
    kept(X), jax.jit(scale.apply)(X)
    assert len(scale.runs) == 1


@pytest.mark.claim(
    "equal-callables-share-a-trace",
    "Functions are compared with `==` and `hash`: a callable object that claims to equal a live jitted one "
    "gets its trace, and its own code does not run.",
    seeds="S004-31",
)
def test_equal_callables_share_a_trace():
    @dataclasses.dataclass(frozen=True)
    class Times:
        factor: float = dataclasses.field(compare=False)

        def __call__(self, x):
            return x * self.factor

    two, three = Times(2.0), Times(3.0)
    assert two == three
    assert jax.jit(two)(X) == 2
    assert jax.jit(three)(X) == 2


@pytest.mark.claim(
    "callable-object-hits",
    "A callable object without `__eq__` is its own key: wrapped twice it hits, a second object does not.",
)
def test_callable_object_hits():
    runs = []

    class Double:
        def __call__(self, x):
            runs.append(1)
            return x * 2

    one, two = Double(), Double()
    jax.jit(one)(X), jax.jit(one)(X)
    assert len(runs) == 1
    jax.jit(two)(X)
    assert len(runs) == 2


@pytest.mark.claim(
    "wraps-does-not-share-the-entry",
    "A fresh wrapper made with `functools.wraps` is a new function and compiles again.",
)
def test_wraps_does_not_share_the_entry():
    f, runs = counting()

    def logged(g):
        return functools.wraps(g)(lambda *args: g(*args))

    jax.jit(logged(f))(X), jax.jit(logged(f))(X)
    assert len(runs) == 2


@pytest.mark.claim(
    "jit-of-a-fresh-grad-recompiles", "`jax.jit(jax.grad(f))` written in a loop compiles each time."
)
def test_jit_of_a_fresh_grad_recompiles():
    f, runs = counting(lambda x: x**2)
    for _ in range(3):
        jax.jit(jax.grad(f))(X)
    assert len(runs) == 3


@pytest.mark.claim(
    "fresh-static-function-recompiles",
    "A fresh lambda passed as a static argument compiles each time.",
    seeds="S004-31",
)
def test_fresh_static_function_recompiles():
    runs = []
    apply = jax.jit(lambda g, x: runs.append(1) or g(x), static_argnums=0)
    for _ in range(3):
        apply(lambda x: x * 2, X)
    assert len(runs) == 3
    for _ in range(3):
        apply(jnp.sin, X)
    assert len(runs) == 4


@pytest.mark.claim(
    "dropped-function-is-freed",
    "The cache does not keep a function alive: dropped together with its wrapper, it is collected.",
    seeds="S004-31",
)
def test_dropped_function_is_freed():
    def body(x):
        return x * 2

    f = jax.jit(body)
    f(X)
    watcher = weakref.ref(body)
    del body, f
    gc.collect()
    assert watcher() is None
