"""Logs of compiles, buckets, pieces, where captured arrays lie."""

import logging

import jax
import jax.numpy as jnp
import numpy as np
import pytest


class Lines(logging.Handler):
    """Keep what JAX logs."""

    def __init__(self):
        super().__init__()
        self.text = ""

    def emit(self, record):
        self.text += record.getMessage() + "\n"


@pytest.fixture
def log():
    if not hasattr(jax, "explain_cache_misses"):
        pytest.skip("not applicable: this release has no jax.explain_cache_misses")
    lines = Lines()
    logger = logging.getLogger("jax")
    logger.addHandler(lines)
    yield lines
    logger.removeHandler(lines)


def two_steps(log, start):
    @jax.jit
    def step(state, x):
        return {"weights": state["weights"] * x, "total": state["total"] + x.sum()}

    x = jnp.ones(3)
    state = {"weights": x, "total": start}
    with jax.explain_cache_misses(True):
        state = step(state, x)
        log.text = ""
        step(state, x)
    return log.text


@pytest.mark.claim(
    "explain-cache-misses-names-the-leaf",
    "`explain_cache_misses` names the leaf of an argument that differs, also where its weak type is what differs.",
)
def test_explain_cache_misses_names_the_leaf(log):
    text = two_steps(log, 0.0)
    assert "total" in text
    assert "weak_type" in text
    assert "weights" not in text


@pytest.mark.wrong_twin("explain-cache-misses-names-the-leaf")
def test_wrong_twin_a_strong_start_is_reported_too(log):
    assert "total" in two_steps(log, jnp.float32(0))


def missed_from_one_line(log, size):
    def add_one(x):
        return x + 1

    def add_two(x):
        return x + 2

    with jax.explain_cache_misses(True):
        for function in (jax.jit(add_one), jax.jit(add_two)):  # each is seen for the first time
            log.text = ""
            function(jnp.ones(size))
    return log.text


@pytest.mark.claim(
    "same-line-hint-goes-by-the-call",
    "The hint of `explain_cache_misses` about another function on the same line means the line of the call: "
    "two different functions called from one line show it.",
)
def test_same_line_hint_goes_by_the_call(log):
    assert "same line" in missed_from_one_line(log, 5)


@pytest.mark.wrong_twin("same-line-hint-goes-by-the-call")
def test_wrong_twin_hint_needs_one_line_of_definition(log):
    assert "same line" not in missed_from_one_line(log, 6)


def traces_of_padded(row_sizes, column_sizes):
    traces = []

    @jax.jit
    def total(x):
        traces.append(x.shape)
        return x.sum()

    def next_size(n, sizes):
        return min(size for size in sizes if size >= n)

    for rows in range(1, 9):
        for columns in range(1, 9):
            total(np.zeros((next_size(rows, row_sizes), next_size(columns, column_sizes)), np.float32))
    return len(traces)


@pytest.mark.claim(
    "bucket-counts-multiply",
    "Padding two axes to a few sizes compiles up to the product of the two numbers of sizes.",
)
def test_bucket_counts_multiply():
    assert traces_of_padded((2, 4, 8), (4, 8)) == 3 * 2
    assert traces_of_padded((8,), (2, 4, 8)) == 3


@pytest.mark.wrong_twin("bucket-counts-multiply")
def test_wrong_twin_bucket_counts_add():
    assert traces_of_padded((2, 4, 8), (4, 8)) == 3 + 2


