"""Histogram binning, and the step functions that all binning methods learn."""

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

__all__ = ["HistogramBinning", "StepCalibrator", "check_pseudo_count", "mass_starts", "step_map"]


class StepCalibrator(OneVsRestCalibrator):
    """Base of methods that answer the same probability everywhere within a bin of scores.

    What a map learned has three arrays: `edges`, the lowest score of every bin but the first,
    `probs`, the probability of each bin, and `rest`, what it leaves of 1 without rounding. A bin
    holds its lower edge. The first and the last bin have no outer edge, so scores beyond those seen
    get the end values.
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
    r"""Give every score the frequency of the class in its bin.

    .. math:: f(s) = \frac{m_b + c\,\pi}{N_b + c} \quad\text{for } s \text{ in bin } b

    s is the log-odds of a class, :math:`N_b` the weight of the rows in bin b, :math:`m_b` the
    weight of those that have the class, :math:`\pi` the class's share of all rows, and c the
    pseudo-count: so many rows of the base rate are added to each bin, so that no answer is exactly
    0 or 1. With c = 0 it is the textbook method; a bin without rows then answers the middle of its
    probabilities.

    It is not monotone, many rows share one answer, and what happens within a bin is lost.

    Parameters
    ----------
    n_bins : number of bins asked for; with 'mass' there are fewer where rows or ties demand it
    scheme : 'mass' for bins with equal shares of the rows, tied scores kept together, or 'width'
        for bins of equal width in the model's probability
    pseudo_count : c, at least 0

    Attributes
    ----------
    maps_ : for each map its `edges` (lowest score of every bin but the first), `probs` (the answer
        of each bin) and `rest` (1 less the answer)

    Examples
    --------
    Two bins of four rows with 1 and 3 events; half of all rows are events, so that c = 1 gives
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
        without, having = sums + c * (tally.weight.sum(axis=0) / tally.total)[:, None]
        empty = having + without == 0  # only where c is 0, and only bins of equal width
        middle = (np.arange(len(empty)) + 0.5) / len(empty)
        return step_map(
            edges, np.where(empty, middle, having), np.where(empty, 1 - middle, without)
        )

    def _edges(self, tally: Tally) -> FloatArray:
        if self.scheme == "mass":
            return tally.score[mass_starts(np.cumsum(tally.mass), self.n_bins)[1:]]
        inner = np.arange(1, self.n_bins)
        return np.log(inner / (self.n_bins - inner))


def step_map(edges: FloatArray, having: FloatArray, without: FloatArray) -> ScoreMap:
    """Return a map whose bins answer having / (having + without)."""
    both = having + without
    return {"edges": edges, "probs": having / both, "rest": without / both}


def mass_starts(upto: FloatArray, n_bins: int) -> IntArray:
    r"""Return where bins of equal mass begin among ascending distinct scores.

    A score goes to bin :math:`\lfloor M B / W \rfloor`: B is the mass strictly below it, W all
    mass, M the number of bins. Bins that no score goes to are left out.

    Examples
    --------
    >>> mass_starts(np.array([1.0, 2.0, 3.0, 4.0, 5.0, 6.0]), 3)
    array([0, 2, 4])

    The first score has two thirds of all mass, so that no score goes to the second bin:

    >>> mass_starts(np.array([4.0, 5.0, 6.0]), 3)
    array([0, 1])
    """
    if n_bins > len(upto):
        bins = mass_bins(np.append(0.0, upto[:-1]), float(upto[-1]), n_bins)
        return np.flatnonzero(np.append(True, bins[1:] != bins[:-1]))
    borders = (np.arange(1, n_bins) - MASS_TOLERANCE) * (upto[-1] / n_bins)
    starts = np.searchsorted(upto[:-1], borders, side="left") + 1
    return np.unique(np.concatenate([[0], starts[starts < len(upto)]]))


def check_pseudo_count(pseudo_count: float) -> float:
    """Refuse a pseudo-count that is negative or not finite."""
    if not 0 <= pseudo_count < np.inf:
        raise InputError(
            f"pseudo_count must be a finite number of at least 0, got {pseudo_count!r}: give 1 "
            "for the usual smoothing, or 0 for the textbook method."
        )
    return float(pseudo_count)
