"""What other machines gave: figures that are switched to their recordings, and verdicts on claims."""

import re

from playwright.sync_api import expect

LESSON = "learn/when-jit-does-not-help.html"


def test_a_figure_is_switched_by_keyboard(visit):
    with visit(LESSON) as page:
        switch = page.get_by_role("group", name="Measured on").first
        buttons, figures = switch.get_by_role("radio"), switch.locator(".guide-figure")
        expect(figures.nth(0)).to_be_visible()
        expect(figures.nth(1)).to_be_hidden()
        buttons.first.focus()
        page.keyboard.press("ArrowRight")
        expect(buttons.nth(1)).to_be_checked()
        expect(figures.nth(0)).to_be_hidden()
        expect(figures.nth(1)).to_be_visible()
        expect(figures.nth(1).locator("figcaption")).to_contain_text("Recorded on")
        figures.nth(1).get_by_text("Data of this figure").click()
        expect(figures.nth(1).locator("table")).to_be_visible()


def test_a_figure_is_switched_without_scripts(browser, address):
    with browser.new_context(java_script_enabled=False) as context:
        page = context.new_page()
        page.goto(f"{address}/{LESSON}")
        switch = page.locator(".figure-switch").first
        switch.locator("label").nth(1).click()
        expect(switch.locator(".guide-figure").nth(0)).to_be_hidden()
        expect(switch.locator(".guide-figure").nth(1)).to_be_visible()


def test_a_proof_names_the_devices_on_which_it_was_seen(visit):
    with visit(LESSON) as page:
        page.locator("a.claim-link:visible").first.click()
        chips = page.locator("aside.proof .proof-verdicts li")
        expect(chips.filter(has_text="on one CPU device")).to_have_count(1)
        expect(page.locator("aside.proof .proof-seen").first).to_contain_text(
            "on one CPU device and 8 CPU devices"
        )


def test_the_claims_are_filtered_by_devices(visit):
    with visit("about/claims.html") as page:
        place = page.get_by_label(re.compile("^On JAX"))
        label = place.locator("option").filter(has_text="one CPU device").inner_text()
        place.select_option(label=label)
        page.get_by_label("Verdict").select_option("0")
        expect(page.locator(".claim-row:visible").first).to_contain_text("Not applicable on one CPU device")
