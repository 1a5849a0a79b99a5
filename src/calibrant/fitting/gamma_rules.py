"""Update rules of AdaFocal's gammas."""

from __future__ import annotations

import math
from dataclasses import dataclass
from numbers import Integral, Real
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import log_sigmoid
from calibrant.errors import InputError
from calibrant.fitting.confidence_bins import (
    BinFigures,
    Scale,
    bin_figures,
    find_bins,
    interpolated_edges,
    rank_edges,
    released_bins,
)
from calibrant.fitting.gammas import check_gamma
from calibrant.inputs import FloatArray, IntArray

MIN_COUNT = 20
"""Rows below which a bin keeps its gamma.

The accuracy of 20 rows has a standard error of about 0.1, as large as the errors that AdaFocal
corrects; with fewer rows not even that standard error can be estimated.
"""

GAMMA_MIN = {"robust": -1.5, "paper": -2.0}

BinUpdate = tuple[FloatArray, BinFigures, FloatArray]


def step_gammas(
    gammas: FloatArray,
    error: FloatArray,
    *,
    strength: float,
    switch: float,
    low: float,
    high: float,
) -> FloatArray:
    r"""Update each bin's gamma by its calibration error.

    $$ \gamma' = \gamma e^{\lambda E} \text{ for } \gamma > 0, \qquad
       \gamma' = \gamma e^{-\lambda E} \text{ else} $$

    $E$ is confidence minus accuracy and $\lambda$ the strength. A result closer to 0 than `switch`
    is replaced by `-switch` (from focal to inverse focal) or, from the other side, by `+switch`;
    finally it is clipped to `low`..`high`. So over-confidence raises gamma and under-confidence
    lowers it, on either side of 0.
    """
    focal = gammas > 0
    moved = gammas * np.exp(np.where(focal, strength, -strength) * error)
    crossed = np.where(focal, -switch, switch)
    return np.asarray(np.clip(np.where(np.abs(moved) < switch, crossed, moved), low, high))


def shrink_errors(error: FloatArray, accuracy: FloatArray, count: IntArray) -> FloatArray:
    r"""Shrink each bin's error according to its standard error.

    $$ \tilde E = E \frac{E^2}{E^2 + s^2}, \qquad s^2 = \frac{a (1 - a)}{n}, \qquad
       a = \frac{n A + 1}{n + 2} $$

    $n$ is the number of rows, $A$ their accuracy, and $a$ the accuracy with one right and one
    wrong row added, so that a bin without mistakes has a positive standard error. An error as
    large as its standard error $s$ is halved, a smaller one nearly vanishes, a large one stays.
    """
    a = (count * accuracy + 1.0) / (count + 2.0)
    variance = a * (1.0 - a) / np.maximum(count, 1)
    square = error * error
    return np.asarray(error * square / (square + variance))


def bin_by_rank(
    scores: FloatArray, right: NDArray[np.bool_], n_bins: int, min_count: int
) -> tuple[FloatArray, BinFigures]:
    """Bin log-odds into bins of equal count, with the look-up that training uses."""
    edges = rank_edges(scores, n_bins, min_count)
    index = find_bins(scores, edges)
    return edges, bin_figures(index, np.exp(log_sigmoid(scores)), right, n_bins)


@dataclass(frozen=True)
class GammaRule:
    """Base class of update rules; see `step_gammas` for the parameters."""

    n_bins: int
    strength: float
    switch: float
    low: float
    high: float
    scale: ClassVar[Scale]

    def step(self, gammas: FloatArray, error: FloatArray) -> FloatArray:
        """Return the updated gammas."""
        return step_gammas(
            gammas,
            error,
            strength=self.strength,
            switch=self.switch,
            low=self.low,
            high=self.high,
        )

    def update_bins(
        self, scores: FloatArray, right: NDArray[np.bool_], gammas: FloatArray
    ) -> BinUpdate:
        """Return new inner edges, the figures of the bins, and new gammas.

        `scores` are sorted, on the rule's scale; `right` is True where the top class is correct.
        """
        raise NotImplementedError


