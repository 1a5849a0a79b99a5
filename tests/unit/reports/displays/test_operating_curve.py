"""Displays of thresholds and of risk: the numbers they hold and what they draw."""

import matplotlib as mpl
import numpy as np
import pytest
from tests.sentences import assert_mentions

from calibrant.reports import OperatingCurveDisplay, RiskCoverageDisplay
from calibrant.testing import WORLDS
from calibrant.thresholds import accuracy, precision, recall, select

mpl.use("Agg")

both = pytest.mark.parametrize("display", [OperatingCurveDisplay, RiskCoverageDisplay])


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture(scope="module")
def binary():
    return WORLDS["binary"].draw(1500, 0)


def legend(display):
    return [text.get_text() for text in display.ax_.get_legend().get_texts()]


@both
@pytest.mark.parametrize("world", ["binary", "multiclass"])
def test_it_draws_on_the_axes_given_and_can_draw_again(display, world):
    import matplotlib.pyplot as plt

    draw = WORLDS[world].draw(600, 0)
    ax = plt.subplots()[1]
    made = display.from_predictions(draw.labels, draw.probs, ax=ax, name="Model")
    assert made.ax_ is ax
    assert made.figure_ is ax.figure
    assert ax.get_title() == "Model"
    assert made.plot() is made
    assert made.ax_ is not ax
    made.figure_.canvas.draw()


@both
@pytest.mark.parametrize("name", ["$x_{1", "_hidden", "a\nb", "<b>"])
def test_any_name_can_be_drawn(display, name, binary):
    names = np.array(["other", name])
    made = display.from_predictions(
        names[binary.labels], binary.probs, classes=names.tolist(), name=name
    )
    made.figure_.canvas.draw()


def test_lines_and_bands_are_those_of_the_curve(binary):
    made = OperatingCurveDisplay.from_predictions(binary.labels, binary.probs, confidence=0.9)
    line = made.ax_.get_lines()[0]
    assert line.get_ydata() == pytest.approx(made.curve["precision"].value)
    assert line.get_drawstyle() == "steps-pre"
    band = made.ax_.collections[0].get_paths()[0].vertices[:, 1]
    assert band.min() == pytest.approx(made.curve["precision"].low.min())
    assert legend(made) == ["precision, with its 90 % band", "recall, with its 90 % band"]


def test_the_chosen_point_is_marked_where_the_point_says(binary):
    point = select(binary.labels, binary.probs, hold=[precision >= 0.3, recall >= 0.2])
    made = OperatingCurveDisplay.from_point(point, binary.labels, binary.probs)
    marker = made.ax_.get_lines()[-1]
    assert marker.get_xdata() == pytest.approx([point.threshold] * 2)
    assert marker.get_ydata() == pytest.approx([point["precision"].value, point["recall"].value])
    assert sum(words == "target" for words in legend(made)) == 1
    assert any(words.startswith("chosen threshold 0.") for words in legend(made))


def test_rates_can_be_chosen(binary):
    made = OperatingCurveDisplay.from_predictions(
        binary.labels, binary.probs, rates=["npv", "specificity", "coverage"]
    )
    assert legend(made)[0].startswith("negative predictive value")
    assert len(made.ax_.get_lines()) == 3


def test_saturated_scores_are_drawn_as_log_odds():
    rng = np.random.default_rng(0)
    logits = rng.normal(0, 60, 2000)
    labels = (rng.random(2000) < 1 / (1 + np.exp(-logits / 25))).astype(int)
    point = select(labels, logits=logits, hold=precision >= 0.9)
    made = OperatingCurveDisplay.from_point(point, labels, logits=logits)
    assert_mentions(made.ax_.get_xlabel(), "threshold", "log-odds", "class 1")
    assert made.ax_.get_lines()[-1].get_xdata()[0] == point.logit
    plain = made.plot(log_odds=False)
    assert_mentions(plain.ax_.get_xlabel(), "threshold", "probability", "class 1")


def test_a_point_on_predictions_of_any_class():
    draw = WORLDS["multiclass"].draw(3000, 0)
    point = select(draw.labels, draw.probs, hold=accuracy >= 0.7)
    made = OperatingCurveDisplay.from_point(point, draw.labels, draw.probs)
    assert legend(made)[0].startswith("accuracy")
    assert_mentions(made.ax_.get_xlabel(), "threshold", "probability", "predicted class")


def test_labels_of_a_named_point_may_be_positions(binary):
    names = np.array(["no", "yes"])
    point = select(names[binary.labels], binary.probs, classes=["no", "yes"], hold=recall >= 0.5)
    one = OperatingCurveDisplay.from_point(point, binary.labels, binary.probs)
    other = OperatingCurveDisplay.from_point(point, names[binary.labels], binary.probs)
    assert one.curve["recall"].value.tolist() == other.curve["recall"].value.tolist()


def test_risk_with_its_target_and_mark(binary):
    made = RiskCoverageDisplay.from_predictions(binary.labels, binary.probs, target=0.05, mark=0.4)
    line = made.ax_.get_lines()[0]
    assert line.get_xdata() == pytest.approx(made.curve.coverage)
    assert line.get_ydata() == pytest.approx(made.curve.risk)
    assert f"risk (AURC {made.curve.aurc:.4f})" in legend(made)
    assert "target 5.0 %" in legend(made)
    assert made.ax_.get_lines()[2].get_xdata() == [0.4, 0.4]


@both
def test_a_curve_of_few_points_has_dots(display):
    made = display.from_predictions([0, 1, 1], [0.2, 0.6, 0.9])
    assert made.ax_.get_lines()[0].get_marker() == "o"
