"""Classification report and reliability diagram of a run, before and after calibration."""

from __future__ import annotations

from typing import Any

import numpy as np

from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics import confusion_matrix
from calibrant.metrics.binning import bin_index, width_edges
from calibrant.metrics.classification import f1_of, macro, precision_of, recall_of
from reproductions.fitting import Fitted

__all__ = ["class_report", "reliability", "report_of"]

BINS = 10
"""As the tutorial has. With two classes only the upper five can be filled."""


def class_report(fitted: Fitted) -> dict[str, Any]:
    """Return report and reliability bins of the test rows, before and after temperature scaling.

    The temperature is that of the calib rows. It divides all logits of a row by one number, which
    moves no row to another class: both reports must be equal, and `same_classes` says that they
    are. A report that is headed "calibrated" therefore tells nothing about calibration.

    Parameters
    ----------
    fitted : the run
    """
    labels, logits = fitted.parts.test.labels, fitted.logits["test"]
    scaling = TemperatureScaling().fit(
        fitted.logits["calib"], fitted.parts.calib.labels, classes=range(logits.shape[1])
    )
    scaled = logits / scaling.temperature_
    reports = [report_of(labels, one, fitted.parts.classes) for one in (logits, scaled)]
    same = bool((logits.argmax(1) == scaled.argmax(1)).all())
    return {
        "before": reports[0],
        "after": reports[1],
        "same_classes": same,
        "told": (
            "One temperature divides all logits of a row, so no row changes its class: the report "
            "is the same before and after."
            if same
            else "Some rows lie so near the border that dividing by the temperature rounded them "
            "to the other class."
        ),
        "temperature": scaling.temperature_,
        "bins": {"before": reliability(labels, logits), "after": reliability(labels, scaled)},
    }


def report_of(labels: IntArray, logits: FloatArray, classes: tuple[str, ...]) -> dict[str, Any]:
    """Return precision, recall, F1 and rows of each class, the accuracy and the macro means.

    A class that is never predicted has no precision: None, which counts 0 in the mean.

    Examples
    --------
    >>> logits = np.array([[2.0, 0.0], [0.0, 1.0], [3.0, 0.0]])
    >>> found = report_of(np.array([0, 1, 1]), logits, ("few", "many"))
    >>> found["classes"][1]
    {'class': 'many', 'precision': 1.0, 'recall': 0.5, 'f1': 0.666..., 'support': 2}
    >>> found["accuracy"], found["macro"]["precision"]
    (0.666..., 0.75)
    """
    confusion = confusion_matrix(labels, probs_from_logits(logits), classes=range(logits.shape[1]))
    columns = {
        "precision": precision_of(confusion),
        "recall": recall_of(confusion),
        "f1": f1_of(confusion),
    }
    rows = [
        {
            "class": name,
            **{figure: _known(values[k]) for figure, values in columns.items()},
            "support": round(float(confusion[k].sum())),
        }
        for k, name in enumerate(classes)
    ]
    return {
        "classes": rows,
        "accuracy": float(np.trace(confusion) / confusion.sum()),
        "macro": {figure: macro(values, confusion) for figure, values in columns.items()},
        "support": len(labels),
    }


def reliability(labels: IntArray, logits: FloatArray, *, bins: int = BINS) -> dict[str, Any]:
    r"""Return the reliability diagram of the predicted class, in bins of equal width.

    $$ \text{ECE} = \sum_b \frac{n_b}{n} |acc_b - conf_b| $$

    $n_b$ of the $n$ rows are in bin $b$, a share $acc_b$ of them is right, and $conf_b$ is the mean
    of their confidence, the largest probability of a row. Empty bins are left out. It is the error
    of the predicted class, not that of the probability of the second of two classes.

    Examples
    --------
    >>> found = reliability(np.array([0, 0, 1]), np.array([[4.0, 1.0], [4.0, 1.0], [4.0, 1.0]]))
    >>> found["low"], found["rows"], round(found["accuracy"][0], 3)
    ([0.9], [3], 0.667)
    >>> round(found["ece"], 3)  # 0.953 - 0.667
    0.286
    """
    probs = probs_from_logits(logits)
    confidence, right = probs.max(axis=1), probs.argmax(axis=1) == labels
    edges = width_edges(bins)
    at = bin_index(confidence, edges)
    count = np.bincount(at, minlength=bins)
    filled = count > 0
    sums = [np.bincount(at, values, bins)[filled] for values in (confidence, right)]
    means = [total / count[filled] for total in sums]
    gap = float(np.abs(sums[0] - sums[1]).sum() / len(labels))
    return {
        "low": edges[:-1][filled].round(6).tolist(),
        "high": edges[1:][filled].round(6).tolist(),
        "rows": count[filled].tolist(),
        "confidence": means[0].tolist(),
        "accuracy": means[1].tolist(),
        "ece": gap,
    }


def _known(value: float) -> float | None:
    return None if np.isnan(value) else float(value)
