"""What comes in now against the calibrate rows: scores and the share out of scope."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from calibrant.bundle import Bundle
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.formatting import counted, percent
from calibrant.inputs import FloatArray
from calibrant.results import Floor, Interval
from calibrant.stats import clopper_pearson
from calibrant.store.tally_updates import SCORE_BINS

if TYPE_CHECKING:
    from calibrant.bundle.calib_rows import CalibRows

__all__ = [
    "AtCalibration",
    "Difference",
    "Scope",
    "Scores",
    "at_calibration",
    "is_known",
    "scope_of",
    "shifted",
]

_DRAWS = 1_000
"""Pairs of made-up samples that tell what chance alone gives."""


@dataclass(frozen=True)
class AtCalibration:
    """What the calibrate rows looked like.

    Parameters
    ----------
    rows : how many there are
    effective : how many rows without weights would be as good
    shares : of the rows in each of `SCORE_BINS` bins of the score
    flagged : share that the out-of-scope rule flags; None where there is no rule
    """

    rows: int
    effective: float
    shares: tuple[float, ...]
    flagged: float | None


_KNOWN: WeakKeyDictionary[Bundle, AtCalibration | None] = WeakKeyDictionary()


def is_known(bundle: Bundle) -> bool:
    """Tell whether the calibrate rows of a bundle were scored already."""
    return bundle in _KNOWN


def at_calibration(bundle: Bundle) -> AtCalibration | None:
    """Score the calibrate rows as requests are; None where the bundle has none.

    The answer is kept as long as the bundle is. `BundleError` is raised where they are damaged.
    """
    if bundle not in _KNOWN:
        rows = bundle.calib
        _KNOWN[bundle] = None if rows is None else _scored(bundle, rows)
    return _KNOWN[bundle]


def _scored(bundle: Bundle, rows: CalibRows) -> AtCalibration:
    weights = np.ones(len(rows.codes)) if rows.weights is None else rows.weights
    top = bundle.predict_proba(logits=rows.logits).max(axis=1)
    given = ModelScores.from_input(bundle.classes, logits=rows.logits)
    outside = flag_rows(bundle.ood, given, with_model=bundle.scorer is not None)
    return AtCalibration(
        rows=len(top),
        effective=float(weights.sum() ** 2 / (weights**2).sum()),
        shares=tuple(_binned(top, weights).tolist()),
        flagged=None if outside is None else float(np.average(outside, weights=weights)),
    )


def _binned(scores: FloatArray, weights: FloatArray) -> FloatArray:
    places = np.minimum((scores * SCORE_BINS).astype(np.int64), SCORE_BINS - 1)
    return np.asarray(np.bincount(places, weights, minlength=SCORE_BINS) / weights.sum())


@dataclass(frozen=True)
class Difference:
    """How far counts of today are from the shares of the calibrate rows.

    Parameters
    ----------
    value : half the sum of the absolute differences of all shares
    chance : what two samples of these sizes from one and the same source would give
    """

    value: float
    chance: Floor

    @property
    def beyond_chance(self) -> bool:
        """Whether chance alone gives as much in fewer than 5 % of cases."""
        return self.value > self.chance.q95

    @property
    def chance_words(self) -> str:
        """The difference beside what chance gives."""
        said = "more than chance explains" if self.beyond_chance else "no more than chance gives"
        mean, most = percent(self.chance.mean), percent(self.chance.q95)
        return (
            f"Chance alone would make that about {mean}, and up to {most} in 95 % of cases: this "
            f"is {said}."
        )


def shifted(now: Sequence[int], then: Sequence[float], rows: float, *, rng: int = 0) -> Difference:
    r"""Compare counts of today with shares of the past.

    .. math:: d = \frac{1}{2} \sum_b |p_b - q_b|

    with :math:`p_b` the share of bin b now and :math:`q_b` that of the past: the share of rows that
    would have to go to another bin for both to be alike. Chance is played through: both samples
    are drawn again and again from what they are together.

    Parameters
    ----------
    now : counts, at least one above 0
    then : shares
    rows : on which those rest
    rng : seed of the draws

    Examples
    --------
    Of 100 predictions 80 and 20 lie in the two bins, of the calibrate rows half in each:

    >>> found = shifted([80, 20], [0.5, 0.5], rows=1000)
    >>> round(found.value, 3), found.beyond_chance
    (0.3, True)
    >>> shifted([8, 2], [0.5, 0.5], rows=10).beyond_chance
    False
    """
    counts, past = np.asarray(now, dtype=np.float64), np.asarray(then, dtype=np.float64)
    n, m = int(counts.sum()), max(1, round(rows))
    value = float(np.abs(counts / n - past).sum() / 2)
    together = counts + m * past
    together /= together.sum()
    draw = np.random.default_rng(rng)
    both = draw.multinomial(n, together, _DRAWS) / n - draw.multinomial(m, together, _DRAWS) / m
    found = np.abs(both).sum(axis=1) / 2
    return Difference(value, Floor(float(found.mean()), float(np.quantile(found, 0.95))))


@dataclass(frozen=True)
class Scores:
    """Scores of today, that is probabilities of the most probable class, and those of the past.

    Parameters
    ----------
    now : predictions in each of `SCORE_BINS` equal bins
    then : the calibrate rows; None where there are none to compare with
    difference : of both; None where one of them is lacking
    """

    now: tuple[int, ...]
    then: AtCalibration | None
    difference: Difference | None

    @classmethod
    def of(cls, now: Sequence[int], then: AtCalibration | None) -> Scores:
        """Compare counts of today with the calibrate rows."""
        found = None
        if then is not None and sum(now) > 0:
            found = shifted(now, then.shares, then.effective)
        return cls(tuple(now), then, found)

    @property
    def sentence(self) -> str:
        """What was found."""
        if self.difference is None or self.then is None:
            return ""
        return (
            f"To look like the {counted(self.then.rows, 'calibrate row')}, "
            f"{percent(self.difference.value)} of the predictions would have to lie in another "
            f"bar. {self.difference.chance_words}"
        )

    @property
    def rows(self) -> list[tuple[str, int, float, float | None]]:
        """Each bin: from where to where, predictions, their share, and the share of the past."""
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
        """Return what the page's script draws: the share of each bin."""
        total = max(1, sum(self.now))
        return {
            "now": [n / total for n in self.now],
            "then": None if self.then is None else list(self.then.shares),
        }


