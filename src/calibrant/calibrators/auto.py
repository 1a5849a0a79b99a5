"""The automatic choice: the best method by cross-validated score, or none where none is clear."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.calibrators.base import Calibrator
from calibrant.calibrators.beta import BetaCalibration
from calibrant.calibrators.choice import Candidate, Choice
from calibrant.calibrators.ensemble_temperature import EnsembleTemperatureScaling
from calibrant.calibrators.folds import stratified_folds
from calibrant.calibrators.identity import Identity
from calibrant.calibrators.platt import PlattScaling
from calibrant.calibrators.quadratic import QuadraticScaling
from calibrant.calibrators.registry import method_named, register
from calibrant.calibrators.rows import Rows
from calibrant.calibrators.strict_isotonic import StrictIsotonic
from calibrant.calibrators.structured_matrix import StructuredMatrixScaling
from calibrant.calibrators.structured_vector import StructuredVectorScaling
from calibrant.calibrators.temperature import TemperatureScaling
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.metrics import ece

__all__ = ["AutoCalibrator", "default_candidates"]

Score = Literal["nll", "brier"]

FEW_ROWS = 500
"""Below this many rows only methods with one or two parameters are tried."""


def default_candidates(n: int, k: int) -> list[Calibrator]:
    """Return what is tried on n rows of k classes, from the simplest to the most complex.

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
        *simple,
        EnsembleTemperatureScaling(smooth=True),
        StructuredVectorScaling(),
        StructuredMatrixScaling(),
    ]


