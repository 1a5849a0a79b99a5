"""Spiegelhalter's z."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import Scored, as_scored, one_target
from calibrant.metrics.problem import problem
from calibrant.results import CalibrationTest

__all__ = ["spiegelhalter", "without_spiegelhalter"]

_DEFINITION = (
    "Brier score less its expectation under calibration, in standard errors ({form}); normal "
    "p-value; blind to errors that cancel, so never the verdict"
)


def spiegelhalter(
    labels: Any,
    probs: Any,
    *,
    target: str | None = None,
    classes: Sequence[Any] | None = None,
) -> CalibrationTest:
    r"""Test whether the Brier score is what calibrated probabilities would give.

    .. math:: z = \frac{\sum_i (y_i - s_i)(1 - 2 s_i)}{\sqrt{\sum_i (1-2s_i)^2 s_i (1-s_i)}}, \quad
              z = \frac{\sum_i 2(\sum_k p_{ik}^2 - p_{i y_i})}
              {\sqrt{\sum_i 4(\sum_k p_{ik}^3 - (\sum_k p_{ik}^2)^2)}}

    the first for one binary problem (`positive`, `top-label`), the second for the whole vector
    (`vector`, the default for more than two classes); `target` names the form. z > 0: worse than
    the scores promise. Undefined (None) where the variance is 0. It takes no weights.

    Examples
    --------
    >>> found = spiegelhalter([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9])
    >>> round(found.statistic, 4)
    -0.5455

    References
    ----------
    Spiegelhalter (1986), Statistics in Medicine 5.
    """
    scored = as_scored(labels, probs, classes=classes)
    if target is None:
        target = "positive" if scored.binary else "vector"
    if target == "vector":
        return _result(*_vector_parts(scored), form="full vector")
    what = one_target(target, len(scored.classes))
    scores, events = problem(scored, what)
    s = scores.astype(np.float64, copy=False)
    total = float(((events - s) * (1 - 2 * s)).sum())
    return _result(total, float(((1 - 2 * s) ** 2 * s * (1 - s)).sum()), form=target)


def without_spiegelhalter(why: str) -> CalibrationTest:
    """Return the test as one that cannot be given, with the reason."""
    definition = _DEFINITION.format(form="not given")
    return CalibrationTest("spiegelhalter", None, None, definition, why)


def _vector_parts(scored: Scored) -> tuple[float, float]:
    p = scored.matrix.astype(np.float64, copy=False)
    second = np.einsum("ij,ij->i", p, p)
    third = np.einsum("ij,ij,ij->i", p, p, p)
    given = p[np.arange(len(p)), scored.labels]
    return float((2 * (second - given)).sum()), float((4 * (third - second**2)).sum())


def _result(total: float, variance: float, form: str) -> CalibrationTest:
    definition = _DEFINITION.format(form=form)
    if variance <= 1e-300:
        why = "undefined: every score is 0, 1/2 or 1, so the variance is 0"
        return CalibrationTest("spiegelhalter", None, None, definition, why)
    z = total / math.sqrt(variance)
    return CalibrationTest("spiegelhalter", z, math.erfc(abs(z) / math.sqrt(2)), definition)
