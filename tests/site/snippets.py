"""Runs what both buttons of every Python block of the built site really copy: `python tests/site/snippets.py`.

It reads the HTML and trusts nothing else: not what the build found out, and not how the programs were made.
The last line is `snippets: N blocks, N programs, N behaved`; anything else is listed above it.
"""

from __future__ import annotations

import argparse
import sys
import time
from datetime import date
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "docs"), str(Path(__file__).parent)]

import blocks  # noqa: E402 -- beside this file
from _ext.programs import (
    compare_outputs,
    runner,
)

# One program in sixty gets an interpreter of its own: forking must not be what makes it work.
_FRESH_EVERY = 60
_SLOWEST = 10  # programs whose time is told


def jobs(found: list[blocks.Block], fresh: bool = False) -> list[runner.Job]:
    """Return what there is to run."""
    made = []
    for i, block in enumerate(found):
        own = fresh or block.whole or i % _FRESH_EVERY == 0 or runner.needs_fresh(block.program)
        shown = block.expected.shown is not None
        made.append(runner.Job(block.name, block.program, block.begins, shown, own))
    return made


def complaint(block: blocks.Block, runs: list[runner.Outcome]) -> str:
    """Return how the program misbehaves, or an empty text."""
    shown = [block.value_lines(run) for run in runs] if block.expected.shown is not None else None
    if block.only_class:
        return (
            ""
            if runs[0].error == block.expected.error
            else f"it raises {runs[0].error}: {runs[0].message[:300]}"
        )
    return compare_outputs.difference(block.expected, runs, compare_outputs.instruments(block.program), shown)


def prove(found: list[blocks.Block], workers: int) -> tuple[dict[str, str], dict[str, float]]:
    """Run every program; return what is wrong with each that misbehaves, and the seconds that each took."""
    first = runner.run(jobs(found), workers)
    runs = {name: [outcome] for name, outcome in first.items()}
    unsure = [block for block in found if complaint(block, runs[block.name])]
    # What is measured differs each time; what fails in a forked process may be right in one of its own.
    for fresh in (False, True):
        again = [block for block in unsure if fresh or compare_outputs.instruments(block.program)]
        outcomes = runner.run(jobs(again, fresh), workers)
        for block in again:
            runs[block.name].insert(0, outcomes[block.name])
        unsure = [b for b in unsure if complaint(b, runs[b.name][:1]) and complaint(b, runs[b.name])]
    wrong = {block.name: complaint(block, runs[block.name]) for block in unsure}
    return wrong, {name: outcome.seconds for name, outcome in first.items()}


def main(arguments: list[str] | None = None) -> int:
    """Prove the site; return 1 if a block has no program or its program misbehaves."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("html", nargs="?", type=Path, default=ROOT / "docs" / "_build" / "html")
    parser.add_argument("--only", default="", metavar="TEXT", help="pages whose name contains TEXT")
    parser.add_argument("--share", type=int, default=1, metavar="N", help="run one in N, others each day")
    parser.add_argument("--workers", type=int, default=2)
    parser.add_argument("--no-sources", action="store_true", help="the site was not built from this checkout")
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    found = blocks.of_site(options.html, options.only)
    wrong = blocks.problems(found, None if options.no_sources else ROOT / "docs")
    today = date.today().toordinal()
    programs = [block for block in found if block.program]
    whole = [block for i, block in enumerate(programs) if i % options.share == today % options.share]
    misbehaved, seconds = prove(whole, options.workers)
    wrong |= {name: [*wrong.get(name, []), told] for name, told in misbehaved.items()}
    for name, told in sorted(wrong.items()):
        print(*(f"{name}: {one}" for one in told), sep="\n")
    behaved = len([block for block in whole if block.name not in wrong])
    slowest = sorted(seconds, key=seconds.get, reverse=True)[:_SLOWEST]
    print("slowest:", "; ".join(f"{name} {seconds[name]:.1f} s" for name in slowest))
    print(f"took {time.perf_counter() - start:.0f} s")
    tried = f", {len(whole)} of them run today" if options.share > 1 else ""
    print(f"snippets: {len(found)} blocks, {len(programs)} programs{tried}, {behaved} behaved")
    return 0 if found and len(programs) == len(found) and behaved == len(whole) and not wrong else 1


if __name__ == "__main__":
    sys.exit(main())
