"""Text generation, and groups without an element."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax

EOS, LONGEST = 0, 12


@jax.jit
def count_down(start):
    """Each sequence counts down to EOS."""
    text = jnp.full((start.shape[0], LONGEST), -1).at[:, 0].set(start)

    def unfinished(state):
        n, _, done = state
        return (n < LONGEST) & ~jnp.all(done)

    def step(state):
        n, text, done = state
        token = jnp.where(done, EOS, text[:, n - 1] - 1)
        return n + 1, text.at[:, n].set(token), done | (token == EOS)

    return lax.while_loop(unfinished, step, (1, text, start < 0))


@pytest.mark.claim(
    "generation-stops-when-the-batch-is-done",
    "A `while_loop` that carries `done` and runs while `(n < longest) & ~jnp.all(done)` stops when the sequences of a "
    "batch have reached EOS, or are full, and other prompts share its compiled function.",
)
def test_generation_stops_when_the_batch_is_done(counted):
    n, text, done = count_down(np.array([3, 5], np.int32))
    assert (n, done.tolist()) == (6, [True, True])
    assert text[0, :6].tolist() == [3, 2, 1, 0, 0, 0]
    counted()
    n, _, done = count_down(np.array([40, 2], np.int32))
    assert counted()["compiles"] == 0
    assert (n, done.tolist()) == (LONGEST, [False, True])


@pytest.mark.wrong_twin("generation-stops-when-the-batch-is-done")
def test_wrong_twin_the_loop_runs_to_the_end():
    assert count_down(np.array([3, 5], np.int32))[0] == LONGEST


MOST_K = 3
LOGITS = np.array([1.0, 3.0, 2.0, -1.0], np.float32)


@jax.jit
def sample(key, logits, temperature, k):
    values, tokens = lax.top_k(logits, MOST_K)
    values = jnp.where(jnp.arange(MOST_K) < k, values, -jnp.inf)
    hot = temperature > 0
    drawn = jax.random.categorical(key, values / jnp.where(hot, temperature, 1.0))
    return tokens[jnp.where(hot, drawn, 0)]


@pytest.mark.claim(
    "traced-temperature-and-top-k-share-a-compile",
    "A sampler that takes `lax.top_k` of a fixed size, masks it by a traced `k`, and chooses the first token by "
    "`jnp.where` if a traced temperature is 0, is compiled once for these settings.",
)
def test_traced_temperature_and_top_k_share_a_compile(counted):
    keys = [jax.random.PRNGKey(seed) for seed in range(30)]
    sample(keys[0], LOGITS, 1.0, 3)
    counted()
    greedy = {int(sample(key, LOGITS, 0.0, 3)) for key in keys}
    first_two = {int(sample(key, LOGITS, 5.0, 2)) for key in keys}
    three = {int(sample(key, LOGITS, 5.0, 3)) for key in keys}
    assert counted()["compiles"] == 0
    assert (greedy, first_two, three) == ({1}, {1, 2}, {0, 1, 2})


@pytest.mark.wrong_twin(
    "traced-temperature-and-top-k-share-a-compile", raises=jax.errors.TracerBoolConversionError
)
def test_wrong_twin_an_if_asks_for_the_temperature():
    @jax.jit
    def choose(logits, temperature):
        return jnp.argmax(logits) if temperature == 0 else jnp.argmin(logits)

    choose(LOGITS, 0.0)


@jax.jit
def accept(text, length, draft, ok):
    count = jnp.sum(jnp.cumprod(ok))
    i = jnp.arange(draft.size)
    place = jnp.where(i < count, length + i, text.size)
    return text.at[place].set(draft, mode="drop"), length + count


@pytest.mark.claim(
    "rejected-tokens-are-dropped-by-their-index",
    "If the rejected tokens of a draft get an index beyond the end, `.at[].set` appends the accepted ones alone, and "
    "their number may be traced.",
)
def test_rejected_tokens_are_dropped_by_their_index():
    draft = np.array([5, 6, 7, 8], np.int32)
    for ok in ([1, 1, 0, 1], [0, 1, 1, 1], [1, 1, 1, 1]):
        count = ([*ok, 0]).index(0)
        text, length = accept(jnp.zeros(8, jnp.int32), 2, draft, np.array(ok, bool))
        assert length == 2 + count
        assert text.tolist() == [0, 0, *draft[:count].tolist(), *[0] * (6 - count)]


@pytest.mark.wrong_twin("rejected-tokens-are-dropped-by-their-index", raises=(TypeError, IndexError))
def test_wrong_twin_a_slice_takes_a_traced_count():
    jax.jit(lambda text, draft, count: text.at[:count].set(draft[:count]))(jnp.zeros(8), jnp.ones(4), 2)


def temporaries(update):
    shapes = jax.ShapeDtypeStruct((4, 256, 64), jnp.float32), jax.ShapeDtypeStruct((4,), jnp.int32)
    return jax.jit(update, donate_argnums=0).lower(*shapes).compile().memory_analysis().temp_size_in_bytes


CACHE = 4 * 4 * 256 * 64


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "reordering-a-donated-cache-copies-it",
    "`cache[parents]` of a donated cache needs temporary memory of the size of the cache, unlike a write at one position.",
)
def test_reordering_a_donated_cache_copies_it():
    assert temporaries(lambda cache, parents: cache[parents]) >= CACHE
    assert temporaries(lambda cache, parents: cache.at[:, parents[0]].set(1.0)) < CACHE / 10


@pytest.mark.wrong_twin("reordering-a-donated-cache-copies-it")
def test_wrong_twin_a_reordering_is_in_place():
    assert temporaries(lambda cache, parents: cache[parents]) < CACHE / 10


@pytest.mark.claim(
    "group-without-elements-is-minus-infinity-in-segment-max",
    "A group without an element is 0 in `segment_sum`, but `-inf` in `segment_max` of floats, and the smallest integer "
    "in that of integers.",
)
def test_group_without_elements_is_minus_infinity_in_segment_max():
    groups = np.array([0, 0])
    for values, smallest in (
        (np.array([1.0, 2.0], np.float32), -np.inf),
        (np.array([1, 2], np.int32), np.iinfo(np.int32).min),
    ):
        assert jax.ops.segment_sum(values, groups, num_segments=2).tolist() == [3, 0]
        for largest in (jax.ops.segment_max, jax.jit(jax.ops.segment_max, static_argnames="num_segments")):
            assert largest(values, groups, num_segments=2).tolist() == [2, smallest]


@pytest.mark.wrong_twin("group-without-elements-is-minus-infinity-in-segment-max")
def test_wrong_twin_a_group_without_elements_is_zero():
    largest = jax.ops.segment_max(np.array([1.0, 2.0], np.float32), np.array([0, 0]), num_segments=2)
    assert largest.tolist() == [2, 0]
