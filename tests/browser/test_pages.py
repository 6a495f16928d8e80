"""What holds on every page: nothing is cut, moves, or keeps anybody out, in light and dark, wide and on a phone."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest
from pages import NARROW, PAGES, PHONE, WIDE

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
# These take most of the time. A width changes no colour, and a theme changes nothing else.
COLOURS = ["color-contrast", "link-in-text-block"]
VIOLATIONS = """async ({ only, without }) => {
  const rules = Object.fromEntries((without || []).map((rule) => [rule, { enabled: false }]));
  const options = { resultTypes: ["violations"], rules, ...(only && { runOnly: { type: "rule", values: only } }) };
  const { violations } = await axe.run(options);
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


@pytest.mark.parametrize("name", PAGES)
def test_page(visit, name):
    problems = []
    for width in (WIDE, PHONE, NARROW):
        with visit(name, width) as page:
            problems += [
                f"{width} px: wider than the window: {element}" for element in page.evaluate(TOO_WIDE)
            ]
            shifts = page.evaluate("window.shifts")
            if shifts >= 0.02:  # once more: on a busy machine a page may be drawn before all of it is there
                page.reload(wait_until="load")
                shifts = min(shifts, page.evaluate("window.shifts"))
            if shifts >= 0.02:
                problems.append(f"{width} px: layout shift {shifts:.3f}")
            if width == WIDE:
                problems += [f"{width} px: code cut: {line}" for line in page.evaluate(CUT)]
            page.evaluate(AXE)
            chosen = {} if width == WIDE else {"without": COLOURS}
            problems += [f"{width} px: {found}" for found in page.evaluate(VIOLATIONS, chosen)]
            if width == WIDE:
                page.emulate_media(color_scheme="dark")
                page.wait_for_timeout(300)
                problems += [f"dark: {found}" for found in page.evaluate(VIOLATIONS, {"only": COLOURS})]
    assert not problems, "\n".join(problems)
