"""What `stages` says about a function: texts, links and what became of each equation."""

from __future__ import annotations

import functools
import json
import linecache
import os
import re
import subprocess
import sys
import textwrap
from collections import Counter
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import stages
from jitguide._jax import cost_analysis, jit_options, memory_analysis
from jitguide._jaxprs import rewritten
from jitguide._stages.tags import Nodes, replay, sites_of, tagged, works

X = np.arange(1.0, 9.0, dtype=np.float32)
TABLE = np.arange(2048, dtype=np.float32).reshape(2, 1024)


def selu(x):
    return 1.05 * jnp.where(x > 0, x, 1.67 * jnp.exp(x) - 1.67)


@jax.jit
def inner(x):
    return jnp.sin(x) * 2.0


def nested(x):
    first = inner(x)
    return inner(first + 1.0)


def dead(x):
    unused = jnp.sin(x)  # noqa: F841

    def body(carry, step):
        gone = jnp.cos(carry)  # noqa: F841
        return carry + step, None

    total, _ = jax.lax.scan(body, 0.0, x)
    return jax.lax.cond(total > 0, lambda v: (v + 1, jnp.tan(v))[0], lambda v: v - 1, x)


def twice(x):
    a = jnp.sin(x)
    b = jnp.sin(x)
    return a + b


def loss(params, x, y):
    hidden = jnp.tanh(x @ params["w"] + params["b"])
    return jnp.mean((hidden - y) ** 2)


@jax.custom_jvp
def scaled(x):
    return jnp.sin(x) * 2


@scaled.defjvp
def _scaled_jvp(primals, tangents):
    return scaled(primals[0]), jnp.cos(primals[0]) * tangents[0] * 2


PARAMS = {"w": np.ones((8, 4), np.float32), "b": np.zeros(4, np.float32)}
BATCH = (np.ones((3, 8), np.float32), np.ones((3, 4), np.float32))

CASES = {
    "selu": (selu, X),
    "nested": (nested, X),
    "dead": (dead, X),
    "twice": (twice, X),
    "gradient": (jax.value_and_grad(loss), PARAMS, *BATCH),
    "jitted gradient": (jax.jit(jax.grad(loss)), PARAMS, *BATCH),
    "vmap": (jax.vmap(lambda row: row @ jnp.ones(4)), np.ones((3, 4), np.float32)),
    "while": (lambda x: jax.lax.while_loop(lambda c: c[1] < 3, lambda c: (c[0] * 2, c[1] + 1), (x, 0)), X),
    "fori": (lambda x: jax.lax.fori_loop(0, 5, lambda i, c: c + x[i], 0.0), X),
    "custom rule": (jax.grad(lambda x: scaled(x).sum()), X),
    "random": (lambda key: jax.random.normal(key, (4,)), jax.random.key(0)),
    "sort": (lambda x: (jnp.sort(x), jnp.cumsum(x), x.at[0].set(3.0)), X),
    "static": (jax.jit(lambda x, n: x**n, static_argnums=1), X, 3),
    "partial": (functools.partial(lambda n, x: x**n, 3), X),
    "library": (jax.nn.softmax, X),
    "no argument": (lambda: jnp.ones(3), *()),
    "identity": (lambda x: x, X),
    "shape only": (lambda x: x @ x.T, jax.ShapeDtypeStruct((3, 4), "float32")),
}


@functools.cache
def looked_at(name):
    fn, *args = CASES[name]
    return stages(fn, *args)


def test_tags_come_out_at_the_other_end_on_this_jax():
    assert works()


@pytest.mark.parametrize("name", CASES)
def test_the_tagged_program_is_the_program(name):
    fn, *args = CASES[name]
    jitted = fn if hasattr(fn, "lower") else jax.jit(fn)
    traced = jitted.trace(*args)
    jaxpr = tagged(traced.jaxpr, sites_of(traced.jaxpr))
    program = replay(getattr(jitted, "__wrapped__", jitted), traced, jaxpr, jit_options(jitted))
    assert program.trace(*args).lower().as_text() == traced.lower().as_text()


