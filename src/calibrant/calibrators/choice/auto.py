"""The automatic choice: the best method by cross-validated score, or none where none is clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.registry import method_named, register
from calibrant.calibrators.base.rows import Rows
from calibrant.calibrators.choice.comparison import Choice
from calibrant.calibrators.choice.folds import random_folds
from calibrant.calibrators.choice.picking import best_beyond_temperature, simplest_near_best
from calibrant.calibrators.choice.trial import Score, Trial, judged, names_of, try_out
from calibrant.calibrators.methods.beta import BetaCalibration
from calibrant.calibrators.methods.ensemble_temperature import EnsembleTemperatureScaling
from calibrant.calibrators.methods.identity import Identity
from calibrant.calibrators.methods.platt import PlattScaling
from calibrant.calibrators.methods.quadratic import QuadraticScaling
from calibrant.calibrators.methods.strict_isotonic import StrictIsotonic
from calibrant.calibrators.methods.structured_matrix import StructuredMatrixScaling
from calibrant.calibrators.methods.structured_vector import StructuredVectorScaling
from calibrant.calibrators.methods.temperature import TemperatureScaling
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["AutoCalibrator", "default_candidates"]

FEW_ROWS = 500
"""Below this many rows only methods with one or two parameters are tried."""


MARGIN = 1.5
"""Standard errors by which a method with numbers for each class has to beat a temperature."""

ROWS_PER_EVENT = 25
"""With two classes a row of the rarer one counts as so many rows: 20 events are 500 rows."""

ROWS_PER_MISTAKE = 50
"""With more classes a row that the model gets wrong counts as so many: 10 mistakes are 500 rows.

