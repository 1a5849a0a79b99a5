"""Extra results of some experiments, by name.

An extra is a function of a `Fitted` run that returns plain values for its record. What is computed
once for an experiment is a function of the experiment and its `Parts`.
"""

from __future__ import annotations

from typing import Any

from reproductions.experiment import Experiment
from reproductions.fitting import Fitted
from reproductions.named_functions import function_named
from reproductions.parts import Parts

__all__ = ["EXTRAS", "ONCE", "extra_figures", "notes_of"]

EXTRAS = {
    "ood": "ood_figures:ood_figures",
    "paper_columns": "promise_figures:paper_columns",
    "promise": "promise_figures:promise",
    "rare_class": "long_tail:rare_class",
    "report": "class_report:class_report",
    "true_ce": "promise_figures:true_ce",
}
ONCE = {"tutorial": "bigmart:tutorial"}


def extra_figures(fitted: Fitted) -> dict[str, Any]:
    """Return the further figures that the experiment of a run asks for."""
    return {
        name: function_named(EXTRAS, name, "extra")(fitted) for name in fitted.experiment.extras
    }


def notes_of(experiment: Experiment, parts: Parts) -> dict[str, Any]:
    """Return what an experiment computes once."""
    return {name: function_named(ONCE, name, "note")(experiment, parts) for name in experiment.once}
