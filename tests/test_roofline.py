"""Peaks and roofline: arithmetic on injected times, and the right words where a number is missing."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import Peaks, Ratio, Roofline, peaks, roofline, watch
from jitguide._hardware import peaks as peaks_module
from jitguide._hardware import program_cost
from jitguide._hardware import roofline as roofline_module
from jitguide._hardware.peaks import CopyPeak, MatmulPeak, _matmul_peak, best_seconds, copier, rate
from jitguide._jax import cost_analysis

MIB = 2**20


RATIO = Ratio(2.7, 2.5, 2.9)
CEILINGS = Peaks(
    "test device",
    (CopyPeak(2 * MIB, 100e9, 90e9), CopyPeak(128 * MIB, 40e9, 40e9)),
    (MatmulPeak("float32", 512, 200e9, 100e9), MatmulPeak("bfloat16", 512, 400e9, 400e9)),
)


@pytest.fixture
def fixed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Replace everything that is measured by fixed numbers: 100 µs a call, 2.7 times a copy."""

    def timed(variants: Any, arguments: Any, donates: bool) -> tuple[float, Ratio, tuple[str, ...]]:
        jax.block_until_ready([call(arguments) for call in variants.values()])
        return 1e-4, RATIO, ("From the comparison.",)

    monkeypatch.setattr(roofline_module, "_timed", timed)
    monkeypatch.setattr(roofline_module, "peaks", lambda: CEILINGS)
    monkeypatch.setattr(roofline_module, "seconds_of_nothing", lambda *_: 1e-6)


# --- peaks -------------------------------------------------------------------------------------------------


def test_peaks_are_positive_and_cached() -> None:
    first = peaks()
    assert all(copy.bytes_per_second > 0 for copy in first.copies)
    assert {m.dtype for m in first.matmuls} == {"float32", "bfloat16"}
    assert all(m.flops_per_second > 0 for m in first.matmuls)
    assert peaks(quick=True) is first


def test_quick_must_be_a_bool() -> None:
    with pytest.raises(TypeError) as refused:
        peaks(quick=0.5)  # type: ignore[arg-type]
    assert str(refused.value) == (
        "quick must be True or False, not 0.5. Write peaks(quick=False) for a longer measurement."
    )


def test_the_nearest_working_set_is_chosen_by_ratio() -> None:
    assert CEILINGS.bandwidth(1).working_set == 2 * MIB
    assert CEILINGS.bandwidth(15 * MIB).working_set == 2 * MIB
    assert CEILINGS.bandwidth(17 * MIB).working_set == 128 * MIB
    assert CEILINGS.bandwidth(0).working_set == 2 * MIB


def test_a_type_that_was_not_measured_has_no_peak() -> None:
    assert CEILINGS.flops("float64") is None


def test_the_highest_precision_is_a_ceiling_of_its_own() -> None:
    exact = MatmulPeak("float32", 512, 20e9, 20e9, "highest")
    both = Peaks("gpu", CEILINGS.copies, (exact, *CEILINGS.matmuls))
    assert both.flops("float32") == CEILINGS.flops("float32")
    assert "matmul float32, highest precision" in repr(both)
    assert _matmul_peak("float32", "highest", (8,), 1).name == exact.name


def test_the_best_burst_counts_and_waits_once() -> None:
    # A call takes 2 ms, but another program slows down ten calls of every twenty.
    now = 0.0
    calls = 0

    def step() -> int:
        nonlocal now, calls
        calls += 1
        now += 2e-3 if calls % 20 < 10 else 8e-3
        return 0

    assert best_seconds(step, bursts=8, clock=lambda: now) == pytest.approx(2e-3)


def test_the_copy_writes_into_the_buffer_of_its_previous_result() -> None:
    step = copier(4096)
    first = step()
    place = first.unsafe_buffer_pointer()
    second = step()
    assert first.is_deleted()
    assert second.unsafe_buffer_pointer() == place
    assert second.nbytes == 4096
    assert (np.asarray(second) == 1).all()


def test_an_array_that_would_fill_the_device_is_left_out() -> None:
    class Small:
        def memory_stats(self) -> dict[str, int]:
            return {"bytes_limit": 1024 * MIB}

    class Unknown:
        def memory_stats(self) -> None:
            return None

    assert peaks_module._fits(64 * MIB, Small())
    assert not peaks_module._fits(65 * MIB, Small())
    assert peaks_module._fits(65 * MIB, Unknown())


