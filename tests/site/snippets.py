"""Run what both buttons of every Python block of the built site really copy: `python tests/site/snippets.py`.

It reads the HTML and trusts nothing else: neither the findings of the build nor the way in which the programs were made.
The last line is `snippets: N blocks, N programs, N behaved`; anything else is listed above it.
"""

from __future__ import annotations

import argparse
import sys
import time
import zlib
from collections.abc import Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(Path(__file__).parent)]

import blocks  # noqa: E402 -- beside this file
from _ext.programs import compare_outputs, runner  # noqa: E402
from _ext.programs.prove import Trial, prove  # noqa: E402

# One program in sixty gets a process of its own: forking must not be what makes it work.
_FRESH_EVERY = 60
_SLOWEST = 10  # programs whose time is reported


def trial(block: blocks.Block, fresh: bool) -> Trial:
    """Return the program of a block with what the page shows below it; `fresh` asks for its own process at once."""
    clocks = compare_outputs.instruments(block.program)
    fresh = fresh or block.whole or runner.needs_fresh(block.program)
    shown = block.expected.shown is not None

    def difference(runs: Sequence[runner.Outcome]) -> str:
        if block.only_class:
            same = runs[0].error == block.expected.error
            return "" if same else f"it raises {runs[0].error}: {runs[0].message[:300]}"
        values = [block.value_lines(run) for run in runs] if shown else None
        return compare_outputs.difference(block.expected, runs, clocks, values)

    return Trial(
        lambda own: runner.Job(block.name, block.program, block.begins, shown, own or fresh),
        difference,
        bool(clocks),
    )


def main(arguments: list[str] | None = None) -> int:
    """Prove the site; return 1 if a block has no program or its program misbehaves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("html", nargs="?", type=Path, default=ROOT / "docs" / "_build" / "html")
    parser.add_argument("--only", default="", metavar="TEXT", help="pages whose name contains TEXT")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="run one in N, by its text")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-sources", action="store_true", help="the site was not built from this checkout")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    found = blocks.of_site(options.html, options.only)
    wrong = blocks.problems(found, None if options.no_sources else ROOT / "docs")
    programs = [block for block in found if block.program]
    # By the text, not by the day: a run fails because of what changed, and a changed program has another chance.
    whole = [block for block in programs if zlib.crc32(block.program.encode()) % options.share == 0]
    trials = {block.name: trial(block, i % _FRESH_EVERY == 0) for i, block in enumerate(whole)}
    verdicts = prove(trials, options.workers)
    wrong |= {name: [*wrong.get(name, []), v.difference] for name, v in verdicts.items() if v.difference}
    for name, told in sorted(wrong.items()):
        print(*(f"{name}: {one}" for one in told), sep="\n")
    behaved = len([block for block in whole if block.name not in wrong])
    slowest = sorted(verdicts, key=lambda name: verdicts[name].seconds, reverse=True)[:_SLOWEST]
    print("slowest:", "; ".join(f"{name} {verdicts[name].seconds:.1f} s" for name in slowest))
    print(f"took {time.perf_counter() - start:.0f} s")
    tried = f", {len(whole)} of them run" if options.share > 1 else ""
    print(f"snippets: {len(found)} blocks, {len(programs)} programs{tried}, {behaved} behaved")
    return 0 if found and len(programs) == len(found) and behaved == len(whole) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