def test_constants_that_are_used_in_another_order_than_they_were_made_keep_the_links():
    found = stages(
        lambda i: jax.lax.select(i == 0, jnp.int32([0, 1]), jnp.int32([1, 0])), jnp.asarray(np.int32(0))
    )
    assert found.notes == ()
    assert {e.status for e in found.equations} == {"kept"}


@pytest.mark.parametrize("name", CASES)
def test_every_equation_stands_in_one_block_of_the_jaxpr(name):
    found = looked_at(name)
    heads = Counter(e for line in found.jaxpr.lines if line.op for e in line.equations)
    assert heads == Counter(range(len(found.equations)))
    for line in found.jaxpr.lines:
        if line.op:
            assert {found.equations[e].primitive for e in line.equations} == {line.op}


@pytest.mark.parametrize("name", CASES)
def test_no_path_address_or_tag_reaches_an_output(name):
    found = looked_at(name)
    outputs = [json.dumps(found.to_dict()), found._repr_html_(), repr(found), repr(found.show())]
    for text in outputs:
        assert not re.search(
            r"site-packages|\.py\b|jgq\d|0x[0-9a-f]{8}|loc\(|metadata=|backend_config=\{", text
        )
        assert str(Path(__file__).parent) not in text


@pytest.mark.parametrize("name", CASES)
def test_what_jax_removed_is_what_has_no_use(name):
    status = Counter(e.status for e in looked_at(name).equations)
    lowered = {e for line in looked_at(name).stablehlo.lines for e in line.equations}
    for equation in looked_at(name).equations:
        if equation.status == "unused":
            assert equation.id not in lowered
    fn, *args = CASES[name]
    jaxpr = (fn if hasattr(fn, "lower") else jax.jit(fn)).trace(*args).jaxpr
    nodes = Nodes(jaxpr, sites_of(jaxpr)).all
    assert [n.id for n in nodes if not n.live] == [
        e.id for e in looked_at(name).equations if e.status == "unused"
    ]
    # An equation that is used and absent is only one that needs no operation.
    quiet = {e.primitive for e in looked_at(name).equations if e.status == "not lowered"}
    assert quiet <= {"stop_gradient", "copy", "copy_p", "pvary"}, status


@pytest.mark.parametrize("name", CASES)
def test_every_stablehlo_operation_is_linked(name):
    missing = [line.text for line in looked_at(name).stablehlo.lines if line.op and not line.equations]
    assert [text for text in missing if "constant" not in text] == []


@pytest.mark.parametrize("name", [n for n in CASES if n != "library"])
def test_every_equation_has_a_line_of_the_readers_source(name):
    assert [e for e in looked_at(name).equations if e.line is None] == []


def test_dead_code_is_named_as_removed_by_jax():
    found = looked_at("dead")
    removed = {e.primitive for e in found.equations if e.status == "unused"}
    assert {"sin", "cos", "tan"} <= removed
    assert found.equations[0].detail == "unused: removed by JAX"


def test_the_second_of_two_equal_lines_points_at_the_first():
    found = looked_at("twice")
    merged = [e for e in found.equations if e.status == "merged"]
    assert len(merged) == 1
    assert merged[0].detail.endswith(f"same as line {({2, 3} - {merged[0].line}).pop()}")


def test_two_calls_of_one_function_keep_their_own_instructions():
    found = looked_at("nested")
    calls = [e.id for e in found.equations if e.primitive == "jit"]
    inside = [{e.id for e in found.equations if e.parent == call} for call in calls]
    assert len(calls) == 2
    assert len(inside[0]) == len(inside[1]) == 2
    computing = [line for line in found.hlo.lines if line.op not in ("", "fusion", "constant", "broadcast")]
    lines = [
        [i for i, line in enumerate(found.hlo.lines) if line in computing and line.equations & own]
        for own in inside
    ]
    assert lines[0]
    assert lines[1]
    assert not set(lines[0]) & set(lines[1])


def test_the_source_shows_the_function_and_the_readers_functions_it_calls():
    found = looked_at("nested")
    assert found.source.lines[0].text == "def nested(x):"
    body = next(i for i, line in enumerate(found.source.lines, 1) if "jnp.sin(x) * 2.0" in line.text)
    assert {e.primitive for e in found.equations if e.line == body} == {"sin", "mul"}


