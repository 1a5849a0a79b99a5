"""Scaling-binning: Platt scaling, then the mean scaled value of each bin."""

from __future__ import annotations

import numpy as np
from scipy.special import expit

from calibrant.calibrators.base.one_vs_rest import ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.fits.logistic import (
    Shrink,
    fit_logistic,
    penalty_strength,
    regression_targets,
)
from calibrant.calibrators.methods.histogram import StepCalibrator, equal_mass_starts, step_map
from calibrant.calibrators.methods.platt import MIN_SLOPE
from calibrant.inputs import FloatArray
from calibrant.metrics.binning import check_bins
from calibrant.metrics.tally import sum_between, tally_with_index


@register
class ScalingBinning(StepCalibrator):
    r"""Fit a logistic curve, then replace it by its mean in each of a few equal-mass bins.

    .. math:: g(s) = \frac{1}{1 + e^{-(a + b s)}}, \qquad
              f(s) = \frac{\sum_{i \in B(s)} w_i\, g(s_i)}{\sum_{i \in B(s)} w_i}

    s is the log-odds of a class, a and b are Platt's intercept and slope, B(s) is the bin of s
    among bins with equal shares of the rows, tied scores kept together, and w are the weights. a
    and b are those of `PlattScaling`: they minimise the log loss plus a slight pull towards the
    identity, and b is kept positive. It has finitely many values, so the remaining calibration
    error can be measured; and since each is a mean of the curve and not of labels, it varies less
    than histogram binning.

    It is only as good as the logistic curve it starts from, and many rows share one probability.
    The theorem of the paper requires separate rows for each of the three steps (curve, bins,
    means); here, as in the authors' implementation, all steps use all rows.

    Parameters
    ----------
    n_bins : maximum number of bins; few rows or ties can reduce it
    shrink : regularisation of the curve, as in `PlattScaling`

    Attributes
    ----------
    maps_ : for each map its `intercept` a, `slope` b, `edges` (lowest score of every bin but the
        first), `probs` (the probability of each bin) and `rest` (its complement)

    Examples
    --------
    Half of the rows at each of two scores: two bins have the values of the `PlattScaling` curve,
    and one bin has their mean.

    >>> logits, labels = [-1.0] * 400 + [1.0] * 400, ([0] * 300 + [1] * 100) * 2
    >>> labels[400:] = [1] * 300 + [0] * 100
    >>> ScalingBinning(2).fit(logits, labels).predict_proba([-1.0, 1.0]).round(3)
    array([0.25, 0.75])
    >>> ScalingBinning(1).fit(logits, labels).predict_proba([-1.0, 1.0]).round(6)
    array([0.5, 0.5])

    References
    ----------
    Kumar, Liang and Ma, Verified uncertainty calibration, NeurIPS 2019, section 4.
    """

    method = "scaling_binning"

    def __init__(self, n_bins: int = 10, *, shrink: Shrink = "identity") -> None:
        self.n_bins = n_bins
        self.shrink = shrink

    def _learn_map(
        self, scores: FloatArray, events: np.typing.NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        check_bins(self.n_bins, "mass", 1)
        slope, intercept = fit_logistic(
            np.column_stack([scores, np.ones(len(scores))]),
            regression_targets(events, weights, self.shrink),
            weights,
            start=np.array([1.0, 0.0]),
            lowest=np.array([MIN_SLOPE, -np.inf]),
            strength=penalty_strength(self.shrink),
        )
        tally, _ = tally_with_index(scores, events, weights)
        starts = equal_mass_starts(np.cumsum(tally.mass), self.n_bins)
        line = intercept + slope * tally.score
        bounds = np.append(starts, len(line))
        positives, negatives = sum_between(
            tally.mass * np.vstack([expit(line), expit(-line)]), bounds
        )
        learned = step_map(tally.score[starts[1:]], positives, negatives)
        return {"intercept": float(intercept), "slope": float(slope), **learned}
