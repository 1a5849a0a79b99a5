"""ENIR: ensemble of near-isotonic regressions, from nearly unconstrained to isotonic."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from heapq import heapify, heappop, heappush
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.special import xlog1py, xlogy

from calibrant.calibrators.base.one_vs_rest import OneVsRestCalibrator, ScoreMap
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.methods.histogram import check_pseudo_count
from calibrant.convert import log_odds_of
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics.tally import tally_with_index

_RELATIVE_TOLERANCE = 1e-9
"""Penalties this close, relative to their size, are one break split by rounding."""


@dataclass(frozen=True)
class NearIsotonicPath:
    r"""All solutions of one near-isotonic regression.

    .. math:: \min_\beta\; \tfrac12 \sum_i w_i (y_i - \beta_i)^2
              + \lambda \sum_i (\beta_i - \beta_{i+1})_+

    y are the responses in the order of the scores, w their weights, :math:`\lambda` the
    penalty of a decrease. At 0 the solution is y itself. As :math:`\lambda` grows, neighbours
    become equal and stay so, up to the isotonic regression of y. A block of equal values
    with weight W and weighted sum of responses H has the value

    .. math:: \beta = \frac{H + \lambda (\phi_l - \phi_r)}{W}

    where :math:`\phi` is 1 if the response decreases across the block's left or right border, else
    0: neighbours meet, but never cross.
    """

    mass: FloatArray  # (m,) weights w
    sums: FloatArray  # (m,) weighted responses w y
    falls: FloatArray  # (m + 1,) 1.0 where y decreases from the previous entry; 0.0 at both ends
    # (m - 1,) the penalty at which each entry merges with the previous one, or infinity
    times: FloatArray

    @property
    def breaks(self) -> FloatArray:
        """The distinct positive penalties at which blocks merge, ascending."""
        penalties = np.unique(self.times[np.isfinite(self.times) & (self.times > 0)])
        if not len(penalties):
            return penalties
        last = np.append(penalties[1:] > penalties[:-1] * (1 + _RELATIVE_TOLERANCE), True)
        return np.asarray(penalties[last & (penalties > _RELATIVE_TOLERANCE * penalties[-1])])

    def starts(self, penalty: float) -> IntArray:
        """Return the first index of each block of the solution."""
        return np.concatenate([[0], np.flatnonzero(self.times > penalty) + 1])

    def blocks(self, penalty: float) -> tuple[IntArray, FloatArray, FloatArray, FloatArray]:
        """Return starts, weights, weighted sums and values of the solution's blocks."""
        starts = self.starts(penalty)
        mass, sums = (np.add.reduceat(part, starts) for part in (self.mass, self.sums))
        ends = np.append(starts[1:], len(self.mass))
        falls = self.falls[starts] - self.falls[ends]
        return starts, mass, sums, (sums + penalty * falls) / mass

    def fit(self, penalty: float) -> FloatArray:
        """Return the solution at a penalty of 0 or more."""
        breaks = self.breaks
        highest = float(breaks[-1]) if len(breaks) else 0.0
        starts, _, _, values = self.blocks(min(penalty, highest))
        return np.repeat(values, np.diff(np.append(starts, len(self.mass))))

    def from_penalty(self, penalty: float) -> NearIsotonicPath:
        """Return the rest of the path, on the blocks of the solution at `penalty`."""
        starts, mass, sums, _ = self.blocks(penalty)
        falls = self.falls[np.append(starts, len(self.mass))]
        return NearIsotonicPath(mass, sums, falls, self.times[starts[1:] - 1])


def near_isotonic_path(mass: FloatArray, sums: FloatArray) -> NearIsotonicPath:
    """Compute the path of responses sums / mass with weights `mass`, in O(m log m).

    References
    ----------
    Tibshirani, Hoefling and Tibshirani, Nearly-isotonic regression, Technometrics 2011, the
    modified pool adjacent violators algorithm.
    """
    response = sums / mass
    falls = np.concatenate([[0.0], (response[:-1] > response[1:]).astype(np.float64), [0.0]])
    times = np.zeros(len(mass) - 1)
    differ = response[:-1] != response[1:]
    starts = np.concatenate([[0], np.flatnonzero(differ) + 1])
    merged = [np.add.reduceat(part, starts) for part in (mass, sums)]
    borders = falls[np.append(starts, len(mass))]
    times[differ] = _merge_times(merged[0].tolist(), merged[1].tolist(), borders.tolist())
    return NearIsotonicPath(mass, sums, falls, times)


