"""BinErrorDisplay: what is drawn, for how many runs, and what cannot be."""

import matplotlib as mpl
import numpy as np
import pytest
from tests.sentences import assert_mentions, refuses
from tests.unit.reports.training_figures import a_history, assert_readable

from calibrant.errors import InputError
from calibrant.reports import BinErrorDisplay, BinHistory

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


@pytest.fixture
def runs():
    return {"ce": a_history(seed=0), "focal:gamma=3": a_history(epochs=7, seed=1, drift=-0.1)}


def test_the_lines_are_the_figures_of_each_run(runs):
    made = BinErrorDisplay.from_histories(runs, bins=[1, 4])
    panels = list(made.axes_)
    assert len(panels) == 3
    for number, history in enumerate(runs.values()):
        drawn = [ax.get_lines()[number] for ax in panels]
        for line in drawn:
            np.testing.assert_array_equal(line.get_xdata(), history.epoch)
        np.testing.assert_array_equal(drawn[0].get_ydata(), history.ece)
        np.testing.assert_array_equal(drawn[1].get_ydata(), history.error[:, 1])
        np.testing.assert_array_equal(drawn[2].get_ydata(), history.error[:, 4])


def test_words_say_what_is_what(runs):
    made = BinErrorDisplay.from_histories(runs)
    titles = [ax.get_title() for ax in made.axes_]
    assert titles == [
        "all rows (mean over bins)",
        "least sure rows (bin 0)",
        "middle rows (bin 2)",
        "surest rows (bin 4)",
    ]
    assert made.axes_[0].get_ylabel() == "calibration error"
    assert made.axes_[1].get_ylabel() == "confidence − accuracy"
    assert_mentions(made.figure_.get_suptitle(), "above 0", "over-confident")
    legend = [text.get_text() for text in made.figure_.legends[0].get_texts()]
    assert legend == ["ce", "focal:gamma=3"]


def test_every_bin_has_its_zero_line(runs):
    made = BinErrorDisplay.from_histories(runs)
    for ax in made.axes_[1:]:
        assert ax.get_lines()[-1].get_ydata() == [0.0, 0.0]
    assert made.axes_[0].get_ylim()[0] == 0.0


def test_axes_of_the_user_are_drawn_on_and_keep_their_figure(runs):
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 2)
    made = BinErrorDisplay.from_histories(runs, ax=axes)
    assert made.figure_ is figure
    assert list(made.axes_) == list(axes.ravel())
    assert figure._suptitle is None
    assert len(axes[0, 0].get_legend().get_texts()) == 2
    with refuses(InputError, "ax", "4 axes", "got 1"):
        BinErrorDisplay.from_histories(runs, ax=axes[0, 0])


def test_plot_can_be_called_again(runs):
    made = BinErrorDisplay.from_histories(runs)
    before = made.figure_
    assert made.plot() is made
    assert made.figure_ is not before


@pytest.mark.parametrize("count", [1, 3, 10])
@pytest.mark.parametrize("bins", [None, [2], [0, 1, 2, 3]])
def test_it_is_readable_with_few_and_many_lines(count, bins):
    runs = {f"focal:gamma={number}": a_history(seed=number) for number in range(count)}
    assert_readable(BinErrorDisplay.from_histories(runs, bins=bins).figure_)


def test_runs_that_share_a_colour_have_other_dashes():
    runs = {f"run {number}": a_history(epochs=2, seed=number) for number in range(10)}
    drawn = BinErrorDisplay.from_histories(runs).axes_[0].get_lines()
    assert len({(line.get_color(), line.get_linestyle()) for line in drawn}) == 10


def test_one_epoch_and_bins_without_rows_are_seen_as_dots():
    few = BinHistory.from_rows([0.5, 0.9], [0, 1], n_bins=4)
    made = BinErrorDisplay.from_histories({"few": few}, bins=[0, 1])
    assert made.axes_[0].get_lines()[0].get_marker() == "o"
    assert np.isnan(made.axes_[2].get_lines()[0].get_ydata()).all()
    assert_readable(made.figure_)


def test_the_default_bins_are_those_with_rows():
    few = BinHistory.from_rows([0.5, 0.7, 0.9], [0, 1, 1], n_bins=15)
    made = BinErrorDisplay.from_histories({"few": few})
    assert [ax.get_title() for ax in made.axes_[1:]] == [
        "least sure rows (bin 0)",
        "middle rows (bin 5)",
        "surest rows (bin 10)",
    ]


@pytest.mark.parametrize("name", ["$x_{1", "_hidden", "a\nb", "<b>", "Größe", 3])
def test_any_name_can_be_drawn(name):
    made = BinErrorDisplay.from_histories({name: a_history(), "other": a_history(seed=1)})
    assert len(made.figure_.legends[0].get_texts()) == 2
    made.figure_.canvas.draw()


@pytest.mark.parametrize("bins", [[], [5], [-1], [0.5], "low", 3, [True]])
def test_a_bin_that_does_not_exist_is_refused(bins, runs):
    with refuses(InputError, "bins", "whole numbers", "0..4"):
        BinErrorDisplay.from_histories(runs, bins=bins)


def test_what_cannot_share_a_figure_is_refused(runs):
    with pytest.raises(InputError, match=r"same number of bins.*'ce': 5.*'short': 4"):
        BinErrorDisplay.from_histories({**runs, "short": a_history(n_bins=4)})
    with refuses(InputError, "at least one epoch", "got none", "train first"):
        BinErrorDisplay.from_histories({"new": BinHistory.empty(5)})
    for wrong in ({}, [a_history()], a_history()):
        with refuses(InputError, "histories", "name of each run"):
            BinErrorDisplay.from_histories(wrong)
    with refuses(InputError, "BinTrace", "got dict"):
        BinErrorDisplay.from_histories({"ce": {}})
