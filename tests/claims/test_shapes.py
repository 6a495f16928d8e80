"""Static shapes: masks, padding, buckets, size=."""

import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

NonConcreteBoolean = jax.errors.NonConcreteBooleanIndexError
Concretization = jax.errors.ConcretizationTypeError


@pytest.mark.claim(
    "shapes-follow-from-shapes",
    "In traced code the shape of a result follows from the shapes of the inputs, without values and "
    "without running the code.",
    seeds="S002-58",
)
def test_shapes_follow_from_shapes():
    spec = jax.ShapeDtypeStruct((1000, 3), jnp.float32)
    result = jax.eval_shape(lambda x: jnp.concatenate([x, x[::2]]).T.sum(1, keepdims=True), spec)
    assert result.shape == (3, 1)


@pytest.mark.claim(
    "shape-from-a-traced-value-fails",
    "A shape cannot come from the value of a traced argument, although the same call works without jit.",
    seeds="S002-09 S002-59",
)
def test_shape_from_a_traced_value_fails():
    def full(value, length):
        return jnp.full((length,), value)

    assert full(1.0, 5).shape == (5,)
    assert full(2, 2).shape == (2,)
    with pytest.raises(TypeError, match="Shapes must be 1D sequences of concrete values"):
        jax.jit(full)(1.0, 5)


@pytest.mark.claim(
    "static-length-is-baked-in",
    "With the length static the shape is fixed in the compiled function: each length compiles one of its own.",
    seeds="S002-58 S002-60 S002-61 S002-62",
)
def test_static_length_is_baked_in():
    runs = []

    @functools.partial(jax.jit, static_argnums=1)
    def full(value, length):
        runs.append(length)
        return jnp.full((length,), value)

    assert full(2.0, 5).shape == (5,)
    assert full(1.0, 10).shape == (10,)
    assert full(3.0, 5).shape == (5,)
    assert runs == [5, 10]
    assert "f32[10]" in str(jax.make_jaxpr(full, static_argnums=1)(1.0, 10))


@pytest.mark.wrong_twin("static-length-is-baked-in")
def test_wrong_twin_one_program_serves_all_static_lengths():
    runs = []
    full = jax.jit(lambda value, n: runs.append(n) or jnp.full((n,), value), static_argnums=1)
    full(2.0, 5), full(2.0, 10)
    assert len(runs) == 1


@pytest.mark.claim(
    "lengths-of-arange-must-be-static",
    "Lengths given to `arange`, `linspace`, `reshape` and `repeat` are shapes and must be known while "
    "tracing.",
    seeds="S002-59",
)
@pytest.mark.parametrize(
    "make",
    [
        jnp.arange,
        lambda n: jnp.linspace(0, 1, n),
        lambda n: jnp.ones(6).reshape(n, -1),
        lambda n: jnp.repeat(jnp.ones(6), n),
    ],
    ids=["arange", "linspace", "reshape", "repeat"],
)
def test_lengths_of_arange_must_be_static(make):
    make(3)
    with pytest.raises(TypeError):
        jax.jit(make)(3)


@pytest.mark.claim(
    "shapes-are-python-numbers",
    "Inside jit the entries of `x.shape`, `x.ndim` and `len(x)` are plain Python integers.",
    seeds="S004-19",
)
def test_shapes_are_python_numbers():
    seen = []
    jax.jit(lambda x: seen.extend([*x.shape, x.ndim, len(x)]) or x)(jnp.ones((2, 3)))
    assert seen == [2, 3, 2, 2]
    assert {type(n) for n in seen} == {int}


@pytest.mark.claim(
    "branching-on-shape-is-free",
    "Python may branch on shape and rank inside jit: the choice is made while tracing, and the branch that "
    "is not taken is not in the jaxpr.",
    seeds="S004-09 S004-10 S004-19",
)
def test_branching_on_shape_is_free():
    def log_of_matrices(x):
        return jnp.log(x) if x.ndim == 2 else x

    assert "log" not in str(jax.make_jaxpr(log_of_matrices)(jnp.ones(3)))
    assert "log" in str(jax.make_jaxpr(log_of_matrices)(jnp.ones((3, 3))))
    assert not getattr(jax.make_jaxpr(log_of_matrices)(jnp.ones(3)), "eqns", None)


@pytest.mark.claim(
    "traced-slice-bound-fails",
    "A slice cannot be bounded by a traced value, even where its length would be the same for each value.",
)
def test_traced_slice_bound_fails():
    for cut in (lambda x, n: x[:n], lambda x, n: x[n : n + 2]):
        assert cut(jnp.arange(5), 2).shape == (2,)
        with pytest.raises(IndexError, match="static"):
            jax.jit(cut)(jnp.arange(5), 2)