def traces_of_relative_padding(lengths):
    traces = []

    @jax.jit
    def total(x):
        traces.append(x.shape)
        return x.sum()

    for length in lengths:
        total(np.zeros(length + length // 10 + 1, np.float32))
    return len(traces)


@pytest.mark.claim(
    "relative-padding-compiles-each",
    "Padding each input by a tenth of its own length gives one compile for each of four lengths.",
)
def test_relative_padding_compiles_each():
    lengths = (41, 53, 60, 77)
    assert traces_of_relative_padding(lengths) == len(lengths)


@pytest.mark.wrong_twin("relative-padding-compiles-each")
def test_wrong_twin_relative_padding_shares():
    assert traces_of_relative_padding((41, 53, 60, 77)) == 1


def equations(function, x):
    return len(jax.make_jaxpr(function)(x).jaxpr.eqns)


def norm(row):
    return jnp.sqrt(jnp.sum(row * row))


def in_a_loop(x):
    return jnp.stack([norm(row) for row in x])


@pytest.mark.claim(
    "vmap-does-not-grow-with-the-batch",
    "`vmap` over ten rows and over a hundred gives as many equations; a Python loop gives 10×.",
)
def test_vmap_does_not_grow_with_the_batch():
    few, many = jnp.ones((10, 3)), jnp.ones((100, 3))
    assert equations(jax.vmap(norm), few) == equations(jax.vmap(norm), many)
    assert equations(in_a_loop, many) > 5 * equations(in_a_loop, few)


@pytest.mark.wrong_twin("vmap-does-not-grow-with-the-batch")
def test_wrong_twin_vmap_writes_each_row():
    few, many = jnp.ones((10, 3)), jnp.ones((100, 3))
    assert equations(jax.vmap(norm), many) > equations(jax.vmap(norm), few)


def lines_for(function, pieces):
    return len(jax.jit(function).lower(jnp.ones((pieces, 4))).as_text().splitlines())


def in_pieces(x):
    return [2 * piece for piece in jnp.split(x, len(x))]


@pytest.mark.claim(
    "each-piece-of-a-split-is-an-operation",
    "Splitting an array into pieces gives at least one operation and one result for each piece; a reshape gives one.",
)
def test_each_piece_of_a_split_is_an_operation():
    assert lines_for(in_pieces, 200) - lines_for(in_pieces, 100) >= 100
    assert lines_for(lambda x: 2 * x.reshape(-1, 2), 200) == lines_for(lambda x: 2 * x.reshape(-1, 2), 100)


@pytest.mark.wrong_twin("each-piece-of-a-split-is-an-operation")
def test_wrong_twin_a_split_is_one_operation():
    assert lines_for(in_pieces, 200) == lines_for(in_pieces, 100)


def texts_of_two_programs(captured):
    table = jnp.asarray(np.random.default_rng(0).normal(size=5000), jnp.float32)
    functions = (lambda x, t: (x * t).sum(), lambda x, t: (x + t).sum())
    if captured:
        lowered = [jax.jit(lambda x, f=f: f(x, table)).lower(1.0) for f in functions]
    else:
        lowered = [jax.jit(f).lower(1.0, table) for f in functions]
    return [len(one.as_text()) for one in lowered]


@pytest.mark.claim(
    "each-program-holds-its-own-constants",
    "Two jitted functions that capture one array both have its values written into them; if it is an "
    "argument, they stay out of both.",
)
def test_each_program_holds_its_own_constants():
    assert min(texts_of_two_programs(captured=True)) > 2 * 4 * 5000
    assert max(texts_of_two_programs(captured=False)) < 4 * 5000


@pytest.mark.wrong_twin("each-program-holds-its-own-constants")
def test_wrong_twin_captured_array_is_shared():
    assert min(texts_of_two_programs(captured=True)) < 4 * 5000


@pytest.mark.claim(
    "growing-sequence-fits-a-full-size-buffer",
    "A sequence that grows in a loop fits a buffer of its largest size: a traced position says where to write and what to read.",
)
def test_growing_sequence_fits_a_full_size_buffer():
    @jax.jit
    def continue_sequence(buffer, length, steps):
        def append(_, state):
            buffer, length = state
            real = jnp.arange(buffer.shape[0]) < length
            return buffer.at[length].set(1 + jnp.sum(buffer, where=real)), length + 1

        return jax.lax.fori_loop(0, steps, append, (buffer, length))

    expected = [1.0, 2.0]
    for _ in range(4):
        expected.append(1 + sum(expected))
    buffer, length = continue_sequence(jnp.zeros(8).at[:2].set(jnp.array([1.0, 2.0])), 2, 4)
    assert length == 6
    np.testing.assert_allclose(buffer[:6], expected)


@pytest.mark.wrong_twin("growing-sequence-fits-a-full-size-buffer", raises=TypeError)
def test_wrong_twin_the_carry_may_grow():
    jax.lax.fori_loop(0, 4, lambda _, s: jnp.append(s, 1 + s.sum()), jnp.array([1.0, 2.0]))


@pytest.mark.claim(
    "largest-window-and-mask-serve-ragged-segments",
    "In a `fori_loop`, a window of the largest segment with a traced start, and a mask of the segment's size, "
    "reads segments of different sizes from one packed array.",
)
def test_largest_window_and_mask_serve_ragged_segments():
    sizes = np.array([3, 1, 4, 2])
    starts = np.concatenate([[0], np.cumsum(sizes)[:-1]])
    packed, largest = np.arange(1.0, 11.0, dtype=np.float32), 4

    @jax.jit
    def sums(packed, starts, sizes):
        padded = jnp.pad(packed, (0, largest))

        def add(i, totals):
            window = jax.lax.dynamic_slice(padded, (starts[i],), (largest,))
            return totals.at[i].set(jnp.sum(window, where=jnp.arange(largest) < sizes[i]))

        return jax.lax.fori_loop(0, len(sizes), add, jnp.zeros(len(sizes)))

    expected = [packed[a : a + n].sum() for a, n in zip(starts, sizes, strict=True)]
    np.testing.assert_allclose(sums(packed, starts, sizes), expected)


@pytest.mark.wrong_twin("largest-window-and-mask-serve-ragged-segments", raises=(TypeError, ValueError))
def test_wrong_twin_the_size_of_a_window_may_be_traced():
    jax.jit(lambda x, n: jax.lax.dynamic_slice(x, (0,), (n,)))(jnp.ones(8), 3)


@pytest.mark.claim(
    "mask-within-a-slice",
    "A masked assignment within a fixed slice is `where` on the slice, and then `.at[slice].set`.",
)
def test_mask_within_a_slice():
    @jax.jit
    def zero_small(x):
        head = x[:3]
        return x.at[:3].set(jnp.where(head < 2, 0, head))

    np.testing.assert_array_equal(zero_small(jnp.arange(6.0) + 1), [0, 2, 3, 4, 5, 6])


@pytest.mark.wrong_twin("mask-within-a-slice", raises=IndexError)
def test_wrong_twin_a_mask_may_index_the_slice():
    jax.jit(lambda x: x.at[:3].set(x[:3].at[x[:3] < 2].set(0)))(jnp.arange(6.0))