Where hardly any row is wrong, the temperature that fits best is certain of everything.
"""


def default_candidates(n: float, k: int) -> list[Calibrator]:
    """Return what is tried on n rows of k classes, from the simplest to the most complex.

    `AutoCalibrator` does not count rows that say little: n is at most the effective number of
    weighted rows, and at most 25 times the rows of the rarer of two classes, or 50 times the rows
    that the model gets wrong where there are more classes.

    Examples
    --------
    >>> [c.method for c in default_candidates(200, 2)]
    ['identity', 'temperature', 'platt']
    >>> [c.method for c in default_candidates(5000, 10)]
    ['identity', 'temperature', 'ets', 'svs', 'sms']
    """
    simple: list[Calibrator] = [Identity(), TemperatureScaling(smooth=True)]
    if k == 2:
        simple.append(PlattScaling())
    if n < FEW_ROWS:
        return simple
    if k == 2:
        return [*simple, BetaCalibration(), QuadraticScaling(), StrictIsotonic()]
    return [
        Identity(),
        TemperatureScaling(),  # with so many rows a row's worth of doubt moves it for nothing
        EnsembleTemperatureScaling(smooth=True),
        StructuredVectorScaling(),
        StructuredMatrixScaling(),
    ]


@register
class AutoCalibrator(Calibrator):
    r"""Choose a calibrator by cross-validation, and none where none helps.

    Every candidate is fitted and judged on repeated folds by a proper score. The folds are random;
    only rare classes are spread evenly over them, for folds with exactly the class frequencies of
    the sample would flatter methods that learn a shift for each class. The mean of paired
    differences and its standard error compare two candidates,

    .. math:: d_{ic} = \ell_{ic} - \ell_{ib}, \qquad \bar d_c \leq \tau \cdot \mathrm{se}(d_c)

    where :math:`\ell_{ic}` is the loss of row i under candidate c, fitted without that row, and b
    is the best one: with two classes, or below 500 rows, the simplest candidate is chosen for which
    the inequality holds. The first and simplest is always the model as it is, so a calibrator has
    to earn its place.

    From 500 rows of more than two classes on, 10 of them predicted wrongly, temperature is the
    place to start from, or the model as it is where its score is not the worse one: one number
    learned from so many rows does little harm, and caution was measured to cost more. A method with
    more numbers is taken where it is better than that by more than 1.5 standard errors, of several
    the best one. Calibration errors take no part: methods that look best by them often make the log
    loss worse.

    Weights enter the fits and the means. The choice itself is not the one that repeated rows would
    give, for repetition would put copies of a row on both sides of a fold.

    Parameters
    ----------
    score : 'nll' or 'brier'
    candidates : calibrators or their names, from simple to complex; None for those that
        `default_candidates` gives. `Identity` is put first where it is missing.
    folds : parts of each split
    repeats : splits; None for 5 below 1,000 rows and 2 above
    tolerance : :math:`\tau`, in standard errors; None for 1, for 1/2 from 500 rows of two classes
        on, and for the other rule above from 500 rows of more classes on, which a number switches
        off
    most_rows : of more rows, so many are drawn to choose by; the choice is fitted on all
    seed : of the draw and the splits

    Attributes
    ----------
    chosen_ : the chosen calibrator, fitted on all rows
    comparison_ : a `Choice`: every candidate's figures and why this one was chosen

    Examples
    --------
    >>> from calibrant.testing import WORLDS
    >>> draw = WORLDS["binary"].draw(400, 0)
    >>> logits = np.log(draw.probs / (1 - draw.probs))
    >>> auto = AutoCalibrator().fit(logits, draw.labels)
    >>> auto.chosen_.method
    'temperature'
    """

    method = "auto"
    learned = ("chosen",)
    needs_every_class = False  # candidates that do are left out where a class is missing
    fewest_rows = 20
    chosen_: Calibrator
    comparison_: Choice | None

    def __init__(
        self,
        score: Score = "nll",
        *,
        candidates: Sequence[Calibrator | str] | None = None,
        folds: int = 5,
        repeats: int | None = None,
        tolerance: float | None = None,
        most_rows: int = 100_000,
        seed: int = 0,
    ) -> None:
        self.score = score
        self.candidates = candidates
        self.folds = folds
        self.repeats = repeats
        self.tolerance = tolerance
        self.most_rows = most_rows
        self.seed = seed

    def _check_rows(self, rows: Rows) -> None:
        super()._check_rows(rows)
        if self.score not in ("nll", "brier"):
            raise InputError(f"score must be 'nll' or 'brier', got {self.score!r}.")
        whole = int | np.integer
        if not isinstance(self.folds, whole) or not 2 <= self.folds <= rows.n:
            raise InputError(
                f"folds must be a whole number between 2 and {rows.n}, got {self.folds!r}."
            )
        if self.repeats is not None and not (isinstance(self.repeats, whole) and self.repeats > 0):
            raise InputError(f"repeats must be a positive whole number, got {self.repeats!r}.")
        if not (isinstance(self.seed, whole) and self.seed >= 0):
            raise InputError(f"seed must be a whole number from 0 on, got {self.seed!r}.")
        if not (isinstance(self.most_rows, whole) and self.most_rows >= self.fewest_rows):
            raise InputError(
                f"most_rows must be at least {self.fewest_rows}, got {self.most_rows!r}."
            )
        tolerance = 0 if self.tolerance is None else self.tolerance
        if not (isinstance(tolerance, whole | float) and tolerance >= 0):
            raise InputError(f"tolerance must not be negative, got {self.tolerance!r}.")
        if np.count_nonzero(rows.counts) < 2:
            raise InputError(
                f"all {rows.n:,} labels are {rows.classes[rows.labels[0]]!r}, but choosing a "
                "calibrator needs rows of at least two classes: label rows of another class."
            )

    def _learn(self, rows: Rows) -> None:
        some = self._sample(rows)
        repeats = self.repeats or (5 if some.n < 1000 else 2)
        folds = [
            random_folds(some.labels, self.folds, np.random.default_rng([self.seed, r]))
            for r in range(repeats)
        ]
        candidates = self._candidates(rows)
        trials = [
            try_out(candidate, name, some, folds, self.score)
            for candidate, name in zip(candidates, names_of(candidates), strict=True)
        ]
        pick, why = self._picked(trials, rows, some)
        self.chosen_ = clone(trials[pick].calibrator).fit_rows(rows)
        self.comparison_ = Choice(
            chosen=trials[pick].name,
            why=why,
            score=self.score,
            n=some.n,
            folds=self.folds,
            repeats=repeats,
            candidates=tuple(judged(t, trials[0], some, self.score) for t in trials),
        )

    def _picked(self, trials: list[Trial], rows: Rows, some: Rows) -> tuple[int, str]:
        if self.tolerance is not None:
            return simplest_near_best(trials, some, self.tolerance)
        if rows.k > 2 and _telling_rows(rows) >= FEW_ROWS:
            return best_beyond_temperature(trials, some, MARGIN)
        usual = 0.5 if rows.k == 2 and rows.n >= FEW_ROWS else 1.0
        return simplest_near_best(trials, some, usual)

    def _sample(self, rows: Rows) -> Rows:
        """Return the rows to choose by, in an order that does not depend on that of the file.

        Of too many rows each class gives its share, and a rare one more; weights make up for it.
        """
        ordered = rows.take(_settled_order(rows))
        if rows.n <= self.most_rows:
            return ordered
        rng = np.random.default_rng([self.seed, rows.n])
        there = np.bincount(ordered.labels, minlength=rows.k)
        least = np.minimum(there, self.most_rows // (4 * rows.k))
        wanted = np.maximum(there * self.most_rows // rows.n, least)
        taken = [
            rng.choice(np.flatnonzero(ordered.labels == k), wanted[k], replace=False)
            for k in np.flatnonzero(there)
        ]
        some = ordered.take(np.sort(np.concatenate(taken)))
        share = (wanted / np.maximum(there, 1))[some.labels]
        weights = np.ones(some.n) if some.weights is None else some.weights
        return replace(some, weights=weights / share)

    def _candidates(self, rows: Rows) -> list[Calibrator]:
        if self.candidates is None:
            return default_candidates(_telling_rows(rows), rows.k)
        if isinstance(self.candidates, str | Calibrator):
            raise InputError(f"candidates must be a list, got {self.candidates!r}: put it in one.")
        named = [method_named(c)() if isinstance(c, str) else c for c in self.candidates]
        odd = [c for c in named if not isinstance(c, Calibrator) or isinstance(c, AutoCalibrator)]
        if odd:
            raise InputError(
                f"candidates must be calibrators or names of methods other than 'auto', got "
                f"{odd[0]!r}: write for example TemperatureScaling()."
            )
        return [Identity(), *(c for c in named if not isinstance(c, Identity))]

    def _remember(self, rows: Rows) -> None:
        """The chosen calibrator does."""

    def has_seen_rows(self, rows: Rows) -> bool:
        """Ask the chosen calibrator, which was fitted on all rows."""
        return self.chosen_.has_seen_rows(rows)

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        return self.chosen_._log_probs(logits)

    def _params(self) -> dict[str, Any]:
        return {"chosen": self.chosen_.to_dict()}

    def _restore(self, params: Mapping[str, Any]) -> None:
        self.chosen_ = Calibrator.from_dict(params["chosen"])
        self.comparison_ = None
        if self.chosen_.classes_.tolist() != self.classes_.tolist():
            raise ValueError("the chosen calibrator has other classes")

    def _settings(self) -> dict[str, Any]:
        return {}


def _telling_rows(rows: Rows) -> float:
    """Return how many rows there are as far as they tell something."""
    weights = rows.weights
    n = float(rows.n) if weights is None else float(weights.sum() ** 2 / (weights @ weights))
    if rows.k > 2:
        mistakes = np.count_nonzero(rows.canonical.argmax(axis=1) != rows.labels)
        return min(n, ROWS_PER_MISTAKE * float(mistakes))
    return min(n, ROWS_PER_EVENT * float(np.bincount(rows.labels, minlength=2).min()))


def _settled_order(rows: Rows) -> NDArray[np.intp]:
    """Order rows by what is in them, so that the folds do not depend on the order of the file."""
    score = rows.canonical
    if score.ndim == 2:
        # Log-probabilities: a constant added to a row's logits is not in them, but for rounding.
        score = np.einsum("ij,j->i", rows.log_probs, np.sin(np.arange(1.0, rows.k + 1.0)))
        score = np.round(score, 9)
    weights = np.zeros(rows.n) if rows.weights is None else rows.weights
    return np.lexsort((weights, score, rows.labels))
