"""Updates of arrays that cannot be written to."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest


def temporary_bytes(compiled):
    stats = compiled.memory_analysis()
    if stats is None:
        pytest.skip("not applicable: this backend reports no memory use")
    return stats.temp_size_in_bytes, stats.alias_size_in_bytes


@pytest.mark.claim(
    "item-assignment-is-refused",
    "Assigning to an element of a JAX array raises `TypeError`, and the message recommends "
    "`x.at[idx].set(y)`.",
    seeds="S002-34",
)
def test_item_assignment_is_refused():
    x = jnp.arange(3)
    with pytest.raises(TypeError, match=r"immutable[\s\S]*\.at\[idx\]\.set"):
        x[0] = 1
    with pytest.raises(TypeError, match="item assignment"):
        jax.jit(lambda x: x.__setitem__(0, 1))(x)


@pytest.mark.wrong_twin("item-assignment-is-refused", raises=TypeError)
def test_wrong_twin_item_assignment_works():
    x = jnp.arange(3)
    x[0] = 1
    assert x[0] == 1


@pytest.mark.claim(
    "augmented-item-assignment-is-refused",
    "`x[0] += 1`, `x[0] *= 2` and the other operators that assign fail like `x[0] = 1`.",
    seeds="S002-35",
)
@pytest.mark.parametrize("statement", ["x[0] += 1", "x[0] -= 1", "x[0] *= 2", "x[0] /= 2", "x[:2] **= 2"])
def test_augmented_item_assignment_is_refused(statement):
    with pytest.raises(TypeError, match="immutable"):
        exec(statement, {"x": jnp.ones(3)})


@pytest.mark.claim(
    "whole-array-augmented-assignment-rebinds",
    "`x += 5` on the whole array works: it makes a new array and binds the name to it; other names keep the "
    "old one.",
    seeds="S002-37",
)
def test_whole_array_augmented_assignment_rebinds():
    x = old = jnp.zeros(3)
    x += 5
    assert x is not old
    assert x.tolist() == [5, 5, 5]
    assert old.tolist() == [0, 0, 0]


@pytest.mark.claim(
    "at-returns-a-changed-copy",
    "`x.at[0].add(999)` returns a changed copy; `x` stays as it was.",
    seeds="S002-36",
)
def test_at_returns_a_changed_copy():
    x = jnp.arange(3)
    assert x.at[0].add(999).tolist() == [999, 1, 2]
    assert x.tolist() == [0, 1, 2]


@pytest.mark.claim(
    "at-has-a-form-for-every-update",
    "The `.at` property has a method for each kind of update: `set`, `add`, `multiply`, `divide`, `power`, "
    "`min` and `max`.",
    seeds="S002-14",
)
@pytest.mark.parametrize(
    ("form", "expected"),
    [("set", 3), ("add", 7), ("multiply", 12), ("divide", 4 / 3), ("power", 64), ("min", 3), ("max", 4)],
)
def test_at_has_a_form_for_every_update(form, expected):
    x = jnp.array([0.0, 4.0, 5.0])
    changed = jax.jit(lambda x, y: getattr(x.at[1], form)(y))(x, 3.0)
    assert np.allclose(changed, [0, expected, 5])


@pytest.mark.claim(
    "at-apply-takes-a-function",
    "`x.at[idx].apply(f)` applies a function to the chosen elements; .get() reads them.",
    seeds="S002-14",
)
def test_at_apply_takes_a_function():
    x = jnp.array([1.0, 4.0, 9.0])
    assert x.at[1:].apply(jnp.sqrt).tolist() == [1, 2, 3]
    assert x.at[1:].get().tolist() == [4, 9]


@pytest.mark.claim(
    "at-add-counts-repeated-indices",
    "`x.at[idx].add(y)` adds once for every repeated index, where NumPy's `x[idx] += y` adds once in all.",
    seeds="S002-14",
)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8", "complex64"])
def test_at_add_counts_repeated_indices(dtype):
    index = np.array([0, 0, 0, 2])
    assert jnp.zeros(3, dtype).at[index].add(1).tolist() == [3, 0, 1]
    assert jax.jit(lambda x, i: x.at[i].add(1))(jnp.zeros(3, dtype), index).tolist() == [3, 0, 1]
    x = np.zeros(3)
    x[index] += 1
    assert x.tolist() == [1, 0, 1]


@pytest.mark.claim(
    "update-without-donation-copies",
    "Under jit, `x.at[i].set(y)` on an argument copies the array once, because the caller may still use it; "
    "donating the argument removes the copy.",
    seeds="S002-54",
)
def test_update_without_donation_copies():
    def update(x):
        return x.at[3].set(1.0)

    x = jnp.zeros(1000)
    kept, donated = (jax.jit(update, donate_argnums=d).lower(x).compile() for d in ((), 0))
    assert temporary_bytes(kept)[1] == 0
    assert temporary_bytes(donated)[1] == x.nbytes


@pytest.mark.claim(
    "updates-inside-one-program-run-in-place",
    "A loop of 100 updates of an intermediate `float32` array inside one jitted function needs less extra memory "
    "than one copy of it.",
    seeds="S002-54",
)
def test_updates_inside_one_program_run_in_place():
    x = jnp.zeros(10_000)
    loop = jax.jit(lambda x: jax.lax.fori_loop(0, 100, lambda i, x: x.at[i].set(i * 2.0), x))
    assert temporary_bytes(loop.lower(x).compile())[0] < x.nbytes


@pytest.mark.platform("cpu")
@pytest.mark.claim(
    "swap-in-two-updates-copies-the-array",
    "A loop that reads two elements, writes one and then the other needs a copy of the whole array; one that writes "
    "both in one update does not.",
)
def test_swap_in_two_updates_copies_the_array():
    def in_two(i, x):
        first, second = x[i], x[i + 1]
        return x.at[i].set(second).at[i + 1].set(first)

    def in_one(i, x):
        pair = jnp.array([i, i + 1])
        return x.at[pair].set(x[pair[::-1]])

    x = jnp.zeros(10_000)
    needed = [
        temporary_bytes(jax.jit(lambda x, f=f: jax.lax.fori_loop(0, 100, f, x)).lower(x).compile())[0]
        for f in (in_two, in_one)
    ]
    assert needed[0] >= x.nbytes > needed[1]


@pytest.mark.claim(
    "numpy-argument-cannot-be-written-inside",
    "A NumPy array passed to a jitted function cannot be written to inside, and is not changed: inside it "
    "is a tracer.",
    seeds="S002-34",
)
def test_numpy_argument_cannot_be_written_inside():
    def write(x):
        x[0] = 1
        return x

    x = np.zeros(3)
    with pytest.raises(TypeError, match="item assignment"):
        jax.jit(write)(x)
    assert x[0] == 0
