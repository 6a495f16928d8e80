"""The text of a program: a line that names the page, the kept statements, and the block itself."""

from __future__ import annotations

import ast
import contextlib
import functools
import itertools
import re
import sys
import textwrap
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from .slicer import Cell, Page
from .slicer.statements import Statement, parse

BOUNDARY = "# --- this block"
FAILS = "# Meant to fail: "
WARNS = "# Meant to warn: "
MEASURES = "# Prints what it measures: yours will differ."
PRINTS = "# The blocks before this one print as well."
_DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_SETTINGS = re.compile(r"\benviron\b|\bjax\.config\b")
_KNOWN = ("jax", "numpy", "jitguide", "matplotlib")  # the order in which they are named


@dataclass(frozen=True)
class Origin:
    """Where a program comes from: title and name of the page, and the JAX that ran it."""

    title: str
    page: str
    jax: str


def write(page: Page, target: int, level: int, origin: Origin, notes: Sequence[str] = ()) -> str:
    """Return the program of one cell.

    Example:
        >>> page = Page([Cell("import math"), Cell("r = 2"), Cell("math.pi * r**2", shown=True)])
        >>> print(write(page, 2, 1, Origin("Circles", "learn/circles", "0.12.0")))
        # From "Circles" (learn/circles), JAX 0.12.0. Needs: Python alone.
        <BLANKLINE>
        import math
        <BLANKLINE>
        r = 2
        <BLANKLINE>
        # --- this block
        print(math.pi * r**2)
        <BLANKLINE>
    """
    cell = page.cells[target]
    kept = earlier(page, page.choose(target, level), page.parsed[target])
    block = own(cell)
    if cell.draws:
        bound = "import matplotlib.pyplot as plt" in f"{kept}\n{block}"
        block += "\n" if bound else "\n\nimport matplotlib.pyplot as plt\n\n"
        block += "plt.show()"
    notes = [FAILS + f"{cell.raised}." if cell.raised else "", *notes]
    return assemble(kept, block, origin, [note for note in notes if note])


def assemble(kept: str, block: str, origin: Origin, notes: Sequence[str] = ()) -> str:
    """Return a program with its first lines, ending in a line break.

    Example:
        >>> print(assemble("print('before')", "print('this')", Origin("A page", "learn/a-page", "0.12.0")))
        # From "A page" (learn/a-page), JAX 0.12.0. Needs: Python alone.
        # The blocks before this one print as well.
        <BLANKLINE>
        print('before')
        <BLANKLINE>
        # --- this block
        print('this')
        <BLANKLINE>
    """
    earlier_code = ast.parse(kept)
    around = [*earlier_code.body[-1:], *ast.parse(block).body[:1]]
    gap = "\n\n\n" if any(isinstance(node, _DEFINITIONS) for node in around) else "\n\n"
    code = f"{kept}{gap}{BOUNDARY}\n{block}" if kept else block
    first = f'# From "{origin.title}" ({origin.page}), JAX {origin.jax}. Needs: {needs(code)}.'
    if _prints(earlier_code):
        notes = [*notes, PRINTS]
    return "\n".join([first, *notes, "", code.rstrip(), ""])


def _prints(node: ast.AST) -> bool:
    """Return whether code prints where it stands, and not only where a function of it is called."""
    if isinstance(node, _DEFINITIONS | ast.Lambda):
        return False
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "print":
        return True
    return any(map(_prints, ast.iter_child_nodes(node)))


def needs(code: str) -> str:
    r"""Return the packages outside of Python that a program imports, as words.

    Example:
        >>> needs("import jax.numpy as jnp, numpy\nimport time")
        'jax, numpy'
    """
    found = _imported(code)
    foreign = found - set(sys.stdlib_module_names)
    ordered = [name for name in _KNOWN if name in foreign] + sorted(foreign - set(_KNOWN))
    return ", ".join(ordered) or "Python alone"


@functools.cache  # a text may stand in all the programs of its page
def _imported(code: str) -> frozenset[str]:
    """Return the packages that a program imports, or a program that is a text in it; or that draws for it."""
    found: set[str] = set()
    for node in ast.walk(ast.parse(code)):
        match node:
            case ast.Import(names=names):
                found |= {a.name.split(".")[0] for a in names}
            case ast.ImportFrom(module=str(module), level=0):
                found.add(module.split(".")[0])
            case ast.Call(func=ast.Attribute(attr="plot"), args=[]):  # of what jitguide measured
                found.add("matplotlib")
            case ast.Constant(value=str(text)) if "import " in text:
                with contextlib.suppress(SyntaxError):
                    found |= _imported(textwrap.dedent(text))
    return frozenset(found)


