"""A real Chromium, and a server of the built site that allows only what the strictest policy does."""

from __future__ import annotations

import functools
import http.server
import os
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from pages import HTML, WIDE
from playwright.sync_api import Browser, ConsoleMessage, Page, expect, sync_playwright

# Started by Chromium for itself: none may reach the network, and a container has no sandbox.
_OPTIONS = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
_PATIENCE = 30_000  # milliseconds: a busy machine is no fault of the site
# The sum of layout shifts, https://web.dev/articles/cls.
_SHIFTS = """
window.shifts = 0;
new PerformanceObserver((list) => {
  for (const entry of list.getEntries()) if (!entry.hadRecentInput) window.shifts += entry.value;
}).observe({ type: "layout-shift", buffered: true });
"""


expect.set_options(timeout=_PATIENCE)


class _Handler(http.server.SimpleHTTPRequestHandler):
    def end_headers(self) -> None:
        self.send_header("Content-Security-Policy", "default-src 'self'")
        super().end_headers()

    def log_message(self, *_: object) -> None:
        pass


@pytest.fixture(scope="session")
def address() -> Iterator[str]:
    """The address of the built site, served with `default-src 'self'`."""
    handler = functools.partial(_Handler, directory=str(HTML))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    names = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
    place = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    if place is None:
        pytest.exit("No Chromium is installed: `apt-get install chromium`, or name one in CHROMIUM.", 1)
    with sync_playwright() as playwright:
        opened = playwright.chromium.launch(executable_path=place, args=_OPTIONS)
        yield opened
        opened.close()


@pytest.fixture
def visit(browser: Browser, address: str):
    """Open a page of the site, by its name, and fail if it prints to the console or asks another host for something."""

    @contextmanager
    def visited(name: str, width: int = WIDE, theme: str = "light", base: str = address) -> Iterator[Page]:
        problems: list[str] = []
        with _opened(browser, base, problems, width, theme) as page:
            page.goto(f"{base}/{name}", wait_until="load")
            yield page
            assert problems == []

    return visited


@pytest.fixture(scope="session")
def tab(browser: Browser, address: str) -> Iterator[tuple[Page, list[str]]]:
    """One page for many visits, because opening takes longer than looking, and the list of what it complains of."""
    problems: list[str] = []
    with _opened(browser, address, problems, WIDE, "light") as page:
        yield page, problems


@contextmanager
def _opened(browser: Browser, base: str, problems: list[str], width: int, theme: str) -> Iterator[Page]:
    size = {"width": width, "height": 900}
    # Without motion, or a colour would be read while it changes.
    with browser.new_context(viewport=size, color_scheme=theme, reduced_motion="reduce") as context:
        context.add_init_script(_SHIFTS)
        page = context.new_page()
        page.set_default_timeout(_PATIENCE)
        page.on("console", lambda message: _expect_quiet(message, problems))
        page.on("pageerror", lambda error: problems.append(f"error: {error}"))
        page.on("request", lambda request: _expect_own(request.url, base, problems))
        yield page


def _expect_quiet(message: ConsoleMessage, problems: list[str]) -> None:
    if message.type in ("error", "warning"):  # the theme logs which mode it shows
        problems.append(f"{message.type}: {message.text}")


def _expect_own(url: str, base: str, problems: list[str]) -> None:
    if not url.startswith((base, "blob:")):
        problems.append(f"request to {url}")


def pytest_runtest_logreport(report: pytest.TestReport) -> None:
    """Print a failure at once: a run over all pages takes minutes."""
    if report.failed:
        print(f"\n{report.nodeid}\n{report.longreprtext}", flush=True)
