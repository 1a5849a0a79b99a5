"""Scaling-binning: Platt scaling first, then bins that answer their mean scaled value."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from calibrant.calibrators.histogram import StepCalibrator, mass_starts, step_map
from calibrant.calibrators.logistic import fit_logistic, platt_targets
from calibrant.calibrators.one_vs_rest import ScoreMap
from calibrant.calibrators.platt import LEAST_SLOPE
from calibrant.calibrators.registry import register
from calibrant.inputs import FloatArray
from calibrant.metrics.binning import check_bins
from calibrant.metrics.tally import sum_between, tally_and_places

__all__ = ["ScalingBinning"]


@register
class ScalingBinning(StepCalibrator):
    r"""Fit a logistic curve, then answer its mean within each of a few bins of equal mass.

    .. math:: g(s) = \frac{1}{1 + e^{-(a + b s)}}, \qquad
              f(s) = \frac{\sum_{i \in B(s)} w_i\, g(s_i)}{\sum_{i \in B(s)} w_i}

    s is the log-odds of a class, a and b are Platt's intercept and slope, B(s) is the bin of s
    among bins with equal shares of the rows, tied scores kept together, and w are the weights.
    a and b minimise the log loss with Platt's targets, as in `PlattScaling`, and b is kept
    positive. There are only so many answers, so the calibration error that is left can be measured;
    and since each is a mean of the curve and not of labels, it varies less than a histogram's.

    It is only as good as the logistic curve it starts from, and many rows share one answer. The
    theorem of the paper asks for separate rows for each of the three steps (curve, bins, means);
    here, as in the authors' own program, all steps use all rows.

    Parameters
    ----------
    n_bins : number of bins asked for; there are fewer where rows or ties demand it

    Attributes
    ----------
    maps_ : for each map its `intercept` a, `slope` b, `edges` (lowest score of every bin but the
        first), `probs` (the answer of each bin) and `rest` (1 less the answer)

    Examples
    --------
    With three of four right at both scores, Platt's targets 5/6 and 1/6 make the curve
    (3 x 5/6 + 1/6) / 4 = 2/3 at the upper score; one bin has the mean of 1/3 and 2/3:

    >>> logits, labels = [-1.0] * 4 + [1.0] * 4, [0, 0, 0, 1, 1, 1, 1, 0]
    >>> ScalingBinning(2).fit(logits, labels).predict_proba([-1.0, 1.0]).round(6)
    array([0.333333, 0.666667])
    >>> ScalingBinning(1).fit(logits, labels).predict_proba([-1.0, 1.0]).round(6)
    array([0.5, 0.5])

    References
    ----------
    Kumar, Liang and Ma, Verified uncertainty calibration, NeurIPS 2019, section 4. Platt,
    Probabilistic outputs for support vector machines, 1999, section 2.2, for the targets.
    """

    method = "scaling_binning"

    def __init__(self, n_bins: int = 10) -> None:
        self.n_bins = n_bins

    def _learn_map(
        self, scores: FloatArray, events: np.typing.NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        check_bins(self.n_bins, "mass", 1)
        slope, intercept = fit_logistic(
            np.column_stack([scores, np.ones(len(scores))]),
            platt_targets(events, weights, smooth=True),
            weights,
            start=np.array([1.0, 0.0]),
            lowest=np.array([LEAST_SLOPE, -np.inf]),
        )
        tally, _ = tally_and_places(scores, events, weights)
        starts = mass_starts(np.cumsum(tally.mass), self.n_bins)
        line = intercept + slope * tally.score
        bounds = np.append(starts, len(line))
        having, without = sum_between(tally.mass * np.vstack([expit(line), expit(-line)]), bounds)
        learned = step_map(tally.score[starts[1:]], having, without)
        return {"intercept": float(intercept), "slope": float(slope), **learned}
