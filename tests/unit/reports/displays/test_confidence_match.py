"""ConfidenceMatchDisplay: which figures stand against which, and what cannot be drawn."""

import matplotlib as mpl
import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.reports.training_figures import a_history, assert_readable

from calibrant.errors import InputError
from calibrant.reports import BinHistory, ConfidenceMatchDisplay

mpl.use("Agg")

PAIRS = {
    "common": ("train_confidence", "confidence"),
    "independent": ("own_confidence", "confidence"),
    "true_top": ("train_confidence", "train_top"),
}
each_kind = pytest.mark.parametrize("kind", PAIRS)


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@each_kind
def test_a_solid_line_stands_against_stars(kind):
    history = a_history(epochs=30)
    made = ConfidenceMatchDisplay.from_history(history, kind=kind, bins=[1, 3])
    for ax, b in zip(made.axes_, (1, 3), strict=False):
        solid, starred = ax.get_lines()
        np.testing.assert_array_equal(solid.get_xdata(), history.epoch)
        np.testing.assert_array_equal(solid.get_ydata(), getattr(history, PAIRS[kind][0])[:, b])
        np.testing.assert_array_equal(starred.get_ydata(), getattr(history, PAIRS[kind][1])[:, b])
        assert solid.get_marker() in ("", "None")
        assert starred.get_marker() == "*"
        assert solid.get_color() != starred.get_color()


def test_true_against_top_shows_the_accuracy_beside_it():
    history = a_history()
    made = ConfidenceMatchDisplay.from_history(history, kind="true_top")
    assert len(made.axes_) == 4
    np.testing.assert_array_equal(made.axes_[-1].get_lines()[0].get_ydata(), history.train_accuracy)
    assert made.axes_[-1].get_title() == "train rows predicted right"


def test_the_top_class_is_never_less_sure_than_the_true_class():
    history = a_history()
    assert (history.train_top >= history.train_confidence - 1e-12).all()
    assert (history.own_top >= history.own_confidence - 1e-12).all()


@each_kind
def test_several_runs_have_a_colour_each(kind):
    runs = {"ce": a_history(), "focal:gamma=3": a_history(epochs=8, seed=1)}
    made = ConfidenceMatchDisplay.from_histories(runs, kind=kind)
    first, _, second, _ = made.axes_[0].get_lines()
    colors = [line.get_color() for line in made.axes_[0].get_lines()]
    assert colors[0] == colors[1] != colors[2] == colors[3]
    assert len(first.get_xdata()) == 12
    assert len(second.get_xdata()) == 8
    legend = [text.get_text() for text in made.figure_.legends[0].get_texts()]
    assert legend[0] == "train rows, true class"
    assert legend[2:] == ["ce", "focal:gamma=3"]
    assert_readable(made.figure_)


def test_words_say_what_is_what():
    made = ConfidenceMatchDisplay.from_history(a_history(), name="ce")
    legend = [text.get_text() for text in made.figure_.legends[0].get_texts()]
    assert legend == ["train rows, true class", "steer (validation) rows, predicted class"]
    assert made.axes_[0].get_ylabel() == "mean probability"
    assert_mentions(made.figure_.get_suptitle(), "ce ", "train and steer", "same bins")


@each_kind
@pytest.mark.parametrize("bins", [None, [2], [0, 1, 2, 3, 4]])
def test_it_is_readable(kind, bins):
    made = ConfidenceMatchDisplay.from_history(a_history(), kind=kind, bins=bins)
    assert_readable(made.figure_)


def test_a_bin_without_train_rows_is_a_gap():
    steer = [0.5, 0.6, 0.9, 0.95]
    history = BinHistory.from_rows(
        steer, [1, 1, 1, 1], true=[0.3], top=[0.7], train_right=[0], n_bins=2
    )
    made = ConfidenceMatchDisplay.from_history(history)
    upper = made.axes_[1].get_lines()[0]
    assert np.isnan(upper.get_ydata()).all()
    made.figure_.canvas.draw()


def test_axes_of_the_user_are_drawn_on():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(1, 3)
    made = ConfidenceMatchDisplay.from_history(a_history(), ax=axes)
    assert made.figure_ is figure
    assert figure._suptitle is None
    with refuses(InputError, "ax", "4 axes"):
        ConfidenceMatchDisplay.from_history(a_history(), kind="true_top", ax=axes)


def test_what_cannot_be_drawn_is_refused():
    with refuses(InputError, "kind", "'common'", "got 'both'"):
        ConfidenceMatchDisplay.from_history(a_history(), kind="both")
    with refuses(InputError, "got none", "train first"):
        ConfidenceMatchDisplay.from_history(BinHistory.empty(5))
    with refuses(InputError, "BinTrace", "got list"):
        ConfidenceMatchDisplay.from_history([1, 2])
    with refuses(InputError, "number of bins"):
        ConfidenceMatchDisplay.from_histories({"a": a_history(), "b": a_history(n_bins=3)})
    with refuses(InputError, "bins", "a list"):
        ConfidenceMatchDisplay.from_history(a_history(), bins=[9])
