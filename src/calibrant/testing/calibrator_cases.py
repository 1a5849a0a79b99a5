"""Rows that calibrators are tried on: ordinary ones, and those at which methods break."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import logits_from_probs
from calibrant.testing.worlds import WORLDS

__all__ = ["Case", "awkward", "drawn", "labelled_badly"]

FloatArray = NDArray[np.float64]

_GRAIN = 2.0**24
"""Logits are multiples of 1 / _GRAIN, so that adding a whole number to them rounds nothing."""


@dataclass(frozen=True)
class Case:
    """Rows to fit on, and fresh rows of the same kind to predict.

    Parameters
    ----------
    name : what is special about them
    logits : (n,) log-odds of the second class, or (n, K)
    labels : (n,)
    fresh : logits of other rows, in the shape of `logits`
    fresh_labels : theirs
    """

    name: str
    logits: FloatArray
    labels: NDArray[np.int64]
    fresh: FloatArray
    fresh_labels: NDArray[np.int64]

    @property
    def k(self) -> int:
        """Number of classes."""
        return 2 if self.logits.ndim == 1 else self.logits.shape[1]

    @property
    def n(self) -> int:
        """Number of rows to fit on."""
        return len(self.labels)


def drawn(world: str, n: int, seed: int) -> Case:
    """Draw n rows to fit on and n fresh ones."""
    draw = WORLDS[world].draw(2 * n, seed)
    logits = logits_from_probs(draw.probs.astype(np.float64), floor=1e-12)
    logits = np.round(logits * _GRAIN) / _GRAIN
    return Case(world, logits[:n], draw.labels[:n], logits[n:], draw.labels[n:])


def labelled_badly(case: Case, seed: int) -> Iterator[Case]:
    """Yield the rows with labels that the scores say nothing about, or the wrong thing."""
    shuffled = np.random.default_rng(seed).permutation(case.labels)
    yield replace(case, name=f"{case.name}, random labels", labels=shuffled)
    yield replace(case, name=f"{case.name}, anti-correlated", logits=-case.logits)


def awkward(case: Case, seed: int) -> Iterator[Case]:
    """Yield rows that have no ordinary optimum."""
    yield from labelled_badly(case, seed)
    constant = np.zeros_like(case.logits)
    yield replace(case, name=f"{case.name}, constant scores", logits=constant)
    if case.k == 2:
        separated = np.abs(case.logits) * np.where(case.labels == 1, 1.0, -1.0)
    else:
        separated = case.logits + 100.0 * np.eye(case.k)[case.labels]
    yield replace(case, name=f"{case.name}, perfect separation", logits=separated)
