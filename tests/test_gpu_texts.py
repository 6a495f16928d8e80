"""What the package reads from a GPU's programs, on texts that JAX 0.11.2 gave on an NVIDIA H200."""

from pathlib import Path

import pytest

from jitguide._hardware.program_cost import why_no_ceiling
from jitguide._jax import cost_analysis, has_loop, library_calls
from jitguide._stages.hlo import Module, ordered

TEXTS = {
    path.stem: path.read_text("utf-8") for path in (Path(__file__).parent / "recorded").glob("h200_*.hlo")
}
SOFTMAX, SCAN, CHOLESKY = (TEXTS[f"h200_{name}"] for name in ("softmax", "products_in_a_scan", "cholesky"))
CUBLAS = "__cublas$lt$matmul"


@pytest.mark.parametrize(
    ("text", "calls"),
    [(SOFTMAX, []), (SCAN, [CUBLAS]), (CHOLESKY, [CUBLAS, "cusolver_potrf_ffi"])],
)
def test_what_a_library_computes_is_named(text: str, calls: list[str]) -> None:
    assert library_calls(text) == calls


def test_counts_that_leave_a_library_out_are_not_given() -> None:
    class Compiled:
        def cost_analysis(self) -> dict[str, float]:
            return {"flops": 1.0, "bytes accessed": 67108928.0}  # of five products of 2048 rows

    assert set(cost_analysis(Compiled(), SCAN).values()) == {None}
    assert cost_analysis(Compiled(), SOFTMAX)["flops"] == 1


def test_no_ceiling_is_named_for_products_of_cublas() -> None:
    assert why_no_ceiling(SCAN, 1.0, 1e-6) == f"not known: XLA does not count {CUBLAS}"
    assert why_no_ceiling(SOFTMAX, 1.0, 1e-6) == ""
    assert (has_loop(SCAN), has_loop(SOFTMAX)) == (True, False)


@pytest.mark.parametrize("text", TEXTS.values(), ids=TEXTS)
def test_every_instruction_is_read(text: str) -> None:
    module = Module(text)
    names = [one.name for one in module.instructions()]
    assert len(names) == sum(" = " in line for line in text.splitlines() if line.startswith("  "))
    assert len({name for name, *_ in ordered(module)}) > 1


def test_a_triton_kernel_is_one_fusion_with_its_operations_inside() -> None:
    module = Module(SOFTMAX)
    (fusion,) = [one for one in module.instructions() if one.opcode == "fusion"]
    assert {"exponential", "divide", "reduce"} <= {one.opcode for one in module.inside(fusion)}


def test_settings_of_a_backend_in_quotes_are_left_out() -> None:
    """XLA quotes those of a foreign function that are not JSON."""
    call = 'f32[3]{0} custom-call(%x), custom_call_target="c", backend_config="a, \\"b\\" ) {", api_version=2'
    (instruction,) = Module(f"ENTRY %main (x: f32[3]) -> f32[3] {{\n  ROOT %y = {call}\n}}").instructions()
    assert instruction.attributes == ', custom_call_target="c", api_version=2'
    assert instruction.inside == "x"