def test_peaks_read_well_in_text_html_and_data() -> None:
    assert repr(CEILINGS).splitlines() == [
        "Best of short bursts on test device, lowest and highest of 3 passes",
        "peak                  size             rate",
        "copy                 2 MiB      90–100 GB/s",
        "copy               128 MiB          40 GB/s",
        "matmul float32   512 × 512  100–200 GFLOP/s",
        "matmul bfloat16  512 × 512      400 GFLOP/s",
    ]
    assert "<td" in CEILINGS._repr_html_()
    assert json.loads(json.dumps(CEILINGS.to_dict()))["copies"][0]["working_set"] == 2 * MIB


def test_rates_have_decimal_prefixes() -> None:
    assert [rate(x, "B/s") for x in (0.0, 999.0, 1e6, 2.34e9, 1.5e12)] == [
        "0 B/s",
        "1000 B/s",
        "1 MB/s",
        "2.3 GB/s",
        "1.5 TB/s",
    ]


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[bool]:
    """Replace the measurement of peaks; return whether each was quick."""
    found: list[bool] = []

    def measure(_: Any, quick: bool) -> Peaks:
        assert not jax.config.jax_disable_jit
        found.append(quick)
        return dataclasses.replace(CEILINGS, device=f"number {len(found)}")

    monkeypatch.setattr(peaks_module, "_known", {})
    monkeypatch.setattr(peaks_module, "_measure", measure)
    return found


def test_peaks_are_measured_with_jit_and_without_a_guard(measured: list[bool]) -> None:
    with jax.disable_jit(), jax.transfer_guard("disallow"):
        first = peaks()
    assert peaks() is first


def test_peaks_are_kept_by_precision(measured: list[bool]) -> None:
    first = peaks()
    with jax.default_matmul_precision("highest"):
        assert peaks() is not first
    assert peaks() is first


def test_a_thorough_measurement_serves_all_later_calls(measured: list[bool]) -> None:
    quick = peaks()
    thorough = peaks(quick=False)
    assert thorough is not quick
    assert peaks() is peaks(quick=False) is thorough
    assert measured == [True, False]


# --- roofline ----------------------------------------------------------------------------------------------


