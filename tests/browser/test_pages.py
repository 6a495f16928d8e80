"""What holds on every page: nothing is cut, moves, or keeps anybody out, in light and dark, wide and on a phone."""

from __future__ import annotations

from pathlib import Path

import axe_playwright_python
import pytest
from pages import NARROW, PAGES, PHONE, WIDE

AXE = Path(axe_playwright_python.__file__).with_name("axe.min.js").read_text("utf-8")
# Contrast takes most of the time, and a width changes no colour: it is looked at on a phone, where a page is quickest,
# and of the texts whose colours, sizes and backgrounds are the same only the first few.
COLOURS = ["color-contrast", "link-in-text-block"]
VIOLATIONS = """async ({ rules, parts }) => {
  const { violations } = await axe.run(parts || document, { resultTypes: ["violations"], ...rules });
  return violations.map((v) => `${v.id} (${v.nodes.length}): ${v.nodes[0].html.slice(0, 200)}`);
}"""
BUT_COLOURS = {"rules": {"rules": {rule: {"enabled": False} for rule in COLOURS}}}
COLOURS_OF_SOME = """async (colours) => {
  const all = new CSSStyleSheet();  // axe passes over what is drawn late, and what stands on a gradient, as code does
  all.replaceSync("* { content-visibility: visible !important; background-image: none !important; }");
  document.adoptedStyleSheets = [all];
  const shades = new Map([[null, ""]]);
  const shade = (element) => {  // all that lies behind a text
    if (!shades.has(element)) {
      const { backgroundColor, opacity } = getComputedStyle(element);
      const own = `${backgroundColor} ${opacity}`;
      const clear = own === "rgba(0, 0, 0, 0) 1";
      shades.set(element, shade(element.parentElement) + (clear ? "" : `/${own}`));
    }
    return shades.get(element);
  };
  const groups = new Map();
  for (const element of document.querySelectorAll("body *")) {
    if (![...element.childNodes].some((node) => node.nodeType === Node.TEXT_NODE && node.data.trim())) continue;
    if (!element.checkVisibility({ visibilityProperty: true })) continue;
    const { color, fontSize, fontWeight, textDecorationLine } = getComputedStyle(element);
    const around = getComputedStyle(element.parentElement).color;
    const link = element.matches("a") ? around + textDecorationLine : "";
    const key = [color, fontSize, fontWeight, link, shade(element)].join();
    groups.set(key, [...(groups.get(key) || []), element].slice(0, 5));
  }
  const parts = { include: [...groups.values()].flat() };
  return (LOOK)({ rules: { runOnly: { type: "rule", values: colours } }, parts });
}""".replace("LOOK", VIOLATIONS)
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
# A drawing that is wider than its place, or a word of it that reaches out of it.
DRAWINGS = """() => [...document.querySelectorAll(".guide-figure .drawing")].filter((e) => e.checkVisibility()).flatMap((e) => {
  const outside = (word) => {
    const [own, room] = [word.getBoundingClientRect(), word.ownerSVGElement.getBoundingClientRect()];
    return own.width && (own.right > room.right + 2 || own.left < room.left - 2);
  };
  const words = [...e.querySelectorAll("text")].filter(outside).map((word) => word.textContent);
  return e.scrollWidth > e.clientWidth + 1 ? [e.textContent.slice(0, 60), ...words] : words;
})"""


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
        if width != NARROW:
            problems += [f"{width} px: drawing cut: {drawing}" for drawing in page.evaluate(DRAWINGS)]
        if width == WIDE:
            problems += [f"{width} px: code cut: {line}" for line in page.evaluate(CUT)]
            problems += [f"{width} px: table cut: {table}" for table in page.evaluate(HIDDEN)]
            if page.locator("#pst-primary-sidebar .search-button__button").bounding_box()["y"] < 0:
                problems.append("the search is scrolled out of sight")
        if width != NARROW:  # the layout of a phone, where axe looks too
            page.evaluate(AXE)
            problems += [f"{width} px: {found}" for found in page.evaluate(VIOLATIONS, BUT_COLOURS)]
    for theme in ("light", "dark"):
        page.emulate_media(color_scheme=theme)
        page.wait_for_function("theme => document.documentElement.dataset.theme === theme", arg=theme)
        problems += [f"{theme}: {found}" for found in page.evaluate(COLOURS_OF_SOME, COLOURS)]
    page.emulate_media(color_scheme="light")
    assert not problems, "\n".join(problems)


@pytest.mark.parametrize("broken", [".highlight .k", "article.bd-article p", "td"])
def test_a_pale_text_is_found(tab, address, broken):
    page, _ = tab
    page.goto(f"{address}/learn/loops.html", wait_until="load")
    page.evaluate(AXE)
    page.evaluate(
        """selector => {
      for (const e of document.querySelectorAll(selector)) e.style.setProperty("color", "#999", "important");
    }""",
        broken,
    )
    assert any("color-contrast" in found for found in page.evaluate(COLOURS_OF_SOME, COLOURS))
