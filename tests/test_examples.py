"""Each program in examples/ runs alone, checks its result, explains itself, and refuses a wrong argument."""

import ast
import os
import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.timeout(300)  # runs whole programs, which a busy machine makes several times slower
ROOT = Path(__file__).parents[1]
PROGRAMS = sorted((ROOT / "examples").glob("*.py"))
# For each program a wrong argument, and what it has to say to it.
WRONG = {
    "bucketed_batches": ("--sequences=0", "'0' is not a positive whole number. Give one"),
    "compile_ahead": ("--rows=-3", "'-3' is not a positive whole number. Give one"),
    "find_your_recompiles": ("--requests=1", "'1' is not a whole number of at least 2. Give the number"),
    "many_devices": ("--devices=1", "'1' is not a whole number from 2 to 64. Give the number of devices"),
    "measure_your_function": ("--size=many", "'many' is not a positive whole number. Give the length"),
    "ode_ladder": ("--long=3000000000", "'3000000000' is not a positive whole number. Give one below 2**31"),
    "sampling_loop": ("--chains=1", "'1' is not a whole number from 20 to 1000000. Give one"),
    "several_processes": ("--processes=17", "--processes is 17. Give at most 16"),
    "start_up_cache": (f"--folder={__file__}/x", "Not a directory. Name a folder"),
    "test_compiles_once": ("--rows=3", "unrecognized arguments: --rows=3"),
    "training_loop": ("--batch=5000", "--batch is 5000, and there are 4096 examples. Give at most that many"),
}
# For each program how to make its check fail: a piece of its text, and what to put in its place.
SABOTAGE = {
    "bucketed_batches": ("axis=(1, 2), where=both)", "axis=(1, 2))"),
    "compile_ahead": ("jnp.tanh(product)", "jnp.sin(product)"),
    "find_your_recompiles": (", where=real)", ", where=real) + 1"),
    "many_devices": ("on_one = loss(\n", "on_one = 2 * loss(\n"),
    "measure_your_function": ("jax.jit(mine)}", "jax.jit(lambda x: mine(x) + 1)}"),
    "ode_ladder": ("lambda _, state: step(state)", "lambda _, state: state"),
    "sampling_loop": ("jax.random.uniform(to_decide)", "0.5"),
    "several_processes": ("split, data_of(process, rows)", "split, 2 * data_of(process, rows)"),
    "start_up_cache": ("use_cache(folder)\n", "pass\n"),
    "test_compiles_once": ("neighbours = (", "neighbours = 2 * ("),
    "training_loop": ('(donate_argnames="state")', ""),
}
# Arguments that make a program quick; the pages run them with their defaults.
SMALL = {
    "bucketed_batches": ("--sequences=100",),
    "sampling_loop": ("--steps=200", "--rounds=2"),
    "training_loop": ("--steps=300",),
}
NAMES = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.stem)


def run(program, folder, *arguments, **settings):
    # The path of the package, for where it is not installed.
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "JITGUIDE_BUDGET_SCALE": "0.1", **settings}
    return subprocess.run(
        [sys.executable, str(program), *arguments],
        capture_output=True,
        text=True,
        check=False,
        cwd=folder,
        env=environment,
        timeout=250,
    )


@pytest.mark.slow
@NAMES
def test_a_program_runs_from_any_folder_and_checks_its_result(program, tmp_path):
    anywhere, cache = tmp_path / "anywhere", tmp_path / "cache"
    anywhere.mkdir()
    settings = {"JAX_COMPILATION_CACHE_DIR": str(cache), "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    # What it counts must be the same where a persistent cache has everything: run that one again.
    counts = "assert_traces" in program.read_text("utf-8")
    for _ in range(2 if counts else 1):
        ran = run(program, anywhere, *SMALL.get(program.stem, ()), **(settings if counts else {}))
        assert ran.returncode == 0, ran.stderr
        assert re.match(r"checked: .*\w$", ran.stdout.splitlines()[-1])
        assert not ran.stderr
    assert not list(anywhere.iterdir()), "a program leaves nothing behind unasked"
    assert cache.exists() == counts


@pytest.mark.slow
@NAMES
def test_a_wrong_result_is_an_error(program, tmp_path, capsys):
    text, (good, bad) = program.read_text("utf-8"), SABOTAGE[program.stem]
    small = SMALL.get(program.stem, ())
    assert good in text
    broken = tmp_path / program.name
    broken.write_text(text.replace(good, bad), "utf-8")
    if "jax_num_cpu_devices" in text:  # has to be set before JAX starts
        ran = run(broken, tmp_path, *small)
        code, out = ran.stderr, ran.stdout
    else:
        with pytest.raises(SystemExit) as ended:
            runpy.run_path(str(broken))["main"](small)
        code, out = ended.value.code, capsys.readouterr().out
    assert code.startswith("The check failed")
    assert "checked:" not in out


@NAMES
def test_a_program_explains_itself_and_refuses_a_wrong_argument(program, capsys):
    main = runpy.run_path(str(program))["main"]
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "usage:" in (text := capsys.readouterr().out)
    assert f"python {program.name}" in text
    argument, answer = WRONG[program.stem]
    with pytest.raises(SystemExit, match="2"):
        main([argument])
    said = capsys.readouterr()
    assert answer in said.err
    assert not said.out


@NAMES
def test_a_program_is_short_and_needs_nothing_but_jax_numpy_and_the_package(program):
    text = program.read_text("utf-8")
    assert 30 <= len(text.splitlines()) <= 200  # of at most 76 columns
    allowed = {*sys.stdlib_module_names, "jax", "numpy", "jitguide"}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [node.module] if isinstance(node, ast.ImportFrom) else [a.name for a in node.names]
            assert {name.split(".")[0] for name in names} <= allowed


@NAMES
def test_a_program_has_a_page_that_shows_it_runs_it_and_offers_it(program):
    page = (ROOT / "docs" / "examples" / f"{program.stem.replace('_', '-')}.md").read_text("utf-8")
    assert f"```{{literalinclude}} ../../examples/{program.name}\n" in page
    assert f"{{download}}`{program.name} <../../examples/{program.name}>`" in page
    assert f'examples / "{program.name}"' in page
    index = (ROOT / "docs" / "examples" / "index.md").read_text("utf-8")
    assert f"({program.stem.replace('_', '-')}.md)" in index


@pytest.mark.slow
def test_the_test_that_is_a_program_runs_under_pytest(tmp_path):
    program = ROOT / "examples" / "test_compiles_once.py"
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(program), "-c", os.devnull]
    ran = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    assert ran.returncode == 0, ran.stdout
    assert "5 passed" in ran.stdout