def _merge_times(mass: list[float], sums: list[float], falls: list[float]) -> NDArray[np.float64]:
    """Merge the blocks with the smallest penalty, repeatedly, using a heap.

    A block is identified by its first entry. A merge changes only the two borders of the new block.
    """
    m = len(mass)
    before, after = list(range(-1, m - 1)), list(range(1, m + 1))
    times = [np.inf] * m

    def merge_penalty(at: int) -> float:
        """Return the penalty at which the block that starts here meets the previous one."""
        left = before[at]
        rise = (falls[left] - falls[at]) * mass[at] - (falls[at] - falls[after[at]]) * mass[left]
        return (sums[at] * mass[left] - sums[left] * mass[at]) / rise if rise else np.inf

    pending = [merge_penalty(at) for at in range(1, m)]
    due = [0.0, *pending]
    heap = [(time, at) for at, time in enumerate(pending, start=1) if time < np.inf]
    heapify(heap)
    now = 0.0
    while heap:
        time, at = heappop(heap)
        if due[at] != time or times[at] < np.inf:
            continue  # stale: the border is gone or its penalty has changed
        now = times[at] = max(now, time)  # keep the order despite rounding
        left, right = before[at], after[at]
        mass[left] += mass[at]
        sums[left] += sums[at]
        after[left] = right
        if right < m:
            before[right] = left
        for border in (left, right):
            if 0 < border < m:
                due[border] = merge_penalty(border)
                if due[border] < np.inf:
                    heappush(heap, (due[border], border))
    return np.array(times[1:])


_NEGLIGIBLE = 1e-6


