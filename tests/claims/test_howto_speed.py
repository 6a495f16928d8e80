"""Slow calls: recompiles, long compiles, compiles at each start."""

import functools
import json
import os
import re
import subprocess
import sys

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hostile import CannotRun

X = jnp.ones(4)


def widen(x, n=2):
    return jnp.pad(x, n)


def hidden(function):
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs)

    return wrapper


@pytest.mark.claim(
    "wrapper-without-signature-hides-static-names",
    "Behind a wrapper of `*args, **kwargs`, `static_argnums` does not reach an argument passed by keyword, nor "
    "`static_argnames` one passed by position; `functools.wraps`, or giving both options, fixes it.",
)
def test_wrapper_without_signature_hides_static_names():
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(hidden(widen), static_argnums=1)(X, n=2)
    with pytest.raises(jax.errors.ConcretizationTypeError):
        jax.jit(hidden(widen), static_argnames="n")(X, 2)
    named = functools.wraps(widen)(hidden(widen))
    both = {"static_argnums": 1, "static_argnames": "n"}
    for f in (jax.jit(named, static_argnums=1), jax.jit(hidden(widen), **both)):
        assert f(X, 2).shape == f(X, n=2).shape == (8,)


@pytest.mark.wrong_twin(
    "wrapper-without-signature-hides-static-names", raises=jax.errors.ConcretizationTypeError
)
def test_wrong_twin_wrapper_passes_names_on():
    jax.jit(hidden(widen), static_argnums=1)(X, n=2)


@pytest.mark.claim(
    "static-default-may-be-left-out",
    "A static parameter with a default may be left out: the body gets the plain Python value.",
)
def test_static_default_may_be_left_out():
    assert jax.jit(widen, static_argnames="n")(X).shape == (8,)


@pytest.mark.claim(
    "static-name-reaches-kwargs",
    "`static_argnames` also makes static what arrives under that name in `**kwargs`.",
)
def test_static_name_reaches_kwargs():
    def summed(x, **options):
        return x.sum(**options)

    assert jax.jit(summed, static_argnames="axis")(jnp.ones((2, 3)), axis=1).shape == (2,)
    with pytest.raises(TypeError):
        jax.jit(summed)(jnp.ones((2, 3)), axis=1)


@functools.partial(jax.tree_util.register_dataclass, data_fields=["weights"], meta_fields=["activation"])
class Model:
    def __init__(self, weights, activation):
        self.weights, self.activation = weights, activation


@pytest.mark.claim(
    "function-in-a-static-field-is-compared-by-identity",
    "A model made again with a new lambda in a static field compiles again; with the same function it hits.",
)
def test_function_in_a_static_field_is_compared_by_identity(counted):
    predict = jax.jit(lambda model, x: model.activation(model.weights * x))
    predict(Model(X, lambda x: x + 1), X)
    counted()
    predict(Model(X, lambda x: x + 1), X)
    assert counted()["compiles"] == 1
    predict(Model(X, jnp.tanh), X)
    counted()
    predict(Model(X, jnp.tanh), X)
    assert not counted()


@pytest.mark.claim(
    "each-array-of-a-list-is-an-input",
    "A list of arrays is one input of the compiled function for each array; the same numbers in one array are "
    "one.",
)
def test_each_array_of_a_list_is_an_input():
    parts = [np.ones(3, np.float32)] * 20
    assert len(jax.make_jaxpr(sum)(parts).in_avals) == 20
    assert len(jax.make_jaxpr(lambda x: x.sum(0))(np.stack(parts)).in_avals) == 1


@pytest.mark.claim(
    "scan-over-a-list-walks-each-array",
    "`scan` over a list does not step from array to array: it steps through the first axis of the arrays "
    "together.",
)
def test_scan_over_a_list_walks_each_array():
    seen = []

    def step(carry, xs):
        seen.append((len(xs), xs[0].shape))
        return carry, xs[0]

    _, out = jax.lax.scan(step, 0.0, [jnp.ones((5, 2))] * 3)
    assert set(seen) == {(3, (2,))}
    assert out.shape == (5, 2)


