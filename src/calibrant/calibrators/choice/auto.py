"""Automatic choice of a calibrator by cross-validation, or none if none clearly helps."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.registry import find_method, register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.choice.comparison import Choice
from calibrant.calibrators.choice.trial import (
    Score,
    Trial,
    name_candidates,
    paired_difference,
    random_folds,
    run_trial,
    summarise_trial,
)
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

Pick = tuple[int, str]  # Index of the candidate, and the reason in one sentence


def simplest_near_best(trials: list[Trial], rows: CalibrationRows, tolerance: float) -> Pick:
    """Pick the simplest candidate whose score is within `tolerance` SE of the best."""
    best = _index_of_best(trials, rows)
    i = next((t for t in range(best) if _is_near(trials[t], trials[best], rows, tolerance)), best)
    name, top = trials[i].name, trials[best].name
    if isinstance(trials[i].calibrator, Identity):
        return i, _explain_identity(trials, best)
    if i == best:
        return i, f"{name} has the best score, and no simpler method comes close enough."
    return i, f"{name} is the simplest method that is not clearly worse than the best ({top})."


def best_beyond_temperature(trials: list[Trial], rows: CalibrationRows, margin: float) -> Pick:
    """Pick the best candidate that beats temperature by `margin` SE, else temperature.

    The baseline is the uncalibrated model where that scores no worse than temperature.
    """
    best = _index_of_best(trials, rows)
    baselines = [
        i for i, t in enumerate(trials) if isinstance(t.calibrator, Identity | TemperatureScaling)
    ]
    baseline = _index_of_best(trials, rows, baselines)
    if trials[baseline].losses is None:
        return best, f"{trials[best].name} has the best score."
    better = [
        i for i, trial in enumerate(trials)
        if trial.losses is not None and not _is_near(trials[baseline], trial, rows, margin)
    ]  # fmt: skip
    i = _index_of_best(trials, rows, better) if better else baseline
    name, top = trials[i].name, trials[best].name
    if isinstance(trials[i].calibrator, Identity):
        return i, _explain_identity(trials, best)
    if i == baseline != best:
        return i, f"{name} is chosen because the best method ({top}) is not clearly better."
    if i == baseline:
        return i, f"{name} has the best score."
    plain = isinstance(trials[baseline].calibrator, Identity)
    reference = "the uncalibrated model" if plain else trials[baseline].name
    if i == best:
        return i, f"{name} has the best score and is clearly better than {reference}."
    return i, f"{name} is the best of the methods that are clearly better than {reference}."


def _index_of_best(
    trials: list[Trial], rows: CalibrationRows, among: list[int] | None = None
) -> int:
    """Return the index of the best score, or the first if all were excluded."""
    indices = list(range(len(trials))) if among is None else among
    losses = [trials[i].losses for i in indices]
    scores = [np.inf if loss is None else float((rows.mass * loss).sum()) for loss in losses]
    return indices[int(np.argmin(scores))]


def _is_near(trial: Trial, best: Trial, rows: CalibrationRows, tolerance: float) -> bool:
    """Return whether a score exceeds another by at most `tolerance` standard errors."""
    difference = paired_difference(trial, best, rows)
    return difference is not None and difference[0] <= tolerance * difference[1]


def _explain_identity(trials: list[Trial], best: int) -> str:
    """Return the reason why the model stays uncalibrated."""
    if len([t for t in trials if t.losses is not None]) == 1 and len(trials) > 1:
        return "The model stays uncalibrated: every method was excluded."
    if best == 0:
        return "No method has a better score than the uncalibrated model."
    top = trials[best].name
    return f"Even the best method ({top}) is not clearly better than the uncalibrated model."


FEW_ROWS = 500  # Below this many rows only methods with one or two parameters are tried
MARGIN = 1.5
"""Standard errors by which a method with per-class parameters must beat temperature scaling."""


ROWS_PER_EVENT = 25
"""Row equivalents of a row of the rarer of two classes: 20 events count as 500 rows."""


ROWS_PER_MISTAKE = 50
"""Row equivalents of a misclassified row with more classes: 10 mistakes count as 500 rows.

With hardly any mistakes, the best-fitting temperature makes the model certain of everything.
"""


def default_candidates(n: float, k: int) -> list[Calibrator]:
    """Return the candidates for n rows of k classes, from the simplest to the most complex.

    `AutoCalibrator` discounts uninformative rows: its n is at most the effective number of weighted
    rows, and at most 25 times the rows of the rarer of two classes, or with more classes 50 times
    the misclassified rows.

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
        TemperatureScaling(),  # with this many rows smoothing only adds bias
        EnsembleTemperatureScaling(smooth=True),
        StructuredVectorScaling(),
        StructuredMatrixScaling(),
    ]