def test_of_a_docstring_only_the_first_line_is_shown():
    def documented(x):
        """Add one.

        At length.
        """
        return x + 1

    found = stages(documented, X)
    assert [line.text for line in found.source.lines] == [
        "def documented(x):",
        '    """Add one. …"""',
        "    return x + 1",
    ]
    assert found.equations[0].line == 3


def test_library_bodies_take_the_line_of_the_call_and_say_where_they_are():
    found = looked_at("selu")
    select = next(e for e in found.equations if e.primitive == "select_n")
    assert (select.line, select.inside) == (2, "where")


def test_derivatives_say_their_direction():
    directions = {e.direction for e in looked_at("gradient").equations}
    assert {"forward", "backward"} <= directions


def test_a_fusion_names_its_operations_equations_and_lines():
    found = looked_at("selu")
    assert found.fusions
    fusion = max(found.fusions, key=lambda f: len(f.operations))
    assert "exponential" in fusion.operations
    assert {found.equations[e].primitive for e in fusion.equations} >= {"exp", "gt"}
    assert fusion.source == (2,)


def test_counts_cost_and_memory_are_given():
    found = looked_at("selu")
    assert found.operations["jaxpr equations"] == len(found.equations)
    assert all(count > 0 for count in found.operations.values())
    assert found.cost["transcendentals"] in (8.0, None)
    assert found.memory["argument"] in (32, None)


def test_what_the_backend_does_not_give_is_not_available():
    class Silent:
        def cost_analysis(self):
            raise NotImplementedError

        def memory_analysis(self):
            return None

    assert set(cost_analysis(Silent()).values()) == {None}
    assert set(memory_analysis(Silent()).values()) == {None}


def test_loops_come_with_a_note_that_flops_count_the_body_once():
    note = "Flops and bytes count the body of a loop once, not once per step."
    assert note in looked_at("while").notes
    assert note not in looked_at("selu").notes


def test_captured_arrays_are_listed_with_their_bytes():
    found = stages(lambda x: TABLE @ jnp.ones(1024) + x[:2], X)
    assert [(c.type, c.bytes) for c in found.constants] == [("f32[2,1024]", 8192)]
    assert len(found.stablehlo.text) < 3000  # the constant's digits are not shown


def test_donated_arguments_are_named_and_their_buffers_shared():
    found = stages(jax.jit(lambda state, x: state + x, donate_argnums=0), X, X)
    assert found.donated == ("state",)
    assert found.memory["alias"] in (32, None)


def test_keywords_go_to_the_function_and_statics_stay_static():
    fn = jax.jit(lambda x, *, n, scale: x**n * scale, static_argnames="n")
    found = stages(fn, X, n=3, scale=2.0)
    assert found.equations[0].primitive == "integer_pow"
    assert {e.status for e in found.equations} <= {"kept", "moves data"}
    assert found.notes == ()


def test_options_of_the_jitted_function_are_kept():
    fn = jax.jit(lambda x, unused: x + 1, keep_unused=True)
    assert "%arg1" in stages(fn, X, X).stablehlo.text


def test_nothing_runs():
    calls = []

    def noisy(x):
        jax.debug.callback(lambda v: calls.append(v), x)
        return x + 1

    stages(noisy, X)
    jax.effects_barrier()
    assert calls == []


def test_a_notebook_cell_shows_its_source_and_not_its_file(monkeypatch):
    name = "/tmp/ipykernel_4711/123456.py"
    code = "def cell(x):\n    y = x * 2\n    return y + 1\n"
    monkeypatch.setitem(linecache.cache, name, (len(code), None, code.splitlines(keepends=True), name))
    space = {}
    exec(compile(code, name, "exec"), space)
    found = stages(space["cell"], X)
    assert [e.line for e in found.equations] == [2, 3]
    assert "ipykernel" not in json.dumps(found.to_dict()) + found._repr_html_() + repr(found)


