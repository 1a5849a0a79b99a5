"""Displays: the numbers they hold, what plot draws, and names that would break matplotlib."""

import subprocess
import sys

import matplotlib as mpl
import numpy as np
import pytest
from tests.sentences import refuses

import calibrant.reports
from calibrant.errors import InputError
from calibrant.metrics import evaluate
from calibrant.reports import (
    ConfidenceHistogramDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
)
from calibrant.testing import WORLDS

mpl.use("Agg")

ALL = (
    ConfidenceHistogramDisplay,
    PrecisionRecallDisplay,
    ReliabilityDisplay,
    ThresholdDisplay,
)
each_display = pytest.mark.parametrize("display", ALL)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module", params=["binary", "multiclass"])
def case(request):
    draw = WORLDS[request.param].draw(800, 1)
    return draw, evaluate(draw.labels, draw.probs)


@each_display
def test_both_ways_in_draw_on_the_axes_given(display, case):
    import matplotlib.pyplot as plt

    draw, evaluation = case
    ax = plt.subplots()[1]
    made = display.from_predictions(draw.labels, draw.probs, ax=ax)
    assert made.ax_ is ax
    assert made.figure_ is ax.figure
    again = display.from_evaluation(evaluation)
    assert again.ax_ is not ax
    again.figure_.canvas.draw()


@each_display
def test_plot_can_be_called_again(display, case):
    draw, _ = case
    made = display.from_predictions(draw.labels, draw.probs)
    before = made.figure_
    assert made.plot() is made
    assert made.figure_ is not before


@each_display
@pytest.mark.parametrize("name", ["$x_{1", "_hidden", "a\nb", "<b>", "Größe"])
def test_any_name_can_be_drawn(display, name):
    draw = WORLDS["binary"].draw(100, 0)
    names = np.array(["other", name])
    made = display.from_predictions(
        names[draw.labels], draw.probs, classes=names.tolist(), name=name
    )
    made.figure_.canvas.draw()


def test_reliability_is_the_same_from_rows_and_from_an_evaluation(case):
    draw, evaluation = case
    rows = ReliabilityDisplay.from_predictions(draw.labels, draw.probs)
    kept = ReliabilityDisplay.from_evaluation(evaluation)
    np.testing.assert_allclose(rows.bins.score, kept.bins.score)
    np.testing.assert_allclose(rows.bins.rate, kept.bins.rate)
    # Bands come from other draws; in a bin of a few rows they can differ by one row.
    step = 1.0 / rows.bins.count
    assert (np.abs(rows.bins.band_low - kept.bins.band_low) <= 1.5 * step + 0.02).all()


def test_reliability_counts_are_all_rows(case):
    draw, _ = case
    for scheme in ("width", "mass"):
        made = ReliabilityDisplay.from_predictions(draw.labels, draw.probs, scheme=scheme)
        assert made.bins.count.sum() == 800
        heights = [bar.get_height() for bar in made.counts_ax_.patches]
        assert sum(heights) == 800


def test_second_model_shares_axes_and_strip():
    draw = WORLDS["binary"].draw(300, 0)
    first = ReliabilityDisplay.from_predictions(draw.labels, draw.probs, name="a")
    second = ReliabilityDisplay.from_predictions(
        draw.labels, draw.posterior, name="b", ax=first.ax_
    )
    assert second.counts_ax_ is None
    texts = [text.get_text() for text in first.ax_.get_legend().get_texts()]
    assert texts.count("perfectly calibrated") == 1


def test_a_row_alone_in_its_bin_is_inside_its_band():
    """Its band reaches from 0 to 1, whatever rounding says."""
    made = ReliabilityDisplay.from_predictions([0, 1, 0, 1], [0.363, 0.363, 0.51, 0.77])
    assert not made.outside.any()


def test_reliability_refuses_a_scheme_that_was_not_kept(case):
    with refuses(InputError, "scheme", "one of"):
        ReliabilityDisplay.from_evaluation(case[1], scheme="sweep")


