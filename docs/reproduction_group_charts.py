"""Charts of methods that a paper shows together, where an experiment has too many for one chart."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from docs.reproduction_charts import Chart, bin_errors, confidence_match, over_epochs
from docs.reproduction_records import ExperimentRuns

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_FOCAL = ("ce", "fl3", "fl4", "fl5")
_CALFOCAL = ("ce", "adafocal_paper", "calfocal10", "calfocal100")


def only(
    draw: Callable[[ExperimentRuns], Figure | None], *names: str
) -> Callable[[ExperimentRuns], Figure | None]:
    """Return what draws a chart of these methods alone, and nothing where one of them is lacking.

    It draws nothing either where there are no others: then the chart of all methods shows them.
    """

    def drawn(outcome: ExperimentRuns) -> Figure | None:
        if not set(names) < set(outcome.methods):
            return None
        runs = [run for run in outcome.runs if run["method"] in names]
        return draw(ExperimentRuns(outcome.experiment, runs, outcome.summary, outcome.notes))

    return drawn


GROUP_CHARTS = (
    Chart(
        "focal-epochs", "Focal losses with one gamma, epoch by epoch",
        "Test rows, before any calibrator: the larger gamma, the less sure the network. Figure 1 "
        "of the AdaFocal paper has the same lines on its longer schedule.",
        only(over_epochs, *_FOCAL),
    ),
    Chart(
        "focal-bins", "Focal losses with one gamma, bin by bin",
        "Steer rows. One gamma cannot be right for all bins: where it corrects the least sure "
        "rows, it may make others under-confident. First seed.",
        only(bin_errors, *_FOCAL),
    ),
    Chart(
        "focal-match", "Focal losses with one gamma: do new rows follow the train rows?",
        "Solid lines: train rows; stars: steer rows of the same bin. First seed.",
        only(confidence_match, "ce", "fl3", "fl5"),
    ),
    Chart(
        "calfocal-epochs", "CalFocal, epoch by epoch",
        "CalFocal computes gamma from the current error in the steer rows alone, AdaFocal changes "
        "its last gamma. Test rows, before any calibrator.",
        only(over_epochs, *_CALFOCAL),
    ),
    Chart(
        "calfocal-bins", "CalFocal, bin by bin",
        "Steer rows: confidence minus accuracy, which both losses want to be 0. First seed.",
        only(bin_errors, *_CALFOCAL),
    ),
    Chart(
        "calfocal-match", "CalFocal: do new rows follow the train rows?",
        "Solid lines: train rows; stars: steer rows of the same bin. First seed.",
        only(confidence_match, "ce", "calfocal10", "calfocal100"),
    ),
)  # fmt: skip
