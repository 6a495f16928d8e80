"""What JAX keeps private may go: each instrument then says what it lacks, and never gives a wrong number."""

import ast
import inspect
import os
import re
import subprocess
import sys
import sysconfig
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from jax._src import config as jax_settings
from jax._src.interpreters import partial_eval

from jitguide import (
    _jax,
    _jaxprs,
    _monitoring,
    assert_traces,
    check,
    compare,
    device_report,
    explain,
    phases,
    roofline,
    stages,
    watch,
)
from jitguide._errors import installed
from jitguide._stages import build, tags

PACKAGE = Path(_jax.__file__).parent
X = np.arange(4, dtype=np.float32)


def missing(*_, **__):
    raise AttributeError("moved")


@pytest.fixture
def take_away(monkeypatch):
    """Return what makes a read fail, in all modules that imported it."""
    monkeypatch.setattr(_monitoring, "_verdict", None)
    tags.works.cache_clear()
    yield lambda read: monkeypatch.setattr(inspect.unwrap(read), "__code__", missing.__code__)
    monkeypatch.undo()
    tags.works.cache_clear()
    installed._messages.cache_clear()


def wave(x):
    return jnp.sin(x) * 2


def static(x, n):
    return x * n


def sine(found):
    return next(line for line in found.jaxpr.lines if "sin " in line.text)


def is_not_counted():
    f = watch(jax.jit(lambda x: x + 1))
    f(X), f(X)
    assert f.counts == {"not counted": 2}
    with pytest.raises(AssertionError, match="nothing was counted"), assert_traces(0):
        jnp.asarray(X)
    with watch() as block, pytest.raises(RuntimeError, match="nothing was counted"):
        _ = block.traces


def phases_of_jit(take_away, monkeypatch):
    monkeypatch.setattr(_jax, "PHASES", {})
    is_not_counted()


def trace_cache_misses(take_away, monkeypatch):
    honest = partial_eval.trace_to_jaxpr
    monkeypatch.setattr(partial_eval, "trace_to_jaxpr", lambda *args, **more: honest(*args, **more))
    assert _jax.trace_cache_misses() is None
    is_not_counted()


def at_top_level(take_away, monkeypatch):
    monkeypatch.setattr(_jax, "_core", None)
    names = ("_TRACE", "_TOP", "_AXES", "_NO_AXES")
    for name, value in zip(names, _jax.surroundings(), strict=True):
        monkeypatch.setattr(f"jitguide._watch.watch.{name}", value)
    inner = watch(jax.jit(lambda x: wave(x)))
    jax.jit(lambda y: inner(X) + y)(X)
    assert len(inner.calls) == 0
    inner(X)
    assert inner.counts == {"compiled": 1}
    for measure in (
        lambda: compare({"wave": jax.jit(wave)}, X, check=None),
        lambda: phases(wave, X),
        lambda: roofline(wave, X),
    ):
        with pytest.raises(RuntimeError, match="was called inside a function that JAX is tracing"):
            jax.jit(lambda y, measure=measure: [measure(), y])(X)


def disabled(take_away, monkeypatch):
    with monkeypatch.context() as patch:
        patch.delattr(jax_settings, "disable_jit")
        asked = _jax.disabled()
    monkeypatch.setattr("jitguide._watch.watch._DISABLED", asked)
    f = watch(jax.jit(lambda x: wave(x)))
    f(X), f(X)
    with jax.disable_jit():
        f(X)
    assert [call.outcome for call in f.calls] == ["compiled", "hit", "left the fast path"]


def is_tracer(take_away, monkeypatch):
    monkeypatch.delattr(jax.core, "Tracer")
    for measure in (
        lambda y: compare({"wave": jax.jit(wave)}, y),
        lambda y: phases(wave, y),
        lambda y: roofline(wave, y),
        lambda y: stages(wave, y),
        lambda y: stages(lambda x: x + y, X),
    ):
        with pytest.raises(RuntimeError, match="inside a function that JAX is tracing"):
            jax.grad(lambda y, measure=measure: (measure(y), y)[1].sum())(jnp.asarray(X))
    assert stages(wave, X).notes == ()


