"""Before and after a calibration, on rows that the calibrator did not see."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import Calibrator
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.choice.folds import random_folds
from calibrant.cli import interruption
from calibrant.errors import InputError
from calibrant.metrics import compare, evaluate
from calibrant.reports.calibration.result import Judgement

if TYPE_CHECKING:
    from calibrant.scores import Scores

__all__ = ["counting_rows", "judged_by_crossfit", "judged_on", "rows_of"]

FOLDS = 5
MOST_JUDGED = 2_000_000
"""Beyond this many rows a part of them, drawn at random, judges."""


def counting_rows(scores: Scores) -> Scores:
    """Leave out rows of weight 0: they are rows that are not there."""
    if scores.weights is None or scores.weights.all():
        return scores
    return _taken(scores, scores.weights > 0)


def rows_of(scores: Scores) -> CalibrationRows:
    """Return scores as what calibrators learn from."""
    assert scores.logits is not None
    return CalibrationRows(scores.logits, scores.labels, scores.weights, scores.classes)


def judged_on(scores: Scores, calibrator: Calibrator, *, source: str, seed: int) -> Judgement:
    """Judge a fitted calibrator on other rows."""
    drawn = ""
    if scores.n > MOST_JUDGED:
        share = MOST_JUDGED / scores.n
        scores = _taken(scores, np.random.default_rng(seed).random(scores.n) < share)
        drawn = ", drawn at random"
    after = calibrator.predict_proba(scores.logits)
    how = f"judged on {scores.n:,} other rows, of {source}{drawn}"
    return _judged(scores, after, how=how, seed=seed)


def judged_by_crossfit(scores: Scores, calibrator: Calibrator, *, seed: int) -> Judgement:
    """Judge each row by a copy of the calibrator that was fitted without that row.

    Of very many rows some are held out, and one copy is fitted on all others.
    """
    from sklearn.base import clone

    if calibrator.method == "identity":
        how = "judged on the same rows, from which the identity learns nothing"
        return _judged(scores, scores.probs, how=how, seed=seed)
    rows = rows_of(scores)
    fold = _folds(rows, calibrator, seed)
    out = np.empty(rows.logits.shape)
    for f in range(int(fold.max()) + 1):
        held = fold == f
        fitted = clone(calibrator).fit_rows(rows.take(~held))
        out[held] = fitted.predict_proba(rows.logits[held])
        interruption.check()
    folds = int(fold.max()) + 1
    seen = fold >= 0
    made = "chosen and fitted" if calibrator.method == "auto" else "fitted"
    if folds == 1:
        how = f"judged on {seen.sum():,} of them, by a calibrator that was {made} on the others"
    else:
        how = (
            f"judged by cross-fitting in {folds} folds: each row by a calibrator that was {made} "
            "without it"
        )
    kept = scores if seen.all() else _taken(scores, seen)
    found = _judged(kept, out[seen], how=how, seed=seed)
    return replace(found, folds=folds if folds > 1 else None)


def _folds(rows: CalibrationRows, calibrator: Calibrator, seed: int) -> NDArray[np.int64]:
    """Give each row its fold; -1 for a row that no calibrator is fitted without."""
    rng = np.random.default_rng(seed)
    if rows.n > MOST_JUDGED:
        return np.where(rng.random(rows.n) < 0.5 * MOST_JUDGED / rows.n, 0, -1)
    fold = random_folds(rows.labels, min(FOLDS, rows.n), rng)
    if calibrator.needs_every_class:  # the only row of a class is needed by every fit
        alone = np.bincount(rows.labels, minlength=rows.k) == 1
        fold[alone[rows.labels]] = -1
    if rows.n < 2 or fold.max() < 1:
        raise InputError("all rows are needed to fit it")
    return fold


def _judged(scores: Scores, after: NDArray[Any], *, how: str, seed: int) -> Judgement:
    options: dict[str, Any] = {"weights": scores.weights, "rng": seed}
    before = evaluate(scores.labels, scores.probs, **options)
    return Judgement(
        before=before.with_classes(scores.classes),
        after=evaluate(scores.labels, after, **options).with_classes(scores.classes),
        difference=compare(
            scores.labels, scores.probs, after, names=("before", "after"), **options
        ),
        how=how,
    )


def _taken(scores: Scores, rows: NDArray[np.bool_]) -> Scores:
    assert scores.logits is not None
    return replace(
        scores,
        labels=scores.labels[rows],
        probs=scores.probs[rows],
        logits=scores.logits[rows],
        weights=None if scores.weights is None else scores.weights[rows],
    )