@pytest.mark.claim(
    "gradient-of-a-scan-does-not-grow",
    "The gradient of a `scan` is made of scans: its jaxpr is as long for 1000 steps as for 10.",
)
def test_gradient_of_a_scan_does_not_grow():
    def total(x, steps):
        return jax.lax.scan(lambda x, _: (jnp.sin(x), None), x, length=steps)[0]

    def lines(steps):
        return len(str(jax.make_jaxpr(jax.grad(lambda x: total(x, steps)))(1.0)).splitlines())

    assert lines(10) == lines(1000)


class Scaled:
    """A layer with the Python of a layer: it looks parameters up and checks them."""

    def __init__(self, name):
        self.name = name

    def __call__(self, params, x):
        own = params[self.name]
        if own.shape != x.shape:
            raise ValueError(self.name)
        return jnp.tanh(own * x)


@pytest.mark.claim(
    "module-and-functions-give-one-program",
    "A model of layer objects and the same model of plain functions have equal jaxprs: a layer's Python runs "
    "while tracing and is not in the program.",
)
def test_module_and_functions_give_one_program():
    params = {"a": X, "b": X}
    layers = [Scaled("a"), Scaled("b")]

    def of_objects(params, x):
        for layer in layers:
            x = layer(params, x)
        return x

    def of_functions(params, x):
        return jnp.tanh(params["b"] * jnp.tanh(params["a"] * x))

    assert str(jax.make_jaxpr(of_objects)(params, X)) == str(jax.make_jaxpr(of_functions)(params, X))


@pytest.mark.claim(
    "segment-sum-needs-a-static-count",
    "`jax.ops.segment_sum` under jit needs `num_segments` as a plain Python number: traced or left out, it "
    "raises `ConcretizationTypeError`.",
)
def test_segment_sum_needs_a_static_count():
    groups = jnp.array([0, 0, 1, 1])

    def per_group(x, groups, count=None):
        return jax.ops.segment_sum(x, groups, num_segments=count)

    assert jax.jit(per_group, static_argnames="count")(X, groups, 2).tolist() == [2, 2]
    for arguments in ((X, groups, 2), (X, groups)):
        with pytest.raises(jax.errors.ConcretizationTypeError, match="num_segments"):
            jax.jit(per_group)(*arguments)


@pytest.mark.claim(
    "looking-at-a-result-waits",
    "`float(x)`, `np.asarray(x)` and `print(x)` wait until the result is computed.",
)
@pytest.mark.parametrize("look", [float, np.asarray, str], ids=["float", "asarray", "print"])
def test_looking_at_a_result_waits(look):
    f = jax.jit(lambda a: (a @ a @ a @ a)[0, 0])
    for size in (1200,) * 10 + (2400,) * 3:  # one call that was not ready is enough, also on a busy machine
        a = jax.device_put(np.ones((size, size), np.float32)).block_until_ready()
        f.lower(a).compile()
        result = f(a)
        if not result.is_ready():
            look(result)
            assert result.is_ready()
            return
    raise CannotRun("every call had its result ready when it returned")


@pytest.mark.claim(
    "named-scope-reaches-the-compiled-program",
    "`jax.named_scope` names the operations inside it: the name is in the text of the compiled function.",
)
def test_named_scope_reaches_the_compiled_program():
    def f(x):
        with jax.named_scope("kitchen"):
            return jnp.sin(x) * 2

    assert re.search(r'op_name="jit\(f\)/[^"]*kitchen/', jax.jit(f).lower(X).compile().as_text())


@pytest.mark.claim(
    "named-scope-is-no-key",
    "A `jax.named_scope` around a call is not part of the key: a compiled function is used as it is.",
)
def test_named_scope_is_no_key(counted):
    f = jax.jit(lambda x: x * 5)
    f(X)
    counted()
    with jax.named_scope("kitchen"):
        f(X)
    assert not counted()


