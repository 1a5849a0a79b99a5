"""GammaDynamicsDisplay: what is drawn, where it switches, and a scale that can be read."""

import subprocess
import sys
from types import SimpleNamespace

import matplotlib as mpl
import numpy as np
import pytest
import torch
from tests.sentences import assert_mentions, refuses
from tests.unit.reports.training_figures import assert_readable, gammas, steered

from calibrant.errors import InputError
from calibrant.losses.adafocal import AdaFocalLoss
from calibrant.reports import GammaDynamicsDisplay

mpl.use("Agg")


@pytest.fixture(autouse=True)
def _close_figures():
    yield
    import matplotlib.pyplot as plt

    plt.close("all")


def drawn(ax, label):
    return next(line for line in ax.get_lines() if line.get_label() == label)


def test_errors_stand_above_and_gammas_below():
    history = steered()
    made = GammaDynamicsDisplay.from_history(history, bins=[0, 7, 14, 3])
    assert made.axes_.shape == (2, 4)
    for column, b in enumerate((0, 7, 14, 3)):
        error = made.axes_[0, column].get_lines()[-1]
        np.testing.assert_array_equal(error.get_xdata(), history.step)
        np.testing.assert_array_equal(error.get_ydata(), history.error[:, b])
        gamma = drawn(made.axes_[1, column], "gamma above 0: focal loss")
        np.testing.assert_array_equal(gamma.get_ydata(), history.gamma[:, b])


def test_the_switch_to_inverse_focal_is_seen():
    history = gammas([[1.0, 0.3], [1.1, -0.2], [1.2, -0.4], [1.2, 0.2]])
    made = GammaDynamicsDisplay.from_history(history)
    assert made.switches(0).tolist() == []
    assert made.switches(1).tolist() == [1, 3]
    mark = drawn(made.axes_[1, 1], "switch between the two")
    assert mark.get_xdata().tolist() == [2, 4]
    assert mark.get_ydata().tolist() == [-0.2, 0.2]
    inverse = drawn(made.axes_[1, 1], "gamma below 0: inverse focal loss")
    np.testing.assert_array_equal(inverse.get_ydata(), [np.nan, -0.2, -0.4, np.nan])
    labels = [line.get_label() for line in made.axes_[1, 0].get_lines()]
    assert "switch between the two" not in labels


def test_gammas_from_20_to_minus_2_are_spread_out_and_named():
    made = GammaDynamicsDisplay.from_history(steered())
    for ax in made.axes_[1]:
        assert ax.get_yscale() == "symlog"
        low, high = ax.get_ylim()
        assert low < -2
        assert high > 20
        shown = [text.get_text() for text in ax.get_yticklabels()]
        assert {"−2", "0", "1", "20"} <= {text.replace("-", "−") for text in shown}
    places = made.axes_[1, 0].transData.transform([(0, y) for y in (-2, -0.2, 0.2, 2, 20)])[:, 1]
    height = made.axes_[1, 0].bbox.height
    assert (np.diff(places) > 0.1 * height).all()
    assert_readable(made.figure_)


def test_gammas_near_each_other_get_a_plain_scale():
    made = GammaDynamicsDisplay.from_history(gammas([[1.0, 1.05], [1.1, 1.2]]))
    assert made.axes_[1, 0].get_yscale() == "linear"
    assert made.axes_[1, 0].get_ylim()[1] < 1.5


def test_one_scale_for_all_bins_of_a_row():
    made = GammaDynamicsDisplay.from_history(steered())
    for row in made.axes_:
        assert len({ax.get_ylim() for ax in row}) == 1
    low, high = made.axes_[0, 0].get_ylim()
    assert low < -0.2
    assert high > 0.3


