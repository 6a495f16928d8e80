"""Text of a user stays text in every HTML view, whatever it holds.

Results are built without JAX where running it for each example would be slow. Each view is parsed by a strict
HTML parser, and must have the same elements and attributes as the same view of harmless text.
"""

from __future__ import annotations

import functools
import importlib
import linecache
import re

import html5lib
import jax
import jax.numpy as jnp
import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

import jitguide
from jitguide import (
    Comparison,
    DeviceReport,
    Explanation,
    Finding,
    Findings,
    Peaks,
    Phases,
    Ratio,
    Roofline,
    Scaling,
    Stages,
    Timing,
    WatchedBlock,
)
from jitguide._display import Table, escape
from jitguide._hardware.peaks import CopyPeak, MatmulPeak
from jitguide._monitoring import Event
from jitguide._stages.diff import StagesDiff
from jitguide._stages.model import NAMES, Constant, Equation, Line, Stage
from jitguide._watch import call_log, reasons

# fmt: off
ELEMENTS = {
    "a", "caption", "code", "del", "details", "div", "i", "ins", "p", "pre", "s", "span", "strong",
    "style", "summary", "table", "tbody", "td", "th", "thead", "tr", "u"
}
ATTRIBUTES = {
    "aria-label", "class", "data-eq", "data-in", "href", "id", "open", "role", "scope", "style",
    "tabindex", "title"
}
# fmt: on
# The only styles that stand at an element: the number of columns, and the two sides of a difference.
STYLE = re.compile(r"--n:\d|text-decoration:none;background:hsl\(\d+ 75% 50%/\.16\)")
HOSTILE = [
    "<script>alert(1)</script>",
    "</style><script>",
    "</td></table><b>",
    "</pre>",
    '" onmouseover="alert(1)',
    "' onfocus='alert(1)",
    "x onclick=alert(1)",
    "<img src=x onerror=alert(1)>",
    "<a href='javascript:alert(1)'>",
    "&lt;b&gt; &amp; &#60; &nbsp",
    "-->",
    "<!--",
    "]]>",
    "<![CDATA[",
    "`{0}` {argument} %s \\",
    "\u2028\u2029\x85",
    "\ud800\ufffe\U0001ffff",
    "\x00\x1b[31m\x7f",
    "\x0b\x0c<",
    "\u202e\u200f",
    "\N{PILE OF POO}é",
]
# No carriage returns: HTML reads them as line ends. Every other character comes back, or its replacement.
PART = st.text(st.characters(exclude_characters="\r"), max_size=4)
TEXT = st.tuples(PART, st.sampled_from([*HOSTILE, ""]), PART).map("".join)
TEXTS = st.lists(TEXT, min_size=6, max_size=6)
SECONDS = tuple(1e-3 + 1e-6 * i for i in range(15))


def forbidden(character: str) -> bool:
    """Tell, by the definition in the HTML standard, what may stand in no document."""
    code = ord(character)
    control = code <= 0x1F or 0x7F <= code <= 0x9F
    return (
        (control and character not in "\t\n")
        or 0xD800 <= code <= 0xDFFF
        or 0xFDD0 <= code <= 0xFDEF
        or code & 0xFFFE == 0xFFFE
    )


def as_shown(text: str) -> str:
    return "".join("\N{REPLACEMENT CHARACTER}" if forbidden(c) else c for c in text)


# Each view takes six texts and returns a result, and the texts that its HTML must show.


def comparison(a, b, c, d, e, f):
    timings = tuple(Timing(name, SECONDS, 1, 0.1) for name in (f"1{a}", f"2{b}"))
    return Comparison(timings, f"1{a}", Ratio(1, 1, 1), c, 0.0, (d, e), (f,)), [a, b, d, e, f]


def scaling(a, b, c, d, e, f):
    found = comparison(a, b, c, f"1{d}", f"2{e}", f)[0]  # equal notes would be one
    return Scaling((1, 2), (found, found)), [a, b, d, e]


def phases(a, b, *_):
    return Phases(1.0, 1.0, 1.0, 1.0, 0.1, (a, b)), [a, b]


def watched(a, b, c, d, e, f):
    log = call_log.CallLog()
    log.__name__ = a
    log._add("compiled", 0.1, {"trace": 0.1}, reasons.Reason("shape", b, c, d, e, (f,)))
    log._add("raised", 0.1, {}, reasons.reason("raised", a, now=f))
    log._add("traced", 0.1, {}, reasons.reason("static value", b, c, d))
    return log, [a, b, c, d, e, f]


def seen(a, b, *_):
    block = WatchedBlock()
    block._found = [Event("compile", a, 0.1, b)]
    return block, [a, b]


def findings(a, b, c, d, e, f):
    return Findings(a, (Finding(b, c, d, e),), notes=(f"1{f}",)), [a, b, c, d, e, f]


