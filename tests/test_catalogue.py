"""The error catalogue is true: every example does what it says on the installed JAX, every fix runs."""

from __future__ import annotations

import gc
import importlib
import json
import os
import re
import subprocess
import sys
import traceback
import types
import warnings
from collections.abc import Iterator
from pathlib import Path

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import explain
from jitguide._errors import entries
from jitguide._errors.entries import catalogue
from jitguide._errors.entry import Entry

# Only a CPU refuses these kernels, or runs them without a warning.
LEFT_OUT = (
    set() if jax.default_backend() == "cpu" else {"pallas-on-cpu", "pallas-kernel", "kernel-memory-full"}
)
ONE_DEVICE = [entry for entry in catalogue() if entry.devices <= 1 and entry.key not in LEFT_OUT]
RAISING = [(entry, code) for entry in ONE_DEVICE if entry.error for code in entry.examples]
SILENT = [(entry, code) for entry in ONE_DEVICE if not entry.error for code in entry.examples]

OTHER_CLASSES = {
    "callback-raises": {"ValueError"},  # once a call is on the fast path
    "use-after-donation": {"ValueError"},  # JAX 0.10 checks the buffers of a call later
    "pickle-of-jitted-function": {"PicklingError"},  # depends on where the function was defined
    "removed-name": {"ImportError", "ModuleNotFoundError", "TypeError"},  # what kind of name it is
    "not-a-numeric-array": {"ValueError"},
    "dlpack-capsule": {"AttributeError"},
    "partition-spec-without-mesh": {"ValueError"},  # of device_put
    "axis-out-of-range": {"TypeError"},  # of transpose
    "custom-vjp-rule": {"AttributeError"},  # without a rule
    "debug-print-value-missing": {"IndexError"},  # of a value by position
}
# Recognised by what is printed or logged, or by a warning that needs a larger array.
SEEN_ELSEWHERE = {
    "formatted-tracer",
    "compiles-again",
    "new-function-compiles-again",
    "captured-constants",
    "slow-constant-folding",  # the alarms of XLA need a compile of seconds or minutes
    "slow-compile",
    "float64-overflows",  # NumPy's warning, recognised by JAX's file that it names
    "axis-types-by-default",  # JAX 0.8 warned
    "no-accelerator-found",  # needs a machine with a GPU and a jaxlib without
}
# Another machine or installation is needed to see these; their texts are in the benchmark of `explain`.
ELSEWHERE = {
    "array-pickled-by-older-jax",
    "involuntary-rematerialization",  # needs eight devices
    "jaxlib-version",
    "own-file-called-jax",
    "jax-not-installed",
    "package-that-jax-needs",
    "cudnn",
    "rocm",  # needs an AMD GPU
    "compiler-crash",
    "process-missing",
    "flax-module-not-an-argument",
    "linen-in-a-jax-transform",
    "flax-arrays-in-a-list",
    "type-checker-meets-tracer",
    "equinox-check",
    "jax-too-old",
    "submodule-not-imported",  # the examples' process has imported it
    "numpy-for-jaxlib",
    "gpu-start-up-log",
    "delay-kernel-timed-out",
    "cuda-plugin-version",
    "jax-internal",
    "device-in-use",
    "xla-flag-unknown",  # ends the process
    "callable-with-slots",  # the second call ends the process
    "device-plugin-limits",
    "nccl",
    "pallas-kernel",
    "too-many-parameters",
    "cache-entry-unreadable",
    "driver-older-than-cuda",
    "pip-finds-no-jaxlib",
    "ptxas",
    "system-older-than-jaxlib",
    "cuda-library-not-loaded",
    "compiled-parts-do-not-fit",
    "backend-not-on-this-machine",
    "checkpoint-from-other-devices",
    "kernel-memory-full",
    "shard-map-without-a-rule",
    "array-on-other-processes",
    "mesh-over-several-slices",
    "distributed-arguments",  # the examples' process has used JAX
}

