"""Each interactive part, by mouse and by keyboard, as a reader meets it."""

from __future__ import annotations

import json
import re

import pytest
from pages import HTML, PHONE
from playwright.sync_api import Page, expect

STAGES = "reference/from-python-to-machine-code.html"


def press(page: Page, selector: str, how: str) -> None:
    """Click the first element, or focus it and press Enter."""
    found = page.locator(selector).first
    found.scroll_into_view_if_needed()
    if how == "mouse":
        found.click()
    else:
        found.focus()
        page.keyboard.press("Enter")


by_both = pytest.mark.parametrize("how", ["mouse", "keyboard"])


@by_both
def test_a_mark_shows_its_proof_in_place_and_lets_go(visit, how):
    with visit("learn/shapes.html") as page:
        press(page, "a.claim-link", how)
        proof = page.locator("aside.proof")
        expect(proof).to_be_visible()
        expect(proof.locator(".proof-verdicts li").first).to_contain_text(re.compile(r"\d+\.\d+"))
        expect(proof.locator("pre")).to_contain_text("assert")
        if how == "mouse":
            proof.get_by_role("button", name="Close").click()
        else:
            page.keyboard.press("Escape")
        expect(proof).to_have_count(0)
        expect(page.locator("a.claim-link").first).to_be_focused()


def test_a_mark_without_scripts_leads_to_the_claim(browser, address):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/learn/shapes.html")
        page.locator("a.claim-link").first.click()
        expect(page).to_have_url(re.compile(r"/about/claims-[\w-]+\.html#claim-[\w-]+$"))


@pytest.mark.parametrize("name", ["index.html", "howto/index.html", "reference/errors.html"])
def test_the_error_box_answers(visit, name):
    with visit(name) as page:
        box = page.locator(".error-finder textarea")
        box.fill(
            "jax.errors.TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[]."
        )
        answer = page.locator(".error-finder-answer")
        expect(answer).to_contain_text("Cause:")
        expect(answer).to_contain_text("Fix:")
        page.keyboard.press("Tab")  # the answer is reached from the box
        assert page.evaluate("document.activeElement.closest('.error-finder') !== null")
        box.fill("KeyError: 'weights'")
        expect(answer).to_contain_text("probably not an error of JAX")
        box.fill("it recompiles at every call")
        expect(answer.locator(".guide-search-page").first).to_have_attribute(
            "href", re.compile("howto/every-call-recompiles")
        )
        box.fill("ValueError: a message of jaxlib that has no entry")
        expect(answer).to_contain_text("not in the catalogue")
        box.fill("")
        expect(answer).to_be_empty()


@by_both
def test_the_search_finds_while_one_types(visit, how):
    with visit("learn/shapes.html") as page:
        if how == "mouse":
            page.locator("button.search-button-field:visible, button.search-button:visible").first.click()
        else:
            page.keyboard.press("/")
        page.keyboard.type("recompilation")
        first = page.locator("dialog a.guide-search-page").first
        expect(first).to_be_visible()
        expect(page.locator("dialog .guide-results")).to_contain_text("recompile")
        if how == "mouse":
            first.click()
        else:
            page.keyboard.press("ArrowDown")
            expect(first).to_be_focused()
            page.keyboard.press("Enter")
        expect(page).not_to_have_url(re.compile("learn/shapes"))


def test_a_quick_arrow_keeps_its_place(visit):
    with visit("learn/shapes.html") as page:
        page.keyboard.press("/")
        page.keyboard.type("padding")
        expect(page.locator("dialog a.guide-search-page").first).to_be_visible()
        page.evaluate("""() => {
            const input = document.activeElement;
            input.value = "recompilation";
            input.dispatchEvent(new Event("input", { bubbles: true }));
            input.dispatchEvent(new KeyboardEvent("keydown", { key: "ArrowDown", bubbles: true }));
        }""")
        page.wait_for_timeout(500)  # longer than the list waits for the next letter
        expect(page.locator("dialog a.guide-search-page").first).to_be_focused(timeout=1000)
        expect(page.locator("dialog .guide-results")).to_contain_text("recompile", timeout=1000)


def test_the_search_page_answers_a_link(visit):
    with visit("search.html?q=UnexpectedTracerError") as page:
        expect(page.locator("a.guide-search-page").first).to_be_visible()


def test_an_excerpt_marks_the_words_with_a_topic(visit):
    with visit("search.html?q=why+does+the+smaller+batch+recompile") as page:
        marked = page.locator("#guide-search-results mark")
        expect(marked.first).to_be_visible()
        words = {word.lower() for word in marked.all_inner_texts()}
        assert "batch" in words
        assert not words & {"the", "does", "why"}


@by_both
def test_two_calls_are_compared(visit, how):
    with visit("reference/cache-key.html") as page:
        if how == "mouse":
            page.locator(".pairs-choose select").nth(1).select_option(index=5)
        else:
            page.locator(".pairs-choose select").nth(1).focus()
            page.keyboard.press("ArrowDown")
        press(page, ".pairs-guess button", how)
        said = page.locator(".pairs-said")
        expect(said).to_contain_text("of 1 guesses right")
        expect(said.locator("table tr")).to_have_count(4)
        press(page, "button.pairs-other", how)
        expect(said).to_be_empty()