def no_findings(a, b, *_):
    return Findings(a, (), Phases(1.0, 1.0, 1.0, 1.0, 0.1), notes=(f"1{b}",)), [a, b]


def device_report(a, b, c, d, e, f):
    given = {"jax": a, "jaxlib": b, "numpy": a, "python": b, "platform": f"1{c}", "device_kind": d, "cpu": e}
    facts = {"device_count": 1, "device_memory": None, "cores": 2, "x64": False, "load": None}
    settings = {"matmul_precision": f"1{f}", "settings": ((a, b),), "compilation_cache": True}
    return DeviceReport(**given, **facts, **settings, problem=f"1{f}"), [a, b, c, d, e, f]


def peaks(a, b, *_):
    copies, matmuls = (CopyPeak(2, 1e9, 9e8),), (MatmulPeak(b, 8, 1e9, 9e8),)
    return Peaks(a, copies, matmuls), [a, b]


def roofline(a, b, c, d, *_):
    copy, matmul = CopyPeak(2, 1e9, 9e8), MatmulPeak(a, 8, 1e9, 9e8)
    ratio = Ratio(2, 1, 3)
    return Roofline(ratio, 1.0, 4, 4, 8.0, 9.0, b, copy, matmul, c, (d,)), [a, d]


def explanation(a, b, c, d, e, f):
    code, title = f"1{a}", f"1{b}"  # a line end that begins a <pre> is no part of it
    parts = {"key": c, "error": f"1{d}", "cause": e, "example": code, "fix": code, "cost": f, "page": a}
    return Explanation(True, title=title, line=d, argument=e, others=(b, c), **parts), [a, b, c, d, e, f]


def no_explanation(a, b, *_):
    return Explanation(False, title=a, page=b), [a, b]


def stages(a, b, c, d, e, f):
    """Return a result whose lines are linked, struck through, folded and deduced."""
    link = {"equations": frozenset({0}), "source": (1,)}
    gone = {"equations": frozenset({1}), "link": "inferred", "source": (1, 2)}
    rows = [Line(f"  1{c}", **link, op=d), Line(f"1{d}", **gone, op=e), Line(f"\x0c1{e}", note="constant")]
    library = [Line("1", block=f"1{f}") for _ in range(11)]
    texts = {
        name: Stage(name, (Line("1", block="0"), *rows, *library)) for name in ("jaxpr", "stablehlo", "hlo")
    }
    source = Stage("source", (Line(f"1{b}", **link), Line(f"\t1{b}", source=(2,))))
    equations = (
        Equation(0, "mul", line=1, status="kept", detail=f"1{e}"),
        Equation(1, "add", line=2, parent=0, status="unused", detail=f"1{f}"),
    )
    found = Stages(
        a,
        source,
        **texts,
        equations=equations,
        fusions=(),
        operations=dict.fromkeys(
            ("jaxpr equations", "StableHLO operations", "HLO instructions", "HLO fusions")
        ),
        cost={d: None},
        memory={e: None},
        constants=(Constant(f, 8),),
        donated=(b,),
        notes=(c,),
    )
    return found, [a, b, c, d, e, f]


def view(*texts):
    found, shown = stages(*texts)
    return found.show("jaxpr"), shown


def difference(a, b, c, d, e, f):
    lines = (("…", ""), ("-", b), ("+", c), (" ", d))
    operations = {f"1{e}": (1, 0), f"2{f}": (0, 1)}
    return StagesDiff((a, b), dict.fromkeys(NAMES, lines), dict.fromkeys(NAMES, operations)), [
        a,
        b,
        c,
        d,
        e,
        f,
    ]


VIEWS = {
    maker.__name__: maker
    for maker in (
        comparison,
        scaling,
        phases,
        watched,
        seen,
        findings,
        no_findings,
        device_report,
        peaks,
        roofline,
        explanation,
        no_explanation,
        stages,
        view,
        difference,
    )
}


def parsed(fragment: str):
    return html5lib.HTMLParser(strict=True, namespaceHTMLElements=False).parseFragment(fragment)


def skeleton(tree) -> list[tuple]:
    """Return the elements in order, each with the names of its attributes."""
    return [(e.tag, *sorted(e.attrib)) for e in tree.iter()]


@functools.cache
def harmless(maker) -> list[tuple]:
    return skeleton(parsed(maker(*["x"] * 6)[0]._repr_html_()))


def require_safe(fragment: str, shown: list[str], like: list[tuple] | None = None) -> None:
    """Raise unless `fragment` is sound HTML that shows the texts and has the skeleton `like`."""
    tree = parsed(fragment)
    elements = [e for e in tree.iter() if e.tag != "DOCUMENT_FRAGMENT"]
    assert {e.tag for e in elements} <= ELEMENTS
    assert {name for e in elements for name in e.attrib} <= ATTRIBUTES
    assert all(e.get("href", "#").startswith("#") for e in elements)
    assert all(STYLE.fullmatch(e.get("style", "--n:1")) for e in elements)
    assert not any(re.search(r"url|@import|[<&]", e.text) for e in elements if e.tag == "style")
    if like is not None:
        assert skeleton(tree) == like
    text = "".join(tree.itertext()) + "".join(v for e in elements for v in e.attrib.values())
    for given_text in shown:
        assert as_shown(given_text) in text


