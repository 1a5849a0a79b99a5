"""Spiegelhalter's z test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from calibrant.inputs import ScoredRows, as_scored_rows, resolve_single_target
from calibrant.metrics.problem import target_problem
from calibrant.results import CalibrationTest

_DEFINITION = (
    "Brier score minus its expectation under calibration, in standard errors ({form}); normal "
    "p-value; blind to errors that cancel, so never the verdict"
)


def spiegelhalter(
    labels: Any,
    probs: Any,
    *,
    target: str | None = None,
    classes: Sequence[Any] | None = None,
) -> CalibrationTest:
    r"""Spiegelhalter's test: whether the Brier score is as expected under calibration.

    .. math:: z = \frac{\sum_i (y_i - s_i)(1 - 2 s_i)}{\sqrt{\sum_i (1-2s_i)^2 s_i (1-s_i)}}, \quad
              z = \frac{\sum_i 2(\sum_k p_{ik}^2 - p_{i y_i})}
              {\sqrt{\sum_i 4(\sum_k p_{ik}^3 - (\sum_k p_{ik}^2)^2)}}

    with :math:`y_i` the events and :math:`s_i` the scores of one binary problem (`positive`,
    `top-label`), and :math:`p_{ik}` the full vector (`vector`, the default for more than two
    classes); `target` selects the form. z > 0 means worse than expected. It is undefined (None) if
    the variance is 0, and does not support weights.

    Examples
    --------
    >>> test = spiegelhalter([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9])
    >>> round(test.statistic, 4)
    -0.5455

    References
    ----------
    Spiegelhalter (1986), Statistics in Medicine 5.
    """
    scored = as_scored_rows(labels, probs, classes=classes)
    if target is None:
        target = "positive" if scored.binary else "vector"
    if target == "vector":
        return _result(*_vector_parts(scored), form="full vector")
    resolved = resolve_single_target(target, len(scored.classes))
    scores, events = target_problem(scored, resolved)
    s = scores.astype(np.float64, copy=False)
    total = float(((events - s) * (1 - 2 * s)).sum())
    return _result(total, float(((1 - 2 * s) ** 2 * s * (1 - s)).sum()), form=target)


def unavailable_spiegelhalter(why: str) -> CalibrationTest:
    """Return the test without a result, with the reason."""
    definition = _DEFINITION.format(form="not available")
    return CalibrationTest("spiegelhalter", None, None, definition, why)


def _vector_parts(scored: ScoredRows) -> tuple[float, float]:
    p = scored.matrix.astype(np.float64, copy=False)
    second = np.einsum("ij,ij->i", p, p)
    third = np.einsum("ij,ij,ij->i", p, p, p)
    label_probs = p[np.arange(len(p)), scored.labels]
    return float((2 * (second - label_probs)).sum()), float((4 * (third - second**2)).sum())


def _result(total: float, variance: float, form: str) -> CalibrationTest:
    definition = _DEFINITION.format(form=form)
    if variance <= 1e-300:
        why = "undefined: every score is 0, 1/2 or 1, so the variance is 0"
        return CalibrationTest("spiegelhalter", None, None, definition, why)
    z = total / math.sqrt(variance)
    return CalibrationTest("spiegelhalter", z, math.erfc(abs(z) / math.sqrt(2)), definition)
