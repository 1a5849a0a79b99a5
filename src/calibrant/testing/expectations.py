"""The few sentences in which checks of calibrators are written."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from sklearn.base import clone

from calibrant.calibrators import Calibrator
from calibrant.errors import InputError
from calibrant.testing.calibrator_cases import Case, FloatArray

__all__ = [
    "CLOSE",
    "expect",
    "expect_close",
    "expect_equal",
    "expect_refusal",
    "expect_sound",
    "fitted",
    "two_columns",
]

CLOSE = 1e-6
"""How far probabilities may differ that two runs of an optimiser must agree on."""


def fitted(
    calibrator: Calibrator,
    case: Case,
    logits: Any = None,
    labels: Any = None,
    weights: Any = None,
    *,
    classes: Sequence[Any] | None = None,
) -> Calibrator:
    """Fit a copy of the calibrator on the case's rows, or on other ones in their place."""
    copy: Calibrator = clone(calibrator)
    logits = case.logits if logits is None else logits
    labels = case.labels if labels is None else labels
    if weights is None:
        copy.fit(logits, labels, classes=classes)
    else:
        copy.fit(logits, labels, weights, classes=classes)
    return copy


def expect(kept: bool, otherwise: str) -> None:
    """Say what went wrong unless the rule is kept."""
    if not kept:
        raise AssertionError(otherwise)


def expect_close(ours: FloatArray, theirs: FloatArray, tolerance: float = CLOSE) -> None:
    """Expect equal probabilities but for the end of an optimiser's search."""
    expect(ours.shape == theirs.shape, f"shape {ours.shape} became {theirs.shape}")
    gap = np.abs(ours - theirs)
    worst = np.unravel_index(int(np.argmax(gap)), gap.shape)
    expect(bool(gap[worst] <= tolerance), f"{ours[worst]} became {theirs[worst]}")


def expect_equal(ours: FloatArray, theirs: FloatArray) -> None:
    """Expect the same numbers to the last bit."""
    expect(ours.shape == theirs.shape, f"shape {ours.shape} became {theirs.shape}")
    differ = ours != theirs
    if differ.any():
        raise AssertionError(f"{ours[differ][0]!r} became {theirs[differ][0]!r}")


def expect_refusal(what: str, action: Callable[[], Any]) -> None:
    """Expect an InputError."""
    try:
        action()
    except InputError:
        return
    except Exception as error:
        raise AssertionError(f"{what} raised {type(error).__name__}: {error}") from error
    raise AssertionError(f"{what} was taken")


def expect_sound(learned: Calibrator, logits: FloatArray) -> None:
    """Expect finite probabilities in [0, 1] whose rows sum to 1, with finite logarithms."""
    if logits.ndim == 1:
        expect_sound(learned, two_columns(logits))
    probs = learned.predict_proba(logits)
    log_probs = learned.predict_log_proba(logits)
    expect(probs.shape == logits.shape, f"logits {logits.shape} became probs {probs.shape}")
    expect(bool(np.isfinite(probs).all()), "a probability is not finite")
    expect(bool(((probs >= 0) & (probs <= 1)).all()), "a probability is outside [0, 1]")
    expect(bool(np.isfinite(log_probs).all()), "a log-probability is not finite")
    expect_close(np.exp(log_probs), probs, 1e-12)
    if probs.ndim == 2:
        sums = probs.sum(axis=1)
        expect(bool((np.abs(sums - 1.0) < 1e-9).all()), f"a row sums to {sums.min()}")


def two_columns(logits: FloatArray) -> FloatArray:
    """Write log-odds (n,) as two columns of logits; leave (n, K) alone."""
    return logits if logits.ndim == 2 else np.column_stack([-0.5 * logits, 0.5 * logits])
