"""The asserts as a project uses them in CI: with a persistent cache, in any order, in other threads and tasks."""

import asyncio
import pickle
import subprocess
import sys
import textwrap
import threading
from time import perf_counter

import jax
import jax.numpy as jnp
import pytest

from jitguide import assert_compiles, assert_traces, watch


def tripled(x):
    return x * 3


def ones(n):
    return jnp.ones(n)


def test_a_read_from_the_persistent_cache_counts_as_made(tmp_path):
    program = """
        import sys, jax, jax.numpy as jnp
        jax.config.update("jax_compilation_cache_dir", sys.argv[1])
        jax.config.update("jax_persistent_cache_min_compile_time_secs", 0)
        jax.config.update("jax_persistent_cache_min_entry_size_bytes", -1)
        from jitguide import assert_compiles, watch
        f = watch(jax.jit(lambda x: jnp.sin(x) * 2))
        with assert_compiles(1, of="<lambda>") as seen:
            f(1.0)
        f.assert_compiles(1)
        print(seen.compiles, seen.cache_reads)
    """
    command = [sys.executable, "-c", textwrap.dedent(program), str(tmp_path)]
    runs = [subprocess.run(command, capture_output=True, text=True, check=True).stdout for _ in range(2)]
    assert runs == ["1 0\n", "0 1\n"]


def test_at_most_accepts_fewer_and_no_more():
    f = jax.jit(tripled)
    for _ in range(2):  # nothing is made the second time
        with assert_compiles(at_most=2, of=f), assert_traces(at_most=2, of=f):
            f(ones(2)), f(ones(3))
    wrong = pytest.raises(AssertionError, match=r"of `tripled` in this block: 1; expected: at most 0\.")
    with wrong, assert_compiles(at_most=0, of=f):
        f(ones(4))
    watched = watch(f)
    watched(ones(5))
    watched.assert_compiles(at_most=3)
    with pytest.raises(AssertionError, match="expected: at most 0"):
        watched.assert_traces(at_most=0)


@pytest.mark.parametrize("numbers", [{}, {"expected": 1, "at_most": 2}])
def test_one_number_is_needed(numbers):
    with pytest.raises(TypeError, match="Give either the exact number"), assert_compiles(**numbers):
        pass
    with pytest.raises(ValueError, match="`at_most` must be a whole number of at least 0"):
        watch(jax.jit(tripled)).assert_compiles(at_most=-1)


def test_the_message_lists_shapes_and_lines():
    f = jax.jit(lambda x, y: x + y)
    x, y = ones(6), ones(1)
    with pytest.raises(AssertionError) as caught, assert_compiles(0, of=f):
        f(x, y), f(x, 2.0)
    lines = str(caught.value).splitlines()
    assert "  <lambda>(float32[6], float32[1]) at test_asserts.py:" in lines[1]
    assert "  <lambda>(float32[6], float32[]) at test_asserts.py:" in lines[2]
    assert max(map(len, lines)) <= 110


class Solver:
    def _sort(self, x):  # `jnp` has a `sort`
        return x * 2

    def solve(self, x):
        return jax.jit(self._sort)(x)


def test_a_method_whose_name_is_like_an_operation_of_jax_is_yours():
    x = ones(5)
    with watch() as found:
        for _ in range(3):
            Solver().solve(x)
    assert "`_sort` at test_asserts.py:" in repr(found).replace("\n", " ")
    assert "operations of JAX" not in repr(found)


def test_a_misspelt_name_is_refused_with_the_right_one():
    f = jax.jit(tripled)
    f(ones(7))
    wrong = pytest.raises(ValueError, match=r"no function of that name was traced .* did you mean 'tripled'")
    with wrong, assert_compiles(at_most=1, of="tripledx"):
        f(ones(8))
    with assert_compiles(0, of="tripled"):
        f(ones(8))


class Model:
    def __init__(self):
        self.step = jax.jit(lambda x: x * 5)

    def __call__(self, x):
        return self.step(x)


def around(x):
    return jax.jit(lambda y: y * 7)(x)


def mapped(x):
    return x + 1


