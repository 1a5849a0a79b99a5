"""Shift of scores and of the out-of-scope share against the calibrate rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from calibrant.bundle import Bundle
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.formatting import format_count, percent
from calibrant.inputs import FloatArray
from calibrant.results import Floor, Interval
from calibrant.stats import clopper_pearson
from calibrant.store.tallies import SCORE_BINS

if TYPE_CHECKING:
    from calibrant.bundle.calib_rows import CalibRows

_DRAWS = 1_000  # Pairs of simulated samples that estimate the shift by chance


@dataclass(frozen=True)
class CalibrationProfile:
    """Score distribution of the calibrate rows."""

    rows: int
    effective: float  # effective sample size of the weighted rows
    shares: tuple[float, ...]  # share of the rows in each of `SCORE_BINS` bins of the score
    flagged: float | None  # share that the out-of-scope rule flags; None without a rule


_PROFILES: WeakKeyDictionary[Bundle, CalibrationProfile | None] = WeakKeyDictionary()


def has_profile(bundle: Bundle) -> bool:
    """Whether the calibrate rows of a bundle have been scored."""
    return bundle in _PROFILES


def profile_calibration(bundle: Bundle) -> CalibrationProfile | None:
    """Score the calibrate rows as requests are, or return None without rows.

    The result is cached with the bundle. Raises `BundleError` if the rows are damaged.
    """
    if bundle not in _PROFILES:
        rows = bundle.calib
        _PROFILES[bundle] = None if rows is None else _profile_rows(bundle, rows)
    return _PROFILES[bundle]


def _profile_rows(bundle: Bundle, rows: CalibRows) -> CalibrationProfile:
    weights = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
    top = bundle.predict_proba(logits=rows.logits).max(axis=1)
    scores = ModelScores.from_input(bundle.classes, logits=rows.logits)
    outside = flag_rows(bundle.ood, scores, with_model=bundle.scorer is not None)
    return CalibrationProfile(
        rows=len(top),
        effective=float(weights.sum() ** 2 / (weights**2).sum()),
        shares=tuple(_bin_scores(top, weights).tolist()),
        flagged=None if outside is None else float(np.average(outside, weights=weights)),
    )


def _bin_scores(scores: FloatArray, weights: FloatArray) -> FloatArray:
    places = np.minimum((scores * SCORE_BINS).astype(np.int64), SCORE_BINS - 1)
    return np.asarray(np.bincount(places, weights, minlength=SCORE_BINS) / weights.sum())


@dataclass(frozen=True)
class ShareShift:
    """Distance between current counts and the shares of the calibrate rows."""

    value: float  # half the sum of the absolute differences of all shares
    chance: Floor  # distance between two samples of these sizes from the same source

    @property
    def beyond_chance(self) -> bool:
        """Whether chance alone gives this distance in fewer than 5 % of cases."""
        return self.value > self.chance.q95

    @property
    def chance_words(self) -> str:
        """The distance compared with chance, as a sentence."""
        verdict = "more than chance explains" if self.beyond_chance else "no more than chance gives"
        mean, most = percent(self.chance.mean), percent(self.chance.q95)
        return (
            f"By chance alone it would be about {mean}, and at most {most} in 95 % of cases: this "
            f"is {verdict}."
        )


def measure_shift(
    now: Sequence[int], then: Sequence[float], rows: float, *, rng: int = 0
) -> ShareShift:
    r"""Compare current counts with reference shares by total variation distance.

    .. math:: d = \frac{1}{2} \sum_b |p_b - q_b|

    with :math:`p_b` the current share of bin b and :math:`q_b` its reference share: the share of
    rows that would have to move to another bin for both to agree. The distance by chance is
    simulated: both samples are drawn repeatedly from the pooled distribution.

    Parameters
    ----------
    now : counts, at least one above 0
    then : reference shares
    rows : number of rows behind the reference shares
    rng : seed of the simulation
    """
    counts, past = np.asarray(now, dtype=np.float64), np.asarray(then, dtype=np.float64)
    n, m = int(counts.sum()), max(1, round(rows))
    value = float(np.abs(counts / n - past).sum() / 2)
    pooled = counts + m * past
    pooled /= pooled.sum()
    draw = np.random.default_rng(rng)
    both = draw.multinomial(n, pooled, _DRAWS) / n - draw.multinomial(m, pooled, _DRAWS) / m
    distances = np.abs(both).sum(axis=1) / 2
    return ShareShift(value, Floor(float(distances.mean()), float(np.quantile(distances, 0.95))))


@dataclass(frozen=True)
class ScoreShift:
    """Current scores, the probabilities of the most probable class, and those at calibration."""

    now: tuple[int, ...]  # predictions in each of `SCORE_BINS` equal bins
    # profile of the calibrate rows; None if there is none to compare with
    then: CalibrationProfile | None
    difference: ShareShift | None  # distance between both; None if one of them is missing

    @classmethod
    def compare(cls, now: Sequence[int], then: CalibrationProfile | None) -> ScoreShift:
        """Compare current counts with the calibrate rows."""
        difference = None
        if then is not None and sum(now) > 0:
            difference = measure_shift(now, then.shares, then.effective)
        return cls(tuple(now), then, difference)

    @property
    def sentence(self) -> str:
        """The comparison as a sentence."""
        if self.difference is None or self.then is None:
            return ""
        return (
            f"To match the distribution of the {format_count(self.then.rows, 'calibrate row')}, "
            f"{percent(self.difference.value)} of the predictions would have to move to another "
            f"bar. {self.difference.chance_words}"
        )

    @property
    def rows(self) -> list[tuple[str, int, float, float | None]]:
        """Each bin: its range, predictions, their share, and the share at calibration."""
        total = max(1, sum(self.now))
        return [
            (
                f"{k / SCORE_BINS:.2f} to {(k + 1) / SCORE_BINS:.2f}",
                n,
                n / total,
                None if self.then is None else self.then.shares[k],
            )
            for k, n in enumerate(self.now)
        ]

    def chart(self) -> dict[str, Any]:
        """Return the shares per bin that the page's script draws."""
        total = max(1, sum(self.now))
        return {
            "now": [n / total for n in self.now],
            "then": None if self.then is None else list(self.then.shares),
        }


@dataclass(frozen=True)
class ScopeShift:
    """Share of out-of-scope rows, now and among the calibrate rows."""

    share: float  # share of current predictions
    interval: Interval
    then: float | None  # share of the calibrate rows; None if there are none
    difference: ShareShift | None  # distance between both
    let_through: float  # share of the rows it was fitted on that the rule lets through

    @property
    def sentence(self) -> str:
        """The comparison as a sentence."""
        ends = f"{percent(self.interval.low)} to {percent(self.interval.high)}"
        now = f"{percent(self.share)} of the predictions are out of scope (95 % interval {ends})"
        if self.then is None or self.difference is None:
            return f"{now}."
        return (
            f"{now}; of the calibrate rows it was {percent(self.then)}. The shares differ by "
            f"{percent(self.difference.value)} of all rows. {self.difference.chance_words}"
        )


def compare_scope(
    outside: int, total: int, bundle: Bundle, then: CalibrationProfile | None
) -> ScopeShift | None:
    """Compare the out-of-scope shares; None if nothing is counted."""
    if bundle.ood is None or not bundle.points or total == 0:
        return None
    share, difference = None if then is None else then.flagged, None
    if then is not None and share is not None:
        past = (share, 1.0 - share)
        difference = measure_shift((outside, total - outside), past, then.effective)
    return ScopeShift(
        outside / total, clopper_pearson(outside, total), share, difference, bundle.ood.quantile
    )