@register
class NearIsotonicEnsemble(OneVsRestCalibrator):
    r"""Average near-isotonic regressions over their penalty, weighted by BIC.

    .. math:: \beta_\lambda = \arg\min_\beta \tfrac12 \sum_i w_i (y_i - \beta_i)^2
              + \lambda \sum_i (\beta_i - \beta_{i+1})_+

    .. math:: f = \frac{\sum_\lambda e^{-BIC_\lambda / 2} \beta_\lambda}
              {\sum_\lambda e^{-BIC_\lambda / 2}}, \qquad
              BIC_\lambda = -2 L_\lambda + d_\lambda \log n

    y is 1 for rows that have the class, in ascending order of its log-odds, tied scores kept
    together; w are the weights and n their sum. :math:`\lambda` runs over the penalties above 0 at
    which blocks of equal values merge, up to the isotonic regression. :math:`L_\lambda` is the log
    likelihood of the rows under :math:`\beta_\lambda`, :math:`d_\lambda` its number of blocks.
    Models less than 1e-6 as likely as the best are dropped. Between scores the value is
    interpolated in the log-odds; beyond them it is that of the nearest.

    It need not be monotone: unlike isotonic regression it can decrease where the data support it.
    As in `IsotonicCalibration`, one event is added at the lowest score and one non-event at the
    highest, so that no probability is exactly 0 or 1.

    Parameters
    ----------
    pseudo_count : weight of the two extra rows; 0 for the textbook fit

    Attributes
    ----------
    maps_ : for each map the `scores` at the ends of its level stretches, and the `probs` there

    Examples
    --------
    The responses 0, 1, 0, 1 have one break: the middle pair merges at 1/2. That model is isotonic
    and the only one:

    >>> calibrator = NearIsotonicEnsemble(pseudo_count=0.0)
    >>> calibrator.fit([-2.0, -1.0, 1.0, 2.0], [0, 1, 0, 1]).predict_proba([0.0, 1.5]).round(6)
    array([0.5 , 0.75])

    References
    ----------
    Naeini and Cooper, Binary classifier calibration using an ensemble of near isotonic regression
    models, ICDM 2016, section III. Tibshirani, Hoefling and Tibshirani, Nearly-isotonic regression,
    Technometrics 2011, for the path.
    """

    method = "enir"

    def __init__(self, *, pseudo_count: float = 1.0) -> None:
        self.pseudo_count = pseudo_count

    def _learn_map(
        self, scores: FloatArray, events: np.typing.NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        c = check_pseudo_count(self.pseudo_count)
        tally, _ = tally_with_index(scores, events, weights)
        mass, hits = tally.mass.copy(), tally.hits.copy()
        hits[0] += c
        mass[0] += c
        mass[-1] += c
        path = near_isotonic_path(mass, hits)
        penalties = _plausible_penalties(path)
        starts = path.starts(penalties[0])
        probs = _average(path.from_penalty(penalties[0]), penalties)
        level = np.flatnonzero(np.append(True, probs[1:] != probs[:-1]))
        first = starts[level]
        last = np.append(first[1:], len(tally.score)) - 1
        ends = np.column_stack([first, last]).ravel()
        single = np.append(True, ends[1:] != ends[:-1])
        return {"scores": tally.score[ends[single]], "probs": np.repeat(probs[level], 2)[single]}

    def _restore(self, params: Mapping[str, Any]) -> None:
        super()._restore(params)
        for learned in self.maps_:
            scores, probs = learned["scores"], learned["probs"]
            if scores.ndim != 1 or scores.shape != probs.shape or (np.diff(scores) <= 0).any():
                raise ValueError("scores must ascend, with one probability each")
            if not ((probs >= 0) & (probs <= 1)).all():
                raise ValueError("a probability is outside [0, 1]")

    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        return log_odds_of(np.interp(scores, learned["scores"], learned["probs"]))


def _plausible_penalties(path: NearIsotonicPath) -> FloatArray:
    """Return the breaks whose models can have a non-negligible weight, ascending.

    No model is likelier than the saturated one, so the number of blocks alone can rule out a model
    against the isotonic regression.
    """
    breaks = path.breaks
    if not len(breaks):
        return np.zeros(1)  # the responses never decrease: they are their own isotonic regression
    times = np.sort(path.times)
    blocks = 1 + len(times) - np.searchsorted(times, breaks, side="right")
    lowest_deviance = -2 * _log_likelihood(path.mass, path.sums, path.sums / path.mass)
    cutoff = _bic(path, breaks[-1], path.mass.sum()) - 2 * math.log(_NEGLIGIBLE)
    return breaks[lowest_deviance + blocks * _block_cost(path.mass.sum()) <= cutoff]


def _average(path: NearIsotonicPath, penalties: FloatArray) -> FloatArray:
    """Return the BIC-weighted mean of the models at the path's entries."""
    total = float(path.mass.sum())
    bic = np.array([_bic(path, penalty, total) for penalty in penalties])
    shares = np.exp(0.5 * (bic.min() - bic))
    selected = shares >= _NEGLIGIBLE
    out = np.zeros(len(path.mass))
    for penalty, share in zip(
        penalties[selected], shares[selected] / shares[selected].sum(), strict=True
    ):
        starts, _, _, values = path.blocks(penalty)
        out += share * np.repeat(values, np.diff(np.append(starts, len(out))))
    return np.clip(out, 0.0, 1.0)  # rounding must not leave the range


def _bic(path: NearIsotonicPath, penalty: float, total: float) -> float:
    _, mass, sums, values = path.blocks(penalty)
    return -2 * _log_likelihood(mass, sums, values) + len(mass) * _block_cost(total)


def _block_cost(total: float) -> float:
    """Return the BIC penalty of one block, never negative."""
    return max(math.log(total), 0.0)


def _log_likelihood(mass: FloatArray, sums: FloatArray, values: FloatArray) -> float:
    probs = np.clip(values, 0.0, 1.0)  # a block at 0 has no events, and 0 log 0 is 0
    rest = np.maximum(mass - sums, 0.0)
    return float((xlogy(sums, probs) + xlog1py(rest, -probs)).sum())
