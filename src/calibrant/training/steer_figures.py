"""What the steer split says about an epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from numpy.typing import NDArray

from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.metrics import measure

__all__ = ["SteerFigures", "steer_figures"]


@dataclass(frozen=True)
class SteerFigures:
    """Figures of the steer split, by the names of `EpochRecord`."""

    nll: float
    refinement: float
    temperature: float
    ece: float
    f1: float
    accuracy: float


def steer_figures(logits: NDArray[Any], labels: NDArray[Any]) -> SteerFigures:
    """Measure the steer split: raw log loss, and log loss once a temperature has been fitted.

    The second is the *refinement*: what is left of the loss when the scale of the logits is right.
    A calibrator can mend the difference later, so an epoch is better judged by what it cannot. The
    temperature is fitted on the rows it is judged on; one number fitted on all of them hardly
    flatters, and all epochs alike. One row of doubt (`smooth`) keeps it finite where every
    prediction is right.
    """
    classes = range(logits.shape[1])
    probs = probs_from_logits(logits)
    names = ("nll", "ece_em", "f1_macro", "accuracy")
    found = measure(labels, probs, names=names, classes=classes, target="top-label")
    scaling = TemperatureScaling(smooth=True).fit(logits, labels, classes=classes)
    refined = measure(labels, scaling.predict_proba(logits), names=("nll",), classes=classes)
    return SteerFigures(
        nll=found["nll"],
        refinement=refined["nll"],
        temperature=float(scaling.temperature_),
        ece=found["ece_em"],
        f1=found["f1_macro"],
        accuracy=found["accuracy"],
    )
