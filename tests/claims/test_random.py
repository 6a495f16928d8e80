"""Random keys."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


@pytest.mark.claim(
    "numpy-randomness-has-hidden-state",
    "NumPy's generator changes with each draw: two draws differ.",
    seeds="S002-29",
)
def test_numpy_randomness_has_hidden_state():
    generator = np.random.default_rng(0)
    assert not np.array_equal(generator.uniform(size=5), generator.uniform(size=5))


@pytest.mark.claim("same-key-same-numbers", "Two draws from one key are identical.", seeds="S002-30 S002-32")
def test_same_key_same_numbers():
    key = jax.random.key(7)
    assert (jax.random.uniform(key, (5,)) == jax.random.uniform(key, (5,))).all()


@pytest.mark.wrong_twin("same-key-same-numbers")
def test_wrong_twin_drawing_advances_the_key():
    key = jax.random.key(7)
    assert (jax.random.uniform(key, (5,)) != jax.random.uniform(key, (5,))).any()


@pytest.mark.claim(
    "split-gives-new-keys",
    "Splitting a key gives keys whose draws differ from each other; the same key splits the same way again.",
    seeds="S002-30 S002-31",
)
def test_split_gives_new_keys():
    first, second = jax.random.split(jax.random.key(7))
    again = jax.random.split(jax.random.key(7))[0]
    assert (jax.random.uniform(first, (5,)) != jax.random.uniform(second, (5,))).all()
    assert (jax.random.uniform(first, (5,)) == jax.random.uniform(again, (5,))).all()


@pytest.mark.claim(
    "one-split-gives-many-keys",
    "One call of `split` gives as many keys as asked for, each for a draw of its own.",
    seeds="S002-33",
)
def test_one_split_gives_many_keys():
    kept, *others = jax.random.split(jax.random.key(7), 5)
    draws = [jax.random.normal(key, (2, 2)) for key in others]
    assert [d.shape for d in draws] == [(2, 2)] * 4
    assert len({float(d[0, 0]) for d in draws}) == 4
    assert kept.shape == ()


@pytest.mark.claim(
    "seeds-above-32-bits-are-truncated",
    "With 64-bit types off the low 32 bits of a seed count: two seeds that differ above them give the same "
    "key, without a warning.",
    seeds="S002-31",
)
def test_seeds_above_32_bits_are_truncated():
    one, other = jax.random.PRNGKey(0x1DEADBEEF), jax.random.PRNGKey(0xDEADBEEF)
    assert (one == other).all()


@pytest.mark.claim(
    "jit-draws-the-same-numbers",
    "The same key gives the same random bits with and without jit.",
    seeds="S002-30",
)
def test_jit_draws_the_same_numbers():
    key = jax.random.key(7)
    assert (jax.jit(lambda k: jax.random.bits(k, (5,)))(key) == jax.random.bits(key, (5,))).all()


@pytest.mark.claim(
    "closed-over-key-repeats-its-numbers",
    "A key that is a constant of the jitted function gives the same numbers again at the next call; a key "
    "passed in and split outside does not.",
    seeds="S002-30",
)
def test_closed_over_key_repeats_its_numbers():
    key = jax.random.key(7)
    fixed = jax.jit(lambda x: x + jax.random.uniform(key))
    passed = jax.jit(lambda x, key: x + jax.random.uniform(key))
    assert fixed(0.0) == fixed(0.0)
    one, two = jax.random.split(key)
    assert passed(0.0, one) != passed(0.0, two)


@pytest.mark.claim(
    "seed-may-be-traced",
    "A key can be made inside jit from a traced seed, without tracing again for another seed.",
)
def test_seed_may_be_traced():
    runs = []
    f = jax.jit(lambda seed: runs.append(1) or jax.random.uniform(jax.random.key(seed)))
    assert f(1) == jax.random.uniform(jax.random.key(1))
    assert f(2) == jax.random.uniform(jax.random.key(2))
    assert len(runs) == 1


@pytest.mark.claim(
    "fold-in-takes-a-traced-step",
    "`fold_in` derives a key from a key and a traced number, so a loop can do without a list of keys.",
)
def test_fold_in_takes_a_traced_step():
    runs = []
    noise = jax.jit(lambda key, step: runs.append(1) or jax.random.uniform(jax.random.fold_in(key, step)))
    key = jax.random.key(7)
    assert len({float(noise(key, i)) for i in range(4)}) == 4
    assert noise(key, 2) == noise(key, 2)
    assert len(runs) == 1


@pytest.mark.claim(
    "vmap-over-keys-draws-for-each", "`vmap` over split keys gives each element the numbers of its own key."
)
def test_vmap_over_keys_draws_for_each():
    keys = jax.random.split(jax.random.key(7), 3)
    batch = jax.vmap(lambda k: jax.random.bits(k, (2,)))(keys)
    assert all((row == jax.random.bits(k, (2,))).all() for row, k in zip(batch, keys, strict=True))


@pytest.mark.claim(
    "typed-keys-refuse-arithmetic",
    "A typed key is not a number: adding to it raises `TypeError`, whereas a raw `uint32` key can be added "
    "to.",
)
def test_typed_keys_refuse_arithmetic():
    with pytest.raises(TypeError):
        jax.random.key(0) + 1
    assert (jax.random.PRNGKey(0) + 1).dtype == jnp.uint32


@pytest.mark.claim(
    "key-reuse-check-overlooks-fold-in",
    "The key reuse check overlooks `fold_in`: before and after a draw or a split of the same key, and the same "
    "number folded in twice.",
)
def test_key_reuse_check_overlooks_fold_in():
    def fold_in(key):
        return jax.random.fold_in(key, 1)

    with jax.debug_key_reuse(True):
        for use in (jax.random.normal, jax.random.split, fold_in):
            for first, then in ((use, fold_in), (fold_in, use)):
                key = jax.random.key(3)
                first(key), then(key)
                jax.jit(lambda key, first=first, then=then: (first(key), then(key)))(jax.random.key(3))


@pytest.mark.claim(
    "numpy-cannot-compare-typed-keys",
    "`np.array_equal(key, key)` is False for a typed key, and `jnp.array_equal(key, key)` is True.",
)
def test_numpy_cannot_compare_typed_keys():
    for key in (jax.random.key(0), jax.random.split(jax.random.key(0), 3)):
        assert not np.array_equal(key, key)
        assert jnp.array_equal(key, key)


@pytest.mark.claim(
    "choice-without-repetition-sorts-unless-it-has-weights",
    "`jax.random.choice(key, n, (2,), replace=False)` sorts n numbers; with `p=` it sorts nothing.",
)
def test_choice_without_repetition_sorts_unless_it_has_weights():
    def program(**weights):
        draw = jax.jit(lambda key: jax.random.choice(key, 1000, (2,), replace=False, **weights))
        return draw.lower(jax.random.key(0)).as_text()

    assert "stablehlo.sort" in program()
    assert "stablehlo.sort" not in program(p=jnp.full(1000, 1e-3))
