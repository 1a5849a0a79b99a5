"""MAPIE's thresholds for a precision target: its p-values and its decisions, on counts made once.

MAPIE's controller compares every row with every threshold of its grid. The counts are made here
by sorting instead; the p-values (`compute_hoeffding_bentkus_p_value`) and the choice among them
(`control_fwer`) are MAPIE's own code. tests/parity/test_mapie.py holds the two ways against each
other.

Two things are corrected in MAPIE's favour, except in the setting "as it comes":

- a threshold that no row reaches has a p-value of nan there, at which its Holm procedure stops
  before it has certified anything; here that p-value is 1;
- the fixed sequence goes down the thresholds, as specified; the controller guesses the direction
  from the labels, and goes up when the largest threshold happens to look bad.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

__all__ = ["AS_IT_COMES", "SETTINGS", "Setting", "mapie_p_values", "mapie_thresholds"]

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Setting:
    """One way to use MAPIE, the same for every world, number of rows and target.

    Parameters
    ----------
    words : what it is
    size : thresholds in the grid, equally spaced from 0 to 0.99
    method : Holm's procedure, or the fixed sequence down the thresholds
    starts : of the fixed sequence
    nan_is_one : whether a threshold that no row reaches gets a p-value of 1 instead of nan
    """

    words: str
    size: int
    method: Literal["holm", "sequence"]
    starts: int = 1
    nan_is_one: bool = True


AS_IT_COMES = "MAPIE as it comes"
"""The controller's defaults, without corrections."""

SETTINGS: Mapping[str, Setting] = {
    "MAPIE 100 Holm": Setting("100 thresholds, Holm", 100, "holm"),
    "MAPIE 20 Holm": Setting("20 thresholds, Holm", 20, "holm"),
    "MAPIE 1 start": Setting("100 thresholds, fixed sequence from the top", 100, "sequence"),
    "MAPIE 8 starts": Setting("100 thresholds, fixed sequence, 8 starts", 100, "sequence", 8),
    AS_IT_COMES: Setting("its defaults: 100 thresholds, Holm", 100, "holm", nan_is_one=False),
}


def mapie_thresholds(
    labels: NDArray[Any], probs: NDArray[Any], target: float, confidence: float
) -> dict[str, float | None]:
    """Return the threshold of each setting that keeps most positives, or None."""
    scores = np.sort(probs.astype(np.float64))
    positive = np.sort(probs[labels == 1].astype(np.float64))
    of_size = {
        size: mapie_p_values(*_counts(scores, positive, _grid(size)), target)
        for size in {setting.size for setting in SETTINGS.values()}
    }
    return {
        name: _lowest_valid(of_size[setting.size], setting, confidence)
        for name, setting in SETTINGS.items()
    }


def mapie_p_values(reached: NDArray[Any], hits: NDArray[Any], target: float) -> Floats:
    """Return MAPIE's p-values for "precision is below the target", from counts at thresholds.

    Parameters
    ----------
    reached : rows at or above each threshold
    hits : positives among them
    target : the precision to be reached
    """
    from mapie.risk_control.methods import compute_hoeffding_bentkus_p_value

    some = reached > 0
    risk = np.where(some, 1 - hits / np.maximum(reached, 1), 1.0)
    sizes = np.where(some, reached, -1).astype(np.float64)
    p_values = compute_hoeffding_bentkus_p_value(risk, sizes, np.array([1 - target]), binary=True)
    return np.asarray(p_values[:, 0])


def _lowest_valid(p_values: Floats, setting: Setting, confidence: float) -> float | None:
    """Let MAPIE decide which thresholds are valid, and return the lowest of them."""
    from mapie.risk_control.fwer_control import FWERFixedSequenceTesting, control_fwer

    if setting.nan_is_one:
        p_values = np.nan_to_num(p_values, nan=1.0)
    grid = _grid(setting.size)
    if setting.method == "holm":
        valid = grid[control_fwer(p_values, 1 - confidence, "bonferroni_holm")]
    else:
        procedure = FWERFixedSequenceTesting(n_starts=setting.starts)
        valid = grid[::-1][control_fwer(p_values[::-1], 1 - confidence, procedure)]
    return float(valid.min()) if len(valid) else None


def _counts(
    scores: Floats, positive: Floats, grid: Floats
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Count rows at or above each threshold, and positives among them, in sorted scores."""
    reached = len(scores) - np.searchsorted(scores, grid, side="left")
    hits = len(positive) - np.searchsorted(positive, grid, side="left")
    return reached, hits


def _grid(size: int) -> Floats:
    return np.linspace(0, 0.99, size)