def test_code_without_source_has_a_jaxpr_and_says_so():
    space = {}
    exec(
        compile("def hidden(x):\n    return x * 2 + 1", "<hidden>", "exec"), space
    )  # `python -c` has a "<string>"
    found = stages(space["hidden"], X)
    assert len(found.source) == 0
    assert [e.primitive for e in found.equations] == ["mul", "add"]
    assert found.notes == (
        "The source of this function is not shown: it was not found, or it is part of a library.",
    )
    assert {e.status for e in found.equations} == {"kept"}


def test_the_text_view_names_the_line_its_equations_and_where_they_ended_up():
    text = repr(looked_at("dead"))
    assert text.startswith("stages of dead\nline  source")
    row = next(line for line in text.splitlines() if "unused = jnp.sin(x)" in line)
    assert row.startswith("   2 ")
    assert row.endswith("unused: removed by JAX")
    assert "jaxpr equations →" in text


def test_show_gives_the_stages_asked_for_in_their_own_order():
    text = repr(looked_at("selu").show("jaxpr", "source"))
    assert text.index("Source: what you wrote") < text.index("Jaxpr: what JAX traced")
    assert "StableHLO" not in text


def test_an_unknown_stage_is_refused():
    message = "show takes names of stages, and 'mlir' is none. Use 'source', 'jaxpr', 'stablehlo', 'hlo'."
    with pytest.raises(ValueError, match=re.escape(message)):
        looked_at("selu").show("mlir")


@pytest.mark.parametrize("name", CASES)
def test_to_dict_is_json_and_complete(name):
    found = looked_at(name)
    again = json.loads(json.dumps(found.to_dict(), allow_nan=False))
    assert [line["text"] for line in again["stages"]["hlo"]["lines"]] == [
        line.text for line in found.hlo.lines
    ]
    assert len(again["equations"]) == len(found.equations)


def test_what_is_not_callable_is_refused():
    message = (
        "stages(fn, ...) needs a function, and `fn` is array([1., 2., 3., 4., 5., 6., 7., 8.], dtype=f… of "
        "type ndarray, which cannot be called. Pass the function itself, not the result of calling it."
    )
    with pytest.raises(TypeError, match=re.escape(message)):
        stages(X)


def test_a_compiled_object_is_refused():
    message = (
        "stages(fn, ...) needs a function, and `fn` is a Compiled object, which stands for one executable and "
        "never traces again. Pass the function that it was made from."
    )
    with pytest.raises(TypeError, match=re.escape(message)):
        stages(jax.jit(selu).lower(X).compile(), X)


def test_a_tracer_is_refused():
    with pytest.raises(RuntimeError, match="`stages` was called inside a function that JAX is tracing"):
        jax.jit(lambda x: stages(selu, x))(X)


def test_an_argument_that_cannot_be_traced_gives_jaxs_own_error_and_a_hint():
    with pytest.raises(TypeError, match=r"not a valid JAX type|abstract array") as caught:
        stages(lambda x, mode: x, X, "fast")
    assert "static_argnames" in "".join(caught.value.__notes__)


def test_an_error_of_the_function_comes_through_untouched():
    def broken(x):
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine") as caught:
        stages(broken, X)
    assert "stages" not in "".join(getattr(caught.value, "__notes__", ()))


def test_labels_survive_a_persistent_cache_that_was_filled_without_them(tmp_path):
    program = """
        import sys, jax, jax.numpy as jnp
        jax.config.update("jax_compilation_cache_dir", sys.argv[1])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        from jitguide import stages
        def f(x):
            return jnp.sin(x) * 2 + 1
        f_jitted = jax.jit(f)
        f_jitted(jnp.ones(8)).block_until_ready()
        found = stages(f_jitted, jnp.ones(8))
        assert {e.status for e in found.equations} == {"kept"}, found
        assert found.notes == (), found.notes
        assert jax.config.jax_compilation_cache_include_metadata_in_key is False
        print("labelled")
    """
    (tmp_path / "program.py").write_text(textwrap.dedent(program), encoding="utf-8")
    command = [sys.executable, str(tmp_path / "program.py"), str(tmp_path / "cache")]
    environment = {**os.environ, "PYTHONPATH": str(Path(__file__).parents[1])}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "labelled\n", done.stderr