@pytest.mark.claim(
    "dynamic-slice-moves-a-fixed-window",
    "`lax.dynamic_slice` takes a traced start and a static size, so one compiled function cuts the window "
    "anywhere.",
)
def test_dynamic_slice_moves_a_fixed_window():
    runs = []
    cut = jax.jit(lambda x, start: runs.append(1) or jax.lax.dynamic_slice(x, (start,), (2,)))
    x = jnp.arange(5)
    assert [cut(x, i).tolist() for i in (0, 2, 3)] == [[0, 1], [2, 3], [3, 4]]
    assert len(runs) == 1


@pytest.mark.claim(
    "boolean-mask-indexing-fails",
    "Picking entries with a traced boolean mask fails under jit: the result's length is the number of "
    "`True` entries.",
    seeds="S002-64",
)
def test_boolean_mask_indexing_fails():
    def pick(x):
        return x[x > 1]

    assert pick(jnp.arange(4)).tolist() == [2, 3]
    with pytest.raises(NonConcreteBoolean, match="Array boolean indices must be concrete"):
        jax.jit(pick)(jnp.arange(4))


@pytest.mark.claim(
    "mask-assignment-fails-even-for-a-scalar",
    "`x.at[mask].set(number)` fails under jit with a traced mask, although the shapes of its result and of the "
    "number are known.",
    seeds="S002-63 S002-64",
)
def test_mask_assignment_fails_even_for_a_scalar():
    def replace(x, mask):
        return x.at[mask].set(-100)

    x, mask = jnp.ones((4, 4)), jnp.eye(4, dtype=bool)
    assert replace(x, mask)[0, 0] == -100
    with pytest.raises(NonConcreteBoolean):
        jax.jit(replace)(x, mask)


@pytest.mark.claim(
    "mask-known-while-tracing-works",
    "A boolean mask that is a NumPy constant of the program may index under jit: its `True` entries are "
    "counted while tracing.",
    seeds="S002-58 S002-64",
)
def test_mask_known_while_tracing_works():
    mask = np.array([True, False, True, False])
    f = jax.jit(lambda x: (x[mask], x.at[mask].set(-1)))
    picked, replaced = f(jnp.arange(4))
    assert picked.tolist() == [0, 2]
    assert replaced.tolist() == [-1, 1, -1, 3]


@pytest.mark.claim(
    "arrays-cannot-be-static",
    "An array, of JAX or of NumPy, cannot be a static argument: it has no hash.",
    seeds="S002-65",
)
@pytest.mark.hostile("scalar", "empty", "bool", "int8", "numpy", "split")
def test_arrays_cannot_be_static(case):
    for array in (case.array, np.asarray(case.array)):
        with pytest.raises(ValueError, match="Non-hashable static arguments"):
            jax.jit(lambda x, array: x * array, static_argnums=1)(jnp.ones(2), array)


@pytest.mark.claim(
    "where-replaces-mask-assignment",
    "`jnp.where` with three arguments does the work of a masked assignment of the same dtype, with static "
    "shapes, eagerly and under jit.",
    seeds="S002-66 S002-10",
)
def test_where_replaces_mask_assignment():
    x, mask = jnp.arange(16.0).reshape(4, 4), jnp.eye(4, dtype=bool)
    eager = x.at[mask].set(-100)
    assert (jax.jit(lambda x, mask: jnp.where(mask, -100, x))(x, mask) == eager).all()


@pytest.mark.claim(
    "mask-arithmetic-works-for-finite-values",
    "Multiplying by the inverted mask and subtracting the masked constant equals a masked assignment for "
    "finite floats, with static shapes.",
    seeds="S002-66",
)
def test_mask_arithmetic_works_for_finite_values():
    x, mask = jnp.arange(16.0).reshape(4, 4), jnp.eye(4, dtype=bool)
    masked = jax.jit(lambda x, mask: ~mask * x - mask * 100)(x, mask)
    assert (masked == x.at[mask].set(-100)).all()


@pytest.mark.claim(
    "mask-arithmetic-spreads-nan",
    "Masking by multiplication with a mask of floats does not remove `inf` or `nan`: the hidden entry "
    "becomes `nan`, where `jnp.where` gives the constant.",
    seeds="S002-66",
)
def test_mask_arithmetic_spreads_nan():
    x, mask = jnp.array([jnp.inf, 1.0]), jnp.array([1.0, 0.0])
    assert jnp.isnan(jax.jit(lambda x, m: (1 - m) * x - m * 100)(x, mask)[0])
    assert jax.jit(lambda x, m: jnp.where(m, -100, x))(x, mask).tolist() == [-100, 1]


@pytest.mark.wrong_twin("mask-arithmetic-spreads-nan")
def test_wrong_twin_multiplying_by_zero_hides_anything():
    x, mask = jnp.array([jnp.inf, 1.0]), jnp.array([1.0, 0.0])
    assert ((1 - mask) * x - mask * 100).tolist() == [-100, 1]


@pytest.mark.claim(
    "one-argument-where-needs-size",
    "`nonzero` and `where` with one argument fail under jit unless `size=` fixes the length.",
)
def test_one_argument_where_needs_size():
    x = jnp.array([0, 1, 0, 1])
    for find in (jnp.nonzero, jnp.where):
        with pytest.raises(Concretization):
            jax.jit(find)(x)
        assert jax.jit(functools.partial(find, size=2))(x)[0].tolist() == [1, 3]