def own(cell: Cell) -> str:
    """Return the cell's own text; a script shows no values, so a value that the page shows is printed."""
    source = cell.source.rstrip()
    if not cell.shown or cell.raised:
        return source
    last = ast.parse(source).body[-1]
    value = ast.get_source_segment(source, last)
    if not isinstance(last, ast.Expr) or value is None:
        return source
    text = source.encode()  # positions in a syntax tree count bytes
    start = sum(len(line) for line in text.splitlines(keepends=True)[: last.lineno - 1]) + last.col_offset
    before, after = text[:start].decode(), text[start + len(value.encode()) :].decode()
    call = ast.parse(f"print({value})", mode="eval").body
    if isinstance(call, ast.Call) and len(call.args) != 1:  # a tuple without parentheses
        value = f"({value})"
    return f"{before}print({value}){after}"


def earlier(page: Page, kept: Sequence[Statement], target: Sequence[Statement]) -> str:
    """Return the kept statements as text: their own lines, and of imports what is used, at the top.

    An import below a line that sets the environment or JAX's settings stays there.
    """
    used, mentioned = _used([*kept, *target]), set().union(*(s.mentions for s in [*kept, *target]))
    parts: list[tuple[Statement, str]] = []
    seen = set()
    for s in kept:
        lines = "\n".join(page.cells[s.cell].source.splitlines()[s.first - 1 : s.last])
        text = _trimmed(s, used, mentioned, lines) if s.is_import else lines
        if text and not (s.is_import and text in seen):
            seen.add(text)
            parts.append((s, text))
    sets = (i for i, (s, line) in enumerate(parts) if not s.is_import and _SETTINGS.search(line))
    free = next(sets, len(parts))
    parts = sorted(parts[:free], key=lambda part: not part[0].is_import) + parts[free:]
    runs = itertools.groupby(parts, key=lambda part: part[0].is_import)
    parts = [part for _, run in runs for part in sorted(run, key=lambda part: _is_foreign(part[0]))]
    text = ""
    for (before, _), (s, own_text) in zip([(None, ""), *parts], parts, strict=False):
        text += "\n" * (1 + _gap(page, before, s)) + own_text if before else own_text
    return text


def _is_foreign(s: Statement) -> bool:
    """Return whether a statement imports another package than Python's own, which come first."""
    return s.is_import and bool(
        _imported("\n".join(map(ast.unparse, s.nodes))) - set(sys.stdlib_module_names)
    )


def used_imports(prelude: str, code: str) -> str:
    r"""Return those lines of a prelude of imports that a block needs.

    Example:
        >>> used_imports("import jax\nimport jax.numpy as jnp", "jnp.ones(3)")
        'import jax.numpy as jnp'
    """
    statements, lines = parse(code), prelude.splitlines()
    used, mentioned = _used(statements), set().union(*(s.mentions for s in statements))
    texts = [_trimmed(s, used, mentioned, "\n".join(lines[s.first - 1 : s.last])) for s in parse(prelude)]
    return "\n".join(text for text in texts if text)


def _used(statements: Iterable[Statement]) -> set[str]:
    found: set[str] = set()
    for s in statements:
        if not s.is_import:
            found |= s.reads | s.later | s.changes
    return found


def _trimmed(s: Statement, used: set[str], mentioned: set[str], text: str) -> str:
    """Return an import less the names that nothing in the program reads; its own text if that is all of them."""
    lines, whole = [], True
    for node in s.nodes:
        assert isinstance(node, ast.Import | ast.ImportFrom)
        names = [a for a in node.names if _is_read(a, used, mentioned)]
        whole = whole and len(names) == len(node.names)
        if names:
            copy = type(node)(**{**dict(ast.iter_fields(node)), "names": names})
            lines.append(ast.unparse(copy))
    return text if whole else "\n".join(lines)


def _is_read(alias: ast.alias, used: set[str], mentioned: set[str]) -> bool:
    first, *parts = alias.name.split(".")
    return alias.asname in used if alias.asname else first in used and mentioned.issuperset(parts)


def _gap(page: Page, before: Statement, s: Statement) -> int:
    """Return the number of blank lines between two kept statements, as a formatter would have it."""
    if before.is_import and s.is_import:
        return int(_is_foreign(before) != _is_foreign(s))
    if isinstance(before.nodes[-1], _DEFINITIONS) or isinstance(s.nodes[0], _DEFINITIONS):
        return 2
    if before.cell != s.cell or before.is_import:
        return 1
    lines, above = page.cells[s.cell].source.splitlines(), s.first - 1
    return min(1, int(above > 0 and not lines[above - 1].strip()))