@register
class AutoCalibrator(Calibrator):
    r"""Choose a calibrator by cross-validation, or none if none helps.

    Every candidate is fitted and scored on repeated folds by a proper score. The folds are random;
    only rare classes are stratified, because folds with exactly the class frequencies of the sample
    would favour methods that learn a shift for each class. Two candidates are compared by the mean
    of paired differences and its standard error,

    .. math:: d_{ic} = \ell_{ic} - \ell_{ib}, \qquad \bar d_c \leq \tau \cdot \mathrm{se}(d_c)

    where :math:`\ell_{ic}` is the loss of row i under candidate c, fitted without that row, and b
    is the best one. With two classes, or below 500 rows, the simplest candidate for which the
    inequality holds is chosen. The first and simplest is always `Identity`, so a calibrator is used
    only if it helps.

    With more than two classes and at least 500 rows, 10 of them misclassified, the baseline is
    temperature scaling, or `Identity` if that scores no worse: a single parameter learned from that
    many rows does little harm, and being more cautious was measured to cost more. The best method
    that beats the baseline by more than 1.5 standard errors is chosen, if there is one. Calibration
    errors are not used: methods that look best by them often increase the log loss.

    Weights enter the fits and the means. The choice is not the one that repeated rows would give,
    because repetition would put copies of a row on both sides of a fold.

    Parameters
    ----------
    score : 'nll' or 'brier'
    candidates : calibrators or method names, from simple to complex; None for
        `default_candidates`. `Identity` is always added as the first.
    folds : number of folds of each split
    repeats : number of splits; None for 5 below 1,000 rows and 2 above
    tolerance : :math:`\tau`, in standard errors. None means 1, or 1/2 for two classes from 500
        rows; from 500 rows of more classes None selects the second rule above, and a number
        the first
    uncalibrated : whether the model may stay uncalibrated. False for a model whose loss is not a
        proper score, such as focal loss: it is known to be miscalibrated, also where the rows are
        too few to show it
    most_rows : size of the random sample used to choose; the chosen method is fitted on all rows
    seed : seed of the sample and the splits

    Attributes
    ----------
    chosen_ : the chosen calibrator, fitted on all rows
    comparison_ : a `Choice`: the figures of every candidate and the reason for the choice

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
    needs_every_class = False  # candidates that do are skipped if a class is missing
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
        uncalibrated: bool = True,
        most_rows: int = 100_000,
        seed: int = 0,
    ) -> None:
        self.score = score
        self.candidates = candidates
        self.folds = folds
        self.repeats = repeats
        self.tolerance = tolerance
        self.uncalibrated = uncalibrated
        self.most_rows = most_rows
        self.seed = seed

    def _check_rows(self, rows: CalibrationRows) -> None:
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
            raise InputError(f"seed must be a whole number of at least 0, got {self.seed!r}.")
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

    def _learn(self, rows: CalibrationRows) -> None:
        sample = self._sample(rows)
        repeats = self.repeats or (5 if sample.n < 1000 else 2)
        folds = [
            random_folds(sample.labels, self.folds, np.random.default_rng([self.seed, r]))
            for r in range(repeats)
        ]
        candidates = self._candidates(rows)
        trials = [
            run_trial(candidate, name, sample, folds, self.score)
            for candidate, name in zip(candidates, name_candidates(candidates), strict=True)
        ]
        pick, why = self._pick_trial(trials, rows, sample)
        self.chosen_ = clone(trials[pick].calibrator).fit_rows(rows)
        self.comparison_ = Choice(
            chosen=trials[pick].name,
            why=why,
            score=self.score,
            n=sample.n,
            folds=self.folds,
            repeats=repeats,
            candidates=tuple(summarise_trial(t, trials[0], sample, self.score) for t in trials),
        )

    def _pick_trial(
        self, trials: list[Trial], rows: CalibrationRows, sample: CalibrationRows
    ) -> Pick:
        if not self.uncalibrated and any(trial.losses is not None for trial in trials[1:]):
            pick, why = self._apply_rule(trials[1:], rows, sample)
            return pick + 1, why
        return self._apply_rule(trials, rows, sample)

    def _apply_rule(
        self, trials: list[Trial], rows: CalibrationRows, sample: CalibrationRows
    ) -> Pick:
        if self.tolerance is not None:
            return simplest_near_best(trials, sample, self.tolerance)
        if rows.k > 2 and _informative_rows(rows) >= FEW_ROWS:
            return best_beyond_temperature(trials, sample, MARGIN)
        tolerance = 0.5 if rows.k == 2 and rows.n >= FEW_ROWS else 1.0
        return simplest_near_best(trials, sample, tolerance)

    def _sample(self, rows: CalibrationRows) -> CalibrationRows:
        """Return the rows used to choose, in an order independent of the input order.

        Above `most_rows` each class is sampled in proportion, rare classes more, with weights that
        correct for it.
        """
        ordered = rows.take(_canonical_order(rows))
        if rows.n <= self.most_rows:
            return ordered
        rng = np.random.default_rng([self.seed, rows.n])
        available = np.bincount(ordered.labels, minlength=rows.k)
        minimum = np.minimum(available, self.most_rows // (4 * rows.k))
        n_drawn = np.maximum(available * self.most_rows // rows.n, minimum)
        drawn = [
            rng.choice(np.flatnonzero(ordered.labels == k), n_drawn[k], replace=False)
            for k in np.flatnonzero(available)
        ]
        sample = ordered.take(np.sort(np.concatenate(drawn)))
        share = (n_drawn / np.maximum(available, 1))[sample.labels]
        weights = np.ones(sample.n) if sample.weights is None else sample.weights
        return replace(sample, weights=weights / share)

    def _candidates(self, rows: CalibrationRows) -> list[Calibrator]:
        if self.candidates is None:
            return default_candidates(_informative_rows(rows), rows.k)
        if isinstance(self.candidates, str | Calibrator):
            raise InputError(
                f"candidates must be a list, got {self.candidates!r}: wrap it in a list."
            )
        calibrators = [find_method(c)() if isinstance(c, str) else c for c in self.candidates]
        invalid = [
            c for c in calibrators if not isinstance(c, Calibrator) or isinstance(c, AutoCalibrator)
        ]
        if invalid:
            raise InputError(
                f"candidates must be calibrators or method names other than 'auto', got "
                f"{invalid[0]!r}: pass for example TemperatureScaling()."
            )
        return [Identity(), *(c for c in calibrators if not isinstance(c, Identity))]

    def _remember(self, rows: CalibrationRows) -> None:
        """Do nothing: the chosen calibrator stores its own sketch."""

    def has_seen_rows(self, rows: CalibrationRows) -> bool:
        """Delegate to the chosen calibrator, which was fitted on all rows."""
        return self.chosen_.has_seen_rows(rows)

    def _keeps_order_of(self, position: int) -> bool:
        return self.chosen_.keeps_order_of(position)

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        return self.chosen_._log_probs(logits)

    def _params(self) -> dict[str, Any]:
        return {"chosen": self.chosen_.to_dict()}

    def _restore(self, params: Mapping[str, Any]) -> None:
        self.chosen_ = Calibrator.from_dict(params["chosen"])
        self.comparison_ = None
        if self.chosen_.classes_.tolist() != self.classes_.tolist():
            raise ValueError("the chosen calibrator has different classes")

    def _settings(self) -> dict[str, Any]:
        return {}


def _informative_rows(rows: CalibrationRows) -> float:
    """Return the effective number of rows, limited by the rarer class or the mistakes."""
    weights = rows.weights
    n = float(rows.n) if weights is None else float(weights.sum() ** 2 / (weights @ weights))
    if rows.k > 2:
        mistakes = np.count_nonzero(rows.canonical.argmax(axis=1) != rows.labels)
        return min(n, ROWS_PER_MISTAKE * float(mistakes))
    return min(n, ROWS_PER_EVENT * float(np.bincount(rows.labels, minlength=2).min()))


def _canonical_order(rows: CalibrationRows) -> NDArray[np.intp]:
    """Order rows by content, so that the folds do not depend on the input order."""
    score = rows.canonical
    if score.ndim == 2:
        # Log-probabilities are invariant to a constant added to a row, up to rounding.
        score = np.einsum("ij,j->i", rows.log_probs, np.sin(np.arange(1.0, rows.k + 1.0)))
        score = np.round(score, 9)
    weights = np.zeros(rows.n) if rows.weights is None else rows.weights
    return np.lexsort((weights, score, rows.labels))
