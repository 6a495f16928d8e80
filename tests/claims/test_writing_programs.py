"""Training loops, callbacks, keys and tests."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax


def double(total, x):
    return total + x, 2 * x


@pytest.mark.claim(
    "nested-scan-returns-one-metric-per-chunk",
    "A `scan` over chunks, whose body scans over the steps of a chunk, returns one metric per chunk instead of one per step.",
)
def test_nested_scan_returns_one_metric_per_chunk():
    @jax.jit
    def run(xs):
        def chunk(total, part):
            total, metrics = lax.scan(double, total, part)
            return total, metrics.mean()

        return lax.scan(chunk, jnp.float32(0), xs)

    total, metrics = run(jnp.arange(12.0).reshape(3, 4))
    assert metrics.shape == (3,)
    assert total == 66
    assert lax.scan(double, jnp.float32(0), jnp.arange(12.0))[1].shape == (12,)


@pytest.mark.claim(
    "equal-chunks-share-one-program",
    "A jitted function that runs one chunk of steps is traced once for chunks of equal length, and again for a shorter one.",
)
def test_equal_chunks_share_one_program():
    traces = []

    @jax.jit
    def run(total, part):
        traces.append(part.shape)
        return lax.scan(double, total, part)

    total = jnp.float32(0)
    for part in np.arange(12, dtype=np.float32).reshape(3, 4):
        total, _ = run(total, part)
    assert traces == [(4,)]
    run(total, np.zeros(3, np.float32))
    assert traces == [(4,), (3,)]


@pytest.mark.wrong_twin("equal-chunks-share-one-program")
def test_wrong_twin_a_shorter_chunk_shares_the_program():
    traces = []

    @jax.jit
    def run(total, part):
        traces.append(part.shape)
        return lax.scan(double, total, part)

    run(jnp.float32(0), np.zeros(4, np.float32))
    run(jnp.float32(0), np.zeros(3, np.float32))
    assert len(traces) == 1


def loss(weights, x, y):
    return jnp.mean((jnp.tanh(x @ weights) - y) ** 2)


@pytest.mark.claim(
    "equal-micro-batches-give-the-whole-gradient",
    "For a mean over the batch, the mean of the gradients of equal micro-batches is the gradient of the whole batch, to within rounding.",
)
def test_equal_micro_batches_give_the_whole_gradient():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(24, 3)).astype(np.float32)
    y = rng.normal(size=24).astype(np.float32)
    weights = jnp.ones(3)

    def add(total, part):
        return total + jax.grad(loss)(weights, *part), None

    parts = x.reshape(4, 6, 3), y.reshape(4, 6)
    total, _ = jax.jit(lambda parts: lax.scan(add, jnp.zeros(3), parts))(parts)
    np.testing.assert_allclose(total / 4, jax.grad(loss)(weights, x, y), rtol=1e-5, atol=1e-6)


@pytest.mark.claim(
    "gradient-of-a-cast-has-the-input-dtype",
    "If a loss casts its `float32` parameters to `bfloat16`, their gradient comes back in `float32`.",
)
def test_gradient_of_a_cast_has_the_input_dtype():
    def half_loss(weights):
        return (weights.astype(jnp.bfloat16) ** 2).sum().astype(jnp.float32)

    assert jax.jit(jax.grad(half_loss))(jnp.ones(3)).dtype == jnp.float32


@pytest.mark.claim("bfloat16-loses-small-updates", "Adding 0.001 to 1 in `bfloat16` gives 1.")
def test_bfloat16_loses_small_updates():
    add = jax.jit(lambda a, b: a + b)
    assert add(jnp.bfloat16(1), jnp.bfloat16(0.001)) == 1
    assert add(jnp.float32(1), jnp.float32(0.001)) != 1


@pytest.mark.claim(
    "float16-flushes-small-gradients",
    "A number below 2.9e-8 becomes zero in `float16`; in `bfloat16` it does not.",
)
def test_float16_flushes_small_gradients():
    small = jnp.float32(2.9e-8)
    assert jax.jit(lambda x: x.astype(jnp.float16))(small) == 0
    assert jax.jit(lambda x: x.astype(jnp.bfloat16))(small) != 0


@pytest.mark.claim(
    "typed-key-is-saved-by-its-data",
    "NumPy cannot hold a typed key as data; `jax.random.key_data` gives an array that it can, and `wrap_key_data` gives the key back.",
)
def test_typed_key_is_saved_by_its_data():
    key = jax.random.key(3)
    with pytest.raises(TypeError):
        np.asarray(key)
    data = np.asarray(jax.random.key_data(key))
    again = jax.random.wrap_key_data(data)
    assert jax.random.normal(again) == jax.random.normal(key)


@pytest.mark.claim(
    "callback-under-cond-runs-every-n-steps",
    "A `debug.callback` in one branch of `lax.cond` in a loop runs in the steps that take the branch.",
)
def test_callback_under_cond_runs_every_n_steps():
    steps = []

    def body(total, step):
        lax.cond(
            step % 10 == 0,
            lambda: jax.debug.callback(lambda step: steps.append(int(step)), step, ordered=True),
            lambda: None,
        )
        return total + 1, None

    jax.block_until_ready(jax.jit(lambda: lax.scan(body, 0, jnp.arange(30)))())
    jax.effects_barrier()
    assert steps == [0, 10, 20]


def calls_under_vmap(flags, condition_on_the_host):
    calls = []

    def note(flag):
        if flag or not condition_on_the_host:
            calls.append(bool(flag))

    def look(flag):
        if condition_on_the_host:
            jax.debug.callback(note, flag)
        else:
            lax.cond(flag, lambda f: jax.debug.callback(note, f), lambda f: None, flag)
        return flag

    jax.block_until_ready(jax.jit(jax.vmap(look))(flags))
    jax.effects_barrier()
    return len(calls)


@pytest.mark.claim(
    "callback-under-a-batched-cond-runs-for-each",
    "Under `vmap` with a batched condition, a `debug.callback` in one branch of `cond` runs for each element, also where the "
    "condition is false; a condition inside the Python function selects.",
)
def test_callback_under_a_batched_cond_runs_for_each():
    flags = jnp.array([True, False, False])
    assert calls_under_vmap(flags, condition_on_the_host=False) == 3
    assert calls_under_vmap(flags, condition_on_the_host=True) == 1


@pytest.mark.wrong_twin("callback-under-a-batched-cond-runs-for-each")
def test_wrong_twin_cond_selects_under_vmap():
    assert calls_under_vmap(jnp.array([True, False, False]), condition_on_the_host=False) == 1


@pytest.mark.claim(
    "ordered-io-callback-is-refused-by-vmap", "`vmap` of an ordered `io_callback` raises `ValueError`."
)
def test_ordered_io_callback_is_refused_by_vmap():
    from jax.experimental import io_callback

    def save(x):
        io_callback(lambda x: None, None, x, ordered=True)
        return x

    with pytest.raises(ValueError, match="ordered"):
        jax.vmap(save)(jnp.ones(3))


@pytest.mark.claim(
    "callback-in-shard-map-gets-the-block",
    "Inside `jax.shard_map` each device calls a `pure_callback` with its own block, also if the callback has several results.",
)
def test_callback_in_shard_map_gets_the_block():
    devices = jax.devices()
    if len(devices) < 2:
        pytest.skip("not applicable: this process has one device only")
    if not hasattr(jax, "shard_map"):
        pytest.skip("not applicable: shard_map was experimental")
    mesh = jax.sharding.Mesh(np.array(devices), ("d",))
    spec = jax.sharding.PartitionSpec("d")
    shapes = []

    def host(block):
        shapes.append(np.shape(block))
        return 2 * np.asarray(block), np.asarray(block).sum(keepdims=True)

    def per_device(block):
        return jax.pure_callback(
            host,
            (jax.ShapeDtypeStruct(block.shape, block.dtype), jax.ShapeDtypeStruct((1,), block.dtype)),
            block,
        )

    x = jax.device_put(
        np.arange(2.0 * len(devices), dtype=np.float32), jax.sharding.NamedSharding(mesh, spec)
    )
    doubled, _ = jax.jit(jax.shard_map(per_device, mesh=mesh, in_specs=spec, out_specs=spec))(x)
    assert doubled.tolist() == (2 * np.arange(2.0 * len(devices))).tolist()
    assert shapes == [(2,)] * len(devices)


@pytest.mark.claim(
    "legacy-and-typed-keys-draw-the-same",
    "`jax.random.PRNGKey(0)` and `jax.random.key(0)` give the same numbers.",
)
def test_legacy_and_typed_keys_draw_the_same():
    draw = jax.jit(lambda key: jax.random.normal(key, (3,)))
    assert draw(jax.random.PRNGKey(0)).tolist() == draw(jax.random.key(0)).tolist()


@pytest.mark.claim(
    "shapes-of-keys",
    "A legacy key is `uint32`, of two words for threefry and of four for rbg; a key of `jax.random.key` is a scalar of a key dtype.",
)
def test_shapes_of_keys():
    for implementation, words in (("threefry2x32", 2), ("rbg", 4)):
        legacy = jax.random.PRNGKey(0, impl=implementation)
        typed = jax.random.key(0, impl=implementation)
        assert legacy.shape == (words,)
        assert legacy.dtype == jnp.uint32
        assert typed.shape == ()
        assert jnp.issubdtype(typed.dtype, jax.dtypes.prng_key)


@pytest.mark.claim(
    "partitionable-keys-give-other-numbers",
    "`jax.threefry_partitionable` holds inside jit as outside, is on by default, and changes the numbers of a key.",
)
def test_partitionable_keys_give_other_numbers():
    def draw():
        return jax.random.normal(jax.random.key(0), (3,))

    drawn = {}
    for setting in (True, False):
        with jax.threefry_partitionable(setting):
            drawn[setting] = draw().tolist()
            assert jax.jit(draw)().tolist() == drawn[setting]
    assert drawn[True] != drawn[False]
    assert draw().tolist() == drawn[True]


@pytest.mark.claim(
    "rbg-under-vmap-differs-from-a-loop",
    "With rbg keys, `vmap` over keys gives other numbers than a loop over them.",
)
def test_rbg_under_vmap_differs_from_a_loop():
    keys = jax.random.split(jax.random.key(0, impl="rbg"), 3)
    looped = jnp.stack([jax.random.normal(key) for key in keys])
    assert not np.allclose(jax.vmap(jax.random.normal)(keys), looped)
    keys = jax.random.split(jax.random.key(0, impl="threefry2x32"), 3)
    looped = jnp.stack([jax.random.normal(key) for key in keys])
    assert np.allclose(jax.vmap(jax.random.normal)(keys), looped)


@pytest.mark.claim(
    "checkpoint-draws-the-same-mask",
    "A random mask drawn inside `jax.checkpoint` is the same when it is computed again: the gradient is that without it.",
)
def test_checkpoint_draws_the_same_mask():
    def block(weight, key):
        mask = jax.random.bernoulli(key, 0.5, (64,))
        return jnp.where(mask, jnp.sin(weight * jnp.arange(64.0)), 0.0).sum()

    plain = jax.jit(jax.grad(block))(0.3, jax.random.key(1))
    again = jax.jit(jax.grad(jax.checkpoint(block)))(0.3, jax.random.key(1))
    np.testing.assert_allclose(plain, again, rtol=1e-5)


@pytest.mark.claim(
    "many-draws-are-a-longer-program",
    "Twenty draws of one number lower to a longer program than one draw of twenty.",
)
def test_many_draws_are_a_longer_program():
    def many(key):
        return jnp.stack([jax.random.normal(k) for k in jax.random.split(key, 20)])

    def one(key):
        return jax.random.normal(key, (20,))

    key = jax.random.key(0)
    assert len(jax.jit(many).lower(key).as_text()) > len(jax.jit(one).lower(key).as_text())


@pytest.mark.claim(
    "misspelled-static-name-passes-with-kwargs",
    "If a function takes `**kwargs`, a misspelled name in `static_argnames` is accepted, and the argument is traced.",
)
def test_misspelled_static_name_passes_with_kwargs():
    seen = []

    def scale(x, **kwargs):
        seen.append(isinstance(kwargs["power"], jax.core.Tracer))
        return x * kwargs["power"]

    jax.jit(scale, static_argnames="pow")(2.0, power=3)
    jax.jit(scale, static_argnames="power")(2.0, power=3)
    assert seen == [True, False]


@pytest.mark.claim("treedef-can-be-static", "A `PyTreeDef` can be a static argument, and an equal one hits.")
def test_treedef_can_be_static():
    traces = []

    def rebuild(structure, leaves):
        traces.append(structure)
        return jax.tree.unflatten(structure, leaves)

    jitted = jax.jit(rebuild, static_argnums=0)
    for _ in range(2):
        structure = jax.tree.structure({"a": 1, "b": 2})
        assert jitted(structure, [1.0, 2.0]) == {"a": 1.0, "b": 2.0}
    assert len(traces) == 1


@pytest.mark.claim(
    "wrong-keyword-raises-at-the-call",
    "A keyword that the function does not have raises `TypeError` when the jitted function is called.",
)
def test_wrong_keyword_raises_at_the_call():
    with pytest.raises(TypeError, match="bob"):
        jax.jit(lambda a: a)(bob=123)


@pytest.mark.claim(
    "nondiff-argnums-refuses-tracers",
    "Under jit, an array in a `nondiff_argnums` position of `custom_vjp` raises `UnexpectedTracerError`; as an ordinary argument, "
    "with `None` from the backward rule, it works.",
)
def test_nondiff_argnums_refuses_tracers():
    def scale(x, factor):
        return x * factor

    marked = jax.custom_vjp(scale, nondiff_argnums=(1,))
    marked.defvjp(lambda x, factor: (x * factor, None), lambda factor, _, g: (g * factor,))
    assert jax.grad(marked)(1.0, jnp.float32(2)) == 2
    with pytest.raises(jax.errors.UnexpectedTracerError):
        jax.jit(jax.grad(marked))(1.0, jnp.float32(2))

    ordinary = jax.custom_vjp(scale)
    ordinary.defvjp(lambda x, factor: (x * factor, factor), lambda factor, g: (g * factor, None))
    assert jax.jit(jax.grad(ordinary))(1.0, jnp.float32(2)) == 2


def absolute(select):
    @jax.custom_jvp
    def function(x):
        return jnp.abs(x)

    @function.defjvp
    def rule(primals, tangents):
        (x,), (dx,) = primals, tangents
        return function(x), select(x > 0, dx)

    return function


@pytest.mark.claim(
    "batched-cond-in-a-jvp-rule-has-no-transpose",
    "With `lax.cond` on its argument in a `custom_jvp` rule, `grad` of `vmap` raises `NotImplementedError`, and `vmap` of `grad` "
    "works; with `jnp.where` both work.",
)
def test_batched_cond_in_a_jvp_rule_has_no_transpose():
    by_cond = absolute(lambda positive, dx: lax.cond(positive, lambda d: d, lambda d: -d, dx))
    by_where = absolute(lambda positive, dx: jnp.where(positive, dx, -dx))
    x = jnp.array([1.0, -1.0])
    for function in (by_cond, by_where):
        assert jax.vmap(jax.grad(function))(x).tolist() == [1, -1]
    assert jax.grad(lambda x: jax.vmap(by_where)(x).sum())(x).tolist() == [1, -1]
    with pytest.raises(NotImplementedError):
        jax.grad(lambda x: jax.vmap(by_cond)(x).sum())(x)


@pytest.mark.claim(
    "gradient-of-the-norm-at-zero-is-nan",
    "The gradient of `jnp.linalg.norm` at a vector of zeros is `nan`, and that of `jnp.sqrt` at 0 is `inf`.",
)
def test_gradient_of_the_norm_at_zero_is_nan():
    assert jnp.isnan(jax.jit(jax.grad(jnp.linalg.norm))(jnp.zeros(2))).all()
    assert jnp.isinf(jax.jit(jax.grad(jnp.sqrt))(0.0))


@pytest.mark.claim(
    "lax-map-keeps-the-cond",
    "`lax.map` over a function with `cond` keeps the `cond`, where `vmap` makes a selection of it.",
)
def test_lax_map_keeps_the_cond():
    def choose(x):
        return lax.cond(x > 0, jnp.sin, jnp.cos, x)

    mapped = str(jax.make_jaxpr(lambda xs: lax.map(choose, xs))(jnp.ones(3)))
    batched = str(jax.make_jaxpr(jax.vmap(choose))(jnp.ones(3)))
    assert "cond[" in mapped
    assert "select_n" not in mapped
    assert "cond[" not in batched
    assert "select_n" in batched


@pytest.mark.claim(
    "dict-is-sorted-inside-jit",
    "Iterating over a dict argument inside a jitted function gives its keys in sorted order.",
)
def test_dict_is_sorted_inside_jit():
    keys = []
    jax.jit(lambda options: keys.extend(options))({"b": 1.0, "a": 2.0})
    assert keys == ["a", "b"]
    assert list({"b": 1.0, "a": 2.0}) == ["b", "a"]
