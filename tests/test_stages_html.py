"""The HTML views of `stages`: whole, escaped, linked, without a script."""

from __future__ import annotations

import functools
import linecache
import re
from pathlib import Path

import html5lib
import jax
import jax.numpy as jnp
import numpy as np
import pytest

from jitguide import stages

X = np.arange(1.0, 9.0, dtype=np.float32)
SCRIPT = Path(__file__).parents[1] / "docs" / "_static" / "stages.js"


@jax.jit
def inner(x):
    return jnp.sin(x) * 2.0


def outer(x):
    unused = jnp.cos(x)  # noqa: F841
    return inner(inner(x)) + 1.0


@functools.cache
def looked_at():
    return stages(outer, X)


def parsed(fragment):
    parser = html5lib.HTMLParser(strict=True, namespaceHTMLElements=False)
    return parser.parseFragment(fragment)


def test_the_view_is_valid_html_without_script_or_outside_resource():
    fragment = looked_at()._repr_html_()
    tree = parsed(fragment)
    assert not {"script", "link", "img", "iframe"} & {e.tag for e in tree.iter()}
    assert not re.search(r"https?:|url\(|@import| on\w+=", fragment)


def test_four_columns_have_titles_and_can_be_scrolled_by_keyboard():
    tree = parsed(looked_at()._repr_html_())
    panes = [e for e in tree.iter("div") if e.get("role") == "group"]
    assert [p.get("aria-label").split(":")[0] for p in panes] == [
        "Source",
        "Jaxpr",
        "StableHLO",
        "Optimized HLO",
    ]
    assert {p.get("tabindex") for p in panes} == {"0"}


def test_every_link_leads_to_a_source_line_of_the_same_view():
    tree = parsed(looked_at()._repr_html_())
    ids = {e.get("id") for e in tree.iter() if e.get("id")}
    targets = {e.get("href") for e in tree.iter("a")}
    assert targets
    assert {t.removeprefix("#") for t in targets} <= ids


def test_ids_differ_between_views_of_one_page():
    page = looked_at()._repr_html_() + looked_at()._repr_html_() + looked_at().show("jaxpr")._repr_html_()
    ids = [e.get("id") for e in parsed(page).iter() if e.get("id")]
    assert len(ids) == len(set(ids)) > 3


def test_lines_name_their_equations_and_those_around_them():
    tree = parsed(looked_at()._repr_html_())
    found = {n for e in tree.iter("span") for n in (e.get("data-eq") or "").split()}
    assert found == {str(e.id) for e in looked_at().equations}
    sines = [e for e in looked_at().equations if e.primitive == "sin"]
    body = next(e for e in tree.iter("span") if e.get("data-eq") == " ".join(str(s.id) for s in sines))
    assert body.get("data-in").split() == sorted({str(s.parent) for s in sines})


def test_what_jax_removed_is_struck_through_and_says_why():
    tree = parsed(looked_at()._repr_html_())
    struck = [e for e in tree.iter("span") if e.find("s") is not None and e.get("title")]
    assert [e.get("title") for e in struck] == ["unused: removed by JAX"]
    assert "cos" in struck[0].find("s").text


def test_a_view_without_the_source_has_no_links_into_it():
    tree = parsed(looked_at().show("jaxpr", "hlo")._repr_html_())
    assert list(tree.iter("a")) == []


def test_long_bodies_of_library_functions_are_folded():
    found = stages(lambda key: jax.random.normal(key, (4,)), jax.random.key(0))
    tree = parsed(found._repr_html_())
    assert any("threefry" in "".join(e.itertext()) for e in tree.iter("summary"))


def test_a_very_long_text_is_cut_and_says_how_to_see_the_rest():
    def long(x):
        for i in range(200):
            x = jnp.sin(x) * (i + 2.0)
        return x

    tree = parsed(stages(long, X)._repr_html_())
    shown = {e.get("class"): list(e.iter("span")) for e in tree.iter("details") if e.get("class")}
    assert len(shown["jgs-stablehlo"]) == 501
    assert re.fullmatch(r"… \d+ more lines: print\(result.stablehlo\)", shown["jgs-stablehlo"][-1].text)


HOSTILE = ["</pre><script>alert(1)</script>", '" onmouseover="x', "&lt;b&gt;", "]]>\u2028"]


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_stay_text(name, monkeypatch):
    code = f"def f(x):\n    y = x * 2  # {name}\n    return y\n"
    file = "<hostile>"
    monkeypatch.setitem(linecache.cache, file, (len(code), None, code.splitlines(keepends=True), file))
    space = {}
    exec(compile(code, file, "exec"), space)
    space["f"].__name__ = space["f"].__qualname__ = name
    found = stages(space["f"], X)
    tree = parsed(found._repr_html_())
    assert not list(tree.iter("script"))
    assert not [e for e in tree.iter() if any(key.startswith("on") for key in e.attrib)]
    text = "".join(tree.itertext())
    assert f"# {name.splitlines()[0]}" in text
    assert f"stages of {name}" in text