# What causes and costs say besides, by the key of the entry.
SAID = {
    "reference-index": """
total = jax.new_ref(jnp.zeros(3))
jax.jit(lambda ref: ref.__setitem__(3, 1.0))(total)
assert total[...].tolist() == [0, 0, 1] and jax.jit(lambda ref: ref[3])(total) == 1
""",
    "python-and-or-not-on-tracer": "assert (jnp.int32(1) & jnp.int32(2), ~jnp.int32(1)) == (0, -2)",
    "python-if-on-tracer": """
guarded = lambda x: jnp.where(x > 0, jnp.sqrt(x), 0.0)
branched = lambda x: jax.lax.cond(x > 0, jnp.sqrt, lambda x: 0.0, x)
assert jnp.isnan(jax.grad(guarded)(0.0)) and jax.grad(branched)(0.0) == 0
""",
    "concrete-value-needed": """
y = jax.jit(lambda x: x.astype(int))(jnp.array([jnp.nan, 1e20]))
assert y.tolist() == [0, 2**31 - 1]
""",
    "math-function-on-tracer": """
import math
assert math.remainder(5, 3) == -1 and jnp.remainder(5, 3) == 2 and jnp.isnan(jnp.sqrt(-1.0))
""",
    "tracer-indexes-numpy-array": """
f = jax.jit(lambda i: jnp.asarray(np.array([1, 2**40 + 5]))[i])
assert f(7) == f(1) == 5
""",
    "boolean-mask": """
x = jnp.array([1.0, -1.0, 3.0])
assert jnp.mean(x, where=x > 0) == 2 and jnp.max(x, where=x > 0, initial=-jnp.inf) == 3
""",
    "result-size-from-values": """
x = jnp.array([0, 1, 2])
i, = jnp.nonzero(x, size=x.size, fill_value=x.size)
assert x.at[i].add(10).tolist() == [0, 11, 12]
assert x.at[i].get(mode="fill", fill_value=0).tolist() == [1, 2, 0]
assert x[jnp.array([1, 2, -1])].tolist() == [1, 2, 2]
""",
    "top-k-of-tracer": """
f = jax.jit(lambda x, k: jnp.where(jnp.arange(3) < k, jax.lax.top_k(x, 3)[0], 0.0))
assert f(jnp.arange(5.0), 2).tolist() == [4, 3, 0]
""",
    "segments-from-values": """
group = jnp.array([0, 1, 2])
assert jax.ops.segment_sum(jnp.ones(3), group, num_segments=2).tolist() == [1, 1]
""",
    "tree-in-where": """
x, y = {"a": jnp.zeros(2)}, {"a": jnp.ones(2)}
assert jax.jit(lambda c: jax.lax.cond(c, lambda: x, lambda: y))(False)["a"].tolist() == [1, 1]
""",
    "padded-with-minus-one": """
table = jnp.arange(1.0, 5.0)
assert table[jnp.array([4])].tolist() == [4]
assert table.at[jnp.array([4])].get(mode="fill", fill_value=0).tolist() == [0]
""",
    "unhashable-static-argument": """
f = jax.jit(lambda x, n: x * n[0], static_argnames="n")
x = jnp.array([200], jnp.uint8)
assert f(x, n=(2,)).tolist() == f(x, n=(2.0,)).tolist() == [144]
""",
    "integer-too-large": """
with jax.enable_x64(True):
    y = jax.jit(lambda x: x + 2**40)(1)
assert np.asarray(y) + 1 == 2**40 + 2
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    assert y + 1 == 2
""",
    "loop-condition-not-boolean": """
done, start = (lambda c: c < 3), jnp.array([0, 2, 5])
one = lambda c: jax.lax.while_loop(done, lambda c: c + 1, c)
assert jax.vmap(one)(start).tolist() == [3, 3, 5]
assert jax.lax.while_loop(lambda c: done(c).any(), lambda c: c + 1, start).tolist() == [3, 5, 8]
""",
    "carry-changes-type": """
cast = lambda c, x: ((c + x).astype(c.dtype), None)
keep = lambda c, x: (c + x, None)
assert jax.lax.scan(cast, jnp.int32(0), jnp.full(3, 0.5))[0] == 0
assert jax.lax.scan(keep, jnp.float32(0), jnp.full(3, 0.5))[0] == 1.5
""",
    "index-clamped": """
assert jnp.isnan(jnp.take(jnp.ones(3), 10))
assert jnp.take(jnp.arange(3), 10) == -(2**31) and jnp.take(jnp.ones(3, "uint8"), 10) == 255
f = jax.jit(lambda x, i: (x[i], x[i.astype(int)]))
assert f(jnp.arange(1000), jnp.int8(-1)) == (0, 999)
""",
    "numpy-array-for-jax-array": """
assert type(jax.device_get(jnp.ones(3))) is type(np.asarray(jnp.ones(3))) is np.ndarray
""",
    "donation-not-usable": """
a = jnp.ones(4)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    jax.jit(lambda a: jnp.tile(a, 2).astype("float16"), donate_argnums=0)(a)
assert not a.is_deleted()
""",
}  # fmt: skip

