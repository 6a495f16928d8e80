"""Tests use the package as its users do. Those that cannot are listed here, each with its reason."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

TESTS = Path(__file__).parent
ALLOWED = {
    "test_error_finder.py": "what the catalogue holds, which the browser gets too",
    "test_agreement.py": "equality of results: pure functions, tried on values that no variant returns",
    "test_catalogue.py": "the catalogue is data, and every entry of it is executed",
    "test_check.py": "rules: pure functions of jaxprs and of times; `compare` is replaced by fixed times",
    "test_device.py": "what is left out of the environment, and memory limits: pure functions",
    "test_ecosystem.py": "how a call is followed to its jitted function, which every instrument uses",
    "test_error_index.py": "the page of errors is made from the catalogue",
    "test_errors.py": "file names, cleaned texts and links: pure functions of text",
    "test_escaping.py": "results of hostile texts are built by hand, because running JAX for each would be slow",
    "test_events.py": "the listener itself, as JAX calls it",
    "test_gpu_texts.py": "texts of a GPU's programs: pure functions of them",
    "test_history.py": "the model of the caches and the equality of functions: pure; its bounds on memory",
    "test_jax_reads.py": "takes away each private read of JAX in turn",
    "test_jitted.py": "which files are yours: a pure function of a path",
    "test_phases.py": "a new jit keeps the shardings of the old one",
    "test_reasons.py": "the difference of two signatures, in words: pure functions",
    "test_record.py": "recordings made by hand, and each experiment on its own",
    "test_recorded_figures.py": "the function that a recording measures is that of the page",
    "test_roofline.py": "counts and rates: pure functions; what is measured is replaced by fixed numbers",
    "test_scaling.py": "notes of comparisons, made without measuring",
    "test_signature.py": "the signature of a call: a pure function",
    "test_stages.py": "tags, liveness and options: pure functions of programs",
    "test_stages_fallback.py": "takes from JAX what `stages` reads of it, to see it fall back",
    "test_stats.py": "statistics: pure functions of numbers",
    "test_timing.py": "the engine on a fake clock, and the load of a system that is read from a file",
    "test_watch_fallbacks.py": "takes from JAX what `watch` reads of it, to see it fall back",
}


def private_names(source: str) -> Iterator[str]:
    """Yield what a file takes from the private side of jitguide, by import or by a dotted name in a string."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.ImportFrom) and node.module:
            names = [f"{node.module}.{alias.name}" for alias in node.names]
        elif isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names = re.findall(r"\bjitguide\.[\w.]+", node.value)
            names += [f"{m}.{n}" for m, n in re.findall(r"from (jitguide[\w.]*) import (\w+)", node.value)]
        else:
            continue
        yield from (name for name in names if re.match(r"jitguide\.(.*\.)?_[a-z]", name))


def test_only_the_listed_files_use_private_names():
    files = [path for path in TESTS.rglob("*.py") if "bench" not in path.parts and path != Path(__file__)]
    found = {
        path.relative_to(TESTS).as_posix(): set(private_names(path.read_text("utf-8"))) for path in files
    }
    assert {name: sorted(found[name]) for name in found if found[name] and name not in ALLOWED} == {}
    assert [name for name in ALLOWED if not found.get(name)] == [], (
        "these need their place in ALLOWED no longer"
    )


@pytest.mark.parametrize(
    ("line", "private"),
    [
        ("from jitguide import watch", []),
        ("import jitguide.demos.cache_key", []),
        ("from jitguide.__main__ import main", []),
        ("from jitguide import _monitoring", ["jitguide._monitoring"]),
        ("import jitguide._watch.watch", ["jitguide._watch.watch"]),
        ("from jitguide._watch.watch import watch", ["jitguide._watch.watch.watch"]),
        ("patch('jitguide._timing.phases.compare')", ["jitguide._timing.phases.compare"]),
        ("run('from jitguide._errors import entries')", ["jitguide._errors", "jitguide._errors.entries"]),
    ],
)
def test_a_private_name_is_recognized(line, private):
    assert sorted(private_names(line)) == private