def test_the_table_of_pairs_stands_without_scripts(browser, address):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/reference/cache-key.html")
        page.locator(".call-pairs summary").first.click()
        expect(page.locator(".call-pairs table").first).to_be_visible()


@by_both
def test_a_line_of_the_stages_lights_its_kin(visit, how):
    with visit(STAGES, 1500) as page:
        view = page.locator(".jgs").first
        line = view.locator("[data-eq]").first
        line.scroll_into_view_if_needed()
        if how == "mouse":
            line.click()
        else:
            view.locator("[data-eq][tabindex], [data-eq] a").first.focus()
        assert view.locator(".on").count() >= 2
        page.keyboard.press("Escape")


def test_no_pane_of_the_stages_is_cut_on_a_wide_screen(visit):
    pages = [path for path in HTML.rglob("*.html") if 'class="jgs"' in path.read_text("utf-8")]
    assert pages
    for path in pages:
        with visit(path.relative_to(HTML).as_posix(), 1500) as page:
            cut = page.evaluate("""() => [...document.querySelectorAll(".jgs-t")]
              .filter((e) => e.checkVisibility({ contentVisibilityAuto: true }) && e.scrollWidth > e.clientWidth + 1)
              .map((e) => `${e.getAttribute("aria-label")}: ${e.scrollWidth} in ${e.clientWidth}`)""")
            assert cut == []


@by_both
def test_the_tracing_is_replayed(visit, how):
    with visit("reference/gallery.html", 1500) as page:
        tools = page.locator(".jgs-tools").first
        lines = page.locator(".jgs").first.locator(".jgs-jaxpr [data-eq]")
        for name, shown in (("Replay the tracing", 0), ("Step ›", 1), ("Step ›", 2), ("‹ Back", 1)):
            button = tools.get_by_role("button", name=name)
            button.click() if how == "mouse" else button.press("Enter")
            assert page.locator(".jgs").first.locator(".later").count() == lines.count() - shown
        expect(page.locator(".jgs-said").first).to_contain_text("Line 1 of the jaxpr: ")
        while (step := tools.get_by_role("button", name="Step ›")).is_enabled():
            step.click()
        expect(page.locator(".jgs-said").first).to_contain_text("The trace is complete")


def test_a_chosen_line_has_an_address(visit, address):
    with visit("reference/gallery.html", 1500) as page:
        page.locator(".jgs").nth(1).locator(".jgs-hlo [data-eq]").first.click()
        chosen = page.url
        assert "#jgs2=" in chosen
        page.goto("about:blank")
        page.goto(chosen)
        assert page.locator(".jgs").nth(1).locator(".on").count() >= 2
        page.keyboard.press("Escape")


def test_the_stages_fill_the_screen_and_a_pane_is_copied(visit):
    with visit("reference/gallery.html", 1500) as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        view = page.locator(".jgs").first
        view.get_by_role("button", name="Full screen").click()
        page.wait_for_function("document.fullscreenElement?.id === 'jgs1'")
        view.locator(".jgs-jaxpr .code-tools button").focus()
        page.keyboard.press("Enter")
        expect(view.locator(".jgs-jaxpr .code-tools button")).to_have_text("Copied")
        assert page.evaluate("navigator.clipboard.readText()").startswith("{ lambda ;")


@by_both
def test_code_is_copied(visit, browser, how):
    with visit("learn/shapes.html") as page:
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        block = page.locator(".cell_input").first
        block.hover()
        press(page, ".code-tools button", how)
        expect(page.locator(".program-said").first).to_contain_text("lines copied")
        copied = page.evaluate("navigator.clipboard.readText()")
        assert copied.startswith("import jax\n")


@by_both
def test_an_answer_folds_and_unfolds(visit, how):
    with visit("learn/shapes.html") as page:
        answer = page.locator("details.guide-answer").first
        expect(answer.locator("pre").first).to_be_hidden()
        press(page, "details.guide-answer > summary", how)
        expect(answer.locator("pre").first).to_be_visible()


@by_both
def test_a_guess_opens_the_answer_says_why_and_is_kept(visit, address, how):
    with visit("learn/purity.html") as page:
        answer = page.locator(".guide-predict + details.guide-answer")
        press(page, ".guide-guesses li:nth-child(3) button", how)
        expect(page.locator(".guess-said")).to_contain_text(re.compile(r"Not so\. \w+"))
        expect(page.locator(".guess-said")).to_contain_text("0 of 1 guesses right")
        expect(answer.locator("pre").first).to_be_visible()
        press(page, ".guide-guesses li:nth-child(2) button", how)  # the first guess counts
        expect(page.locator(".guess-said")).to_contain_text(re.compile(r"Right\. \w+"))
        expect(page.locator(".guess-said")).to_contain_text("0 of 1 guesses right")
        press(page, ".guide-exercise + details.guide-answer > summary", how)
        page.locator(".exercise-solved input").check()
        page.goto(f"{address}/learn/index.html")
        expect(page.locator(".lesson-progress")).to_contain_text("0 of 1 guesses right, 1 exercise solved")
        expect(page.locator(".lesson-done")).to_have_text("✗ guessed · ✔ solved")
        press(page, ".lesson-progress button", how)
        expect(page.locator(".lesson-progress")).to_contain_text("are kept in this browser")
        expect(page.locator(".lesson-done")).to_have_count(0)


