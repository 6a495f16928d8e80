"""Lighthouse's scores of the built site on a phone: the worst page's, each the median of three runs.

Looks at the front page, the first page to read and the heaviest pages. npm brings Lighthouse, so this needs Node
and a network, and a Chromium, which CHROME_PATH can name. A local server compresses what it sends, as hosts do.
Writes build/bench/lighthouse.json; fails below the targets.
"""

import functools
import gzip
import http.server
import json
import os
import shutil
import statistics
import subprocess
import sys
import threading
from pathlib import Path

from _bench import arguments, exit_code, write

HTML = Path(__file__).parents[2] / "docs" / "_build" / "html"
LIGHTHOUSE = "lighthouse@12"
TARGETS = {"performance": 97, "accessibility": 100, "best-practices": 100, "seo": 100}
FIRST, HEAVIEST = ["index.html", "ten-minutes.html"], 10
PACKED = (".woff2", ".png", ".pdf")


class Handler(http.server.SimpleHTTPRequestHandler):
    """Sends files compressed, and lets the browser keep them."""

    protocol_version = "HTTP/1.1"

    def do_GET(self):
        path = Path(self.translate_path(self.path))
        if not path.is_file():
            self.send_error(404)
            return
        content, kind = path.read_bytes(), self.guess_type(path)
        self.send_response(200)
        self.send_header("Content-Type", kind + ("; charset=utf-8" if kind.startswith("text") else ""))
        if path.suffix not in PACKED:
            content = gzip.compress(content)
            self.send_header("Content-Encoding", "gzip")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "max-age=31536000")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, *_):
        pass


def scores(node, address):
    """Return the scores of one visit, from 0 to 100."""
    command = [node, "--yes", LIGHTHOUSE, address, "--output=json", "--quiet"]
    command += [f"--only-categories={','.join(TARGETS)}"]
    command += ["--chrome-flags=--headless=new --no-sandbox"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"Lighthouse failed on {address}:\n{done.stderr.strip()[-2000:]}")
    found = json.loads(done.stdout)["categories"]
    return {name: round(100 * found[name]["score"]) for name in TARGETS}


def main():
    """Visit the pages, print their scores, write the worst."""
    options = arguments(__doc__, 3, 1)
    node = shutil.which("npx") or sys.exit("Lighthouse needs Node: no `npx` was found.")
    browsers = map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable"))
    os.environ.setdefault("CHROME_PATH", next(filter(None, browsers), ""))
    if not os.environ["CHROME_PATH"]:
        sys.exit("Lighthouse needs Chromium: install one, or name it in CHROME_PATH.")
    heaviest = sorted(HTML.rglob("*.html"), key=lambda path: -path.stat().st_size)
    names = FIRST + [str(path.relative_to(HTML)) for path in heaviest[: 0 if options.quick else HEAVIEST]]
    pages = {}
    with http.server.ThreadingHTTPServer(
        ("127.0.0.1", 0), functools.partial(Handler, directory=HTML)
    ) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        for name in dict.fromkeys(names):
            runs = [
                scores(node, f"http://127.0.0.1:{server.server_port}/{name}") for _ in range(options.runs)
            ]
            pages[name] = {kind: statistics.median(run[kind] for run in runs) for kind in TARGETS}
            print(name, *(f"{kind} {score:g}" for kind, score in pages[name].items()), flush=True)
        server.shutdown()
    worst = {kind: min(page[kind] for page in pages.values()) for kind in TARGETS}
    details = {"worst": worst, "targets": TARGETS, "pages": pages}
    write("lighthouse", worst["performance"], TARGETS["performance"], "of 100", details)
    others = all(worst[kind] >= target for kind, target in TARGETS.items() if kind != "performance")
    return exit_code(options, counts=others, times=worst["performance"] >= TARGETS["performance"])


if __name__ == "__main__":
    sys.exit(main())
