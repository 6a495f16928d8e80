"""Opens and runs the files that pages offer to take away: python tests/site/downloads.py SITE [--all].

Every file of every page is opened and compared with the page's other files. Run, each from an empty folder
and in an interpreter of its own, are the Python file and the notebook without outputs of every page with
`--all`, or else of a few, chosen by what they hold: running all takes as long as building the guide again.
"""

from __future__ import annotations

import argparse
import builtins
import importlib.util
import os
import re
import subprocess
import symtable
import sys
import tempfile
import zlib
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import nbformat
from bs4 import BeautifulSoup
from nbclient import NotebookClient

SHARE = 12  # one file in so many is run
LIMIT = 300  # seconds for one file
HIDDEN = ("glue(", "myst_nb", "\N{WHITE SQUARE}", "{claim}", "{term}", "{code-cell}")


def offered(site: Path) -> dict[str, list[Path]]:
    """Return for each page the files that it links to as its own.

    Raises:
        AssertionError: A linked file is missing.
    """
    found = {}
    for page in sorted(site.rglob("*.html")):
        links = BeautifulSoup(page.read_text("utf-8"), "html.parser").select(".guide-twins a[href]")
        files = [page.parent / link["href"] for link in links if "://" not in link["href"]]
        missing = [file.name for file in files if not file.is_file()]
        assert not missing, f"{page.relative_to(site)} offers what is not there: {', '.join(missing)}"
        if files:
            found[str(page.relative_to(site).with_suffix(""))] = files
    return found


def problems(files: list[Path]) -> Iterator[str]:
    """Say what is wrong with the files of one page, without running them."""
    by_ending = {file.name.partition(".")[2]: file for file in files}
    name = files[0].name.partition(".")[0]
    if "py" in by_ending and importlib.util.find_spec(name):
        yield f"a Python file {name}.py hides the module {name} from every program beside it: rename the page"
    for ending, file in by_ending.items():
        if ending == "pdf":
            if not file.read_bytes().startswith(b"%PDF-"):
                yield f"{file.name} is no PDF"
            continue
        text = file.read_text("utf-8")
        found = [word for word in HIDDEN if word in text]
        if found and not file.name.startswith(("claims", "api")):
            yield f"{file.name} holds what no reader should see: {', '.join(found)}"
        if ending.endswith("ipynb"):
            nbformat.validate(nbformat.reads(text, 4))
        if ending == "py" and (missing := undefined(text, file.name)):
            yield f"the Python file uses what it does not define: {', '.join(missing)}"
    if "ipynb" in by_ending:
        yield from notebook_problems(by_ending)


def undefined(text: str, name: str) -> list[str]:
    """Return the global names that a program uses and never defines."""
    top = symtable.symtable(text, name, "exec")
    tables, used = [top], set()
    defined = {
        symbol.get_name() for symbol in top.get_symbols() if symbol.is_assigned() or symbol.is_imported()
    }
    while tables:
        table = tables.pop()
        tables += table.get_children()
        symbols = table.get_symbols()
        free = [
            s for s in symbols if s.is_referenced() and (table is top or (s.is_global() and not s.is_local()))
        ]
        used |= {symbol.get_name() for symbol in free}
        defined |= {s.get_name() for s in symbols if s.is_declared_global() and s.is_assigned()}
    return sorted(used - defined - {*dir(builtins), "__file__", "__name__"})


def notebook_problems(by_ending: dict[str, Path]) -> Iterator[str]:
    """Say where the two notebooks and the Markdown of one page differ."""
    full, bare = (nbformat.read(by_ending[e], 4) for e in ("ipynb", "to-run.ipynb"))
    code = [[c.source for c in n.cells if c.cell_type == "code"] for n in (full, bare)]
    if code[0] != code[1]:
        yield "the two notebooks differ in their code"
    if any(c.get("outputs") for c in bare.cells):
        yield "the notebook to run has outputs"
    shown = [output.get("data", {}) for c in full.cells for output in c.get("outputs", [])]
    if any("<svg" in data.get("text/html", "") for data in shown):
        yield "the notebook with outputs has a drawing, which JupyterLab drops"
    plain = by_ending["md"].read_text("utf-8")
    if "```text" in plain and not any(c.get("outputs") for c in full.cells):
        yield "the notebook with outputs has none"
    headings = re.findall(r"(?m)^(#+) ", re.sub(r"(?ms)^ *```.*?^ *```$", "", plain))
    page = BeautifulSoup(by_ending["md"].with_suffix(".html").read_bytes(), "html.parser")
    on_page = [
        h.name for h in page.select("article section:not(#questions-answered-here) > :is(h1, h2, h3, h4)")
    ]
    if [f"h{len(hashes)}" for hashes in headings] != on_page:
        yield "the Markdown's headings have other levels than the page's"
    hidden = {c.source for c in full.cells if c.metadata.get("jupyter", {}).get("source_hidden")}
    if lost := [source.splitlines()[0] for source in code[0] if source not in plain and source not in hidden]:
        yield f"the Markdown lacks {len(lost)} cells, the first begins {lost[0]!r}"
    if extra := [source.splitlines()[0] for source in hidden if source in plain]:
        yield f"the Markdown has {len(extra)} cells that the page hides, the first begins {extra[0]!r}"


def run(file: Path) -> str | None:
    """Run a file from an empty folder; return what went wrong, or None."""
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("JAX_", "XLA_"))}
    environment |= {"MPLBACKEND": "agg", "PYTHONDONTWRITEBYTECODE": "1", "JUPYTER_PLATFORM_DIRS": "1"}
    with tempfile.TemporaryDirectory() as folder:
        if file.suffix == ".ipynb":
            client = NotebookClient(
                nbformat.read(file, 4), timeout=LIMIT, resources={"metadata": {"path": folder}}
            )
            try:
                client.execute(env=environment)
            except Exception as error:
                return f"{type(error).__name__}: {str(error)[-800:]}"
            return None
        done = subprocess.run(
            [sys.executable, file], cwd=folder, env=environment, capture_output=True, text=True,
            timeout=LIMIT, check=False,
        )  # fmt: skip
        return None if done.returncode == 0 else done.stderr[-800:]


def main() -> int:
    """Check all, run some or all, print a line; return 1 if anything is wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("site", type=Path, help="folder of the built site")
    parser.add_argument("--all", action="store_true", help="run the files of every page")
    options = parser.parse_args()
    options.site = options.site.resolve()  # the files are run from other folders
    if not options.site.joinpath("index.html").exists():
        parser.error(f"there is no built site in {options.site}: run `nox -s docs` first.")
    pages = offered(options.site)
    wrong = [f"{page}: {problem}" for page, files in pages.items() for problem in problems(files)]
    chosen = [
        file
        for files in pages.values()
        for file in files
        if file.name.endswith((".py", ".to-run.ipynb"))
        and (options.all or zlib.crc32(file.read_bytes()) % SHARE == 0)
    ]
    with ThreadPoolExecutor(2) as pool:
        wrong += [
            f"{f.relative_to(options.site)}: {e}"
            for f, e in zip(chosen, pool.map(run, chosen), strict=True)
            if e
        ]
    for line in wrong:
        print(line, file=sys.stderr)
    files = sum(map(len, pages.values()))
    print(f"downloads: {len(pages)} pages, {files} files opened, {len(chosen)} run, {len(wrong)} problems")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