def check_view(maker, texts: list[str]) -> None:
    result, shown = maker(*texts)
    require_safe(result._repr_html_(), shown, harmless(maker))


@pytest.mark.parametrize("maker", VIEWS.values(), ids=VIEWS)
@given(texts=TEXTS)
@example(texts=[HOSTILE[0]] * 6)
def test_a_view_shows_any_text_as_text(maker, texts):
    check_view(maker, texts)


@given(text=TEXT)
def test_an_escaped_text_may_stand_in_an_element_and_in_an_attribute(text):
    tree = parsed(f'<div title="{escape(text)}">{escape(text)}</div>')
    (element,) = tree
    assert element.attrib == {"title": as_shown(text)}
    assert (element.text or "") == as_shown(text)


@given(texts=TEXTS)
def test_every_cell_of_a_table_comes_back_whole(texts):
    a, b, c, d, e, f = texts
    tree = parsed(Table([a, b], [[c, d]], title=f"1{e}", notes=[f]).html())
    cells = [*tree.iter("th"), *tree.iter("td"), *tree.iter("caption"), *tree.iter("p")]
    assert [cell.text or "" for cell in cells] == [as_shown(t) for t in (a, b, c, d, f"1{e}", f)]


@given(text=st.builds("{}{}{}".format, TEXT, st.sampled_from(["", "TypeError: ", "Tracer "]), TEXT))
def test_any_text_can_be_explained(text):
    if text.strip():
        require_safe(jitguide.explain(text)._repr_html_(), [])


@pytest.mark.parametrize("maker", VIEWS.values(), ids=VIEWS)
def test_the_checks_see_a_view_that_does_not_escape(maker, monkeypatch):
    # The second has the name from the first, so both are imported before either is changed.
    modules = [importlib.import_module(f"jitguide.{name}") for name in ("_display", "_stages.html")]
    check_view(maker, [HOSTILE[0]] * 6)
    for module in modules:
        monkeypatch.setattr(module, "escape", str)
    with pytest.raises((AssertionError, html5lib.html5parser.ParseError)):
        check_view(maker, [HOSTILE[0]] * 6)


@pytest.mark.parametrize(
    "bad",
    [
        "<b>x</b>",
        '<p onclick="x">',
        '<a href="javascript:x">x</a>',
        "<p>x</b>",
        "y",
        "<p style='color:red'>x",
    ],
)
def test_the_checks_see_each_fault(bad):
    with pytest.raises((AssertionError, html5lib.html5parser.ParseError)):
        require_safe(bad, ["x"])


# With the instruments themselves: once each, as they run JAX.

HOSTILE_NAMES = ["<script>alert(1)</script>", '" onmouseover="alert(1)', "-->]]>&lt;"]


def named(name: str):
    """Return a function with a hostile name whose hostile source can be shown."""
    code = f"def f(x):\n    y = x['{name}'] * 2  # {name}\n    return y\n".replace("'\"", "'\\\"")
    file = f"<{name}>"
    linecache.cache[file] = (len(code), None, code.splitlines(keepends=True), file)
    space: dict = {}
    exec(compile(code, file, "exec"), space)
    space["f"].__name__ = space["f"].__qualname__ = name
    return space["f"]


@pytest.fixture(autouse=True)
def _restore_linecache():
    before = dict(linecache.cache)
    yield
    linecache.cache.clear()
    linecache.cache.update(before)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_names_keys_and_source_stay_text_on_their_way_through_the_instruments(name):
    fn, x = named(name), np.ones(4, np.float32)
    jitted = jax.jit(fn)
    watched = jitguide.watch(jitted)
    watched({name: x})
    watched({name: x[:2]})
    with jitguide.watch() as block:
        jitted({name: x[:3]})
    calls = [({name: x},), ({name: x[:2]},)]
    views = {
        "watch": (watched, [name]),
        "block": (block, [name]),
        "check": (jitguide.check(jitted, calls=calls, run=False), [name]),
        "stages": (jitguide.stages(jitted, {name: x}), [name, f"# {name}"]),
        "compare": (jitguide.compare({name: jitted}, {name: x}, budget=1e-3), [name]),
    }
    for result, shown in views.values():
        require_safe(result._repr_html_(), shown)


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_the_message_of_an_error_stays_out_of_its_explanation(name):
    with pytest.raises(TypeError) as caught:
        jnp.zeros(2)[name] = 1
    require_safe(jitguide.explain(caught.value)._repr_html_(), [])
    with jitguide.expect_error(ValueError) as kept:
        raise ValueError(name)
    require_safe(kept.explanation._repr_html_(), [])