def test_a_diff_shows_changed_lines_and_counts():
    other = stages(lambda x: inner(x) + 1.0, X)
    difference = looked_at().diff(other)
    assert difference.operations["jaxpr"]["cos"] == (1, 0)
    assert ("-", "    unused = jnp.cos(x)  # noqa: F841") in difference.lines["source"]
    text = repr(difference)
    assert text.startswith("stages: outer (-) and <lambda> (+)")
    assert re.search(r"Jaxpr +cos +1 +0 +-1", text)
    parsed(difference._repr_html_())
    assert difference.to_dict()["operations"]["jaxpr"]["cos"] == [1, 0]


def test_a_diff_with_itself_is_empty():
    difference = looked_at().diff(stages(outer, X))
    assert not any(difference.lines.values())
    assert not any(difference.operations.values())


def test_a_diff_with_something_else_is_refused():
    message = (
        "diff compares two results of stages, and `other` is of type str. Pass what stages(g, x) returned."
    )
    with pytest.raises(TypeError, match=re.escape(message)):
        looked_at().diff("text")


def test_the_script_only_uses_what_the_view_has():
    script, view = SCRIPT.read_text(encoding="utf-8"), looked_at()._repr_html_()
    for name in set(re.findall(r'"\.(jgs[\w-]*)', script)):
        assert name in view
    assert "innerHTML" not in script
    assert "http" not in script


def minus(x):
    a, b = jnp.sin(x), jnp.cos(x)
    return a - b


def minus_turned(x):
    a, b = jnp.sin(x), jnp.cos(x)
    return b - a


def test_a_diff_sees_which_value_an_operation_takes():
    difference = stages(minus, X).diff(stages(minus_turned, X))
    assert [(sign, "subtract" in text) for sign, text in difference.lines["stablehlo"] if sign in "-+"] == [
        ("-", True),
        ("+", True),
    ]
    assert difference.lines["hlo"]


def test_a_diff_overlooks_numbers_that_an_inserted_line_shifts():
    def longer(x):
        x = jnp.abs(x)
        a, b = jnp.sin(x), jnp.cos(x)
        return a - b

    difference = stages(minus, X).diff(stages(longer, X))
    changed = [text.split(" = ")[1].split()[0] for sign, text in difference.lines["stablehlo"] if sign == "+"]
    assert changed == ["abs", "sine", "cosine"]  # and not `subtract`, which takes the same two results


def test_a_diff_overlooks_the_names_that_hlo_takes_from_the_jaxpr():
    power, product = (lambda x: jnp.sum(x**2)), (lambda x: jnp.sum(x * x))
    difference = stages(power, X).diff(stages(product, X))
    assert difference.lines["jaxpr"]
    assert not difference.lines["hlo"]


@pytest.mark.parametrize(
    ("other", "x"),
    [
        (lambda x: jnp.sum(x * x), X.astype(np.float16)),
        (lambda x: jnp.sum(x * x), X[:7]),
        (lambda x: jnp.max(x * x), X),
        (lambda x: jnp.sum(x + x), X),
        (lambda x: jnp.sum(x * x * x), X),
    ],
    ids=["dtype", "shape", "reduction", "operation", "one more"],
)
def test_a_diff_of_hlo_sees_all_else(other, x):
    assert stages(lambda x: jnp.sum(x**2), X).diff(stages(other, x)).lines["hlo"]


def test_a_diff_of_sources_sees_the_readers_numbers():
    def one(x, p):
        return x @ p["layer_1"] @ p["layer_2"]

    def other(x, p):
        return x @ p["layer_2"] @ p["layer_1"]

    p = {"layer_1": np.ones((8, 8), np.float32), "layer_2": np.ones((8, 8), np.float32)}
    changed = stages(one, X, p).diff(stages(other, X, p)).lines["source"]
    assert ("-", '    return x @ p["layer_1"] @ p["layer_2"]') in changed


def test_a_diff_says_where_values_of_constants_are_not_shown():
    def times(last):
        captured = np.ones(1000, np.float32)
        captured[0], captured[-1] = 7, last
        return stages(lambda x: x * captured, np.ones(1000, np.float32))

    difference = times(1).diff(times(5))
    message = "(no difference in what is shown; the values of long constants are not)"
    assert difference.lines["stablehlo"] == ()
    assert f"StableHLO: what JAX handed to XLA\n{message}" in repr(difference)
    assert message in difference._repr_html_()
    assert "stablehlo" in difference.to_dict()["cut"]
    assert looked_at().diff(looked_at()).cut == ()
