"""The figures: what they show and label, and that nothing imports matplotlib before one is drawn."""

import subprocess
import sys

import pytest

pytest.importorskip("matplotlib")
import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from jitguide import Comparison, Phases, Ratio, Scaling, Timing


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    plt.close("all")


def comparison(slow=2e-3):
    timings = (Timing("plain", (slow,) * 20, 1, 1.0), Timing("jit", (1e-3,) * 20, 1, 1.0))
    return Comparison(timings, "plain", Ratio(1.0, 0.99, 1.01), "cpu")


COST = Phases(trace=0.01, lower=0.02, compile=0.3, first_run=0.04, steady=0.001)
CURVE = Scaling((10, 100), (comparison(), comparison(4e-3)))


def labels(ax):
    return ax.get_legend_handles_labels()[1]


def test_speedups_are_one_labelled_artist_with_the_variants_named_beside_it():
    ax = comparison().plot()
    assert labels(ax) == ["as fast as “plain”", "speedup with 95 % interval"]
    assert [label.get_text() for label in ax.get_yticklabels()] == ["plain", "jit"]
    assert ax.get_xlabel() == "speedup over “plain” (times)"
    points = ax.containers[0].lines[0].get_xdata()
    assert list(points) == pytest.approx([1.0, 2.0])


def test_the_first_variant_stands_on_top():
    low, high = comparison().plot().get_ylim()
    assert low > high


def test_speedups_far_apart_get_a_logarithmic_axis():
    assert comparison().plot().get_xscale() == "linear"
    assert comparison(slow=1.0).plot().get_xscale() == "log"


def test_phases_are_one_stacked_bar_with_a_legend():
    ax = COST.plot()
    assert labels(ax) == ["trace", "lower", "compile", "first run", "later call"]
    assert [text.get_text() for text in ax.get_legend().get_texts()] == labels(ax)
    bars = [container.patches[0] for container in ax.containers]
    assert [bar.get_x() for bar in bars] == pytest.approx([0, 10, 30, 330, 0])
    assert ax.get_xlabel() == "time (ms)"


def test_a_curve_is_one_line_for_each_variant_on_logarithmic_axes():
    ax = CURVE.plot()
    assert labels(ax) == ["plain", "jit"]
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("size", "time of a call (s)")
    assert list(ax.lines[0].get_ydata()) == pytest.approx([2e-3, 4e-3])


@pytest.mark.parametrize("result", [comparison(), COST, CURVE], ids=["comparison", "phases", "scaling"])
def test_figures_draw_where_they_are_told_and_leave_text_colours_to_the_page(result):
    _, ax = plt.subplots()
    assert result.plot(ax) is ax
    assert result.plot(ax=ax).get_title() == ""
    with plt.rc_context({"axes.labelcolor": "red", "xtick.color": "red"}):
        drawn = result.plot()
        assert drawn.xaxis.label.get_color() == "red"
        drawn.figure.canvas.draw()


def test_importing_the_instruments_does_not_import_matplotlib():
    code = "import sys; from jitguide import compare, phases, scaling; sys.exit('matplotlib' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def texts(ax):
    return [text.get_text() for text in ax.texts]


def test_the_later_call_has_its_time_and_the_break_even_beside_it():
    assert texts(COST.plot()) == ["1.0 ms"]
    assert texts(COST.plot(eager=0.0047)) == ["1.0 ms; even after 100 calls"]
    assert texts(COST.plot(eager=1e-9)) == ["1.0 ms; never even"]


def test_the_bars_and_points_of_horizontal_figures_are_named():
    assert comparison().plot().get_ylabel() == "variant"
    assert COST.plot().get_ylabel() == "call"
    assert [text.get_text() for text in comparison().plot().get_legend().get_texts()] == [
        "as fast as “plain”",
        "speedup with 95 % interval",
    ]


def test_a_crossing_is_marked_where_it_is():
    crossing = Scaling((10, 1000), (comparison(0.5e-3), comparison(2e-3)))
    line = crossing.plot().lines[-1]
    assert line.get_label() == "“jit” overtakes “plain” at 100"
    assert list(line.get_xdata()) == pytest.approx([100, 100])
    assert not any("overtakes" in str(line.get_label()) for line in CURVE.plot().lines)


def test_the_names_of_lines_that_end_together_stand_apart():
    almost = comparison(slow=1.01e-3)
    ax = Scaling((10, 100), (almost, almost)).plot()
    names = [text for text in ax.texts if text.get_text() in ("plain", "jit")]
    assert [name.get_text() for name in names] == ["plain", "jit"]
    above, below = (name.get_window_extent() for name in names)
    assert below.y1 < above.y0 + 1
    assert ax.get_legend() is None