def test_histogram_is_the_same_from_rows_and_from_an_evaluation(case):
    draw, evaluation = case
    kept = ConfidenceHistogramDisplay.from_evaluation(evaluation)
    bins = len(kept.with_event)
    rows = ConfidenceHistogramDisplay.from_predictions(draw.labels, draw.probs, n_bins=bins)
    np.testing.assert_allclose(rows.with_event, kept.with_event, atol=1e-9)
    np.testing.assert_allclose(rows.without_event, kept.without_event, atol=1e-9)
    assert rows.of == kept.of


def test_histogram_of_one_class():
    draw = WORLDS["multiclass"].draw(500, 0)
    made = ConfidenceHistogramDisplay.from_predictions(draw.labels, draw.probs, of=3, log=True)
    assert made.with_event.sum() == (draw.labels == 3).sum()
    assert made.ax_.get_yscale() == "log"


def test_curves_count_by_hand(case):
    draw, _ = case
    made = ThresholdDisplay.from_predictions(draw.labels, draw.probs, of=1)
    scores = draw.probs if draw.probs.ndim == 1 else draw.probs[:, 1]
    flagged = scores >= 0.3
    found = made.at(0.3)
    assert found["flagged"] == pytest.approx(flagged.mean())
    assert found["precision"] == pytest.approx((draw.labels[flagged] == 1).mean())
    assert found["recall"] == pytest.approx(flagged[draw.labels == 1].mean())
    assert made.at(1.1) == {"threshold": 1.1, "precision": None, "recall": 0.0, "flagged": 0.0}


def test_weights_count_as_repetition():
    labels, probs = np.array([0, 1, 1]), np.array([0.2, 0.6, 0.9])
    weighted = ThresholdDisplay.from_predictions(labels, probs, weights=[2, 1, 3])
    repeated = ThresholdDisplay.from_predictions(
        np.repeat(labels, [2, 1, 3]), np.repeat(probs, [2, 1, 3])
    )
    for name in ("threshold", "precision", "recall", "flagged"):
        np.testing.assert_allclose(getattr(weighted.curve, name), getattr(repeated.curve, name))


def test_which_classes_are_drawn():
    long = WORLDS["long_tailed"].draw(600, 0)
    many = PrecisionRecallDisplay.from_predictions(long.labels, long.probs)
    assert len(many.curves) == 8
    one = PrecisionRecallDisplay.from_predictions(long.labels, long.probs, of=4)
    assert list(one.curves) == ["class 4"]
    top = PrecisionRecallDisplay.from_predictions(long.labels, long.probs, target="top-label")
    assert list(top.curves) == ["the predicted class"]
    with refuses(InputError, "of must be", "classes"):
        PrecisionRecallDisplay.from_predictions(long.labels, long.probs, of="cat")


@pytest.mark.parametrize("display", [PrecisionRecallDisplay, ThresholdDisplay])
def test_evaluation_without_curves_says_what_to_do(display, case):
    from dataclasses import replace

    bare = replace(case[1], curves={})
    with pytest.raises(InputError, match="from_predictions"):
        display.from_evaluation(bare)


def test_reliability_draws_without_bands_or_smooth_curve(case):
    from dataclasses import replace

    bins = replace(case[1].bins["width"], band_low=None, band_high=None)
    ReliabilityDisplay(bins).plot().figure_.canvas.draw()


def test_every_listed_name_exists():
    for name in calibrant.reports.__all__:
        assert callable(getattr(calibrant.reports, name))
    assert set(dir(calibrant.reports)) == set(calibrant.reports.__all__)
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        calibrant.reports.nothing  # noqa: B018


def test_importing_is_light():
    code = (
        "import sys, calibrant.reports as r; [getattr(r, n) for n in r.__all__];"
        "heavy = {'matplotlib', 'plotly', 'pandas', 'sklearn', 'jinja2'} & set(sys.modules);"
        "sys.exit(str(heavy) if heavy else 0)"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("display", [PrecisionRecallDisplay, ThresholdDisplay])
def test_a_curve_of_few_points_has_dots(display, case):
    one = display.from_predictions([1], [0.4]).ax_.lines[0]
    assert one.get_marker() == "o"
    draw, _ = case
    assert display.from_predictions(draw.labels, draw.probs).ax_.lines[0].get_marker() in (
        "",
        "None",
    )
