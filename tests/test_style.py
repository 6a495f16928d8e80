"""The one style sheet keeps what a page can match, and nothing else."""

import pytest
from _ext.site import style


@pytest.mark.parametrize(
    ("sheet", "kept"),
    [
        (".a { x: 1 }", ".a{x: 1}"),
        (".b { x: 1 }", ""),
        ("p, .b, .a > p:hover { x: 1 }", "p,.a > p:hover{x: 1}"),
        ("#c.a { x: 1 }", ""),
        (".a:not(.b) { x: 1 }", ".a:not(.b){x: 1}"),
        (":is(.b, .a) { x: 1 }", ":is(.b, .a){x: 1}"),
        ("[data-x='a,b{'] .a { x: '}' }", "[data-x='a,b{'] .a{x: '}'}"),
        ("@media print { .b { x: 1 } }", ""),
        ("@media print { .a { x: 1 } .b { y: 2 } }", "@media print{.a{x: 1}}"),
        ("@font-face { font-family: 'Font Awesome 6 Free'; src: url(f.woff2) }", ""),
        ("@keyframes turn { from { x: 1 } to { x: 2 } }", "@keyframes turn{from { x: 1 } to { x: 2 }}"),
        (
            "/* .a { x: 1 } */ @import 'x.css'; .a { y: url(a;b{c.svg) }",
            "@import 'x.css';\n.a{y: url(a;b{c.svg)}",
        ),
        (r".a\:b { x: 1 }", ""),
    ],
)
def test_a_rule_stays_if_a_page_can_match_it(sheet, kept):
    assert style.purged(sheet, {"a"}) == kept


def test_addresses_fit_the_new_folder():
    assert style._moved("a { b: url(file.png) }", "basic.css") == "a { b: url(../file.png) }"
    assert style._moved("a { b: url('data:x') url(#id) }", "basic.css") == "a { b: url('data:x') url(#id) }"
    assert style._moved("a { b: url(../x.png) }", "styles/theme.css") == "a { b: url(../x.png) }"


def test_words_of_pages_and_scripts_are_used(tmp_path):
    (tmp_path / "_static").mkdir()
    (tmp_path / "page.html").write_text('<p id="one" class="two three">four</p>')
    (tmp_path / "_static" / "x.js").write_text('e.classList.add("chip-good")')
    memory = tmp_path / "memory.json"
    found = style.used(tmp_path, memory)
    assert {"one", "two", "three", "chip-good"} <= found
    assert "four" not in found
    (tmp_path / "other.html").write_text('<p class="five">six</p>')
    assert style.used(tmp_path, memory) == found | {"five"}  # what is known, and what the new page adds