@jax.tree_util.register_pytree_node_class
class Weights:
    def __init__(self, w):
        self.w = w

    def tree_flatten(self):
        return (self.w,), None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)

    @functools.partial(jax.jit, donate_argnums=0)
    def update(self, step):
        return Weights(self.w - step)

    @functools.partial(jax.jit, static_argnames=("self", "n"))
    def power(self, x, n):
        return x**n


def test_a_bound_method_is_the_program_that_a_call_of_it_runs():
    weights = Weights(jnp.ones(1000))
    bound, unbound = stages(weights.update, weights.w), stages(Weights.update, weights, weights.w)
    assert bound.memory == unbound.memory
    assert bound.donated == unbound.donated != ()
    assert bound.constants == ()
    assert [e.primitive for e in bound.equations] == ["sub"]


def test_a_bound_method_keeps_its_static_arguments():
    found = stages(Weights(None).power, X, n=3)
    assert [e.primitive for e in found.equations] == ["integer_pow"]


def test_a_partial_of_a_jitted_function_is_the_program_that_a_call_of_it_runs():
    subtract = jax.jit(lambda a, b, *, n: (a - b) * n, donate_argnums=0, static_argnames="n")
    found = stages(functools.partial(subtract, jnp.ones(8), n=2), X)
    assert (found.donated, found.constants) == (("a",), ())
    assert found.memory["argument"] == 2 * X.nbytes


def test_bodies_in_named_tuples_are_linked():
    def solve(b):
        def matvec(v):
            return jnp.exp(2 * v)

        return jax.scipy.sparse.linalg.cg(matvec, b)[0]

    found = stages(solve, X)
    assert "kept" in {e.status for e in found.equations if e.primitive == "exp"}
    assert {e.status for e in found.equations if e.primitive == "while"} >= {"kept"}
    assert found.notes == ("Flops and bytes count the body of a loop once, not once per step.",)


def test_an_unchanged_sequence_in_an_equation_stays_the_same_object():
    class Names(tuple):
        def __new__(cls, *items):
            return super().__new__(cls, items)

    names = Names("a", "b")
    assert rewritten(names, lambda equation, params: [equation]) is names


def test_what_xla_does_not_count_is_zero():
    assert stages(lambda x: x + 1, X).cost["transcendentals"] == 0
    assert stages(jnp.sin, X).cost["flops"] == 0


def test_what_jax_removed_is_known_where_nothing_is_left_to_compute():
    def only_checks(x):
        norm = jnp.linalg.norm(x)  # noqa: F841
        return x

    found = stages(only_checks, X)
    assert "unused: removed by JAX" in repr(found)
    assert {e.status for e in found.equations} == {"unused"}
    assert found.notes == ()


@pytest.mark.parametrize(
    ("fn", "args"), [(lambda: jnp.ones(3) * 2, ()), (lambda x: x * 2, (np.ones((0, 3), np.float32),))]
)
def test_what_xla_folds_away_as_a_whole_is_folded(fn, args):
    found = stages(fn, *args)
    assert {e.status for e in found.equations} <= {"folded", "moves data"}
    assert found.notes == ()


def test_loops_that_jax_makes_while_lowering_come_with_the_note():
    found = stages(lambda key: jax.random.uniform(key, (100,)), jax.random.key(0))
    assert ("while" in found.hlo.text) == any("body of a loop once" in note for note in found.notes)
    assert "while" in found.hlo.text or jax.default_backend() != "cpu"


def test_a_function_of_many_lines_is_shown_whole(monkeypatch):
    lines = ["def long(x):", *(f"    x = jnp.sin(x) * {i}.5" for i in range(450)), "    return x"]
    name = "<long>"
    monkeypatch.setitem(linecache.cache, name, (1, None, [f"{line}\n" for line in lines], name))
    space = {"jnp": jnp}
    exec(compile("\n".join(lines), name, "exec"), space)
    found = stages(space["long"], X)
    assert len(found.source) == 452
    assert found.notes == ()
    assert "(no line shown)" not in repr(found)


