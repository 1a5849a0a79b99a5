"""Test data for calibrators: ordinary and degenerate rows."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import logits_from_probs
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
