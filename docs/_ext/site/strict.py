"""Pages that work under the policy `default-src 'self'`, which a host may set against foreign scripts.

No style, icon or picture may then stand in a page's text or in a style sheet as data. The outputs of cells bring
styles and pictures of their own, because they must look right in a notebook: here these move to files beside the page. The icons that
the theme takes from a font of 1.5 MB are drawn in place. And cells of tables get the names of their columns, which
a script would add only after the page is drawn, so that the page would jump. Long names in cells may break.
"""

from __future__ import annotations

import base64
import hashlib
import html
import re
from pathlib import Path

from sphinx.application import Sphinx

FOLDER = "_static/styles/pages"
_ELEMENT = re.compile(r"<style[^>]*>(.*?)</style>", re.DOTALL)
_TAG = re.compile(r"""<[a-zA-Z](?:[^<>"']|"[^"]*"|'[^']*')*\sstyle="[^"]*"(?:[^<>"']|"[^"]*"|'[^']*')*>""")
_PICTURE = re.compile(r'(\b(?:xlink:)?(?:href|src))="data:image/png;base64,([^"]*)"')
_TABLE = re.compile(r'(<table class="[^"]*\btable\b[^>]*>.*?</thead>)(.*?</table>)', re.DOTALL)
_HEAD = re.compile(r"<th[\s>].*?</th>", re.DOTALL)
_ROW = re.compile(r"(?:(?!<tr).)+", re.DOTALL)
_NARROW = re.compile(r'<(td|th|h[1-4])[\s>].*?</\1>|<a class="reference internal nav-link".*?</a>', re.DOTALL)
_LONG = re.compile(r"(?<=>)[^<]{9,}")
_LONG_WORD = re.compile(r"(?<![^\s>])[^<>\s]{18,}(?=[^<>]*<)")
_ICON = re.compile(r'(<(i|span) class="[^"]*\bfa-solid fa-([\w-]+)[^>]*>)(?=</\2>)')
_ICONS = {
    "angle-left": '<path d="m15 5-7 7 7 7"/>',
    "angle-right": '<path d="m9 5 7 7-7 7"/>',
    "arrow-up": '<path d="M12 20V4M5 11l7-7 7 7"/>',
    "bars": '<path d="M3 6h18M3 12h18M3 18h18"/>',
    "chevron-down": '<path d="m5 9 7 7 7-7"/>',
    "chevron-right": '<path d="m9 5 7 7-7 7"/>',
    "chevron-up": '<path d="m5 15 7-7 7 7"/>',
    "circle-half-stroke": '<circle cx="12" cy="12" r="9"/><path d="M12 3v18a9 9 0 0 0 0-18z" fill="currentColor"/>',
    "file-lines": '<path d="M6 2h8l5 5v15H6zM9 12h7M9 16h7"/>',
    "home": '<path d="M3 11 12 3l9 8M6 9v11h12V9"/>',
    "list": '<path d="M8 6h13M8 12h13M8 18h13M3 6h1M3 12h1M3 18h1"/>',
    "magnifying-glass": '<circle cx="10" cy="10" r="6"/><path d="m14.5 14.5 6 6"/>',
    "moon": '<path d="M20 14A8 8 0 1 1 10 4a7 7 0 0 0 10 10z"/>',
    "outdent": '<path d="M3 5h18M11 10h10M11 15h10M3 20h18M7 9l-4 3.5L7 16"/>',
    "pencil": '<path d="m4 20 1-5L16 4l4 4L9 19z"/>',
    "sun": '<circle cx="12" cy="12" r="4"/><path d="M12 2v2M12 20v2M4.9 4.9l1.4 1.4M17.7 17.7l1.4 1.4M2 12h2M20 12h2'
    'M4.9 19.1l1.4-1.4M17.7 6.3l1.4-1.4"/>',
    "xmark": '<path d="M5 5l14 14M19 5 5 19"/>',
}


def offer(app: Sphinx, page: str, _template: str, context: dict, _doctree: object) -> None:
    """Give the template `guide_strict`, which takes the text of a page."""
    if app.builder.name == "epub":  # a book has no policy, and its files are listed
        context["guide_strict"] = str
        return
    pathto = context["pathto"]

    def written(data: bytes, name: str) -> str:
        path = Path(app.outdir, FOLDER, name)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
        return f"{FOLDER}/{name}"

    def strict(text: str) -> str:
        def picture(found: re.Match[str]) -> str:
            data = base64.b64decode(found[2])
            return f'{found[1]}="{pathto(written(data, hashlib.sha256(data).hexdigest()[:12] + ".png"), 1)}"'

        # Pygments keeps a first empty line; no block has one.
        text = text.replace("<pre><span></span>", "<pre>")
        text, rules = moved(drawn(labelled(breakable(_PICTURE.sub(picture, text)))))
        sheet = f"{page.replace('/', '-')}.css"
        if not rules:
            Path(app.outdir, FOLDER, sheet).unlink(missing_ok=True)  # of an earlier build
            return text
        name = written(rules.encode(), sheet)
        digest = hashlib.sha256(rules.encode()).hexdigest()[:8]
        return f'<link rel="stylesheet" href="{pathto(name, 1)}?v={digest}"/>\n{text}'

    context["guide_strict"] = strict


