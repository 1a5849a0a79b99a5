"""Cases for the calibrator checks, and the assertions on them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.base import clone

from calibrant.calibrators import Calibrator
from calibrant.convert import logits_from_probs
from calibrant.errors import InputError
from calibrant.testing.worlds import WORLDS

FloatArray = NDArray[np.float64]

_GRAIN = 2.0**24  # Logits are multiples of 1 / _GRAIN, so that adding an integer is exact


@dataclass(frozen=True)
class CalibratorCase:
    """Rows to fit on, and fresh rows of the same distribution to predict."""

    name: str
    logits: FloatArray  # (n,) log-odds of the second class, or (n, K)
    labels: NDArray[np.int64]  # (n,)
    fresh: FloatArray  # logits of the fresh rows, in the shape of `logits`
    fresh_labels: NDArray[np.int64]  # labels of the fresh rows

    @property
    def k(self) -> int:
        """Number of classes."""
        return 2 if self.logits.ndim == 1 else self.logits.shape[1]

    @property
    def n(self) -> int:
        """Number of rows to fit on."""
        return len(self.labels)


def draw_case(world: str, n: int, seed: int) -> CalibratorCase:
    """Draw n rows to fit on and n fresh ones."""
    draw = WORLDS[world].draw(2 * n, seed)
    logits = logits_from_probs(draw.probs.astype(np.float64), floor=1e-12)
    logits = np.round(logits * _GRAIN) / _GRAIN
    return CalibratorCase(world, logits[:n], draw.labels[:n], logits[n:], draw.labels[n:])


def with_bad_labels(case: CalibratorCase, seed: int) -> Iterator[CalibratorCase]:
    """Yield the rows with random labels and with anti-correlated logits."""
    shuffled = np.random.default_rng(seed).permutation(case.labels)
    yield replace(case, name=f"{case.name}, random labels", labels=shuffled)
    yield replace(case, name=f"{case.name}, anti-correlated", logits=-case.logits)


def degenerate_cases(case: CalibratorCase, seed: int) -> Iterator[CalibratorCase]:
    """Yield rows for which many methods have no finite optimum."""
    yield from with_bad_labels(case, seed)
    constant = np.zeros_like(case.logits)
    yield replace(case, name=f"{case.name}, constant scores", logits=constant)
    if case.k == 2:
        separated = np.abs(case.logits) * np.where(case.labels == 1, 1.0, -1.0)
    else:
        separated = case.logits + 100.0 * np.eye(case.k)[case.labels]
    yield replace(case, name=f"{case.name}, perfect separation", logits=separated)


CLOSE = 1e-6  # Tolerance for probabilities from two runs of an optimiser


def fit_copy(
    calibrator: Calibrator,
    case: CalibratorCase,
    logits: Any = None,
    labels: Any = None,
    weights: Any = None,
    *,
    classes: Sequence[Any] | None = None,
) -> Calibrator:
    """Fit a copy of the calibrator on the rows of the case, or on other rows if passed."""
    copy: Calibrator = clone(calibrator)
    logits = case.logits if logits is None else logits
    labels = case.labels if labels is None else labels
    if weights is None:
        copy.fit(logits, labels, classes=classes)
    else:
        copy.fit(logits, labels, weights, classes=classes)
    return copy


def expect(condition: bool, message: str) -> None:
    """Raise an AssertionError unless the condition holds."""
    if not condition:
        raise AssertionError(message)


def expect_close(ours: FloatArray, theirs: FloatArray, tolerance: float = CLOSE) -> None:
    """Expect equal probabilities up to the tolerance of an optimiser."""
    expect(ours.shape == theirs.shape, f"shape {ours.shape} became {theirs.shape}")
    gap = np.abs(ours - theirs)
    worst = np.unravel_index(int(np.argmax(gap)), gap.shape)
    expect(bool(gap[worst] <= tolerance), f"{ours[worst]} became {theirs[worst]}")


def expect_equal(ours: FloatArray, theirs: FloatArray) -> None:
    """Expect bit-identical numbers."""
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
    raise AssertionError(f"{what} was accepted")


def expect_valid(learned: Calibrator, logits: FloatArray) -> None:
    """Expect finite probabilities in [0, 1] whose rows sum to 1, with finite logarithms."""
    if logits.ndim == 1:
        expect_valid(learned, as_two_columns(logits))
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


def as_two_columns(logits: FloatArray) -> FloatArray:
    """Convert log-odds (n,) to two columns of logits; leave (n, K) unchanged."""
    return logits if logits.ndim == 2 else np.column_stack([-0.5 * logits, 0.5 * logits])
