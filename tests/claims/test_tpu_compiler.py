"""What the TPU compiler makes of a jitted function.

Nothing here runs on a TPU: libtpu, the package that holds the compiler, also compiles on a machine with CPUs.
"""

import importlib.util

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import x64
from jax import lax

# libtpu neither asks the network which TPUs this machine has, nor locks other processes out.
SETTINGS = {"TPU_SKIP_MDS_QUERY": "1", "TPU_WORKER_HOSTNAMES": "localhost", "ALLOW_MULTIPLE_LIBTPU_LOAD": "1"}


@pytest.fixture(params=["v5e:2x2", "v4:2x2x1", "v6e:2x2"])
def tpus(request, monkeypatch):
    """Describe the TPUs of a slice: the compiler compiles for them, but they can't run anything."""
    if not importlib.util.find_spec("libtpu"):
        pytest.skip("not applicable: libtpu, which holds the TPU compiler, is not installed")
    from jax.experimental import topologies

    for name, value in SETTINGS.items():
        monkeypatch.setenv(name, value)
    return topologies.get_topology_desc(platform="tpu", topology_name=request.param).devices


def on(tpu, *shape, dtype=jnp.float32):
    """Return the type of an array on this TPU; there are no numbers in it."""
    return jax.ShapeDtypeStruct(shape, dtype, sharding=jax.sharding.SingleDeviceSharding(tpu))


def compiled(f, *arrays):
    return jax.jit(f).lower(*arrays).compile()