def labelled(text: str) -> str:
    """Return a page's text with the column's name on each cell of a table of three columns or more.

    On a phone each row is a card, which shows them.

    Example:
        >>> labelled('<table class="table"><thead><th>a</th><th><p>b</p></th><th>c</th></thead><td>1</td><td>2</td></table>')
        '<table class="table"><thead><th>a</th><th><p>b</p></th><th>c</th></thead><td data-label="a">1</td><td data-label="b">2</td></table>'
    """

    def table(found: re.Match[str]) -> str:
        names = [" ".join(re.sub("<[^>]+>", "", head).split()) for head in _HEAD.findall(found[1])]
        return (
            found[1] + _ROW.sub(lambda row: _named(row[0], names), found[2]) if len(names) > 2 else found[0]
        )

    return _TABLE.sub(table, text)


def breakable(text: str) -> str:
    """Return a page's text where a long name in a cell, a heading or the page's contents may break after one of its parts.

    A column as wide as its longest name takes the room of the others, or more than there is.

    Example:
        >>> breakable('<td><span class="pre">jax.config.jax_debug_nans</span></td>')
        '<td><span class="pre">jax.<wbr/>config.<wbr/>jax_<wbr/>debug_<wbr/>nans</span></td>'
        >>> breakable('<td><span class="pre">TracerBoolConversionError</span></td>')
        '<td><span class="pre">Tracer<wbr/>Bool<wbr/>Conversion<wbr/>Error</span></td>'
        >>> breakable('<h2 id="a_long_name_of_a_part">A lax.while_loop, a TracerBoolConversionError</h2>')
        '<h2 id="a_long_name_of_a_part">A lax.while_loop, a Tracer<wbr/>Bool<wbr/>Conversion<wbr/>Error</h2>'
    """

    def name(found: re.Match[str]) -> str:
        parts = re.sub(r"(?<=[\w)\]][._(,=/])(?=[^\W\d]\w)", "<wbr/>", found[0])
        return re.sub(r"\w{15,}", lambda word: re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "<wbr/>", word[0]), parts)

    def part(found: re.Match[str]) -> str:
        long = _LONG if found[1] in ("td", "th") else _LONG_WORD
        return long.sub(name, found[0])

    return _NARROW.sub(part, text)


def _named(row: str, names: list[str]) -> str:
    cells = iter(names)

    def cell(tag: re.Match[str]) -> str:
        name = next(cells, "").replace('"', "&quot;")
        return f'{tag[0]} data-label="{name}"' if name else tag[0]

    return re.sub(r"<t[dh](?=[\s>])", cell, row)


def drawn(text: str) -> str:
    """Return a page's text with a drawing in each of the theme's icons; one that is not known stays empty."""

    def draw(icon: re.Match[str]) -> str:
        shape = _ICONS.get(icon[3])
        return (
            f'{icon[1]}<svg class="icon" viewBox="0 0 24 24" aria-hidden="true">{shape}</svg>'
            if shape
            else icon[0]
        )

    return _ICON.sub(draw, text)


def moved(text: str) -> tuple[str, str]:
    r"""Return a page's text without styles, and a style sheet with their rules.

    A style in a tag becomes a class, named three times in its rule so that it wins over other classes, as it did.

    Example:
        >>> moved('<style>.a{x:1}</style><p style="y:2">b</p><p class="c" style="y:2">d</p>')
        ('<p class="s-d515eb">b</p><p class="c s-d515eb">d</p>', '.a{x:1}\n.s-d515eb.s-d515eb.s-d515eb{y:2}\n')
    """
    rules: dict[str, None] = {}

    def element(found: re.Match[str]) -> str:
        rules[found[1].strip()] = None
        return ""

    def attribute(found: re.Match[str]) -> str:
        tag = found[0]
        style = re.search(r'\sstyle="([^"]*)"', tag)
        assert style is not None
        name = f"s-{hashlib.sha256(style[1].encode()).hexdigest()[:6]}"
        rules[f".{name}.{name}.{name}{{{html.unescape(style[1])}}}"] = None
        tag = tag.replace(style[0], "", 1)
        if re.search(r'\sclass="', tag):
            return re.sub(r'(\sclass="[^"]*)"', rf'\1 {name}"', tag, count=1)
        return re.sub(r"^<[\w:-]+", rf'\g<0> class="{name}"', tag)

    text = _TAG.sub(attribute, _ELEMENT.sub(element, text))
    return text, "".join(f"{rule}\n" for rule in rules)