@pytest.mark.usefixtures("fixed")
def test_the_copy_ratio_comes_first() -> None:
    result = roofline(lambda x: x * 2, jnp.ones(MIB // 4))
    assert repr(result).splitlines()[0] == "takes 2.7× the time of copying the same bytes (2.5–2.9)"


@pytest.mark.usefixtures("fixed")
def test_bytes_in_and_out_are_those_of_arguments_and_results() -> None:
    result = roofline(lambda x, y: {"sum": x.sum(), "all": x + y}, jnp.ones((2, 3)), y=np.ones(3, np.float32))
    assert result.bytes_in == 24 + 12
    assert result.bytes_out == 4 + 24
    assert result.bytes_moved == 64


@pytest.mark.usefixtures("fixed")
def test_fractions_follow_from_bytes_seconds_and_peaks() -> None:
    result = roofline(lambda x: x * 2, jnp.ones(MIB // 4))
    assert result.bandwidth_fraction == pytest.approx(2 * MIB / 1e-4 / 100e9)
    assert result.flops == MIB // 4
    assert result.flops_fraction == pytest.approx(MIB / 4 / 1e-4 / 200e9)
    assert result.bound_by == "memory"
    assert "21 % of 90–100 GB/s (2 MiB copied)" in repr(result)


@pytest.mark.usefixtures("fixed")
def test_a_matrix_product_is_nearer_to_the_ceiling_of_arithmetic() -> None:
    result = roofline(lambda a: a @ a, jnp.ones((128, 128)))
    assert result.flops is not None
    assert result.flops >= 2 * 128**3
    assert result.bound_by == "arithmetic"


@pytest.mark.usefixtures("fixed")
def test_a_jitted_function_with_static_arguments_is_accepted() -> None:
    jitted = jax.jit(lambda x, n: x * n, static_argnums=1)
    assert roofline(jitted, jnp.ones(8), 3).bytes_in == 32


class Model:
    @functools.partial(jax.jit, static_argnums=0)
    def double(self, x: jax.Array) -> jax.Array:
        return x * 2

    watched = watch(double)

    @functools.partial(jax.jit, keep_unused=False)
    def step(self, x: jax.Array) -> jax.Array:
        return self.weight + x  # type: ignore[attr-defined]


class Registered(Model):
    weight = np.ones(4, np.float32)


jax.tree_util.register_pytree_node(Registered, lambda m: ((m.weight,), None), lambda _, c: _with_weight(*c))


def _with_weight(weight: Any) -> Registered:
    made = Registered()
    made.weight = weight
    return made


@pytest.mark.usefixtures("fixed")
def test_a_jitted_method_is_accepted() -> None:
    assert roofline(Model().double, jnp.ones(8)).bytes_in == 32
    assert roofline(Registered().step, jnp.ones(4)).bytes_in == 16 + 16


@pytest.mark.usefixtures("fixed")
def test_a_watched_method_is_measured_without_the_watching() -> None:
    before = Model.watched.calls
    assert roofline(Model().watched, jnp.ones(8)).bytes_in == 32
    assert Model.watched.calls == before


@pytest.mark.usefixtures("fixed")
def test_an_argument_that_the_program_drops_does_not_count() -> None:
    result = roofline(lambda unused, x: x * 2, [None, jnp.ones(MIB)], jnp.ones(8))
    assert result.bytes_in == 32


@pytest.mark.usefixtures("fixed")
def test_more_than_the_peak_gets_a_note() -> None:
    table = jnp.ones(2**22)
    note = roofline(lambda t: t[:4], table).notes[1]  # 16 MiB in 100 µs are 160 GB/s
    assert note.startswith("More than the peak: the function reads only parts of its arguments, as `t[i]`")
    assert not any("More than the peak" in n for n in roofline(jnp.sin, jnp.ones(8)).notes)


@pytest.mark.usefixtures("fixed")
def test_notes_of_the_comparison_come_first() -> None:
    assert roofline(jnp.sin, jnp.ones(8)).notes[0] == "From the comparison."


@pytest.mark.usefixtures("fixed")
def test_the_compiled_program_is_measured_without_jit_too() -> None:
    seen = []
    jitted = jax.jit(lambda x: seen.append(isinstance(x, jax.core.Tracer)) or x * 2)
    with jax.disable_jit():
        roofline(jitted, jnp.ones(8))
    assert seen == [True]


def test_several_devices_are_refused() -> None:
    class Sharding:
        device_set = frozenset({"one", "two"})

    class Compiled:
        input_shardings = ((Sharding(), None), {})
        output_shardings = Sharding()

    with pytest.raises(ValueError, match=r"^`fn` runs on 2 devices, and roofline holds it .* on one device"):
        program_cost.only_device(Compiled())


def test_a_mesh_is_refused_by_peaks() -> None:
    program = (
        "import jax\nfrom jitguide import peaks\n"
        "with jax.set_mesh(jax.make_mesh((2,), ('a',))):\n"
        "    try: peaks()\n"
        "    except RuntimeError as error: print(error)"
    )
    found = subprocess.run(
        [sys.executable, "-c", program],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"XLA_FLAGS": "--xla_force_host_platform_device_count=2", "JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert found.stdout == (
        "`peaks` measures one device, and a mesh of 2 is set. Call it outside `jax.set_mesh`.\n"
    )


@pytest.mark.usefixtures("fixed")
def test_a_loop_is_counted_once_and_the_reader_is_told() -> None:
    def once(x: jax.Array) -> jax.Array:
        return x @ x

    def ten_times(x: jax.Array) -> jax.Array:
        return jax.lax.fori_loop(0, 10, lambda _, y: y @ x, x)

    x = jnp.ones((64, 64))
    one, ten = roofline(once, x), roofline(ten_times, x)
    assert one.flops is not None
    assert ten.flops is not None
    assert ten.flops < 2 * one.flops
    assert any("counts its body once" in note for note in ten.notes)
    assert not any("counts its body once" in note for note in one.notes)


@pytest.mark.parametrize(
    ("fn", "nothing", "words"),
    [
        (jnp.sin, 1e-5, ["call overhead", "under 20 empty calls"]),  # 100 µs are ten calls that do nothing
        (jnp.linalg.cholesky, 1e-6, ["not known", "XLA does not count lapack_spotrf_ffi"]),
        (
            lambda x: jax.lax.fori_loop(0, 9, lambda _, y: y @ x, x),
            1e-6,
            ["not known", "XLA counts the loop once"],
        ),
        (
            lambda x: jax.lax.while_loop(lambda y: y[0, 0] < 9, lambda y: y + x, x),
            1e-6,
            ["not known", "XLA counts"],
        ),
        (lambda x: jnp.int32(x) * 3, 1e-9, ["not known", "no peak for int32"]),
    ],
)
@pytest.mark.usefixtures("fixed")
def test_no_ceiling_is_named_where_the_counts_do_not_tell(fn, nothing, words, monkeypatch) -> None:
    if fn is jnp.linalg.cholesky and jax.default_backend() != "cpu":
        pytest.skip("other backends call other libraries")
    monkeypatch.setattr(roofline_module, "seconds_of_nothing", lambda *_: nothing)
    result = roofline(fn, jnp.eye(8))
    (row,) = [line for line in repr(result).splitlines() if line.startswith("nearer ceiling")]
    assert result.bound_by is None
    assert all(word in row for word in words)


def test_a_call_of_many_arguments_is_held_against_an_empty_one_of_as_many() -> None:
    many = {f"layer_{i}": jnp.ones(3) for i in range(600)}
    result = roofline(lambda tree: jax.tree.map(lambda x: x + 1, tree), many)
    assert result.bound_by is None
    assert result.no_ceiling.startswith("call overhead")


@pytest.mark.usefixtures("fixed")
def test_a_ceiling_far_above_is_not_named() -> None:
    far, near = (roofline(jnp.sin, jnp.ones(n)) for n in (10_000, 1_000_000))
    assert far.bandwidth_fraction < 0.01 < near.bandwidth_fraction
    assert (far.bound_by, far.no_ceiling) == (None, "not known: under 1 % of both peaks")
    assert near.bound_by == "memory"


@pytest.mark.usefixtures("fixed")
def test_notes_do_not_speak_of_counts_that_are_not_available() -> None:
    def looped(x: Any) -> Any:
        return jax.lax.fori_loop(0, 3, lambda _, y: jax.pure_callback(np.sin, y, y), x)

    result = roofline(looped, jnp.ones(8))
    assert result.flops is None
    assert not any("XLA" in note for note in result.notes)


def test_numbers_of_four_bits_are_counted_as_xla_packs_them() -> None:
    assert roofline(lambda x: x.astype(jnp.int4), jnp.ones(1000)).bytes_out == 500


def test_donated_arguments_are_copied_for_every_call() -> None:
    x = jnp.ones(2**16)
    assert roofline(jax.jit(lambda x: x + 1, donate_argnums=0), x).bytes_in == x.nbytes
    assert not x.is_deleted()


@pytest.mark.usefixtures("fixed")
def test_jitted_functions_of_libraries_are_measured() -> None:
    eqx, nnx = pytest.importorskip("equinox"), pytest.importorskip("flax.nnx")
    mlp = eqx.nn.MLP(3, 1, 4, 1, key=jax.random.key(0))
    # Equinox may return a number of its own beside the result.
    assert roofline(eqx.filter_jit(lambda m, x: m(x)), mlp, jnp.ones(3)).bytes_out in (4, 8)
    model = nnx.Linear(3, 3, rngs=nnx.Rngs(0))
    assert roofline(nnx.jit(lambda m, x: m(x)), model, jnp.ones(3)).bytes_out >= 12


def test_a_ref_is_refused_and_the_reader_told_what_works() -> None:
    with pytest.raises(
        TypeError, match=r"and a write into a `Ref` is not among them\. Write it with an array: take"
    ):
        roofline(jax.jit(lambda ref: ref[...].sum()), jax.new_ref(jnp.ones(3)))


def test_a_captured_reference_is_refused_as_one_that_is_passed() -> None:
    total = jax.new_ref(jnp.ones(3))

    @jax.jit
    def add(x: jax.Array) -> jax.Array:
        total[...] += x
        return x.sum()

    with pytest.raises(TypeError, match=r"a write into a `Ref` is not among them"):
        roofline(add, jnp.ones(3))
    assert total[...].tolist() == [1, 1, 1]


@pytest.mark.parametrize("fn", [jnp.sin, lambda x: jax.lax.fori_loop(0, 9, lambda _, y: y @ x, x)])
@pytest.mark.usefixtures("fixed")
def test_the_result_fits_a_terminal(fn: Any) -> None:
    assert max(map(len, repr(roofline(fn, jnp.eye(300))).splitlines())) <= 80


@pytest.mark.usefixtures("fixed")
def test_few_bytes_get_a_note() -> None:
    assert any("copy is mostly the cost of a call" in note for note in roofline(jnp.sin, jnp.ones(8)).notes)
    large = roofline(jnp.sin, jnp.ones(MIB // 4))
    assert not any("copy is mostly the cost of a call" in note for note in large.notes)


@pytest.mark.parametrize(
    "answer", [None, [], [{}], {}, {"flops": -1.0, "bytes accessed": float("nan")}, OSError()]
)
def test_counts_that_xla_does_not_give_are_not_available(answer: object) -> None:
    class Compiled:
        def cost_analysis(self) -> object:
            if isinstance(answer, Exception):
                raise answer
            return answer

    assert set(cost_analysis(Compiled()).values()) == {None}


def test_a_list_of_counts_is_read_too() -> None:
    class Compiled:
        def cost_analysis(self) -> object:
            return [{"flops": 3, "utilization0{}": 1.0}]

    assert cost_analysis(Compiled()) == {"flops": 3, "bytes accessed": None, "transcendentals": 0}


def test_missing_numbers_are_named_as_missing() -> None:
    bare = Roofline(RATIO, 1e-4, 8, 8, None, None, "float64", CEILINGS.copies[0], None, "test device")
    assert bare.passes is None
    assert bare.flops_fraction is None
    assert bare.bound_by is None
    assert repr(bare).count("not available") == 5
    assert json.loads(json.dumps(bare.to_dict()))["flops"] is None


@pytest.mark.usefixtures("fixed")
def test_the_result_reads_well_in_html_and_data() -> None:
    result = roofline(lambda x: x * 2, jnp.ones(8))
    assert "takes 2.7× the time" in result._repr_html_()
    data = json.loads(json.dumps(result.to_dict()))
    assert data["copy_ratio"] == {"value": 2.7, "low": 2.5, "high": 2.9}
    assert data["bytes_moved"] == 64


@pytest.mark.parametrize(
    ("fn", "kind", "message"),
    [
        (
            jnp.ones(3),
            TypeError,
            "roofline(fn, ...) needs a function, and `fn` is Array([1., 1., 1.], dtype=float32) of type "
            "ArrayImpl, which cannot be called. Pass the function itself, not the result of calling it.",
        ),
        (
            jax.jit(jnp.sin).lower(1.0).compile(),
            TypeError,
            "roofline(fn, ...) needs a function, and `fn` is a Compiled object, which stands for one executable "
            "and never traces again. Pass the function that it was made from.",
        ),
    ],
)
def test_what_cannot_be_measured_is_refused(fn: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind) as refused:
        roofline(fn, jnp.ones(3))
    assert str(refused.value) == message


def test_a_call_inside_a_traced_function_is_refused() -> None:
    with pytest.raises(RuntimeError, match=r"`roofline` was called inside.*Call it outside, with arrays\."):
        jax.jit(lambda x: roofline(jnp.sin, x))(1.0)


def test_the_real_comparison_gives_seconds_and_the_ratio_to_the_copy() -> None:
    x = jnp.ones(2**16)
    result = roofline(lambda x: jnp.sort(x * 2), x)
    assert result.seconds > 0
    assert 0 < result.copy_ratio.low <= result.copy_ratio.value <= result.copy_ratio.high
    assert result.to_dict()["device"] == jax.devices()[0].device_kind


def test_a_function_without_arrays_is_refused() -> None:
    with pytest.raises(
        ValueError, match=r"takes no bytes and returns none.*Pass arrays that have elements\."
    ):
        roofline(lambda: None)


class Picky:
    """A node that holds no sharding, as those of libraries that flatten what they are given themselves."""

    def __init__(self, array):
        if isinstance(array, jax.sharding.Sharding):
            raise ValueError("Too many leaves for PyTreeDef; expected 1.")
        self.array = array


jax.tree_util.register_pytree_node(Picky, lambda one: ((one.array,), None), lambda _, parts: Picky(*parts))


def test_arguments_whose_class_takes_arrays_only_are_measured():
    result = roofline(jax.jit(lambda x: x.array + 1), Picky(jnp.ones(1000)))
    assert (result.bytes_in, result.bytes_out) == (4000, 4000)