@pytest.mark.parametrize(
    ("of", "call"),
    [(around, around), (Model.__call__, Model()), (mapped_once := jax.pmap(mapped), mapped_once)],
)
@pytest.mark.parametrize("counts", [{"expected": 0}, {"expected": 1}, {"at_most": 2}])
def test_a_function_around_the_jitted_one_is_refused(of, call, counts):
    refused = pytest.raises(
        ValueError, match=r"`of` is not a jitted function, its name is '\w+', and no function"
    )
    with refused, assert_compiles(of=of, **counts):
        call(ones((1, 3)))


@pytest.mark.slow
def test_frames_of_the_package_are_hidden_in_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text(
        "import jax\nfrom jitguide import assert_compiles, watch\n"
        "def test_block():\n    with assert_compiles(0, of=jax.jit(abs)):\n        jax.jit(lambda x: x)(1.0)\n        jax.jit(abs)(1.0)\n"
        "def test_watched():\n    f = watch(jax.jit(lambda x: x))\n    f(1.0)\n    f.assert_compiles(0)\n"
    )
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(tmp_path)]
    shown = subprocess.run(command, capture_output=True, text=True, check=False).stdout
    assert "2 failed" in shown
    assert "call_log.py" not in shown
    assert "block.py" not in shown


def test_tasks_of_asyncio_are_kept_apart():
    async def compiling(n):
        with watch() as seen:
            for k in range(n):
                jax.jit(lambda x, k=k: x * k)(1.0)
                await asyncio.sleep(0)
        return seen.compiles

    async def both():
        return await asyncio.gather(compiling(2), compiling(3))

    assert asyncio.run(both()) == [2, 3]


def test_work_in_another_thread_is_said_to_be_elsewhere():
    thread = threading.Thread(target=lambda: jax.jit(lambda x: x - 5)(1.0))
    with watch() as seen:
        thread.start()
        thread.join()
    assert "Other threads traced or compiled meanwhile" in repr(seen)
    with watch() as seen:
        pass
    assert repr(seen).endswith("Nothing was traced or compiled here.")


def test_a_million_hits_are_told_at_once():
    f = watch(jax.jit(tripled))
    f(1.0), f(1.0)
    for _ in range(1_000_000):
        f._add_idle(1e-6)
    start = perf_counter()
    text, data = repr(f), f.to_dict()
    f.assert_compiles(at_most=1)
    assert perf_counter() - start < 2  # some 40 ms on a quiet machine
    assert "1000001 times" in text
    assert len(data["calls"]) == 2
    assert data["calls"][1]["count"] == 1_000_001


def test_results_can_be_pickled():
    f = watch(jax.jit(lambda x: x * 2))
    f(ones(2)), f(ones(2)), f(ones(3))
    log = pickle.loads(pickle.dumps(f))
    assert repr(log) == repr(f)
    assert log.calls == f.calls
    with watch() as seen:
        jax.jit(lambda x: x * 4)(1.0)
    assert repr(pickle.loads(pickle.dumps(seen))) == repr(seen)


def test_tables_fit_a_terminal():
    def a_function_with_a_name_that_fills_half_of_a_line(batch, settings):
        return batch["x"] * 2

    f = watch(jax.jit(a_function_with_a_name_that_fills_half_of_a_line, static_argnums=1))
    with watch() as seen:
        jax.jit(lambda x: x * 3)(ones(3))
        for n in (3, 4, 5):
            f({"x": ones(n)}, ("a setting that is long", n))
    for result in (f, seen):
        assert max(map(len, repr(result).splitlines())) <= 80, result
    rows = [line.split()[0] for line in repr(seen).splitlines()[1:]]
    assert [row for row in rows if row.startswith("a_function_with") and row.endswith("…")]
    assert "all" in rows


def test_calls_without_a_fast_path_are_told_from_hits_by_their_static_values():
    @watch
    @jax.jit
    def talks(x):
        jax.debug.callback(lambda v: None, x)
        return x

    for n in (3, 3, 3, 4, 3, 4):
        talks(ones(n))
    assert [call.outcome for call in talks.calls] == [
        "compiled", "left the fast path", "left the fast path", "compiled", "left the fast path", "left the fast path"
    ]  # fmt: skip
