"""Checks of the gammas of focal losses."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from numbers import Real
from typing import Any

import numpy as np

from calibrant.errors import InputError

GAMMAS = (-5.0, 100.0)
MAX_GAMMA = -GAMMAS[0]
MAX_CALIBRATED_GAMMA = 1.615  # above it the minimiser for a coin flip is not 1/2


def check_gamma(gamma: float, *, low: float = GAMMAS[0], name: str = "gamma") -> None:
    """Refuse a gamma outside the supported range."""
    high = GAMMAS[1]
    known = isinstance(gamma, Real) and not isinstance(gamma, bool)  # NumPy's numbers are Real
    if not known or not math.isfinite(gamma) or not low <= gamma <= high:
        raise InputError(f"{name} must be a number from {low:g} to {high:g}, got {gamma!r}.")


def check_numbers(values: Any, name: str) -> None:
    """Refuse anything but a list of numbers, such as a single number or text."""
    listed = isinstance(values, (Sequence, np.ndarray)) and not isinstance(values, str)
    if not listed or not all(isinstance(value, Real) for value in values):
        raise InputError(f"{name} must be a list of numbers like [5,3], got {values!r:.200}.")


def check_steps(gammas: Sequence[float], edges: Sequence[float]) -> None:
    """Refuse steps of FLSD whose edges do not rise, or that are not one more than the edges."""
    check_numbers(gammas, "gammas")
    check_numbers(edges, "edges")
    for gamma in gammas:
        check_gamma(gamma, low=0.0, name="each of gammas")
    rising = all(low < high for low, high in pairwise(edges))
    if len(gammas) != len(edges) + 1 or not rising or not all(0 < edge < 1 for edge in edges):
        raise InputError(
            "steps of gamma need rising edges inside (0, 1) and one gamma more than there are "
            f"edges, got gammas {list(gammas)} and edges {list(edges)}."
        )


def check_inverse_gamma(gamma: float) -> None:
    """Refuse a gamma of inverse focal loss outside the supported range."""
    check_gamma(gamma, low=0.0)
    if gamma > MAX_GAMMA:
        raise InputError(
            f"gamma of inverse focal loss must be at most {MAX_GAMMA:g}, got {gamma!r}: "
            "beyond it rows are pushed away from their own labels."
        )