@dataclass(frozen=True)
class PaperRule(GammaRule):
    """Rule of the released code, in probabilities; see `AdaFocalLoss` for its peculiarities."""

    scale: ClassVar[Scale] = "probability"

    def update_bins(
        self, scores: FloatArray, right: NDArray[np.bool_], gammas: FloatArray
    ) -> BinUpdate:
        """Return new inner edges, the figures of the bins, and new gammas."""
        edges = interpolated_edges(scores, self.n_bins)
        figures = bin_figures(released_bins(scores, edges), scores, right, self.n_bins)
        return edges[1:-1], figures, self.step(gammas, np.nan_to_num(figures.error))


@dataclass(frozen=True)
class RobustRule(GammaRule):
    """Same step with shrunk errors, on bins that are robust to ties and saturation."""

    min_count: int = MIN_COUNT
    scale: ClassVar[Scale] = "log-odds"

    def update_bins(
        self, scores: FloatArray, right: NDArray[np.bool_], gammas: FloatArray
    ) -> BinUpdate:
        """Return new inner edges, the figures of the bins, and new gammas."""
        edges, figures = bin_by_rank(scores, right, self.n_bins, self.min_count)
        enough = figures.count >= self.min_count
        error = np.where(enough, figures.error, 0.0)
        accuracy = np.where(enough, figures.accuracy, 0.5)
        moved = self.step(gammas, shrink_errors(error, accuracy, figures.count))
        return edges, figures, np.where(enough, moved, gammas)


def make_rule(
    *,
    n_bins: int,
    strength: float,
    gamma_init: float,
    gamma_min: float | None,
    gamma_max: float,
    switch: float,
    mode: str,
    min_count: int | None,
) -> GammaRule:
    """Return the rule of a mode of AdaFocal; see `calibrant.losses.AdaFocalLoss`."""
    check_strength(strength)
    count = _check_mode(mode, min_count)
    numbers: dict[str, Any] = {
        "n_bins": n_bins,
        "strength": strength,
        "switch": switch,
        "low": GAMMA_MIN[mode] if gamma_min is None else gamma_min,
        "high": gamma_max,
    }
    rule = PaperRule(**numbers) if mode == "paper" else RobustRule(min_count=count, **numbers)
    check_rule(rule, gamma_init)
    return rule


def _check_mode(mode: str, min_count: int | None) -> int:
    """Return the minimum number of rows of a bin."""
    if mode not in GAMMA_MIN:
        raise InputError(f"mode must be 'robust' or 'paper', got {mode!r}.")
    if min_count is None:
        return MIN_COUNT
    if mode == "paper":
        raise InputError(
            f"min_count must be omitted in mode 'paper', where every bin with rows is updated, "
            f"got {min_count!r}."
        )
    check_count(min_count, "min_count")
    return min_count


def check_rule(rule: GammaRule, gamma_init: float) -> None:
    """Refuse inconsistent bounds, initial gamma and switch."""
    check_gamma(rule.low, name="gamma_min")
    check_gamma(rule.high, low=0.0, name="gamma_max")
    if not rule.low < rule.high:
        raise InputError(f"gamma_min must lie below gamma_max, got {rule.low:g} and {rule.high:g}.")
    check_gamma(gamma_init, name="gamma_init")
    if not rule.low <= gamma_init <= rule.high:
        raise InputError(
            f"gamma_init must lie between gamma_min {rule.low:g} and gamma_max {rule.high:g}, "
            f"got {gamma_init:g}."
        )
    most = max(0.0, min(-rule.low, rule.high))
    if not _is_number(rule.switch) or not 0 <= rule.switch <= most:
        raise InputError(
            f"switch must be a number from 0 (never switch) to {most:g}, so that both of its "
            f"sides lie between gamma_min {rule.low:g} and gamma_max {rule.high:g}, "
            f"got {rule.switch!r}."
        )


def check_strength(strength: float) -> None:
    """Refuse a strength outside (0, 100]."""
    if not _is_number(strength) or not 0 < strength <= 100:
        raise InputError(f"strength must be a number above 0, up to 100, got {strength!r}.")


def check_count(value: Any, name: str) -> None:
    """Refuse anything but a whole number of at least 1."""
    if not isinstance(value, Integral) or isinstance(value, bool) or value < 1:
        raise InputError(f"{name} must be a whole number of at least 1, got {value!r}.")


def _is_number(value: Any) -> bool:
    return isinstance(value, Real) and not isinstance(value, bool) and math.isfinite(value)
