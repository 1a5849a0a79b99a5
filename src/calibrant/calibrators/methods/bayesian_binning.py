"""Bayesian binning into quantiles: an average over histograms with many numbers of bins."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from scipy.special import betaln, expit

from calibrant.calibrators.base.one_vs_rest import ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.methods.histogram import StepCalibrator, equal_mass_starts, step_map
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics.tally import Tally, tally_with_index

PRIOR_ROWS = 2.0  # N': equivalent sample size of a model's prior, over all its bins

SPREAD = 10.0  # C: models have between n^(1/3) / C and C n^(1/3) bins

_ROWS_PER_BIN = 5
_MAX_BINS = 2000
_NEGLIGIBLE = 1e-12
_SMALLEST = 1e-300


@dataclass(frozen=True)
class _Model:
    """One histogram: first index of each bin, log marginal likelihood, posterior counts."""

    starts: IntArray
    score: float
    positives: FloatArray
    negatives: FloatArray


@register
class BayesianBinning(StepCalibrator):
    r"""Average histograms over many numbers of bins, weighted by marginal likelihood.

    .. math:: f(s) = \frac{\sum_M P(D \mid M)\, f_M(s)}{\sum_M P(D \mid M)}, \qquad
              f_M(s) = \frac{m_b + \alpha_b}{N_b + N'/B}

    .. math:: P(D \mid M) = \prod_{b=1}^{B} \frac{\Gamma(N'/B)}{\Gamma(N_b + N'/B)}
              \frac{\Gamma(m_b + \alpha_b)}{\Gamma(\alpha_b)}
              \frac{\Gamma(n_b + \beta_b)}{\Gamma(\beta_b)}

    A model M cuts the scores s into B bins of equal mass, tied scores kept together; b is the bin
    of s, :math:`N_b` its weight of rows, of which :math:`m_b` have the class and :math:`n_b` do
    not. The prior of a bin is :math:`\alpha_b = p_b N'/B`, :math:`\beta_b = (1 - p_b) N'/B`, with
    :math:`p_b` the middle of the bin in the model's probability, the outer bins reaching to 0 and
    1, and N' = 2. All models are equally likely a priori. With n the total weight, B runs from
    :math:`n^{1/3}/10` to :math:`10\,n^{1/3}`, but with at least one bin, at least five rows per
    bin on average, and at most 2000 bins. Where ties reduce the number of bins, B is the reduced
    number, and equal models count once. Models less than 1e-12 as likely as the best are dropped.

    It is not monotone, and it is not netcal's BBQ, which weighs bins of equal width by BIC. The
    authors' implementation gives two prior rows to every bin instead of to every model.

    Attributes
    ----------
    maps_ : for each map the average as one step function: `edges` (lowest score of every step but
        the first), `probs` (the probability of each step) and `rest` (its complement)

    Examples
    --------
    Four rows allow only one bin, from 0 to 1, so its prior is one row of each class:
    (3 + 1) / (4 + 2):

    >>> calibrator = BayesianBinning().fit([-1.0, 0.0, 1.0, 2.0], [0, 1, 1, 1])
    >>> calibrator.predict_proba([-5.0, 5.0]).round(6)
    array([0.666667, 0.666667])

    References
    ----------
    Naeini, Cooper and Hauskrecht, Obtaining well calibrated probabilities using Bayesian binning,
    AAAI 2015, section Method.
    """

    method = "bayesian_binning"

    def _learn_map(
        self, scores: FloatArray, events: np.typing.NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        tally, _ = tally_with_index(scores, events, weights)
        models = list(_models(tally))
        logs = np.array([model.score for model in models])
        shares = np.exp(logs - logs.max())
        selected = np.flatnonzero(shares >= _NEGLIGIBLE)
        starts = np.unique(np.concatenate([models[i].starts for i in selected]))
        positives, negatives = np.zeros(len(starts)), np.zeros(len(starts))
        for i in selected:
            model = models[i]
            bins = np.searchsorted(model.starts, starts, side="right") - 1
            mass = model.positives + model.negatives
            positives += shares[i] * (model.positives / mass)[bins]
            negatives += shares[i] * (model.negatives / mass)[bins]
        return step_map(tally.score[starts[1:]], positives, negatives)


def candidate_bin_counts(total: float, distinct: int) -> range:
    """Return the numbers of bins to try for a total weight and a number of distinct scores."""
    root = math.cbrt(total)
    rows = math.ceil(total / _ROWS_PER_BIN)
    highest = max(1, min(rows, math.ceil(SPREAD * root), distinct, _MAX_BINS))
    lowest = min(max(1, math.floor(root / SPREAD)), highest)
    return range(lowest, highest + 1)


def _models(tally: Tally) -> Iterator[_Model]:
    """Score every distinct histogram."""
    sums = np.vstack([np.zeros(2), np.cumsum(tally.weight, axis=0)])
    cumulative_mass = np.cumsum(tally.mass)
    seen = set()
    for n_bins in candidate_bin_counts(tally.total, len(tally.score)):
        starts = equal_mass_starts(cumulative_mass, n_bins)
        key = starts.tobytes()
        if key not in seen:
            seen.add(key)
            yield _score_model(tally, sums, starts)


def _score_model(tally: Tally, sums: FloatArray, starts: IntArray) -> _Model:
    negatives, positives = np.diff(sums[np.append(starts, len(tally.score))], axis=0).T
    edges = tally.score[starts[1:]]
    prior = PRIOR_ROWS / len(starts)
    # The midpoint and its complement are computed separately to avoid rounding to 0 or 1.
    alpha = prior * np.maximum(_middles(np.concatenate([[0.0], expit(edges), [1.0]])), _SMALLEST)
    beta = prior * np.maximum(_middles(np.concatenate([[1.0], expit(-edges), [0.0]])), _SMALLEST)
    score = float((betaln(positives + alpha, negatives + beta) - betaln(alpha, beta)).sum())
    return _Model(starts, score, positives + alpha, negatives + beta)


def _middles(bounds: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (bounds[1:] + bounds[:-1]))