@pytest.mark.claim(
    "named-scope-stays-under-grad-and-in-loops",
    "Under `grad` and in a loop the name of a `jax.named_scope` is in the path of the operations too, as in "
    "`jit(f)/jvp(kitchen)/cos` or `jit(f)/while/body/…/kitchen/sin`.",
)
def test_named_scope_stays_under_grad_and_in_loops():
    def f(x):
        with jax.named_scope("kitchen"):
            return jnp.sin(x) * 2

    def looped(x):
        return jax.lax.fori_loop(0, 3, lambda _, x: f(x), x)

    derived = jax.jit(jax.grad(f)).lower(1.0).compile().as_text()
    assert re.search(r'op_name="jit\(f\)/[^"]*kitchen\)?/', derived)
    in_loop = jax.jit(looped).lower(1.0).compile().as_text()
    assert re.search(r'op_name="jit\(looped\)/[^"]*while/body/[^"]*kitchen/', in_loop)


@pytest.mark.claim(
    "profile-names-the-operations",
    "The record of `jax.profiler.trace` names, for what ran, the operation of the compiled function and the "
    "function; `ProfileData` reads it.",
)
@pytest.mark.filterwarnings("ignore:builtin type:DeprecationWarning")
def test_profile_names_the_operations(tmp_path):
    if not hasattr(jax.profiler, "ProfileData"):
        pytest.skip("not applicable: jax.profiler.ProfileData is not in this JAX")

    def squared(a):
        return a @ a

    f, a = jax.jit(squared), jnp.ones((200, 200))
    f(a).block_until_ready()
    with jax.profiler.trace(str(tmp_path)):
        f(a).block_until_ready()
    [file] = tmp_path.rglob("*.xplane.pb")
    planes = jax.profiler.ProfileData.from_file(str(file)).planes
    events = [dict(event.stats) for plane in planes for line in plane.lines for event in line.events]
    ran = {
        stats["hlo_op"] for stats in events if stats.get("hlo_module") == "jit_squared" and "hlo_op" in stats
    }
    text = f.lower(a).compile().as_text()
    assert ran
    assert all(name in text for name in ran)


# The persistent cache: processes of their own, with the settings that keep small programs too.