def jit_options(take_away, monkeypatch):
    take_away(_jax.jit_options)
    jitted = jax.jit(static, static_argnames="n", donate_argnames="x")
    assert phases(jitted, jnp.asarray(X), n=2).notes == (
        "JAX does not expose the jit options of this function, so steps that are cached already show as free.",
    )
    assert stages(jitted, X, n=2).notes == (build.NO_LINKS,)
    assert any("so static values were not checked" in note for note in check(jitted, X, n=2, run=False).notes)
    assert check(jax.jit(lambda x, mode: x, static_argnames="mode"), X, mode="a", run=False).findings == ()
    f = watch(jax.jit(lambda x, n: x * n, static_argnames="n"))
    for n in (2, 3):
        f(X, n=n)
    assert f.last.reason.kind == "unknown"
    assert f"{_jax.NO_OPTIONS}: where a static value changes" in " ".join(repr(f).split())


def fast_path_size(take_away, monkeypatch):
    monkeypatch.setattr(_jax.fast_path_size, "__code__", (lambda fn: None).__code__)
    f = watch(jax.jit(lambda x: wave(x)))
    f(X), f(X)
    assert _jax.NO_FAST_PATH in " ".join(repr(f).split())
    assert f.counts == {"compiled": 1, "hit": 1}


def transformation(take_away, monkeypatch):
    take_away(_jax.transformation)
    f = watch(jax.jit(lambda x: wave(x)))
    jax.vmap(f)(X)
    assert f.calls == ()  # as inside a trace
    f(X)
    assert f.counts == {"compiled": 1}


def jit_file(take_away, monkeypatch):
    take_away(_jax.jit_file)
    from jitguide.demos import cache_key

    table = cache_key.Changes("Shape")
    f = jax.jit(cache_key.counted(wave))
    f(X)
    table.see("longer", f, np.ones(7, np.float32))
    table.see("as before", f, X)
    assert [row.fast for row in table.rows] == [None, None]
    assert [row.work for row in table.rows][1] == "not known"
    assert "JAX does not expose its module for jit" in repr(table)


def trace_settings(take_away, monkeypatch):
    monkeypatch.delattr(jax_settings, "trace_context_names")
    f = watch(jax.jit(jax.nn.softmax))
    f(X)
    with jax.softmax_custom_jvp(not jax.config.jax_softmax_custom_jvp):
        f(X)
    assert (f.last.outcome, f.last.reason.kind) == ("compiled", "unknown")


def setting(take_away, monkeypatch):
    name = "jax_cpu_enable_async_dispatch"
    jax.config.update(name, False)
    try:
        assert name in dict(device_report().settings)
        monkeypatch.delattr(type(jax.config), "values")
        assert name not in dict(device_report().settings)
    finally:
        jax.config.update(name, True)


def tree_node(take_away, monkeypatch):
    take_away(_jax.tree_node)
    f = watch(jax.jit(lambda tree: jax.tree.leaves(tree)[0] * 2))
    f({"a": X}), f([X])
    assert str(f.last.reason).startswith(
        "`tree` changed structure, PyTreeDef({'a': *}) → PyTreeDef([*]): jit compiles once per structure."
    )
    found = check(jax.jit(lambda tree: tree), {"a": X}, calls=[([X],)], run=False)
    assert found.kinds == ("retrace",)


def cost_analysis(take_away, monkeypatch):
    take_away(_jax.cost_analysis)
    assert set(stages(wave, X).cost.values()) == {None}
    assert roofline(wave, X).flops is roofline(wave, X).bytes_accessed is None


def memory_analysis(take_away, monkeypatch):
    take_away(_jax.memory_analysis)
    assert set(stages(wave, X).memory.values()) == {None}


