"""Checks of what a calibrator declares about itself: argmax, ranking, weights, absent classes."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from calibrant.calibrators import Calibrator
from calibrant.errors import InputError
from calibrant.testing.calibrator_cases import Case, labelled_badly
from calibrant.testing.expectations import (
    expect,
    expect_close,
    expect_refusal,
    expect_sound,
    fitted,
    two_columns,
)

__all__ = ["absent_class", "argmax", "ranking", "weights"]

_NEAR_TIE = 1e-3
_VISIBLY_APART = np.linspace(-12.0, 12.0, 97)
"""Log-odds a quarter apart, beyond those of the rows on both sides."""


def argmax(calibrator: Calibrator, case: Case, seed: int) -> None:
    """Check `keeps_argmax`, also where labels contradict the scores."""
    if not calibrator.keeps_argmax:
        return
    given = two_columns(case.fresh)
    low, high = np.sort(given, axis=1)[:, -2:].T
    clear = given[high - low > _NEAR_TIE]
    for learned, name in _fits(calibrator, case, seed):
        out = learned.predict_log_proba(clear)
        rows, top = np.arange(len(clear)), clear.argmax(axis=1)
        rest = out.copy()
        rest[rows, top] = -np.inf
        lost = out[rows, top] <= rest.max(axis=1)
        expect(
            not lost.any(),
            f"{name}: logits {clear[lost][:1]} became log-probabilities {out[lost][:1]}",
        )


def ranking(calibrator: Calibrator, case: Case, seed: int) -> None:
    """Check `keeps_ranking`, also where labels contradict the scores."""
    if not calibrator.keeps_ranking or case.k > 2:
        return
    for learned, name in _fits(calibrator, case, seed):
        both = learned.predict_log_proba(two_columns(_VISIBLY_APART))
        step = np.diff(both[:, 1] - both[:, 0])
        at = int(step.argmin())
        expect(
            bool(step[at] > 0),
            f"{name}: log-odds {_VISIBLY_APART[at : at + 2]} became "
            f"P(positive) {np.exp(both[at : at + 2, 1])}",
        )


def weights(calibrator: Calibrator, case: Case, seed: int) -> None:
    """Check `takes_weights`: a weight equals a repetition, or is refused."""
    if not calibrator.takes_weights:
        expect_refusal("weights", lambda: fitted(calibrator, case, weights=np.ones(case.n)))
        return
    times = np.random.default_rng(seed).integers(0, 4, case.n)
    repeated = fitted(
        calibrator, case, np.repeat(case.logits, times, axis=0), np.repeat(case.labels, times)
    )
    expect_close(
        repeated.predict_proba(case.fresh),
        fitted(calibrator, case, weights=times).predict_proba(case.fresh),
    )


def absent_class(calibrator: Calibrator, case: Case, seed: int) -> None:
    """Check `needs_every_class`: rows without the last class are learned from, or refused.

    With two classes one is left, which any method may refuse.
    """
    there = case.labels < case.k - 1
    logits, labels = case.logits[there], case.labels[there]
    if calibrator.needs_every_class:
        expect_refusal("an absent class", lambda: fitted(calibrator, case, logits, labels))
        return
    try:
        learned = fitted(calibrator, case, logits, labels)
    except InputError:
        if case.k == 2:
            return
        raise
    expect_sound(learned, case.fresh)


def _fits(calibrator: Calibrator, case: Case, seed: int) -> Iterator[tuple[Calibrator, str]]:
    """Yield fits on good, random and contradicting labels; a refusal keeps every promise."""
    yield fitted(calibrator, case), case.name
    for bad in labelled_badly(case, seed):
        try:
            yield fitted(calibrator, bad), bad.name
        except InputError:
            continue