CACHE = {"JAX_PLATFORMS": "cpu", "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
COMMON = """
import json, os, shutil, sys, warnings
import jax, jax.numpy as jnp, numpy as np
seen = []
jax.monitoring.register_event_listener(lambda event, **_: seen.append(event))

def hit(function, x=1.0):
    jax.clear_caches()
    seen.clear()
    jax.jit(function)(x)
    return seen.count("/jax/compilation_cache/cache_hits")

def entries(folder):
    return [f for f in os.listdir(folder) if f.endswith("-cache")] if os.path.exists(folder) else []

def make(factor):
    def scaled(x):
        return x * factor
    return scaled

def double(x):
    return x * 2

def negate(x):
    return -x
"""


def python(code, folder, first="", **settings):
    """What a fresh interpreter in `folder` prints, as JSON; `first` runs before JAX is imported."""
    inherited = {name: value for name, value in os.environ.items() if "CACHE" not in name}
    done = subprocess.run(
        [sys.executable, "-c", first + COMMON + code],
        env={**inherited, **CACHE, **settings},
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
    )
    if done.returncode:
        raise CannotRun(done.stderr.strip().splitlines()[-1])
    return json.loads(done.stdout.splitlines()[-1])


KEYS = """
def make_elsewhere(factor):
    def scaled(values):  # another line, other variables
        result = values * factor
        return result
    return scaled

def renamed(x):
    return x * 2

cold = hit(make(2))
again = hit(make(2))
elsewhere = hit(make_elsewhere(2))
print(json.dumps([cold, again, elsewhere, hit(renamed), hit(make(3)), hit(make(3))]))
"""


@pytest.fixture(scope="module")
def keys(tmp_path_factory):
    folder = tmp_path_factory.mktemp("keys")
    return python(KEYS, folder, JAX_COMPILATION_CACHE_DIR=str(folder / "c"))


@pytest.mark.claim(
    "persistent-cache-key-has-no-source-lines",
    "Source lines and names of variables are not part of the persistent cache's key: the same operations "
    "written elsewhere hit.",
)
def test_persistent_cache_key_has_no_source_lines(keys):
    assert keys[:3] == [0, 1, 1]


@pytest.mark.claim(
    "persistent-cache-key-has-the-name-of-the-function",
    "The name of the function is part of the persistent cache's key: renamed, it compiles again.",
)
def test_persistent_cache_key_has_the_name_of_the_function(keys):
    assert keys[3] == 0


@pytest.mark.wrong_twin("persistent-cache-key-has-the-name-of-the-function")
def test_wrong_twin_name_of_the_function_is_no_key(keys):
    assert keys[3] == 1


@pytest.mark.claim(
    "constants-are-in-the-persistent-cache-key",
    "A number that a function takes from outside is part of the persistent cache's key: another number is "
    "another entry.",
)
def test_constants_are_in_the_persistent_cache_key(keys):
    assert keys[4:] == [0, 1]


FOLDERS = """
ones = jnp.ones(3)
jax.config.update("jax_compilation_cache_dir", "one")
facts = {"late": [hit(double), hit(double)]}
jax.config.update("jax_compilation_cache_dir", "two")
hit(negate)
facts["second"] = [len(entries("one")), len(entries("two"))]
from jax.experimental.compilation_cache import compilation_cache
compilation_cache.reset_cache()
hit(make(5))
facts["reset"] = [len(entries("one")), len(entries("two"))]
print(json.dumps(facts))
"""


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    return python(FOLDERS, tmp_path_factory.mktemp("folders"))


@pytest.mark.claim(
    "cache-folder-may-be-set-late",
    "The folder of the persistent cache may be set after arrays were made: what is compiled from then on is "
    "kept and found.",
)
def test_cache_folder_may_be_set_late(folders):
    assert folders["late"] == [0, 1]


@pytest.mark.claim(
    "second-cache-folder-is-ignored",
    "Once the persistent cache is in use, another folder is ignored without a warning until `reset_cache()`.",
)
def test_second_cache_folder_is_ignored(folders):
    assert folders["second"] == [2, 0]
    assert folders["reset"] == [2, 1]


@pytest.mark.wrong_twin("second-cache-folder-is-ignored")
def test_wrong_twin_second_cache_folder_is_used(folders):
    assert folders["second"] == [1, 1]


TRUST = """
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    hit(double), hit(negate)
    file_of = {name.split("-")[0]: "c/" + name for name in entries("c")}
    shutil.copy(file_of["jit_negate"], file_of["jit_double"])
    jax.clear_caches()
    swapped = float(jax.jit(double)(3.0))
    before = len(caught)
    with open(file_of["jit_double"], "wb") as file:
        file.write(b"damaged")
    jax.clear_caches()
    damaged = float(jax.jit(double)(3.0))
print(json.dumps([swapped, before, damaged, [str(w.message) for w in caught]]))
"""


@pytest.fixture(scope="module")
def trust(tmp_path_factory):
    folder = tmp_path_factory.mktemp("trust")
    return python(TRUST, folder, JAX_COMPILATION_CACHE_DIR=str(folder / "c"))


@pytest.mark.claim(
    "cache-folder-is-trusted",
    "JAX runs what it finds in the folder of the persistent cache: with the file of another program in its "
    "place, a function returns that program's result, without a warning.",
)
def test_cache_folder_is_trusted(trust):
    assert trust[:2] == [-3.0, 0]


@pytest.mark.claim(
    "damaged-cache-file-warns-and-compiles",
    "A file of the persistent cache that cannot be unpacked makes a `UserWarning`, and the program is compiled.",
)
def test_damaged_cache_file_warns_and_compiles(trust):
    assert trust[2] == 6.0
    assert any("Error reading persistent compilation cache" in text for text in trust[3])


PACKING = """
hit(double)
with open("c/" + entries("c")[0], "rb") as file:
    print(json.dumps(file.read(4).hex()))
"""
NO_ZSTANDARD = """
import sys
sys.modules["zstandard"] = None
"""
A_ZSTANDARD = """
import sys, types
sys.modules["zstandard"] = packer = types.ModuleType("zstandard")
packer.ZstdCompressor = lambda: types.SimpleNamespace(compress=lambda data: b"pack" + data)
packer.ZstdDecompressor = lambda: types.SimpleNamespace(decompress=lambda data: data[4:])
"""


@pytest.mark.claim(
    "cache-files-are-packed-by-zstandard-if-installed",
    "The persistent cache packs its files with the package `zstandard` if it is installed, from Python 3.14 on "
    "with `compression.zstd`, and otherwise with zlib.",
)
def test_cache_files_are_packed_by_zstandard_if_installed(tmp_path):
    def first_bytes(folder, first):
        (tmp_path / folder).mkdir()
        return bytes.fromhex(python(PACKING, tmp_path / folder, first, JAX_COMPILATION_CACHE_DIR="c"))

    found = first_bytes("without", NO_ZSTANDARD), first_bytes("with", A_ZSTANDARD)
    if sys.version_info >= (3, 14):
        assert found == (b"\x28\xb5\x2f\xfd", b"\x28\xb5\x2f\xfd")
    else:
        assert (found[0][:1], found[1]) == (b"\x78", b"pack")


@pytest.mark.claim(
    "moved-cache-folder-is-found",
    "With XLA's own caches switched off, the folder of the persistent cache may be moved: its programs are "
    "found in the new place.",
)
def test_moved_cache_folder_is_found(tmp_path):
    settings = {"JAX_PERSISTENT_CACHE_ENABLE_XLA_CACHES": "none"}
    once = "print(json.dumps(hit(double)))"
    assert python(once, tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "old"), **settings) == 0
    (tmp_path / "old").rename(tmp_path / "new")
    assert python(once, tmp_path, JAX_COMPILATION_CACHE_DIR=str(tmp_path / "new"), **settings) == 1