def test_there_are_programs_and_each_is_asked_for_a_mistake():
    assert {program.stem for program in PROGRAMS} == set(WRONG) == set(SABOTAGE)


# Programs with a user's own function: pieces of the text, what replaces them, and a part of the output.
NORMAL = ("(SHAPE - 1) * jnp.log(inside) - RATE * x", "-0.5 * (x - MEAN) ** 2")
ADAPTED = {
    "a small mean in two processes": (
        "several_processes",
        [
            ("return (x**2).sum()", "return x.mean()"),
            (
                "np.sum(data_of(i, options.rows).astype(float) ** 2)",
                "data_of(i, options.rows).astype(float).mean() / options.processes",
            ),
        ],
        r"checked: every process has the total, -0\.0511407",
    ),
    "a variance far from zero": (
        "sampling_loop",
        [NORMAL, ("SHAPE / RATE, SHAPE / RATE**2", "10000.0, 1.0")],
        r"variance: (1\.0|0\.9)\d+ ± 0\.0",
    ),
    "a state of several numbers, as the page says": (
        "sampling_loop",
        [
            (
                "(SHAPE - 1) * jnp.log(inside) - RATE * x, -jnp.inf\n    )",
                "-0.5 * inside**2, -0.5 * x**2).sum()",
            ),
            ("SHAPE / RATE, SHAPE / RATE**2", "0.0, 1.0"),
            ("options.chains, MEAN", "(options.chains, 2), MEAN"),
            ("jax.random.normal(to_walk)", "jax.random.normal(to_walk, x.shape)"),
            ("off = state[0] - MEAN", "off = state[0][0] - MEAN"),
        ],
        "checked: one trace, mean",
    ),
    "a gradient that masked zeros would make NaN": (
        "many_devices",
        [
            (
                "    miss = jnp.tanh(rows @ weights) - targets\n    return jnp.mean(miss**2, where=real)",
                "    def mean(w):\n        lengths = jnp.linalg.norm(rows * w[:, 0], axis=1, keepdims=True)\n"
                "        return jnp.mean(rows @ w / lengths, where=real)\n\n    return jax.grad(mean)(weights).sum()",
            )
        ],
        "checked: many devices",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", ADAPTED)
def test_a_program_holds_what_it_says_for_other_functions(name, tmp_path):
    program, changes, answer = ADAPTED[name]
    text = (ROOT / "examples" / f"{program}.py").read_text("utf-8")
    for old, new in changes:
        assert old in text
        text = text.replace(old, new)
    (tmp_path / f"{program}.py").write_text(text, "utf-8")
    ran = run(f"{program}.py", tmp_path, *SMALL.get(program, ()))
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert re.search(answer, ran.stdout), ran.stdout


@pytest.mark.slow
def test_processes_of_one_machine_need_no_proxy(tmp_path):
    program = ROOT / "examples" / "several_processes.py"
    ran = run(program, tmp_path, http_proxy="http://127.0.0.1:9", no_proxy="", no_grpc_proxy="")
    assert ran.returncode == 0, ran.stdout


@pytest.mark.slow
def test_the_cache_folder_may_be_given_with_a_tilde(tmp_path):
    ran = run(
        ROOT / "examples" / "start_up_cache.py",
        tmp_path,
        "--folder=~/cache",
        HOME=str(tmp_path),
        USERPROFILE=str(tmp_path),
    )
    assert ran.returncode == 0, ran.stderr
    assert {path.name for path in tmp_path.iterdir()} <= {"cache", ".nv"}  # the second is CUDA's
    assert f"in {len(list((tmp_path / 'cache').iterdir()))} files" in ran.stdout


@pytest.mark.slow
def test_another_process_takes_any_tree_of_any_dtype(tmp_path):
    pytest.importorskip("flatbuffers")
    program = runpy.run_path(str(ROOT / "examples" / "compile_ahead.py"))
    jax, jnp = program["jax"], program["jnp"]
    weights, rows = {"w": jnp.ones((4, 4), jnp.bfloat16)}, jnp.ones((3, 4), jnp.bfloat16)
    exported = jax.export.export(jax.jit(lambda weights, rows: rows @ weights["w"]))(weights, rows)
    result, _ = program["save_and_load"](exported, weights, rows)
    assert result.dtype == jnp.bfloat16
    assert (result == 4).all()