def test_words_say_what_is_what():
    made = GammaDynamicsDisplay.from_history(steered(n_bins=3), name="a run")
    assert [ax.get_title() for ax in made.axes_[0]] == [
        "least sure rows (bin 0)\nconfidence below 0.30",
        "middle rows (bin 1)\nconfidence 0.30 to 0.90",
        "surest rows (bin 2)\nconfidence above 0.90",
    ]
    assert made.axes_[0, 0].get_ylabel() == "confidence − accuracy"
    assert made.axes_[1, 0].get_ylabel() == "gamma"
    assert made.axes_[1, 0].get_xlabel() == "update"
    title = made.figure_.get_suptitle()
    assert_mentions(title, "a run", "over-confident", "larger gamma")
    legend = [text.get_text() for text in made.figure_.legends[0].get_texts()]
    assert legend[:2] == ["over-confident", "under-confident"]


@pytest.mark.parametrize("bins", [None, [3], [0, 1, 2, 3, 4]])
@pytest.mark.parametrize("updates", [1, 3, 100])
def test_it_is_readable(bins, updates):
    assert_readable(GammaDynamicsDisplay.from_history(steered(updates), bins=bins).figure_)


def test_bins_without_rows_are_passed_over_by_default():
    error = np.full((6, 5), 0.1)
    error[:, [0, 4]] = np.nan
    count = np.where(np.isnan(error), 0, 30)
    made = GammaDynamicsDisplay.from_history(gammas(np.ones((6, 5)), error, count))
    assert [ax.get_title().split("\n")[0] for ax in made.axes_[0]] == [
        "least sure rows (bin 1)",
        "middle rows (bin 2)",
        "surest rows (bin 3)",
    ]
    asked = GammaDynamicsDisplay.from_history(gammas(np.ones((6, 5)), error, count), bins=[4])
    assert asked.axes_[0, 0].get_title() == "bin 4\nconfidence without rows"


def test_the_history_of_a_loss_is_drawn():
    loss = AdaFocalLoss(n_bins=5)
    draw = torch.Generator().manual_seed(0)
    for _ in range(4):
        logits = 3 * torch.randn(300, 3, generator=draw)
        loss.update(logits, torch.randint(0, 3, (300,), generator=draw))
    made = GammaDynamicsDisplay.from_history(loss.history)
    lines = [drawn(ax, "gamma above 0: focal loss").get_ydata() for ax in made.axes_[1]]
    np.testing.assert_array_equal(np.stack(lines, axis=1), loss.history.gamma[:, [0, 2, 4]])
    assert (np.diff(lines[-1]) > 0).all()  # sure and mostly wrong: gamma must rise


def test_axes_of_the_user_are_drawn_on():
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(2, 3)
    made = GammaDynamicsDisplay.from_history(steered(), ax=axes)
    assert made.figure_ is figure
    assert made.axes_[1, 2] is axes[1, 2]
    with refuses(InputError, "ax", "6 axes"):
        GammaDynamicsDisplay.from_history(steered(), ax=axes[0])


def test_what_cannot_be_drawn_is_refused():
    with refuses(InputError, "got none", "train first"):
        GammaDynamicsDisplay.from_history(AdaFocalLoss().history)
    with refuses(InputError, "AdaFocal", "gamma", "got SimpleNamespace"):
        GammaDynamicsDisplay.from_history(SimpleNamespace(step=[1]))
    with refuses(InputError, "got (2, 3) and (2, 2)", "2 updates"):
        GammaDynamicsDisplay.from_history(gammas(np.ones((2, 2)), error=np.zeros((2, 3))))
    with refuses(InputError, "bins", "whole numbers", "0..14"):
        GammaDynamicsDisplay.from_history(steered(), bins=[15])


def test_figures_of_a_run_need_no_torch():
    code = """
import sys
sys.modules["torch"] = None
import matplotlib
matplotlib.use("Agg")
import numpy as np
from types import SimpleNamespace
from calibrant import reports
history = reports.BinHistory.from_rows([0.5, 0.7, 0.9], [0, 1, 1], n_bins=3)
reports.BinErrorDisplay.from_histories({"ce": history})
reports.ConfidenceMatchDisplay.from_history(history)
table = np.ones((2, 3))
reports.GammaDynamicsDisplay.from_history(SimpleNamespace(
    step=np.arange(2), edges=np.full((2, 2), 0.5), error=table, count=table, gamma=table))
"""
    subprocess.run([sys.executable, "-c", code], check=True)
