"""The instruments on functions jitted by Equinox and Flax, on optimizers of Optax, and on bound functions."""

import functools

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import pytest
from flax import nnx
from jax.experimental import checkify
from jax.sharding import AxisType, NamedSharding, PartitionSpec

from jitguide import check, watch
from jitguide._callables import fresh_jit, jitted_in, through

X = jnp.ones(3)


def outcomes(watched):
    return [call.outcome for call in watched.calls]


class Counted(nnx.Module):
    """A module whose call changes its state."""

    def __init__(self):
        self.linear = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
        self.drop = nnx.Dropout(0.5, rngs=nnx.Rngs(1))
        self.calls = nnx.Variable(jnp.array(0))

    def __call__(self, x):
        self.calls[...] += 1
        return self.drop(self.linear(x)).sum()


def mlp(seed=0, **options):
    return eqx.nn.MLP(3, 1, 4, 1, key=jax.random.key(seed), **options)


def test_equinox_filter_jit_is_watched_by_the_names_that_you_pass():
    step = watch(eqx.filter_jit(lambda model, x: model(x).sum()))
    for model, x in ((mlp(), X), (mlp(1), X), (mlp(), X.astype("bfloat16")), (mlp(activation=jnp.tanh), X)):
        step(model, x)
    assert outcomes(step) == ["compiled", "hit", "compiled", "compiled"]
    assert step.calls[2].reason.sentence == "`x` changed dtype, float32[3] → bfloat16[3]"
    assert "`model.activation`" in step.calls[3].reason.sentence


def test_check_names_the_cause_of_a_retrace_as_you_pass_it():
    step = eqx.filter_jit(lambda model, x, n=1: model(x) * n)
    other = mlp(activation=jnp.tanh)
    found = check(step, mlp(), X, calls=[(mlp(1), X), (other, X), (mlp(), X, 2), (mlp(), X, X)], run=False)
    assert [finding.sentence.split(" changed")[0].split(" was")[0] for finding in found] == [
        "Static `model.activation`",
        "`n`",
        "Static `n`",
    ]
    moved = check(step, mlp(), X, calls=[(mlp(), jax.device_put(X, jax.devices()[0]))], run=False)
    assert [finding.sentence.split(" changed")[0] for finding in moved] == ["`x`"]

    found = check(nnx.jit(lambda m, x: m(x)), Counted(), X, calls=[(Counted(), jnp.ones((2, 3)))], run=False)
    assert [finding.sentence.split(" changed")[0] for finding in found] == ["`x`"]


def test_equinox_takes_python_numbers_as_static():
    scale = watch(eqx.filter_jit(lambda x, n, k=1: x * n * k))
    for n in (2, 3, 3):
        scale(X, n)
    scale(X, n=3)
    assert outcomes(scale) == ["compiled", "compiled", "hit", "hit"]
    assert scale.calls[1].reason.sentence == "Static `n` changed, 2 → 3"


def test_equinox_functions_of_one_name_are_told_apart():
    first, second = (watch(eqx.filter_jit(lambda x: x + 1)) for _ in range(2))
    first(X), second(X)
    assert second.last.reason.kind == "new function object"
    other = watch(eqx.filter_jit(lambda x: x - 1))
    other(X)
    assert other.last.reason.kind == "first call"


@pytest.mark.parametrize("graph", [True, False])
def test_flax_nnx_jit_is_watched_and_changes_its_module(graph):
    model, step = Counted(), watch(nnx.jit(lambda model, x: model(x), graph=graph))
    step(model, X), step(model, 2 * X), step(model, jnp.ones((2, 3)))
    assert outcomes(step) == ["compiled", "hit", "compiled"]
    assert step.last.reason.sentence == "`x` changed shape, float32[3] → float32[2,3]"
    assert int(model.calls[...]) == 3
    model.eval()
    step(model, X)
    assert step.last.reason.argument.startswith("model.drop")


class Scaled(eqx.Module):
    factor: jax.Array

    @eqx.filter_jit
    def of_equinox(self, x):
        return self.factor * x

    @jax.jit
    def of_jax(self, x):
        return self.factor * x


@pytest.mark.parametrize(
    "fn",
    [
        functools.partial(jax.jit(lambda factor, x: factor * x), 2.0),
        functools.partial(eqx.filter_jit(lambda factor, x: factor * x), 2.0),
        functools.partial(nnx.jit(lambda factor, x: factor * x), 2.0),
        Scaled(X[0]).of_jax,
        Scaled(X[0]).of_equinox,
        jax.jit(jax.shard_map(
            lambda x: x * 2, mesh=jax.make_mesh((1,), ("i",)), in_specs=PartitionSpec(), out_specs=PartitionSpec()
        )),
    ],
    ids=["partial", "partial of filter_jit", "partial of nnx.jit", "method", "method of filter_jit", "shard_map"],
)  # fmt: skip
def test_bound_functions_are_watched(fn):
    watched = watch(fn)
    for n in (3, 3, 4):
        assert watched(jnp.ones(n)).shape == (n,)
    assert outcomes(watched) == ["compiled", "hit", "compiled"]
    assert watched.last.reason.sentence == "`x` changed shape, float32[3] → float32[4]"