@pytest.mark.claim(
    "persistent-cache-has-no-size-limit-by-default",
    "By default the size of the persistent cache is not limited, nor is that of an entry from below.",
)
def test_persistent_cache_has_no_size_limit_by_default(tmp_path):
    names = "jax_compilation_cache_max_size", "jax_persistent_cache_min_entry_size_bytes"
    code = f"print(json.dumps([getattr(jax.config, name) for name in {names}]))"
    assert python(code, tmp_path) == [-1, 0]


@pytest.mark.claim(
    "cache-size-limit-deletes-old-entries",
    "With `jax_compilation_cache_max_size` the persistent cache stays below that many bytes by deleting old "
    "entries; without the package `filelock` it warns and keeps nothing.",
)
def test_cache_size_limit_deletes_old_entries(tmp_path):
    pytest.importorskip("filelock", reason="not applicable: filelock is not installed")
    code = """
hit(make(0.5))
first = entries("c")
for i in range(11):
    hit(make(i))
print(json.dumps([first[0] in entries("c"), sum(os.path.getsize("c/" + f) for f in os.listdir("c"))]))
"""
    settings = {"JAX_COMPILATION_CACHE_DIR": "c", "JAX_COMPILATION_CACHE_MAX_SIZE": "15000"}
    still_there, size = python(code, tmp_path, **settings)
    assert not still_there
    assert size <= 15000
    code = """
with warnings.catch_warnings(record=True) as caught:
    hit(double)
print(json.dumps([len(entries("d")), str(caught[0].message)]))
"""
    absent = 'import sys; sys.modules["filelock"] = None'
    kept, message = python(code, tmp_path, absent, **{**settings, "JAX_COMPILATION_CACHE_DIR": "d"})
    assert kept == 0
    assert "install the `filelock` package" in message
