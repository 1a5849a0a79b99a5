"""Checks of a calibrator's declarations: argmax, ranking, weights, absent classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrant.calibrators import Calibrator
from calibrant.errors import InputError
from calibrant.testing.calibrator_cases import CalibratorCase, with_bad_labels
from calibrant.testing.expectations import (
    as_two_columns,
    expect,
    expect_close,
    expect_refusal,
    expect_valid,
    fit_copy,
)

__all__ = ["absent_class", "argmax", "ranking", "weights"]

_NEAR_TIE = 1e-3
_GRID_LOG_ODDS = np.linspace(-12.0, 12.0, 97)
"""Log-odds in steps of 1/4, over a wider range than those of the rows."""


def argmax(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `keeps_argmax`, also with labels that contradict the scores."""
    if not calibrator.keeps_argmax:
        return
    fresh = as_two_columns(case.fresh)
    low, high = np.sort(fresh, axis=1)[:, -2:].T
    clear = fresh[high - low > _NEAR_TIE]
    for learned, name in _fit_variants(calibrator, case, seed):
        out = learned.predict_log_proba(clear)
        rows, top = np.arange(len(clear)), clear.argmax(axis=1)
        rest = out.copy()
        rest[rows, top] = -np.inf
        lost = out[rows, top] <= rest.max(axis=1)
        expect(
            not lost.any(),
            f"{name}: logits {clear[lost][:1]} became log-probabilities {out[lost][:1]}",
        )


def ranking(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `keeps_ranking`, also with labels that contradict the scores."""
    if not calibrator.keeps_ranking or case.k > 2:
        return
    for learned, name in _fit_variants(calibrator, case, seed):
        both = learned.predict_log_proba(as_two_columns(_GRID_LOG_ODDS))
        step = np.diff(both[:, 1] - both[:, 0])
        at = int(step.argmin())
        expect(
            bool(step[at] > 0),
            f"{name}: log-odds {_GRID_LOG_ODDS[at : at + 2]} became "
            f"P(positive) {np.exp(both[at : at + 2, 1])}",
        )


def weights(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `takes_weights`: a weight equals a repetition, or is refused."""
    if not calibrator.takes_weights:
        expect_refusal("weights", lambda: fit_copy(calibrator, case, weights=np.ones(case.n)))
        return
    times = np.random.default_rng(seed).integers(0, 4, case.n)
    repeated = fit_copy(
        calibrator, case, np.repeat(case.logits, times, axis=0), np.repeat(case.labels, times)
    )
    expect_close(
        repeated.predict_proba(case.fresh),
        fit_copy(calibrator, case, weights=times).predict_proba(case.fresh),
    )


def absent_class(calibrator: Calibrator, case: CalibratorCase, seed: int) -> None:
    """Check `needs_every_class`: rows without the last class are accepted or refused.

    With two classes a single one remains, which any method may refuse.
    """
    present = case.labels < case.k - 1
    logits, labels = case.logits[present], case.labels[present]
    if calibrator.needs_every_class:
        expect_refusal("an absent class", lambda: fit_copy(calibrator, case, logits, labels))
        return
    try:
        learned = fit_copy(calibrator, case, logits, labels)
    except InputError:
        if case.k == 2:
            return
        raise
    expect_valid(learned, case.fresh)


def _fit_variants(
    calibrator: Calibrator, case: CalibratorCase, seed: int
) -> Iterator[tuple[Calibrator, str]]:
    """Yield fits on good, random and contradicting labels; refused ones are skipped."""
    yield fit_copy(calibrator, case), case.name
    for bad in with_bad_labels(case, seed):
        try:
            yield fit_copy(calibrator, bad), bad.name
        except InputError:
            continue
