"""What holds on every page: nothing is cut, moves, or keeps anybody out, in light and dark, wide and on a phone."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest
from pages import NARROW, PAGES, PHONE, WIDE

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
# Contrast takes most of the time, that of code above all, and a width changes no colour: it is looked at on a phone,
# where a page is quickest, and that of code on one page.
COLOURS = ["color-contrast", "link-in-text-block"]
CODE = ["div.highlight pre", ".jgs-t"]
WITH_ALL_CODE = "learn/loops.html"
VIOLATIONS = """async ({ only, except, outside }) => {
  const rules = Object.fromEntries((except || []).map((rule) => [rule, { enabled: false }]));
  const options = { resultTypes: ["violations"], rules, ...(only && { runOnly: { type: "rule", values: only } }) };
  const { violations } = await axe.run({ exclude: (outside || []).map((part) => [part]) }, options);
  return violations.map((v) => `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 200)}`);
}"""
# Wider than the window, and who is.
TOO_WIDE = """() => {
  const room = document.documentElement.clientWidth;
  if (document.documentElement.scrollWidth <= room + 1) return [];
  const wide = [...document.querySelectorAll("body *")].filter((e) => e.getBoundingClientRect().right > room + 1);
  return wide.slice(0, 3).map((e) => e.outerHTML.slice(0, 200));
}"""
CUT = """() => [...document.querySelectorAll("div.highlight pre, .cell_output pre")]
  .filter((e) => e.checkVisibility({ contentVisibilityAuto: true }) && e.scrollWidth > e.clientWidth + 1)
  .map((e) => e.innerText.split("\\n").sort((a, b) => b.length - a.length)[0])"""
# A table that hides a column; the matrix of all pairs of calls is meant to be scrolled.
HIDDEN = """() => [...document.querySelectorAll(".pst-scrollable-table-container:not(.call-pairs *)")]
  .filter((e) => e.checkVisibility() && e.scrollWidth > e.clientWidth + 1)
  .map((e) => `${e.scrollWidth - e.clientWidth} px of ${e.innerText.slice(0, 60)}`)"""


@pytest.mark.parametrize("name", PAGES)
def test_page(tab, address, name):
    page, problems = tab
    problems.clear()
    for width in (WIDE, NARROW, PHONE):
        page.set_viewport_size({"width": width, "height": 900})
        page.goto(f"{address}/{name}", wait_until="load")
        problems += [f"{width} px: wider than the window: {element}" for element in page.evaluate(TOO_WIDE)]
        shifts = page.evaluate("window.shifts")
        if shifts >= 0.02:  # once more: on a busy machine a page may be drawn before all of it is there
            page.reload(wait_until="load")
            shifts = min(shifts, page.evaluate("window.shifts"))
        if shifts >= 0.02:
            problems.append(f"{width} px: layout shift {shifts:.3f}")
        if width == WIDE:
            problems += [f"{width} px: code cut: {line}" for line in page.evaluate(CUT)]
            problems += [f"{width} px: table cut: {table}" for table in page.evaluate(HIDDEN)]
            if page.locator("#pst-primary-sidebar .search-button__button").bounding_box()["y"] < 0:
                problems.append("the search is scrolled out of sight")
        page.evaluate(AXE)
        problems += [f"{width} px: {found}" for found in page.evaluate(VIOLATIONS, {"except": COLOURS})]
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        chosen = {"only": COLOURS, "outside": [] if name == WITH_ALL_CODE else CODE}
        problems += [f"{theme}: {found}" for found in page.evaluate(VIOLATIONS, chosen)]
    page.emulate_media(color_scheme="light")
    assert not problems, "\n".join(problems)