@by_both
def test_the_mode_is_chosen_and_kept(visit, address, how):
    with visit("index.html") as page:
        for mode in ("dark", "light", "auto", "dark"):
            press(page, "button.theme-switch-button:visible", how)
            choice = page.locator(f".dropdown-menu.show [data-mode={mode}]").first
            choice.click() if how == "mouse" else choice.press("Enter")
            assert page.evaluate("document.documentElement.dataset.mode") == mode
        page.goto(f"{address}/learn/shapes.html")
        assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def test_the_menu_opens_on_a_phone(visit):
    with visit("learn/shapes.html", PHONE) as page:
        page.locator("button.primary-toggle:visible").first.click()
        expect(page.get_by_role("link", name="Fix a problem").first).to_be_visible()


@pytest.mark.parametrize(
    "name", ["index.html", "learn/shapes.html", "reference/cache-key.html", "howto/index.html"]
)
def test_a_folder_on_disk_is_enough(visit, name):
    with visit(name, base=HTML.as_uri()) as page:
        page.keyboard.press("/")
        page.keyboard.type("padding")
        expect(page.locator("dialog a.guide-search-page").first).to_be_visible()


@by_both
def test_a_release_is_chosen_for_the_whole_site(visit, address, how):
    with visit("howto/refs.html") as page:
        choice = page.get_by_label("I use JAX")
        if how == "mouse":
            choice.select_option("0.4.30")
        else:
            choice.focus()
            page.keyboard.type("0.4.30")
        expect(page.locator(".my-release [role=status]")).to_contain_text("(does not hold)")
        expect(page.locator("a.claim-link.differs").first).to_contain_text("0.4.30")
        page.goto(f"{address}/learn/in-place-updates.html")  # kept from page to page
        expect(page.locator("a.claim-link.differs").first).to_contain_text("0.4.30")
        page.get_by_label("I use JAX").select_option("any release")
        expect(page.locator("a.claim-link.differs")).to_have_count(0)


def test_a_recording_is_shown_beside_the_others(visit, tmp_path):
    shown = [["What does a call cost?", what, "7 µs"] for what in ("each call waited for", "another row")]
    mine = {"format": 1, "name": "<b>mine</b>", "shown": shown, "made_on": "JAX 0.9"}
    (tmp_path / "mine.json").write_text(json.dumps(mine), "utf-8")
    (tmp_path / "other.json").write_text("{}", "utf-8")
    with visit("reference/other-machines.html") as page:
        box, tables = page.locator(".recording-drop"), page.locator(".jg table")
        columns = tables.first.locator("thead th").count()
        for _ in range(2):  # the second replaces the first
            box.locator("input").set_input_files(tmp_path / "mine.json")
            expect(box.get_by_role("status")).to_contain_text("JAX")
            expect(tables.first.locator("thead th")).to_have_count(columns + 1)
            expect(tables.first.locator("thead th").last).to_have_text("<b>mine</b>")
            expect(tables.first.locator("tbody tr").last).to_contain_text("another row")
            expect(tables.first.locator("tbody tr").first.locator("td").last).to_have_text("7 µs")
            expect(tables.last.locator("tbody tr").first.locator("td").last).to_have_text("not measured")
        box.locator("input").set_input_files(tmp_path / "other.json")
        expect(box.get_by_role("status")).to_contain_text("other.json is no recording")


def test_a_filter_of_the_claims_stands_in_the_address(visit):
    with visit("about/claims.html") as page:
        page.get_by_label("Verdict").select_option("+")
        assert "verdict=%2B" in page.url
        shown = page.locator(".claim-row:visible").count()
        page.goto(page.url)
        assert page.locator(".claim-row:visible").count() == shown
        assert page.get_by_label("Verdict").input_value() == "+"


def test_the_questions_are_filtered_by_words(visit):
    with visit("reference/questions.html") as page:
        asked, said = (
            page.locator("dl.question-list > dt"),
            page.locator("form.claims-filter").get_by_role("status"),
        )
        total = asked.count()
        page.get_by_label("Show the questions with these words").fill("scan CARRY")
        expect(said).to_have_text(re.compile(rf"^[1-9]\d? of {total} questions shown\.$"))
        assert page.locator("section:has(> .question-list):visible").count() < 10
        page.get_by_label("Show the questions with these words").fill("no such words here")
        expect(said).to_have_text(f"0 of {total} questions shown.")
        page.get_by_label("Show the questions with these words").fill("")
        expect(said).to_have_text(f"{total} of {total} questions shown.")
