"""Report for each cell of a page which program behaves: `python docs/_ext/programs/cli.py docs/howto/page.md`.

    line 41  level 1   9 lines  0.4 s  behaves
    line 55  level 2  23 lines  0.6 s  behaves, after level 1 did not

With `--show LINE` it prints the program of the cell in that line. The page is executed again, and nothing is stored.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from _ext import build
from _ext.execution import kernels, notebooks
from _ext.programs import candidates
from _ext.programs.render import Origin
from _ext.programs.slicer.statements import SliceError


def main() -> int:
    """Try the pages named on the command line; return 1 if a cell has no program that behaves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("pages", nargs="+", type=Path)
    parser.add_argument("--show", type=int, metavar="LINE", help="print the program of the cell in this line")
    options = parser.parse_args()
    failures = 0
    for path in options.pages:
        try:
            failures += _try(path, options.show)
        except (SliceError, notebooks.PageError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            failures += 1
    return 1 if failures else 0


def _try(path: Path, show: int | None) -> int:
    notebook = notebooks.read(path.read_text("utf-8"), path)
    notebooks.check(notebook)
    kernels.execute(notebook)
    code = notebooks.code_cells(notebook)
    name = "/".join(path.resolve().with_suffix("").parts[-2:])
    found = candidates.prepare(code, Origin(path.stem, name, build.JAX))
    first = {number: one.level for number, one in found.items()}
    candidates.choose(list(found.values()))
    print(path)
    for number, one in found.items():
        line, length = notebooks.line_of(notebook, code[number]), len(one.text.splitlines())
        verdict = f"DIFFERS: {one.problem}" if one.problem else "behaves"
        wider = f", after level {first[number]} did not" if one.level != first[number] else ""
        print(f"  line {line:4}  level {one.level}  {length:3} lines  {one.seconds:4.1f} s  {verdict}{wider}")
        if show == line:
            print(one.text)
    return sum(bool(one.problem) for one in found.values())


if __name__ == "__main__":
    sys.exit(main())