@pytest.mark.claim(
    "tpu-compiles-without-a-tpu",
    "With libtpu installed, a machine without a TPU compiles a function for a slice of TPUs: `memory_analysis` "
    "reports the bytes for each TPU, and a function that doesn't fit in the memory of a TPU raises `RESOURCE_EXHAUSTED`.",
)
def test_tpu_compiles_without_a_tpu(tpus):
    if jax.default_backend() == "tpu":
        pytest.skip("not applicable: this machine has a TPU")
    mesh = jax.sharding.Mesh(np.array(tpus).reshape(2, -1), ("data", "model"))

    def sharded(shape, *axes):
        sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec(*axes))
        return jax.ShapeDtypeStruct(shape, jnp.float32, sharding=sharding)

    weights, batch = sharded((1024, 1024), None, "model"), sharded((4096, 1024), "data")
    step = compiled(lambda w, x: jnp.tanh(x @ w).sum(), weights, batch)
    bytes_there = 4 * (1024 * 1024 // mesh.shape["model"] + 4096 * 1024 // mesh.shape["data"])
    assert step.memory_analysis().argument_size_in_bytes == bytes_there
    assert "all-reduce" in step.as_text()  # the TPUs of the slice add up their sums
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        compiled(lambda x: x + 1, on(tpus[0], 2**20, 2**14))  # 64 GiB


@pytest.mark.wrong_twin("tpu-compiles-without-a-tpu", raises=pytest.fail.Exception)
def test_wrong_twin_what_fits_is_refused_too(tpus):
    with pytest.raises(jax.errors.JaxRuntimeError, match="RESOURCE_EXHAUSTED"):
        compiled(lambda x: x + 1, on(tpus[0], 2**10, 2**10))


@pytest.mark.claim(
    "tpu-vector-product-skips-the-matrix-unit",
    "The TPU compiler turns the product of two `float32` matrices into a `convolution`, the operation of the matrix "
    "unit. A product with one vector, or with a matrix of one row, becomes a multiplication and a sum in `float32` instead.",
)
def test_tpu_vector_product_skips_the_matrix_unit(tpus):
    def text(*shapes):
        return compiled(jnp.matmul, *(on(tpus[0], *shape) for shape in shapes)).as_text()

    for two_rows in (text((256, 256), (256, 256)), text((2, 256), (256, 256))):
        assert "convolution(" in two_rows
    for one_row in (text((256, 256), (256,)), text((1, 256), (256, 256))):
        assert "convolution(" not in one_row
        assert " dot(" not in one_row
        assert " multiply(" in one_row
        assert " reduce(" in one_row
        assert "bf16" not in one_row


@pytest.mark.wrong_twin("tpu-vector-product-skips-the-matrix-unit")
def test_wrong_twin_a_matrix_of_two_rows_skips_it_too(tpus):
    assert "convolution(" not in compiled(jnp.matmul, on(tpus[0], 2, 256), on(tpus[0], 256, 256)).as_text()


@pytest.mark.claim(
    "tpu-has-no-eig",
    "Lowering `jnp.linalg.eig` for a TPU raises `NotImplementedError`, whereas `jnp.linalg.eigh` compiles.",
)
def test_tpu_has_no_eig(tpus):
    square = on(tpus[0], 16, 16)
    with pytest.raises(NotImplementedError):
        jax.jit(jnp.linalg.eig).lower(square)
    compiled(jnp.linalg.eigh, square)


@pytest.mark.claim(
    "tpu-refuses-float64-fft",
    "With 64-bit types on, the TPU compiler refuses `jnp.fft.fft` of a `float64` array; after "
    "`x.astype(jnp.float32)` it compiles, and so does the product of two `float64` matrices.",
)
def test_tpu_refuses_float64_fft(tpus):
    with x64():
        signal, matrix = (on(tpus[0], *shape, dtype=jnp.float64) for shape in ((256,), (256, 256)))
        with pytest.raises(jax.errors.JaxRuntimeError):
            compiled(jnp.fft.fft, signal)
        compiled(lambda x: jnp.fft.fft(x.astype(jnp.float32)), signal)
        compiled(jnp.matmul, matrix, matrix)


@pytest.mark.claim(
    "tpu-refuses-float64-solve",
    "With 64-bit types on, the TPU compiler refuses `solve`, `inv` and `det` of `jnp.linalg` for `float64` arrays; "
    "for `float32` arrays it compiles them.",
)
def test_tpu_refuses_float64_solve(tpus):
    with x64():
        narrow, wide = (on(tpus[0], 16, 16, dtype=dtype) for dtype in (jnp.float32, jnp.float64))
        compiled(jnp.linalg.solve, narrow, narrow)
        compiled(lambda a: (jnp.linalg.inv(a), jnp.linalg.det(a)), narrow)
        with pytest.raises(jax.errors.JaxRuntimeError):
            compiled(jnp.linalg.solve, wide, wide)
        for function in (jnp.linalg.inv, jnp.linalg.det):
            with pytest.raises(jax.errors.JaxRuntimeError):
                compiled(function, wide)


@pytest.mark.claim(
    "tpu-loops-over-batched-slice-updates",
    "The TPU compiler turns `vmap` of `lax.dynamic_update_slice`, with a start for each row, into a `while` loop. "
    "`jnp.where` with a mask writes the same numbers without a loop.",
)
def test_tpu_loops_over_batched_slice_updates(tpus):
    def masked(rows, values, starts):
        return jnp.where(jnp.arange(rows.shape[1]) == starts, values, rows)

    sliced = jax.vmap(lax.dynamic_update_slice)
    arrays = on(tpus[0], 100, 32), on(tpus[0], 100, 1), on(tpus[0], 100, 1, dtype=jnp.int32)
    assert " while(" in compiled(sliced, *arrays).as_text()
    assert " while(" not in compiled(masked, *arrays).as_text()
    here = jnp.zeros((3, 32)), jnp.array([[1.0], [2.0], [3.0]]), jnp.array([[31], [0], [7]])
    np.testing.assert_array_equal(sliced(*here), masked(*here))


@pytest.mark.wrong_twin("tpu-loops-over-batched-slice-updates")
def test_wrong_twin_one_start_for_all_rows_loops_too(tpus):
    rows, column, start = on(tpus[0], 100, 32), on(tpus[0], 100, 1), on(tpus[0], dtype=jnp.int32)
    one_start = compiled(lambda x, v, i: lax.dynamic_update_slice(x, v, (0, i)), rows, column, start)
    assert " while(" in one_start.as_text()


@pytest.mark.claim(
    "tpu-small-last-axis-costs-no-memory",
    "Compiled for a TPU, an array argument of shape `(1_000_000, 3)` takes as many bytes as one of shape "
    "`(3, 1_000_000)`, and less than 1.4 times its numbers: the TPU compiler chooses the layout.",
)
def test_tpu_small_last_axis_costs_no_memory(tpus):
    def size(*shape):
        return compiled(lambda x: x + 1, on(tpus[0], *shape)).memory_analysis().argument_size_in_bytes

    assert size(1_000_000, 3) == size(3, 1_000_000) < 1.4 * 4 * 3_000_000
    assert size(1000, 1000, 2) == size(2, 1000, 1000) < 1.4 * 4 * 2_000_000


OPTION = "xla_tpu_scoped_vmem_limit_kib"
KERNEL = """
import os, sys
import jax, jax.numpy as jnp
from jax.experimental import pallas, topologies

def double(x_ref, out_ref):
    out_ref[...] = 2 * x_ref[...]

slice_of_tpus = topologies.get_topology_desc(platform="tpu", topology_name="v5e:2x2")
place = jax.sharding.SingleDeviceSharding(slice_of_tpus.devices[0])
x = jax.ShapeDtypeStruct((3072, 1024), jnp.float32, sharding=place)  # with the result 24 MiB, more than the limit
f = pallas.pallas_call(double, out_shape=jax.ShapeDtypeStruct(x.shape, x.dtype))
lowered = jax.jit(f).lower(x)

def outcome(**options):
    try:
        lowered.compile(**options)
    except jax.errors.JaxRuntimeError as error:
        return str(error).split(":")[0]
    return "compiled"

option = sys.argv[1]
at_start = outcome()
os.environ["LIBTPU_INIT_ARGS"] = f"--{option}=65536"
print(at_start, outcome(), outcome(compiler_options={option: "65536"}))
"""


@pytest.mark.claim(
    "tpu-compiler-options-work-late",
    "For a TPU v5e, `compiler_options` set a flag of the TPU compiler for one function when it compiles. "
    "`LIBTPU_INIT_ARGS` sets it for the process: a value that you set after the first compile for a TPU is ignored.",
)
@pytest.mark.parametrize("tpus", ["v5e:2x2"], indirect=True)
def test_tpu_compiler_options_work_late(tpus, child):
    assert tpus  # libtpu is here; each process below compiles for a slice of its own
    without = child(KERNEL, OPTION, LIBTPU_INIT_ARGS="", **SETTINGS).split()
    assert without == ["RESOURCE_EXHAUSTED", "RESOURCE_EXHAUSTED", "compiled"]
    before = child(KERNEL, OPTION, LIBTPU_INIT_ARGS=f"--{OPTION}=65536", **SETTINGS).split()
    assert before == ["compiled", "compiled", "compiled"]