def test_a_ref_an_explicit_mesh_and_a_donated_state_of_optax_are_watched():
    total = watch(jax.jit(lambda ref: ref[...].sum()))
    total(jax.new_ref(X)), total(jax.new_ref(jnp.ones(4)))
    assert "shape" in total.last.reason.kind
    mesh = jax.make_mesh((1,), ("i",), axis_types=(AxisType.Explicit,))
    double = watch(jax.jit(lambda x: x * 2))
    double(X), double(jax.device_put(X, NamedSharding(mesh, PartitionSpec("i"))))
    assert double.last.reason.kind == "sharding"
    optimizer = optax.adam(0.1)
    update = watch(jax.jit(lambda grads, state: optimizer.update(grads, state), donate_argnums=1))
    params = {"w": jnp.ones(2)}
    _, state = update(params, optimizer.init(params))
    update({"w": jnp.ones(2, "bfloat16")}, state)
    assert update.last.reason.argument == "grads['w']"


def test_a_function_around_a_jitted_one_is_named_as_that():
    with pytest.raises(
        TypeError, match=r"a Python function around one.* Write check\(fn.__wrapped__, \.\.\.\)"
    ):
        check(jax.vmap(jax.jit(lambda x: 2 * x)), X)


def test_the_error_of_a_checked_function_is_no_disagreement():
    checked = checkify.checkify(lambda x: 2 * x / x, errors=checkify.float_checks)
    assert "disagreement" not in check(jax.jit(checked), X).kinds


@pytest.mark.parametrize("hidden", ["pmap", "cached_partial"])
def test_a_function_that_hides_its_jitted_one_is_refused_with_what_works(hidden):
    fn = (
        jax.pmap(lambda x: x)
        if hidden == "pmap"
        else nnx.cached_partial(nnx.jit(Counted.__call__), Counted())
    )
    with pytest.raises(TypeError, match=r"hides the one inside it.*`with jitguide.watch\(\):`"):
        watch(fn)
    if hidden == "pmap":
        with watch() as seen:
            fn(jnp.ones((1, 3)))
        assert seen.compiles > 0


def test_what_is_not_jitted_is_told_to_jit():
    with pytest.raises(TypeError, match=r"Write watch\(jax.jit\(fn\)\)"):
        watch(lambda x: x)


@pytest.mark.parametrize(
    ("fn", "args"),
    [
        (jax.jit(lambda x: x * 2), (X,)),
        (functools.partial(jax.jit(lambda w, x: w * x), X), (X,)),
        (eqx.filter_jit(lambda model, x: model(x)), (mlp(), X)),
        (eqx.filter_jit(mlp()), (X,)),
        (nnx.jit(lambda model, x: model(x)), (Counted(), X)),
        (functools.partial(nnx.jit(lambda model, x: model(x), graph=False), Counted()), (X,)),
        (watch(nnx.jit(lambda model, x: model(x))), (Counted(), X)),
    ],
)
def test_a_call_is_followed_to_the_jitted_function_and_leaves_no_trace(fn, args):
    def arrays():
        return [jnp.array(leaf) for leaf in jax.tree.leaves(args) if isinstance(leaf, jax.Array)]

    before = arrays()

    def use(jitted, args, kwargs):
        assert jitted is jitted_in(fn)
        fresh_jit(jitted)[0].trace(*args, **kwargs)
        return jitted.trace(*args, **kwargs).lower().compile()

    compiled = through(fn, args, {}, use)
    assert compiled.as_text()
    assert all((a == b).all() for a, b in zip(before, arrays(), strict=True))


def test_what_is_not_jitted_is_used_as_it_is():
    assert through(abs, (-2,), {}, lambda fn, args, kwargs: fn(*args, **kwargs)) == 2
    with pytest.raises(ZeroDivisionError):
        through(eqx.filter_jit(lambda x: x), (X,), {}, lambda *_: 1 // 0)


def test_an_equinox_default_that_is_left_out_is_compared_with_the_value_that_is_passed():
    f = watch(eqx.filter_jit(lambda x, n=1: x * n))
    f(jnp.ones(2))
    f(jnp.ones(2), n=2)
    assert "`n` was left to its default 1 and is now passed as 2" in repr(f)
    assert "each static value compiles" in repr(f)


def test_a_number_in_an_equinox_module_is_to_become_an_array():
    class Scaled(eqx.Module):
        scale: float | jax.Array

        def __call__(self, x):
            return self.scale * x

    f = watch(eqx.filter_jit(lambda model, x: model(x)))
    f(Scaled(1.0), X)
    f(Scaled(2.0), X)
    assert f.last.reason.sentence == "Static `model.scale` changed, 1.0 → 2.0"
    assert f.last.reason.advice.endswith("Keep to a few values, or make it an array, which is traced.")
    f(Scaled(jnp.float32(1.0)), X)
    f(Scaled(jnp.float32(2.0)), X)
    assert f.last.outcome == "hit"  # the advice works


def test_equinox_does_not_tell_how_an_array_was_passed():
    f = watch(eqx.filter_jit(lambda x, mask=None: x if mask is None else x * mask))
    f(X)
    f(X, mask=X)
    assert f.last.reason.sentence == "`mask` was left to its default None and is now passed"