DOCS = Path(__file__).parents[1] / "docs"


@pytest.fixture(autouse=True)
def _drop_coroutines(request: pytest.FixtureRequest) -> Iterator[None]:
    """Collect the coroutine of the `async def` example here, so that its warning reaches no later test."""
    yield
    if "async-function" in request.node.name:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            gc.collect()


def execute(code: str, path: Path) -> list[str]:
    """Run `code` as a module with a file, so that pickle finds its names and tracebacks its source.

    Returns the texts of the warnings.
    """
    path.write_text(code, encoding="utf-8")
    module = types.ModuleType("catalogue_example")
    vars(module).update(jax=jax, jnp=jnp, np=np)
    with warnings.catch_warnings(record=True) as seen, pytest.MonkeyPatch.context() as patch:
        warnings.simplefilter("always")
        patch.setitem(sys.modules, module.__name__, module)
        exec(compile(code, str(path), "exec"), vars(module))
    return [str(w.message) for w in seen]


def class_named(name: str | None) -> type[BaseException]:
    """Return the class that the catalogue names, which must be where a user would import it from."""
    assert name is not None
    module, _, last = name.rpartition(".")
    return getattr(importlib.import_module(module or "builtins"), last)


def ids(pairs: list[tuple[Entry, str]]) -> list[str]:
    return [f"{entry.key}-{entry.examples.index(code)}" for entry, code in pairs]


@pytest.mark.parametrize(("entry", "code"), RAISING, ids=ids(RAISING))
def test_the_example_raises_its_class_and_is_recognised(entry: Entry, code: str, tmp_path: Path) -> None:
    with pytest.raises(BaseException) as caught:  # noqa: PT011 -- the class is what is looked at
        execute(code, tmp_path / "example.py")
    error = caught.value
    assert isinstance(error, class_named(entry.error)) or type(error).__name__ in OTHER_CLASSES[entry.key]
    assert explain(error).key == entry.key, f"{type(error)} {error}"
    text = "".join(traceback.format_exception(error))
    assert explain(text).key == entry.key, text


@pytest.mark.parametrize(("entry", "code"), SILENT, ids=ids(SILENT))
def test_the_silent_example_does_what_it_asserts(entry: Entry, code: str, tmp_path: Path) -> None:
    assert code.splitlines()[-1].strip().startswith("assert ")
    seen = execute(code, tmp_path / "example.py")
    for text in seen:
        assert explain(f"UserWarning: {text}").key == entry.key, text
    if entry.patterns and entry.key not in SEEN_ELSEWHERE:
        assert seen, "the entry is recognised by a warning, and none was given"


@pytest.mark.slow  # hundreds of small programs, which the check of the site runs as well
@pytest.mark.parametrize("entry", ONE_DEVICE, ids=lambda entry: entry.key)
def test_the_repair_runs_without_a_warning(entry: Entry, tmp_path: Path) -> None:
    for library in ("flax", "equinox", "orbax"):
        if re.search(rf"(?:from|import) {library}\b", entry.fix):
            pytest.importorskip(library)
    assert execute(entry.fix, tmp_path / "fix.py") == []


@pytest.mark.parametrize("key", SAID)
def test_what_the_entry_says_besides_is_true(key: str, tmp_path: Path) -> None:
    assert key in {entry.key for entry in catalogue()}
    assert execute("import warnings\n" + SAID[key], tmp_path / "said.py") == []


@pytest.mark.skipif(jax.default_backend() != "cpu", reason="elsewhere it has the class of the first call")
def test_an_error_of_a_callback_on_the_fast_path_is_recognised(tmp_path: Path) -> None:
    entry = next(entry for entry in catalogue() if entry.key == "callback-raises")
    with pytest.raises(ValueError, match="CpuCallback") as caught:
        execute(entry.examples[-1], tmp_path / "example.py")
    assert explain(caught.value).key == entry.key
    assert not isinstance(caught.value, class_named(entry.error))


