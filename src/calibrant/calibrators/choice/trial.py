"""One candidate of an automatic choice, fitted and judged on every fold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.rows import Rows
from calibrant.calibrators.chain import Chain
from calibrant.calibrators.choice.comparison import Candidate
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.metrics import ece

__all__ = ["Score", "Trial", "gap", "judged", "names_of", "try_out"]

Score = Literal["nll", "brier"]


@dataclass(frozen=True)
class Trial:
    """A candidate, its out-of-fold log-probabilities (first repeat) and the loss of each row.

    Without losses it was left out, and `why_not` says why.
    """

    calibrator: Calibrator
    name: str
    log_probs: FloatArray | None = None
    losses: FloatArray | None = None
    why_not: str | None = None


def names_of(candidates: Sequence[Calibrator]) -> list[str]:
    """Name candidates by their methods, and by their settings where these are the same."""
    plain = [_method(c) for c in candidates]
    return [
        f"{name} {_settings(c)}".strip() if plain.count(name) > 1 else name
        for name, c in zip(plain, candidates, strict=True)
    ]


def try_out(
    calibrator: Calibrator, name: str, rows: Rows, folds: list[NDArray[Any]], score: Score
) -> Trial:
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
                return Trial(calibrator, name, why_not=str(error))
            if _too_sure(fitted):
                return Trial(calibrator, name, why_not="it became certain of everything")
            out[held] = fitted._log_probs(logits[held])
        losses += _row_losses(out, rows, score) / len(folds)
        first = out if first is None else first
    if not np.isfinite(losses).all():
        return Trial(calibrator, name, why_not="it gave a row's true class a probability of 0")
    return Trial(calibrator, name, first, losses)


def gap(trial: Trial, other: Trial, rows: Rows) -> tuple[float, float] | None:
    """Return the mean of paired differences and its standard error."""
    if trial.losses is None or other.losses is None:
        return None
    difference = trial.losses - other.losses
    mass = rows.mass
    mean = float((mass * difference).sum())
    return mean, float(np.sqrt((mass * mass * (difference - mean) ** 2).sum()))


def judged(trial: Trial, identity: Trial, rows: Rows, score: Score) -> Candidate:
    """Return the candidate's figures."""
    compared = gap(trial, identity, rows)
    if trial.losses is None or trial.log_probs is None or compared is None:
        return Candidate(trial.name, why_not=trial.why_not)
    log_probs = trial.log_probs

    def mean(which: Score) -> float | None:
        value = float((rows.mass * _row_losses(log_probs, rows, which)).sum())
        return value if np.isfinite(value) else None

    return Candidate(
        method=trial.name,
        score=float((rows.mass * trial.losses).sum()),
        gain=0.0 - compared[0],
        gain_error=compared[1],
        nll=mean("nll"),
        brier=mean("brier"),
        ece_em=ece(rows.labels, np.exp(log_probs), scheme="mass", weights=rows.weights),
    )


def _too_sure(fitted: Calibrator) -> bool:
    """Say whether separated labels pulled a temperature to its lower bound.

    At the upper bound scores say nothing, and equal probabilities are the right answer.
    """
    return bool(getattr(fitted, "hit_bound_", False) and getattr(fitted, "temperature_", 1.0) < 1)


def _row_losses(log_probs: FloatArray, rows: Rows, score: Score) -> FloatArray:
    given = log_probs[np.arange(rows.n), rows.labels]
    if score == "nll":
        return np.asarray(-given)
    probs = np.exp(log_probs)
    squares = np.einsum("ij,ij->i", probs, probs) + 1.0 - 2.0 * np.exp(given)
    return np.asarray(squares / 2.0 if rows.k == 2 else squares)


def _method(calibrator: Calibrator) -> str:
    if isinstance(calibrator, Chain):
        return " > ".join(_method(step) for step in calibrator.steps)
    return calibrator.method


def _settings(calibrator: Calibrator) -> str:
    steps = calibrator.steps if isinstance(calibrator, Chain) else [calibrator]
    pairs = [f"{k}={v}" for step in steps for k, v in step._settings().items()]
    return ",".join(pairs)