@dataclass(frozen=True)
class Scope:
    """How many rows are out of scope, now and among the calibrate rows.

    Parameters
    ----------
    share, interval : of the predictions of today
    then : share of the calibrate rows; None where there are none
    difference : of both
    let_through : share of the rows it was fitted on that the rule lets through
    """

    share: float
    interval: Interval
    then: float | None
    difference: Difference | None
    let_through: float

    @property
    def sentence(self) -> str:
        """What was found."""
        ends = f"{percent(self.interval.low)} to {percent(self.interval.high)}"
        now = f"{percent(self.share)} of the predictions are out of scope (95 % interval {ends})"
        if self.then is None or self.difference is None:
            return f"{now}."
        return (
            f"{now}; of the calibrate rows it was {percent(self.then)}. Both shares differ by "
            f"{percent(self.difference.value)} of all rows. {self.difference.chance_words}"
        )


def scope_of(outside: int, total: int, bundle: Bundle, then: AtCalibration | None) -> Scope | None:
    """Compare the share out of scope; None where nothing can be counted."""
    if bundle.ood is None or not bundle.points or total == 0:
        return None
    share, difference = None if then is None else then.flagged, None
    if then is not None and share is not None:
        past = (share, 1.0 - share)
        difference = shifted((outside, total - outside), past, then.effective)
    return Scope(
        outside / total, clopper_pearson(outside, total), share, difference, bundle.ood.quantile
    )
