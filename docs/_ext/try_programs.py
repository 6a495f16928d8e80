"""Says for each cell of a page which program behaves: `python docs/_ext/try_programs.py docs/howto/page.md`.

    line 41  rung 1   9 lines  0.4 s  behaves
    line 55  rung 2  23 lines  0.6 s  behaves, after what rung 1 gives did not

With `--show LINE` it prints the program of the cell in that line. Outputs are computed anew, nothing is kept.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import jax

from _ext import kernels, ladder, pages
from _ext.program_text import Origin
from _ext.slicing import SliceError


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
        except (SliceError, pages.PageError) as error:
            print(f"{path}: {error}", file=sys.stderr)
            failures += 1
    return 1 if failures else 0


def _try(path: Path, show: int | None) -> int:
    notebook = pages.read(path.read_text("utf-8"), path)
    pages.check(notebook)
    kernels.execute(notebook)
    code = pages.code_cells(notebook)
    name = "/".join(path.resolve().with_suffix("").parts[-2:])
    climbs = ladder.prepare(code, Origin(path.stem, name, jax.__version__))
    first = {number: climb.programs[0][0] for number, climb in climbs.items()}
    ladder.climb(climbs.values())
    print(path)
    for number, climb in climbs.items():
        (rung, text), line = climb.programs[0], pages.line_of(notebook, code[number])
        said = f"DIFFERS: {climb.why}" if climb.why else "behaves"
        wider = f", after rung {first[number]} did not" if rung != first[number] else ""
        print(
            f"  line {line:4}  rung {rung}  {len(text.splitlines()):3} lines  {climb.seconds:4.1f} s  {said}{wider}"
        )
        if show == line:
            print(text)
    return sum(bool(climb.why) for climb in climbs.values())


if __name__ == "__main__":
    sys.exit(main())
