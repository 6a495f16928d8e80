"""Tells changed experiments from others: a digest of each, which needs neither JAX nor pytest."""

import ast
import hashlib
from pathlib import Path

FOLDER = Path(__file__).parent


def digests_of_all():
    """Return the digest of each experiment of this folder by the id of its claim."""
    return {name: digest for path in FOLDER.glob("test_*.py") for name, digest in digests(path).items()}


def digests(path):
    """Return what changes when an experiment of the file changes, by the id of its claim.

    That is its code, what the experiments of the file share, and what all files share; neither the words of the
    claim nor the imports.
    """
    here = [FOLDER / name for name in ("conftest.py", "hostile.py")]
    source = path.read_text("utf-8")
    lines = [line.encode() for line in source.split("\n")]  # ast counts columns in bytes
    nodes = ast.parse(source).body
    tests = [node for node in nodes if getattr(node, "name", "").startswith("test_")]
    left_out = [*tests, *(node for node in nodes if isinstance(node, ast.Import | ast.ImportFrom))]
    if ast.get_docstring(ast.parse(source)):
        left_out.append(nodes[0])
    shared = [_text(lines, node) for node in nodes if node not in left_out]
    common = "\n".join([*map(Path.read_text, here), *shared])
    found = {}
    for test in tests:
        claims = [d for d in test.decorator_list if getattr(getattr(d, "func", None), "attr", "") == "claim"]
        parts = [_text(lines, node) for node in [*test.decorator_list, test] if node not in claims]
        for claim in claims:
            text = "\n".join([common, *parts])
            found[ast.literal_eval(claim.args[0])] = hashlib.sha256(text.encode()).hexdigest()[:16]
    return found


def _text(lines, node):
    """Return the code of a node; `ast.get_source_segment` would split the whole file for each."""
    text = b"\n".join(lines[node.lineno - 1 : node.end_lineno])
    left_out = len(lines[node.end_lineno - 1]) - node.end_col_offset
    return text[node.col_offset : len(text) - left_out].decode()
