"""Shows matplotlib figures as inline SVG in the page's colours, with the plotted data as a table.

It acts on display only: what a page's code does, and what a reader copies, is plain matplotlib.
The build (docs/_ext/execution/figures.py) adds the description and the caption that the cell names.
"""

import functools
import html
import io
import itertools
import re
import sys
import textwrap

_COLOURS = {
    "#505152": "var(--guide-figure-text)",
    "#77787a": "var(--guide-figure-axis)",
    "#c7c8ca": "var(--guide-figure-grid)",
    "#1068a0": "var(--guide-figure-1)",
    "#c05010": "var(--guide-figure-2)",
    "#108060": "var(--guide-figure-3)",
    "#a03080": "var(--guide-figure-4)",
    "#806010": "var(--guide-figure-5)",
    "#505090": "var(--guide-figure-6)",
}
_PHONE = 4.8  # inches: the width of a phone, on which words keep their size
_LONG = 24  # letters: on a phone, longer names of rows get a second line
_numbers = itertools.count(1)


def _svg(figure, kind):
    buffer = io.StringIO()
    metadata = dict.fromkeys(("Date", "Creator", "Format", "Type"))
    figure.savefig(buffer, format="svg", metadata=metadata)
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)  # it would apply to the whole page
    text = re.sub("|".join(_COLOURS), lambda m: _COLOURS[m.group()], text)
    # Some releases of matplotlib write `font: 11px 'DejaVu Sans'`, others `font-size: 11px; font-family: 'DejaVu Sans'`.
    families = r"(font(?:-family)?: [^;\"']*?)(?:'[^;\"]*|sans-serif[^;\"]*)"
    text = re.sub(families, r"\1var(--pst-font-family-base, sans-serif)", text)
    text = text.replace("xlink:href", "href")  # the older name, which needs a name space of its own
    prefix = f"figure-{next(_numbers)}-"
    text = re.sub(r'\bid="([^"]+)"', rf'id="{prefix}\1"', text)
    text = re.sub(r"url\(#([^)]+)\)", rf"url(#{prefix}\1)", text)
    text = re.sub(r'href="#([^"]+)"', rf'href="#{prefix}\1"', text)
    box = re.search(r'viewBox="([^"]+)"', text)[1]
    return (
        f'<svg viewBox="{box}" class="{kind}" role="img" aria-label="@@alt@@">{text[text.index(">") + 1 :]}'
    )


def _drawings(figure):
    """Return one drawing, or two where a phone needs a narrower one; the style sheet shows one of them."""
    width, height = figure.get_size_inches()
    if width <= _PHONE:
        return _svg(figure, "narrow")
    wide = _svg(figure, "wide")
    undo = [lambda: figure.set_size_inches(width, height)]
    figure.set_size_inches(_PHONE, height)
    for axes in figure.axes:
        names = [tick.get_text() for tick in axes.get_yticklabels()]
        if any(len(name) > _LONG for name in names):
            undo.append(functools.partial(axes.set_yticks, axes.get_yticks(), names))
            axes.set_yticks(axes.get_yticks(), [textwrap.fill(name, _LONG) for name in names])
            figure.set_size_inches(_PHONE, 1.7 * height)
    for axes in figure.axes:
        undo.append(functools.partial(axes.set_xlim, axes.get_xlim()))
        _make_room(figure, axes)
    try:
        return wide + _svg(figure, "phone")
    finally:
        for step in undo:
            step()


def _make_room(figure, axes):
    """Move the right end of an axis until no word reaches out of the figure."""
    scale = axes.xaxis.get_transform()
    for _ in range(10):
        figure.draw_without_rendering()
        ends = [text.get_window_extent().x1 for text in axes.texts]
        if max(ends, default=0) <= figure.bbox.x1:
            break
        left, right = scale.transform(axes.get_xlim())
        axes.set_xlim(right=float(scale.inverted().transform([right + 0.1 * (right - left)])[0]))


def _number(value):
    try:
        return f"{float(value):.3g}"
    except (TypeError, ValueError):
        return str(value)


def _series(axes):
    """Yield (label, x values, y values) of what the axes show: bars first, then labelled lines."""
    horizontal = None
    for bars in axes.containers:
        if not hasattr(bars, "orientation"):
            continue
        horizontal = bars.orientation == "horizontal"
        ticks = axes.get_yticklabels() if horizontal else axes.get_xticklabels()
        names = [tick.get_text() for tick in ticks]
        values = [bar.get_width() if horizontal else bar.get_height() for bar in bars]
        if len(names) != len(values):
            names = [_number(b.get_y() if horizontal else b.get_x()) for b in bars]
        yield bars.get_label(), names, values
    for line in axes.lines:
        if not line.get_label().startswith("_") and len(line.get_xdata()):
            yield line.get_label(), list(line.get_xdata()), list(line.get_ydata())


def _tables(figure):
    for axes in figure.axes:
        x_name, y_name = axes.get_xlabel() or "x", axes.get_ylabel() or "y"
        for label, xs, ys in _series(axes):
            caption = "" if label.startswith("_") else f"<caption>{html.escape(label)}</caption>"
            head = f'<tr><th scope="col">{html.escape(x_name)}</th><th scope="col">{html.escape(y_name)}</th></tr>'
            rows = "".join(
                f"<tr><td>{html.escape(_number(x))}</td><td>{html.escape(_number(y))}</td></tr>"
                for x, y in zip(xs, ys, strict=False)
            )
            yield f"<table>{caption}<thead>{head}</thead><tbody>{rows}</tbody></table>"


def _figure_html(figure):
    tables = "".join(_tables(figure))
    data = (
        f'<details class="figure-data"><summary>Data of this figure</summary>{tables}</details>'
        if tables
        else ""
    )
    drawing = f'<figure><div class="drawing" tabindex="0">{_drawings(figure)}</div>@@caption@@</figure>'
    return f'<div class="guide-figure">{drawing}{data}</div>'


def _register():
    """Take over the display of figures; importing pyplot resets it, hence once before figures are shown."""
    if "matplotlib.figure" in sys.modules:
        figure_class = sys.modules["matplotlib.figure"].Figure
        get_ipython().display_formatter.formatters["text/html"].for_type(figure_class, _figure_html)  # noqa: F821


get_ipython().events.register("post_execute", _register)  # noqa: F821 -- defined by IPython