def compiled_text(take_away, monkeypatch):
    take_away(_jax.compiled_text)
    assert stages(wave, X).notes == (build.NO_HLO,)
    assert any("Whether the program has a loop is not known" in note for note in roofline(wave, X).notes)


def text_of(take_away, monkeypatch):
    take_away(_jaxprs.text_of)
    found = stages(wave, X)
    assert found.notes == (build.NO_LINKS,)
    assert (sine(found).equations, sine(found).source) == (frozenset(), ())


def definition(take_away, monkeypatch):
    space, file = {}, f"{sysconfig.get_path('purelib')}/library.py"
    exec(compile("import jax\n@jax.jit\ndef helper(x):\n    return jax.numpy.sin(x)", file, "exec"), space)

    def called(x):
        y = space["helper"](x)  # JAX caches the body, with this line as its origin
        return y + space["helper"](y)

    take_away(_jaxprs.definition)
    assert [e.line for e in stages(called, X).equations if e.primitive == "sin"] == [2, 3]


def argument_names(take_away, monkeypatch):
    monkeypatch.setattr(_jaxprs.argument_names, "__code__", _nameless.__code__)
    assert stages(jax.jit(lambda x, y: (x, y), donate_argnums=1), X, X).donated == ("argument 1",)


def _nameless(jaxpr, count):
    return [f"argument {i}" for i in range(count)]


def name_stack(take_away, monkeypatch):
    take_away(_jaxprs.name_stack)
    assert {e.direction for e in stages(jax.grad(lambda x: jnp.sin(x) ** 2), 1.0).equations} == {""}
    large = jnp.ones((1024, 1024))
    gradient = check(jax.jit(jax.grad(lambda x: jnp.sin(x).sum())), large, run=False)
    assert "If you do not need it after the call" in gradient.findings[0].advice


def lines_of(take_away, monkeypatch):
    take_away(_jaxprs.lines_of)
    found = stages(wave, X)
    assert found.notes == ("Links to the source are not available: JAX names no line of it.",)
    assert {e.line for e in found.equations} == {None}
    assert all(line.equations == frozenset() for line in found.source.lines)
    assert " at " not in check(jax.jit(loop), X, run=False).findings[0].sentence


def loop(x):
    for _ in range(40):
        x = jnp.sin(x)
    return x


def code_of(take_away, monkeypatch):
    assert check(jax.jit(loop), X, run=False).kinds == ("unrolled loop",)
    take_away(_jaxprs.code_of)
    found = check(jax.jit(loop), X, run=False)
    assert found.kinds == ()
    assert "Unrolled loops were not checked" in repr(found)


def rebuilt(read):
    def row(take_away, monkeypatch):
        take_away(read)
        found = stages(wave, X)
        assert found.notes == (build.NO_LINKS,)
        assert {e.status for e in found.equations} == {"unknown"}
        assert (sine(found).link, sine(found).source) == (None, ())

    return row


def uses_a_key_twice(take_away, monkeypatch):
    draws = jax.jit(lambda key: jax.random.normal(key) + jax.random.uniform(key))
    assert check(draws, jax.random.key(0), run=False).kinds == ("key used twice",)
    take_away(_jaxprs.uses_a_key_twice)
    found = check(draws, jax.random.key(0), run=False)
    assert found.kinds == ()
    assert "Whether a random key is used twice was not checked" in repr(found)


def sources(take_away, monkeypatch):
    text = "ValueError: Number of samples, -3, must be non-negative."
    installed._messages.cache_clear()
    assert explain(text).where
    take_away(_jax.sources)
    installed._messages.cache_clear()
    found = explain(text)
    assert (found.where, "probably not an error of JAX" in repr(found)) == ("", True)