def test_entries_for_several_devices_hold_on_four_cpu_devices(tmp_path: Path) -> None:
    program = """
import json, sys, traceback
import jax, jax.numpy as jnp, numpy as np
jax.config.update("jax_num_cpu_devices", 4)
from jitguide._errors.entries import catalogue
from jitguide import explain

def run(code):
    path = sys.argv[1]
    open(path, "w").write(code)
    try:
        exec(compile(code, path, "exec"), {"jax": jax, "jnp": jnp, "np": np})
    except Exception as error:
        return [c.__name__ for c in type(error).__mro__], explain(error).key, str(error)

seen = {e.key: [[run(c) for c in e.examples], run(e.fix)] for e in catalogue() if e.devices > 1}
print("RESULT", json.dumps(seen))
"""
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "example.py")],
        cwd=Path(__file__).parent.parent,
        env=os.environ | {"JAX_PLATFORMS": "cpu"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    print(done.stdout)
    seen = json.loads(done.stdout.partition("RESULT")[2])
    entries = {entry.key: entry for entry in catalogue() if entry.devices > 1}
    assert seen.keys() == entries.keys()
    assert len(seen) >= 4
    for key, (examples, fix) in seen.items():
        assert fix is None, (key, fix)
        for outcome in examples:
            if entries[key].error is None:
                assert outcome is None, outcome
            else:
                assert outcome is not None, key
                assert class_named(entries[key].error).__name__ in outcome[0], outcome
                assert outcome[1] == key, outcome


def test_keys_are_unique_kebab_case() -> None:
    keys = [entry.key for entry in catalogue()]
    assert len(set(keys)) == len(keys)
    assert all(re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", key) for key in keys)


@pytest.mark.parametrize("entry", catalogue(), ids=lambda entry: entry.key)
def test_the_entry_is_complete(entry: Entry) -> None:
    assert bool(entry.examples) is (entry.key not in ELSEWHERE)
    assert (DOCS / f"{entry.page.partition('#')[0]}.md").exists()
    assert entry.cause.endswith(".")
    assert entry.cost.endswith(".")
    assert not entry.title.endswith(".")
    assert (
        max(map(len, "\n".join([*entry.examples, entry.fix]).splitlines())) <= 76
    )  # with the indent, 80 in a terminal
    assert entry.patterns or entry.error is None, "an error that nothing recognises"
    for code in (*entry.examples, entry.fix):
        assert max(map(len, code.splitlines())) <= 100
        compile(code, entry.key, "exec")
    for pattern in (*entry.patterns, *entry.source):
        re.compile(pattern)


def test_a_printed_tracer_is_recognised(capsys: pytest.CaptureFixture[str]) -> None:
    jax.jit(lambda x: (print(x), x)[1])(1.0)
    assert explain(capsys.readouterr().out).key == "formatted-tracer"


def test_the_log_of_a_recompilation_is_recognised(caplog: pytest.LogCaptureFixture) -> None:
    f = jax.jit(lambda x: x * 3)
    three, four = jnp.ones(3), jnp.ones(4)
    f(three)
    with jax.log_compiles():
        f(four)
    assert explain(caplog.text).key == "compiles-again"


def test_the_log_of_a_first_call_is_not_called_a_recompilation(caplog: pytest.LogCaptureFixture) -> None:
    f, three = jax.jit(lambda x: x * 3), jnp.ones(3)
    with jax.log_compiles():
        f(three)
    assert "Compiling" in caplog.text
    assert "normal once" in explain(caplog.text).title
    caplog.clear()
    g = jax.jit(lambda x: x * 4)
    with jax.explain_cache_misses():
        g(three)
    assert "normal once" in explain(caplog.text).title


def test_the_explanation_of_a_cache_miss_is_recognised(caplog: pytest.LogCaptureFixture) -> None:
    f = jax.jit(lambda x: x * 3)
    three, four = jnp.ones(3), jnp.ones(4)
    with jax.explain_cache_misses():
        f(three)
    assert explain(caplog.text).key == "new-function-compiles-again"
    caplog.clear()
    with jax.explain_cache_misses():
        f(four)
    assert explain(caplog.text).key == "compiles-again"


def test_the_warning_about_captured_constants_is_recognised() -> None:
    table = jnp.arange(1000.0)
    before = jax.config.jax_captured_constants_warn_bytes
    jax.config.update("jax_captured_constants_warn_bytes", 100)
    try:
        with pytest.warns(UserWarning, match="constants") as seen:
            jax.jit(lambda i: table[i])(0)
    finally:
        jax.config.update("jax_captured_constants_warn_bytes", before)
    assert explain(f"UserWarning: {seen[0].message}").key == "captured-constants"


def test_every_file_of_the_catalogue_is_read() -> None:
    files = {path.stem for path in Path(entries.__file__).with_name("catalogue").iterdir()}
    assert files == set(entries.GROUPS)