@pytest.mark.claim(
    "size-pads-and-truncates-silently",
    "With `size=`, too few results are padded with `fill_value` and surplus results are dropped, both "
    "without an error.",
)
def test_size_pads_and_truncates_silently():
    x = jnp.array([0, 1, 1, 1])
    find = functools.partial(jnp.nonzero, fill_value=-1)
    assert find(x, size=5)[0].tolist() == [1, 2, 3, -1, -1]
    assert find(x, size=2)[0].tolist() == [1, 2]


@pytest.mark.claim(
    "size-pads-with-zero-by-default",
    "`nonzero(size=)` pads with index 0 unless you pass another `fill_value`, which looks like a found entry.",
)
def test_size_pads_with_zero_by_default():
    assert jnp.nonzero(jnp.array([0, 1, 0]), size=3)[0].tolist() == [1, 0, 0]


@pytest.mark.claim(
    "unique-needs-size", "`jnp.unique` fails under jit unless `size=` fixes the length of its result."
)
def test_unique_needs_size():
    x = jnp.array([3, 1, 3])
    with pytest.raises(Concretization):
        jax.jit(jnp.unique)(x)
    unique = jax.jit(lambda x: jnp.unique(x, size=3, fill_value=-1))
    assert unique(x).tolist() == [1, 3, -1]


@pytest.mark.claim(
    "repeat-needs-total-length",
    "`jnp.repeat` with a traced count works under jit once `total_repeat_length` fixes the length.",
)
def test_repeat_needs_total_length():
    repeat = jax.jit(lambda x, counts: jnp.repeat(x, counts, total_repeat_length=5))
    assert repeat(jnp.arange(2), jnp.array([2, 3])).tolist() == [0, 0, 1, 1, 1]


@pytest.mark.claim(
    "reductions-take-a-mask",
    "Reductions take a `where=` mask, so entries can be left out of a sum, a maximum or a mean with static "
    "shapes.",
    seeds="S002-10",
)
def test_reductions_take_a_mask():
    x, mask = jnp.array([1.0, 5.0, 99.0]), jnp.array([True, True, False])
    f = jax.jit(lambda x, m: (x.sum(where=m), x.mean(where=m), x.max(where=m, initial=-jnp.inf)))
    assert [float(v) for v in f(x, mask)] == [6, 3, 5]


def padded(x, length):
    return np.pad(x, (0, length - len(x))), len(x)


@pytest.mark.claim(
    "padding-shares-one-program",
    "Sequences padded to one length, with the true length as a traced argument, share a compiled function and "
    "give the unpadded result.",
    seeds="S002-10 S002-57 S002-68",
)
def test_padding_shares_one_program():
    runs = []

    @jax.jit
    def mean(x, length):
        runs.append(1)
        return jnp.where(jnp.arange(x.size) < length, x, 0).sum() / length

    for n in (3, 5, 8):
        x = np.arange(n, dtype=np.float32)
        assert mean(*padded(x, 8)) == x.mean()
    assert len(runs) == 1


@pytest.mark.claim(
    "padding-without-a-mask-is-wrong",
    "Padding alone changes results that depend on the padded entries, such as a mean or a softmax: the "
    "padding must be masked.",
    seeds="S002-10 S002-57",
)
def test_padding_without_a_mask_is_wrong():
    x = np.array([1.0, 2.0], np.float32)
    long, n = padded(x, 4)
    assert jnp.mean(long) != jnp.mean(x)
    masked = jnp.where(jnp.arange(4) < n, long, -jnp.inf)
    assert not np.allclose(jax.nn.softmax(long)[:n], jax.nn.softmax(x))
    assert np.allclose(jax.nn.softmax(masked)[:n], jax.nn.softmax(x))


@pytest.mark.claim(
    "buckets-bound-the-number-of-programs",
    "Padding to the next power of two leaves at most one compile for each doubling of the length.",
    seeds="S002-68",
)
def test_buckets_bound_the_number_of_programs():
    runs = []
    total = jax.jit(lambda x: runs.append(x.shape) or x.sum())
    for n in range(1, 33):
        x = np.ones(n, np.float32)
        assert total(padded(x, 1 << (n - 1).bit_length())[0]) == n
    assert runs == [(1,), (2,), (4,), (8,), (16,), (32,)]


@pytest.mark.claim(
    "ragged-last-batch-compiles-again",
    "A last batch that is smaller than the others compiles a second program; left out, it does not.",
    seeds="S002-68",
)
def test_ragged_last_batch_compiles_again():
    runs, data = [], np.ones((10, 3), np.float32)
    step = jax.jit(lambda batch: runs.append(batch.shape) or batch.sum())
    for start in range(0, 10, 4):
        step(data[start : start + 4])
    assert runs == [(4, 3), (2, 3)]
    runs.clear()
    for start in range(0, 10 - 10 % 4, 4):
        step(data[start : start + 4])
    assert not runs
