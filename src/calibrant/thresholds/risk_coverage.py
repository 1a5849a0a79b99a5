"""Risk-coverage curves: error rate of the accepted predictions against their share."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics.ranking import aurc_influence
from calibrant.metrics.tally import tally_with_index
from calibrant.thresholds.curve import POINTS, compute_curve
from calibrant.thresholds.proof.question import build_problem
from calibrant.thresholds.rates import accuracy


@dataclass(frozen=True)
class RiskCoverage:
    """Error rate among accepted predictions, as a function of coverage.

    Parameters
    ----------
    coverage : (C,) increasing shares of rows whose prediction is accepted
    risk : (C,) share of the accepted predictions that is wrong
    low, high : (C,) its pointwise band; as in `RateCurve`
    threshold : (C,) the confidence that a row must reach, decreasing
    accepted, errors : (C,) numbers of rows
    aurc : area under the curve, as `calibrant.metrics.aurc` gives it
    n : rows
    confidence, weighted : as in `OperatingCurve`
    """

    coverage: FloatArray
    risk: FloatArray
    low: FloatArray
    high: FloatArray
    threshold: FloatArray
    accepted: IntArray
    errors: IntArray
    aurc: float
    n: int
    confidence: float = 0.95
    weighted: bool = False

    def to_dict(self) -> dict[str, Any]:
        """Return plain lists."""
        return {
            name: value.tolist() if isinstance(value, np.ndarray) else value
            for name, value in vars(self).items()
        }


def risk_coverage(
    labels: Any,
    probs: Any = None,
    *,
    logits: Any = None,
    classes: Sequence[Any] | None = None,
    weights: Any = None,
    confidence: float = 0.95,
    points: int | None = POINTS,
) -> RiskCoverage:
    r"""Compute the risk of the accepted predictions against the share that is accepted.

    .. math:: r(t) = P(\hat y \ne y \mid c \ge t), \qquad \text{coverage}(t) = P(c \ge t)

    where :math:`\hat y` is the most probable class and :math:`c` the confidence in it, also for
    two classes. Rows of equal confidence are accepted together. The band is exact and
    pointwise; with weights it is approximate, from the effective number of rows.

    Parameters
    ----------
    labels, probs, logits, classes, weights, confidence, points : as for `operating_curve`

    Examples
    --------
    >>> curve = risk_coverage([0, 1, 1, 0], [0.1, 0.9, 0.8, 0.6])
    >>> curve.coverage, curve.risk, round(curve.aurc, 4)
    (array([0.5 , 0.75, 1.  ]), array([0.  , 0.  , 0.25]), 0.0625)

    References
    ----------
    El-Yaniv & Wiener (2010), JMLR 11; Geifman & El-Yaniv (2017), NeurIPS.
    """
    problem = build_problem(labels, probs, logits, [accuracy], weights=weights, classes=classes)
    rows = problem.rows
    curve = compute_curve(problem, confidence=confidence, points=points)
    right, back = curve["accuracy"], slice(None, None, -1)
    return RiskCoverage(
        coverage=curve["coverage"].value[back],
        risk=1.0 - right.value[back],
        low=1.0 - right.high[back],
        high=1.0 - right.low[back],
        threshold=curve.threshold[back],
        accepted=curve.acted[back],
        errors=(curve.acted - curve.hits)[back],
        aurc=aurc_influence(tally_with_index(rows.score, rows.event, rows.weight)[0])[0],
        n=curve.n,
        confidence=confidence,
        weighted=curve.weighted,
    )