ROWS = {
    "PHASES": phases_of_jit,
    "trace_cache_misses": trace_cache_misses,
    "at_top_level": at_top_level,
    "surroundings": at_top_level,
    "disabled": disabled,
    "is_tracer": is_tracer,
    "jit_options": jit_options,
    "fast_path_size": fast_path_size,
    "jit_file": jit_file,
    "transformation": transformation,
    "trace_settings": trace_settings,
    "setting": setting,
    "tree_node": tree_node,
    "uses_a_key_twice": uses_a_key_twice,
    "cost_analysis": cost_analysis,
    "memory_analysis": memory_analysis,
    "compiled_text": compiled_text,
    "text_of": text_of,
    "definition": definition,
    "argument_names": argument_names,
    "name_stack": name_stack,
    "lines_of": lines_of,
    "code_of": code_of,
    "rewritten": rebuilt(_jaxprs.rewritten),
    "in_scope": rebuilt(_jaxprs.in_scope),
    "as_function": rebuilt(_jaxprs.as_function),
    "sources": sources,
}
DOCUMENTED = {  # they read nothing, or only what JAX documents
    "has_tracer", "nbytes", "placeholders_explained", "has_loop", "library_calls", "open_jaxpr", "is_jaxpr", "bodies", "equations", "with_bodies", "constants", "short_type", "liveness", "coarsest", "key_kind",
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_without_a_private_read_nothing_is_wrong(name, take_away, monkeypatch):
    ROWS[name](take_away, monkeypatch)


def test_every_read_has_a_row():
    reads = {
        name
        for module in (_jax, _jaxprs)
        for name, value in vars(module).items()
        if inspect.isfunction(value) and value.__module__ == module.__name__ and not name.startswith("_")
    }
    assert reads == (set(ROWS) | DOCUMENTED) - {"PHASES"}


def test_without_the_private_modules_the_package_works_and_shows_no_links():
    program = (
        "import jax.numpy as jnp, jitguide, jitguide._jaxprs as reads\n"
        "del reads._core, reads._source_info\n"
        "found = jitguide.stages(lambda x: jnp.sin(x) + 1, jnp.ones(3))\n"
        "print(*found.notes)\n"
    )
    environment = os.environ | {"PYTHONPATH": str(PACKAGE.parent), "JAX_PLATFORMS": "cpu"}
    done = subprocess.run([sys.executable, "-c", program], env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(build.NO_LINKS)


UNDOCUMENTED = {
    "pretty_print", "debug_info", "source_info", "name_stack", "raw_frames", "node_data", "trace_ctx", "Tracer",
    "cost_analysis", "memory_analysis", "trace_context", "cache_info", "jaxpr_as_fun", "summarize", "func_src_info",
}  # fmt: skip


def names_in(path):
    """Yield the names of attributes, imports and `getattr` texts of a module, with their lines."""
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.Attribute):
            if not re.fullmatch(r"_jax|_jaxprs", ast.unparse(node.value)):
                yield node.lineno, node.attr
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Import | ast.ImportFrom):
            yield node.lineno, ast.unparse(node)
        elif isinstance(node, ast.Call) and ast.unparse(node.func) in ("getattr", "hasattr"):
            yield (
                node.lineno,
                ast.literal_eval(node.args[1]) if isinstance(node.args[1], ast.Constant) else "",
            )


def own_names():
    """Return every private name that the package itself defines."""
    text = "\n".join(path.read_text("utf-8") for path in PACKAGE.rglob("*.py"))
    return set(re.findall(r"(?:def |class |self\.|cls\.|^\s*)(_[a-z]\w*)\b(?= *[=(:,])", text, re.MULTILINE))


PYTHONS_OWN = {"_getframe", "_fields", "_replace", "_asdict", "_repr_html_"}


def test_no_other_module_reads_what_jax_keeps_private():
    own = own_names() | PYTHONS_OWN
    found = []
    for path in sorted(PACKAGE.rglob("*.py")):
        if path.name in ("_jax.py", "_jaxprs.py"):
            continue
        for line, name in names_in(path):
            private = re.fullmatch(r"_[a-z]\w*", name) and name not in own
            if private or name in UNDOCUMENTED or re.search(r"\bjax\.(_src|extend)\b", name):
                found.append(f"{path.relative_to(PACKAGE)}:{line} {name}")
    assert found == []
