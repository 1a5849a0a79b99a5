"""Cross-validation of one candidate of an automatic choice."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.chain import Chain
from calibrant.calibrators.choice.comparison import Candidate
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics import ece


def random_folds(labels: IntArray, folds: int, rng: np.random.Generator) -> IntArray:
    """Assign each row a fold from 0 to `folds` - 1; fold sizes differ by at most one row.

    Only classes with fewer than two rows per fold are stratified, so that no fit misses them. All
    other rows are assigned at random: folds with exactly the class frequencies of the sample would
    reproduce the noise in these, and with many classes every method that learns a shift for each
    class would look better than it is.
    """
    shuffled = rng.permutation(len(labels))
    rare = np.bincount(labels)[labels[shuffled]] < 2 * folds
    # Rare classes first, one after the other, then all other rows in shuffled order.
    order = np.argsort(np.where(rare, labels[shuffled], labels.max() + 1), kind="stable")
    fold = np.empty(len(labels), dtype=np.int64)
    fold[shuffled[order]] = np.arange(len(labels)) % folds
    return fold


Score = Literal["nll", "brier"]


@dataclass(frozen=True)
class Trial:
    """A candidate, its out-of-fold log-probabilities (first repeat) and the loss of each row.

    Without losses the candidate was excluded for the reason in `why_not`.
    """

    calibrator: Calibrator
    name: str
    log_probs: FloatArray | None = None
    losses: FloatArray | None = None
    why_not: str | None = None


def name_candidates(candidates: Sequence[Calibrator]) -> list[str]:
    """Name candidates by method, and by settings where methods repeat."""
    method_names = [_method(c) for c in candidates]
    return [
        f"{name} {_settings(c)}".strip() if method_names.count(name) > 1 else name
        for name, c in zip(method_names, candidates, strict=True)
    ]


def run_trial(
    calibrator: Calibrator,
    name: str,
    rows: CalibrationRows,
    folds: list[NDArray[Any]],
    score: Score,
) -> Trial:
    """Fit and score a candidate on every fold."""
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
                return Trial(calibrator, name, why_not=str(error))
            if _is_overconfident(fitted):
                return Trial(calibrator, name, why_not="it became certain of everything")
            out[held] = fitted._log_probs(logits[held])
        losses += _row_losses(out, rows, score) / len(folds)
        first = out if first is None else first
    if not np.isfinite(losses).all():
        return Trial(calibrator, name, why_not="it gave a row's true class a probability of 0")
    return Trial(calibrator, name, first, losses)


def paired_difference(
    trial: Trial, other: Trial, rows: CalibrationRows
) -> tuple[float, float] | None:
    """Return the mean of the paired loss differences and its standard error."""
    if trial.losses is None or other.losses is None:
        return None
    difference = trial.losses - other.losses
    mass = rows.mass
    mean = float((mass * difference).sum())
    return mean, float(np.sqrt((mass * mass * (difference - mean) ** 2).sum()))


def summarise_trial(
    trial: Trial, identity: Trial, rows: CalibrationRows, score: Score
) -> Candidate:
    """Return the figures of a trial as a `Candidate`."""
    difference = paired_difference(trial, identity, rows)
    if trial.losses is None or trial.log_probs is None or difference is None:
        return Candidate(trial.name, why_not=trial.why_not)
    log_probs = trial.log_probs

    def mean(which: Score) -> float | None:
        value = float((rows.mass * _row_losses(log_probs, rows, which)).sum())
        return value if np.isfinite(value) else None

    return Candidate(
        method=trial.name,
        score=float((rows.mass * trial.losses).sum()),
        gain=0.0 - difference[0],
        gain_error=difference[1],
        nll=mean("nll"),
        brier=mean("brier"),
        ece_em=ece(rows.labels, np.exp(log_probs), scheme="mass", weights=rows.weights),
    )


def _is_overconfident(fitted: Calibrator) -> bool:
    """Return whether separated labels drove the temperature to its lower bound.

    At the upper bound the scores are uninformative, and equal probabilities are correct.
    """
    return bool(getattr(fitted, "hit_bound_", False) and getattr(fitted, "temperature_", 1.0) < 1)


def _row_losses(log_probs: FloatArray, rows: CalibrationRows, score: Score) -> FloatArray:
    label_log_probs = log_probs[np.arange(rows.n), rows.labels]
    if score == "nll":
        return np.asarray(-label_log_probs)
    probs = np.exp(log_probs)
    squares = np.einsum("ij,ij->i", probs, probs) + 1.0 - 2.0 * np.exp(label_log_probs)
    return np.asarray(squares / 2.0 if rows.k == 2 else squares)


def _method(calibrator: Calibrator) -> str:
    if isinstance(calibrator, Chain):
        return " > ".join(_method(step) for step in calibrator.steps)
    return calibrator.method


def _settings(calibrator: Calibrator) -> str:
    steps = calibrator.steps if isinstance(calibrator, Chain) else [calibrator]
    pairs = [f"{k}={v}" for step in steps for k, v in step._settings().items()]
    return ",".join(pairs)