@register
class AutoCalibrator(Calibrator):
    r"""Choose a calibrator by cross-validation, and none unless it clearly helps.

    Every candidate is fitted and judged on repeated stratified folds by a proper score. The
    simplest candidate is chosen whose score is within one standard error of the best one:

    .. math:: \bar d_c \leq \tau \cdot \mathrm{se}(d_c), \qquad
              d_{ic} = \ell_{ic} - \ell_{i, \mathrm{best}}

    :math:`\ell_{ic}` is the loss of row i under candidate c, fitted without that row; the standard
    error is that of the mean of paired differences. The first and simplest candidate is always
    the model as it is, so a calibrator has to earn its place. Calibration errors take no part:
    methods that look best by them often make the log loss worse.

    Weights enter the fits and the means. The choice itself is not the one that repeated rows would
    give, for repetition would put copies of a row on both sides of a fold.

    Parameters
    ----------
    score : 'nll' or 'brier'
    candidates : calibrators or their names, from simple to complex; None for those that
        `default_candidates` gives. `Identity` is put first where it is missing.
    folds : parts of each split
    repeats : splits; None for 5 below 1,000 rows and 2 above
    tolerance : :math:`\tau`, in standard errors
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
        tolerance: float = 1.0,
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
        if not self.most_rows >= self.fewest_rows:
            raise InputError(
                f"most_rows must be at least {self.fewest_rows}, got {self.most_rows!r}."
            )
        if not self.tolerance >= 0:
            raise InputError(f"tolerance must not be negative, got {self.tolerance!r}.")
        if np.count_nonzero(rows.counts) < 2:
            raise InputError(
                f"all {rows.n:,} labels are {rows.classes[rows.labels[0]]!r}, but choosing a "
                "calibrator needs rows of at least two classes: label rows of another class."
            )

    def _learn(self, rows: Rows) -> None:
        some = rows.take(self._sample(rows))
        repeats = self.repeats or (5 if some.n < 1000 else 2)
        folds = [
            stratified_folds(some.labels, self.folds, np.random.default_rng([self.seed, r]))
            for r in range(repeats)
        ]
        trials = [_try(c, some, folds, self.score) for c in self._candidates(rows)]
        pick, why = _pick(trials, some, self.tolerance)
        self.chosen_ = clone(trials[pick].calibrator).fit_rows(rows)
        self.comparison_ = Choice(
            chosen=trials[pick].calibrator.method,
            why=why,
            score=self.score,
            n=some.n,
            folds=self.folds,
            repeats=repeats,
            candidates=tuple(_candidate(t, trials[0], some, self.score) for t in trials),
        )

    def _sample(self, rows: Rows) -> NDArray[np.intp]:
        """Return the rows to choose by, in an order that does not depend on that of the file."""
        order = _settled_order(rows)
        if rows.n <= self.most_rows:
            return order
        rng = np.random.default_rng([self.seed, rows.n])
        return order[np.sort(rng.choice(rows.n, self.most_rows, replace=False))]

    def _candidates(self, rows: Rows) -> list[Calibrator]:
        if self.candidates is None:
            return default_candidates(rows.n, rows.k)
        if isinstance(self.candidates, str):
            raise InputError(f"candidates must be a list, got {self.candidates!r}: put it in one.")
        named = [method_named(c)() if isinstance(c, str) else c for c in self.candidates]
        if any(isinstance(c, AutoCalibrator) for c in named):
            raise InputError("an AutoCalibrator cannot be a candidate of another: leave it out.")
        return [Identity(), *(c for c in named if not isinstance(c, Identity))]

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        return self.chosen_._log_probs(logits)

    def _params(self) -> dict[str, Any]:
        return {"chosen": self.chosen_.to_dict()}

    def _restore(self, params: Mapping[str, Any]) -> None:
        self.chosen_ = Calibrator.from_dict(params["chosen"])
        self.comparison_ = None
        if len(self.chosen_.classes_) != len(self.classes_):
            raise ValueError("the chosen calibrator has other classes")

    def _settings(self) -> dict[str, Any]:
        return {}


def _settled_order(rows: Rows) -> NDArray[np.intp]:
    """Order rows by what is in them, so that the folds do not depend on the order of the file."""
    score = rows.canonical
    if score.ndim == 2:
        # Log-probabilities: a constant added to a row's logits is not in them, but for rounding.
        score = np.einsum("ij,j->i", rows.log_probs, np.sin(np.arange(1.0, rows.k + 1.0)))
        score = np.round(score, 9)
    weights = np.zeros(rows.n) if rows.weights is None else rows.weights
    return np.lexsort((weights, score, rows.labels))


@dataclass(frozen=True)
class _Trial:
    """A candidate, its out-of-fold log-probabilities (first repeat) and the loss of each row."""

    calibrator: Calibrator
    log_probs: FloatArray | None = None
    losses: FloatArray | None = None
    why_not: str | None = None


def _try(calibrator: Calibrator, rows: Rows, folds: list[NDArray[Any]], score: Score) -> _Trial:
    """Fit and judge a candidate on every fold."""
    first: FloatArray | None = None
    losses = np.zeros(rows.n)
    logits = rows.canonical
    for fold in folds:
        out = np.empty((rows.n, rows.k))
        for f in range(int(fold.max()) + 1):
            held = fold == f
            try:
                fitted = clone(calibrator).fit_rows(rows.take(~held))
            except InputError as error:
                return _Trial(calibrator, why_not=str(error))
            if getattr(fitted, "hit_bound_", False):
                return _Trial(calibrator, why_not="it ended at a bound, so nothing fits")
            out[held] = fitted._log_probs(logits[held])
        losses += _row_losses(out, rows, score) / len(folds)
        first = out if first is None else first
    if not np.isfinite(losses).all():
        return _Trial(calibrator, why_not="it gave a row's true class a probability of 0")
    return _Trial(calibrator, first, losses)


def _row_losses(log_probs: FloatArray, rows: Rows, score: Score) -> FloatArray:
    given = log_probs[np.arange(rows.n), rows.labels]
    if score == "nll":
        return np.asarray(-given)
    probs = np.exp(log_probs)
    squares = np.einsum("ij,ij->i", probs, probs) + 1.0 - 2.0 * np.exp(given)
    return np.asarray(squares / 2.0 if rows.k == 2 else squares)


def _pick(trials: list[_Trial], rows: Rows, tolerance: float) -> tuple[int, str]:
    """Return the simplest candidate that is not clearly worse than the best."""
    means = [np.inf if t.losses is None else float((rows.mass * t.losses).sum()) for t in trials]
    best = int(np.argmin(means))
    i = next(i for i, t in enumerate(trials) if _near(t, trials[best], rows, tolerance))
    name, top = trials[i].calibrator.method, trials[best].calibrator.method
    if i == 0 and best == 0:
        return i, "No method has a better score than the model as it is."
    if i == 0:
        return i, f"Even the best method ({top}) is not clearly better than the model as it is."
    if i == best:
        return i, f"{name} has the best score, and nothing simpler comes near it."
    return i, f"{name} is the simplest method that is not clearly worse than the best ({top})."


def _near(trial: _Trial, best: _Trial, rows: Rows, tolerance: float) -> bool:
    gap, error = _gap(trial, best, rows)
    return gap is not None and error is not None and gap <= tolerance * error


def _gap(trial: _Trial, other: _Trial, rows: Rows) -> tuple[float | None, float | None]:
    """Return the mean of paired differences and its standard error."""
    if trial.losses is None or other.losses is None:
        return None, None
    difference = trial.losses - other.losses
    mass = rows.mass
    mean = float((mass * difference).sum())
    return mean, float(np.sqrt((mass * mass * (difference - mean) ** 2).sum()))


def _candidate(trial: _Trial, identity: _Trial, rows: Rows, score: Score) -> Candidate:
    name = trial.calibrator.method
    if trial.losses is None or trial.log_probs is None:
        return Candidate(name, why_not=trial.why_not)
    loss, error = _gap(trial, identity, rows)
    log_probs = trial.log_probs

    def mean(which: Score) -> float | None:
        value = float((rows.mass * _row_losses(log_probs, rows, which)).sum())
        return value if np.isfinite(value) else None

    return Candidate(
        method=name,
        score=float((rows.mass * trial.losses).sum()),
        gain=None if loss is None else 0.0 - loss,
        gain_error=error,
        nll=mean("nll"),
        brier=mean("brier"),
        ece_em=ece(rows.labels, np.exp(log_probs), scheme="mass", weights=rows.weights),
    )
