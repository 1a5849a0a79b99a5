"""Venn-Abers prediction: two isotonic fits per row, one for each possible label."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.calibrators.base.one_vs_rest import OneVsRestCalibrator, ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.convert import log_odds_from_logits
from calibrant.inputs import FloatArray
from calibrant.metrics.tally import tally_with_index


@register
class VennAbers(OneVsRestCalibrator):
    r"""Fit isotonic regression with the row itself added, once for each possible label.

    .. math:: p_y = g_y(s) \quad\text{for } y \in \{0, 1\}, \qquad p = \frac{p_1}{1 - p_0 + p_1}

    s is the log-odds of a class, and :math:`g_y` the isotonic regression on the calibration rows
    and the row (s, y). The one that belongs to the row's true label is perfectly calibrated,
    whatever the model, as long as rows are exchangeable; `predict_pair` gives both. Their distance
    shows the influence of one label. `predict_proba` merges them: p exceeds the log loss of
    the one that belongs to the true label by as little as the worst case allows, and is never 0
    or 1.

    Calibration rows may have weights; a weight stands for a repetition, and the guarantee is then
    that of the repeated rows. The new row has weight 1. With more than two classes each has its
    pair against the rest, and the merged answers are scaled to sum to 1, which no theorem covers.

    The pair is not a confidence interval, and it is narrow where the row's neighbours are many.

    Attributes
    ----------
    maps_ : for each map two step functions: `p0` steps at and after each score of `at0`, `p1` after
        each score of `at1`

    Examples
    --------
    Scores 1, 2, 3 with labels 0, 1, 1, and a new row at 2. With label 0 it shares the mean 1/2 with
    the row at 2; with label 1 it stays at 1. Then p = 1 / (1 - 1/2 + 1) = 2/3:

    >>> calibrator = VennAbers().fit([1.0, 2.0, 3.0], [0, 1, 1])
    >>> calibrator.predict_pair([2.0])
    (array([0.5]), array([1.]))
    >>> calibrator.predict_proba([2.0]).round(6)
    array([0.666667])

    References
    ----------
    Vovk, Petej and Fedorova, Large-scale probabilistic predictors with and without guarantees of
    validity, NeurIPS 2015, section 2 for the pair and section 4 for p.
    """

    method = "venn_abers"

    def predict_pair(self, logits: Any) -> tuple[FloatArray, FloatArray]:
        """Return (p0, p1): each (n,) for the second of two classes, or (n, K).

        With more than two classes, column k holds the pair of class k against the rest.
        """
        scores = log_odds_from_logits(self._validate_logits(logits).astype(np.float64))
        if scores.ndim == 1:
            return _predict_pair(self.maps_[0], scores)
        columns = [_predict_pair(learned, scores[:, k]) for k, learned in enumerate(self.maps_)]
        return np.column_stack([p0 for p0, _ in columns]), np.column_stack(
            [p1 for _, p1 in columns]
        )

    def _learn_map(
        self, scores: FloatArray, events: np.typing.NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        tally, _ = tally_with_index(scores, events, weights)
        negatives, positives = tally.weight.T
        p1 = _fit_with_positive(tally.mass, positives)
        # Label 0 is label 1 of the other class, with the order of scores turned round.
        p0 = 1.0 - _fit_with_positive(tally.mass[::-1], negatives[::-1])[::-1]
        steps0, steps1 = p0[1:] != p0[:-1], p1[1:] != p1[:-1]
        return {
            "at0": tally.score[steps0],
            "p0": p0[np.append(True, steps0)],
            "at1": tally.score[steps1],
            "p1": p1[np.append(True, steps1)],
        }

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        p0, p1 = _predict_pair(learned, scores)
        return np.asarray(np.log(p1) - np.log1p(-p0))

    def _restore(self, params: Mapping[str, Any]) -> None:
        super()._restore(params)
        for learned in self.maps_:
            for at, values in ((learned["at0"], learned["p0"]), (learned["at1"], learned["p1"])):
                if at.ndim != 1 or values.shape != (len(at) + 1,) or (np.diff(at) <= 0).any():
                    raise ValueError("steps must ascend, with one more value than steps")
            if not (learned["p0"] < 1).all() or not (learned["p1"] > 0).all():
                raise ValueError("p0 must be below 1 and p1 above 0")


def _predict_pair(learned: ScoreMap, scores: FloatArray) -> tuple[FloatArray, FloatArray]:
    p0 = learned["p0"][np.searchsorted(learned["at0"], scores, side="right")]
    p1 = learned["p1"][np.searchsorted(learned["at1"], scores, side="left")]
    return np.minimum(p0, p1), np.asarray(p1)  # keep p0 <= p1 despite rounding


def _fit_with_positive(mass: FloatArray, positives: FloatArray) -> FloatArray:
    """Return the isotonic fit at a new row of label 1, for each possible position.

    Entry i is for a row with i distinct scores strictly below it; as 1 is the largest response, the
    row can be placed at the next score. Beyond all scores the fit is 1.
    """
    line = _Tangent(mass, positives)
    values = [line.slope]
    for index in range(1, len(mass)):
        line.advance(index)
        values.append(line.slope)
    return np.asarray(np.clip([*values, 1.0], 0.0, 1.0))


class _Tangent:
    """The line whose slope is the isotonic fit at a new row of label 1.

    Isotonic values are slopes of the greatest convex minorant of the points (weight so far, events
    so far). The new row moves all points from its place on by (1, 1), so that its value is the
    slope of the line that touches both parts from below. When the place moves on by one score, one
    point changes parts: the line changes only if that point lies below it, and then it begins there
    and touches the right part further right. So each point leaves the stack of corners once.
    """

    def __init__(self, mass: FloatArray, positives: FloatArray) -> None:
        self.x: list[float] = np.append(0.0, np.cumsum(mass)).tolist()
        self.y: list[float] = np.append(0.0, np.cumsum(positives)).tolist()
        self.corners: list[int] = []  # of the right part, the leftmost last
        for point in range(len(mass), 0, -1):
            self.start = self.x[point] + 1.0, self.y[point] + 1.0
            self._drop_covered()
            self.corners.append(point)
        self.start = 0.0, 0.0
        self._drop_covered()
        self.slope = self._slope_to(self.corners[-1])

    def advance(self, point: int) -> None:
        """Move one point to the left part; points come in order, without the last."""
        x, y = self.x[point], self.y[point]
        below = y < self.start[1] + self.slope * (x - self.start[0])
        leaves = self.corners[-1] == point
        if not (below or leaves):
            return
        if below:
            self.start = x, y
        if leaves:
            self.corners.pop()
        self._drop_covered()
        self.slope = self._slope_to(self.corners[-1])

    def _drop_covered(self) -> None:
        """Drop corners that are not below the line to the next corner."""
        corners = self.corners
        while len(corners) > 1 and self._slope_to(corners[-1]) >= self._slope_to(corners[-2]):
            corners.pop()

    def _slope_to(self, point: int) -> float:
        # Weights of very different size can round to a distance of 0.
        run = max(self.x[point] + 1.0 - self.start[0], 1e-300)
        return (self.y[point] + 1.0 - self.start[1]) / run