def test_on_several_devices_a_note_says_that_cost_and_memory_are_of_one():
    program = """
        import jax, numpy as np
        from jitguide import stages
        from jax.sharding import NamedSharding, PartitionSpec
        mesh = jax.make_mesh((4,), ("d",))
        x = jax.device_put(np.ones((8, 16), np.float32), NamedSharding(mesh, PartitionSpec("d")))
        found = stages(lambda x: x * 2, x)
        print(x.nbytes // found.memory["argument"], *(n for n in found.notes if "devices" in n))
        print(*(n for n in stages(lambda x: x * 2, 1.0).notes if "devices" in n))
    """
    environment = {
        **os.environ,
        "PYTHONPATH": str(Path(__file__).parents[1]),
        "JAX_PLATFORMS": "cpu",
        "XLA_FLAGS": "--xla_force_host_platform_device_count=4",
    }
    command = [sys.executable, "-c", textwrap.dedent(program)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.stdout == "4 Cost and memory are those of one of the 4 devices.\n\n", done.stderr


def test_a_captured_tracer_is_refused():
    with pytest.raises(RuntimeError, match="`stages` was called inside a function that JAX is tracing"):
        jax.vmap(lambda y: stages(lambda x: x * y, X))(X)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("option", [{"backend": jax.default_backend()}, {"device": jax.devices()[0]}])
def test_a_jit_for_one_device_is_linked_by_operation(option):
    assert stages(jax.jit(lambda x: x * 2, **option), X).notes == ()


def test_a_callable_object_goes_by_its_class():
    class Double:
        def __call__(self, x):
            return x * 2

    for fn in (Double(), jax.jit(Double()), functools.partial(Double())):
        assert stages(fn, X).name == "Double"


def test_the_text_fits_into_80_columns_and_folds_lines_without_operations():
    def long(params, x):
        count = 0
        count += 1
        count += 2
        count += 3
        return {name: jnp.tanh(x @ leaf) * count for name, leaf in params.items() if leaf.shape == (8, 8)}

    params = {f"layer_{i}": np.ones((8, 8), np.float32) for i in range(20)}
    found = stages(jax.jit(long, donate_argnames="params"), params, np.ones((8, 8), np.float32))
    text = repr(found)
    assert max(map(len, text.splitlines())) <= 80
    assert "count += 2" not in text
    assert text.count("     …") == 1
    assert "donated: params['layer_0'], params['layer_1'], params['layer_10'] and 17 more" in " ".join(
        text.split()
    )


def test_what_became_of_a_line_fits_into_80_columns_and_is_not_cut():
    def scaled_by_a_constant(x):
        scale = jnp.sqrt(2.0 * jnp.ones(())) * jnp.float32(3)
        _an_intermediate_value = jnp.sum(jnp.sin(x) * jnp.cos(x))
        return x * scale

    text = repr(stages(scaled_by_a_constant, np.ones(4, np.float32)))
    assert max(map(len, text.splitlines())) <= 80
    assert "  simplified by XLA\n" in text
    assert "  unused: removed by JAX\n" in text


@pytest.mark.parametrize("library", ["equinox", "nnx"])
def test_a_function_that_a_library_jitted_is_shown_with_its_own_source(library):
    if library == "equinox":
        jit = pytest.importorskip("equinox").filter_jit
    else:
        jit = pytest.importorskip("flax.nnx").jit

    @jit
    def doubled_sine(x):
        return jnp.sin(x) * 2

    found = stages(doubled_sine, jnp.ones(3))
    assert "doubled_sine" in repr(found)
    sine = next(e for e in found.equations if e.primitive == "sin")
    assert "jnp.sin(x) * 2" in found.source.lines[sine.line - 1].text


def test_a_long_difference_is_cut():
    def many(x):
        return [jnp.sin(x + i) for i in range(80)]

    difference = stages(jnp.cos, 1.0).diff(stages(many, 1.0))
    assert len(repr(difference).splitlines()) < 300
    assert "more lines: see `lines['jaxpr']`" in repr(difference)
    assert len(difference.lines["jaxpr"]) > 100
