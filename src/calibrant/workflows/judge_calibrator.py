"""Evaluation before and after calibration, on rows the calibrator has not seen."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.calibrators import Calibrator
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.choice.trial import random_folds
from calibrant.errors import InputError
from calibrant.metrics import compare, evaluate
from calibrant.reports.calibration.result import Judgement

if TYPE_CHECKING:
    from calibrant.scores import Scores

FOLDS = 5
MOST_JUDGED = 2_000_000  # Evaluate on a random sample beyond this number of rows


def drop_zero_weights(scores: Scores) -> Scores:
    """Drop rows of weight 0."""
    if scores.weights is None or scores.weights.all():
        return scores
    return _take(scores, scores.weights > 0)


def to_rows(scores: Scores) -> CalibrationRows:
    """Convert scores to calibrator input."""
    assert scores.logits is not None
    return CalibrationRows(scores.logits, scores.labels, scores.weights, scores.classes)


def judge_on(scores: Scores, calibrator: Calibrator, *, source: str, seed: int) -> Judgement:
    """Evaluate a fitted calibrator on other rows."""
    drawn = ""
    if scores.n > MOST_JUDGED:
        share = MOST_JUDGED / scores.n
        scores = _take(scores, np.random.default_rng(seed).random(scores.n) < share)
        drawn = ", drawn at random"
    after = calibrator.predict_proba(scores.logits)
    how = f"judged on {scores.n:,} other rows, of {source}{drawn}"
    return _judge(scores, after, how=how, seed=seed)


def judge_by_crossfit(
    scores: Scores,
    calibrator: Calibrator,
    *,
    seed: int,
    advance: Callable[[int], None] = lambda rows: None,
) -> Judgement:
    """Evaluate each row with a copy of the calibrator fitted without it.

    Beyond `MOST_JUDGED` rows, one copy is fitted without a random sample.
    """
    from sklearn.base import clone

    if calibrator.method == "identity":
        how = "judged on the same rows, from which the identity learns nothing"
        return _judge(scores, scores.probs, how=how, seed=seed)
    rows = to_rows(scores)
    fold = _folds(rows, calibrator, seed)
    probs = np.empty(rows.logits.shape)
    for f in range(int(fold.max()) + 1):
        held_out = fold == f
        fitted = clone(calibrator).fit_rows(rows.take(~held_out))
        probs[held_out] = fitted.predict_proba(rows.logits[held_out])
        advance(int(held_out.sum()))
    folds = int(fold.max()) + 1
    seen = fold >= 0
    verb = "chosen and fitted" if calibrator.method == "auto" else "fitted"
    if folds == 1:
        how = f"judged on {seen.sum():,} of them, by a calibrator that was {verb} on the others"
    else:
        how = (
            f"judged by cross-fitting in {folds} folds: each row by a calibrator that was {verb} "
            "without it"
        )
    judged = scores if seen.all() else _take(scores, seen)
    judgement = _judge(judged, probs[seen], how=how, seed=seed)
    return replace(judgement, folds=folds if folds > 1 else None)


def _folds(rows: CalibrationRows, calibrator: Calibrator, seed: int) -> NDArray[np.int64]:
    """Return the fold of each row; -1 for a row that is never held out."""
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


def _judge(scores: Scores, after: NDArray[Any], *, how: str, seed: int) -> Judgement:
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


def _take(scores: Scores, rows: NDArray[np.bool_]) -> Scores:
    assert scores.logits is not None
    return replace(
        scores,
        labels=scores.labels[rows],
        probs=scores.probs[rows],
        logits=scores.logits[rows],
        weights=None if scores.weights is None else scores.weights[rows],
    )
