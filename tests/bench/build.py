"""What a clean build of the site costs over its floor, and over stock MyST-NB running the same pages.

The floor is what no order of the cells can save: the seconds of the cells that measure, which run alone, those of
all others shared by the cores, and rendering alone, which is a second build with the outputs of the first. Stock
MyST-NB (`nb_execution_mode = "cache"`, two processes) lets pages that measure disturb each other, so it has less to
wait for. `--quick` builds a few pages.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from _bench import arguments, exit_code, write

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
TARGET, STOCK_TARGET = 1.3, 0.7
QUICK_PAGES = (
    "index",
    "learn/index",
    "howto/index",
    "learn/shapes",
    "learn/purity",
    "howto/timing",
    "howto/devices",
)
STOCK = f"""
from pathlib import Path
__file__ = {str(DOCS / "conf.py")!r}
exec(compile(Path(__file__).read_text("utf-8"), __file__, "exec"))
extensions = [name for name in extensions if not name.startswith("_ext.")] + ["_ext.directives", "_ext.claims"]
del nb_custom_formats, guide_store
nb_execution_mode, nb_execution_timeout = "cache", 600
html_theme_options, html_sidebars = dict(), dict()
html_static_path, templates_path, html_css_files, html_js_files, html_logo, html_favicon = [], [], [], [], None, None
"""


def sphinx(folder, *options, **environment):
    """Run Sphinx with everything it writes in the folder; return the seconds it took."""
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-q",
        "-E",
        "-j",
        "2",
        "-d",
        folder / "doctrees",
        *options,
        DOCS,
        folder / "html",
    ]
    start = time.perf_counter()
    ran = subprocess.run(
        list(map(str, command)), check=False, capture_output=True, text=True, env=os.environ | environment
    )
    if ran.returncode:
        raise SystemExit(f"the build failed:\n{ran.stderr[-3000:]}")
    return time.perf_counter() - start


def cell_seconds(store):
    """Return the seconds of the stored cells that measure, and of the others."""
    sys.path.insert(0, str(DOCS))
    from _ext.execution import measuring, notebooks

    alone = together = 0.0
    for path in DOCS.rglob("*.md"):
        record = next(
            store.glob(f"*/{str(path.relative_to(DOCS).with_suffix('')).replace('/', '--')}.json"), None
        )
        if record and "_build" not in path.parts:
            seconds = json.loads(record.read_text("utf-8"))["seconds"]
            found = measuring.cells(notebooks.read(path.read_text("utf-8"), path))
            alone += sum(s for s, measures in zip(seconds, found, strict=True) if measures)
            together += sum(s for s, measures in zip(seconds, found, strict=True) if not measures)
    return alone, together


def main() -> int:
    """Build three times, and write what it took."""
    options = arguments(__doc__, 1, 1)
    chosen = (
        ["-D", "include_patterns=" + ",".join(f"{page}.md" for page in QUICK_PAGES)] if options.quick else []
    )
    cores = min(2, os.cpu_count() or 1)
    with tempfile.TemporaryDirectory(prefix="jit-guide-build-") as name:
        folder = Path(name)
        ours = sphinx(folder / "ours", *chosen, JITGUIDE_STORE=str(folder / "store"))
        render = sphinx(folder / "again", *chosen, JITGUIDE_STORE=str(folder / "store"))
        alone, together = cell_seconds(folder / "store")
        (folder / "stock").mkdir()
        (folder / "stock" / "conf.py").write_text(STOCK, "utf-8")
        profile = {
            "IPYTHONDIR": str(DOCS / "_ipython"),
            "MATPLOTLIBRC": str(DOCS / "_ipython" / "matplotlibrc"),
        }
        cache = ["-D", f"nb_execution_cache_path={folder / 'cache'}"]
        stock = sphinx(folder / "stock", "-c", folder / "stock", *cache, *chosen, **profile)
    floor = alone + together / cores + render
    details = {
        "seconds": ours,
        "floor_seconds": floor,
        "cells_that_measure_seconds": alone,
        "other_cells_seconds": together,
        "cores": cores,
        "render_seconds": render,
        "stock_seconds": stock,
        "of_stock": ours / stock,
        "of_stock_target": STOCK_TARGET,
    }
    write("build", ours / floor, TARGET, "times the floor", details)
    print(f"{ours:.0f} s, {ours / stock:.2f} of stock MyST-NB (target {STOCK_TARGET})")
    return exit_code(options, times=ours / floor <= TARGET and ours / stock <= STOCK_TARGET)


if __name__ == "__main__":
    raise SystemExit(main())
