"""Histogram binning, and the base class of calibrators that are step functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.calibrators.base.one_vs_rest import OneVsRestCalibrator, ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics.binning import MASS_TOLERANCE, Scheme, check_bins, mass_bins
from calibrant.metrics.tally import Tally, sum_between, tally_with_index


class StepCalibrator(OneVsRestCalibrator):
    """Base class of methods whose probability is constant within a bin of scores.

    A map has three arrays: `edges`, the lowest score of every bin but the first, `probs`, the
    probability of each bin, and `rest`, its complement without rounding error. A bin includes its
    lower edge. The outer bins are unbounded, so scores outside the fitted range get the end values.
    """

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        bins = np.searchsorted(learned["edges"], scores, side="right")
        with np.errstate(divide="ignore"):
            log_odds = np.log(learned["probs"]) - np.log(learned["rest"])
        return np.asarray(log_odds[bins])

    def _restore(self, params: Mapping[str, Any]) -> None:
        super()._restore(params)
        for learned in self.maps_:
            edges, values = learned["edges"], np.stack([learned["probs"], learned["rest"]])
            if (
                edges.ndim != 1
                or values.shape != (2, len(edges) + 1)
                or (np.diff(edges) <= 0).any()
            ):
                raise ValueError("edges must ascend, with one more bin than edges")
            if (values < 0).any() or not values.any(axis=0).all():
                raise ValueError("a probability is negative or missing")


@register
class HistogramBinning(StepCalibrator):
    r"""Replace each score by the frequency of the class in its bin.

    .. math:: f(s) = \frac{m_b + c\,\pi}{N_b + c} \quad\text{for } s \text{ in bin } b

    s is the log-odds of a class, :math:`N_b` the weight of the rows in bin b, :math:`m_b` the
    weight of those that have the class, :math:`\pi` the class's share of all rows, and c the
    pseudo-count: c rows at the base rate are added to each bin, so that no probability is exactly 0
    or 1. With c = 0 it is the textbook method; an empty bin then gets the midpoint of its
    probabilities.

    It is not monotone, many rows share one probability, and the ranking within a bin is lost.

    Parameters
    ----------
    n_bins : maximum number of bins; with 'mass' few rows or ties can reduce it
    scheme : 'mass' for bins with equal shares of the rows, tied scores kept together, or 'width'
        for bins of equal width in the model's probability
    pseudo_count : c, at least 0

    Attributes
    ----------
    maps_ : for each map its `edges` (lowest score of every bin but the first), `probs` (the
        probability of each bin) and `rest` (its complement)

    Examples
    --------
    Two bins of four rows with 1 and 3 events; half of all rows are events, so c = 1 gives
    (1 + 0.5) / 5 and (3 + 0.5) / 5:

    >>> logits = [-4.0, -3.0, -2.0, -1.0, 1.0, 2.0, 3.0, 4.0]
    >>> labels = [0, 0, 1, 0, 1, 0, 1, 1]
    >>> calibrator = HistogramBinning(2).fit(logits, labels)
    >>> calibrator.predict_proba([-9.0, 0.5, 1.0]).round(6)
    array([0.3, 0.3, 0.7])
    >>> HistogramBinning(2, pseudo_count=0.0).fit(logits, labels).predict_proba([1.0]).round(6)
    array([0.75])

    References
    ----------
    Zadrozny and Elkan, Obtaining calibrated probability estimates from decision trees and naive
    Bayesian classifiers, ICML 2001 (binning); Transforming classifier scores into accurate
    multiclass probability estimates, KDD 2002, section 3. The smoothing by c rows of the base rate
    is the m-estimate that the first of the two uses for trees.
    """

    method = "histogram"

    def __init__(
        self, n_bins: int = 15, *, scheme: Scheme = "mass", pseudo_count: float = 1.0
    ) -> None:
        self.n_bins = n_bins
        self.scheme = scheme
        self.pseudo_count = pseudo_count

    def _learn_map(
        self, scores: FloatArray, events: np.typing.NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        check_bins(self.n_bins, self.scheme, 1)
        c = check_pseudo_count(self.pseudo_count)
        tally, _ = tally_with_index(scores, events, weights)
        edges = self._edges(tally)
        bounds = np.searchsorted(tally.score, edges, side="left")
        sums = sum_between(tally.weight.T, np.concatenate([[0], bounds, [len(tally.score)]]))
        negatives, positives = sums + c * (tally.weight.sum(axis=0) / tally.total)[:, None]
        empty = positives + negatives == 0  # only where c is 0, and only bins of equal width
        middle = (np.arange(len(empty)) + 0.5) / len(empty)
        return step_map(
            edges, np.where(empty, middle, positives), np.where(empty, 1 - middle, negatives)
        )

    def _edges(self, tally: Tally) -> FloatArray:
        if self.scheme == "mass":
            return tally.score[equal_mass_starts(np.cumsum(tally.mass), self.n_bins)[1:]]
        inner = np.arange(1, self.n_bins)
        return np.log(inner / (self.n_bins - inner))


def step_map(edges: FloatArray, positives: FloatArray, negatives: FloatArray) -> ScoreMap:
    """Return a map whose bins have the probability positives / (positives + negatives)."""
    total = positives + negatives
    return {"edges": edges, "probs": positives / total, "rest": negatives / total}


def equal_mass_starts(cumulative_mass: FloatArray, n_bins: int) -> IntArray:
    r"""Return the index at which each equal-mass bin starts among ascending distinct scores.

    A score goes to bin :math:`\lfloor M B / W \rfloor`: B is the mass strictly below it, W all
    mass, M the number of bins. Empty bins are dropped.
    """
    if n_bins > len(cumulative_mass):
        bins = mass_bins(np.append(0.0, cumulative_mass[:-1]), float(cumulative_mass[-1]), n_bins)
        return np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
    borders = (np.arange(1, n_bins) - MASS_TOLERANCE) * (cumulative_mass[-1] / n_bins)
    starts = np.searchsorted(cumulative_mass[:-1], borders, side="left") + 1
    return np.unique(np.concatenate([[0], starts[starts < len(cumulative_mass)]]))


def check_pseudo_count(pseudo_count: float) -> float:
    """Refuse a pseudo-count that is negative or not finite."""
    if not 0 <= pseudo_count < np.inf:
        raise InputError(
            f"pseudo_count must be a finite number of at least 0, got {pseudo_count!r}: use 1 "
            "for the usual smoothing, or 0 for the textbook method."
        )
    return float(pseudo_count)
