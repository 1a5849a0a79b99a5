"""Temperature scaling: one parameter that softens or sharpens all logits."""

from __future__ import annotations

from typing import Literal

import numpy as np

from calibrant.calibrators.base.calibrator import SoftmaxCalibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.fits.inverse_temperature import best_inverse_temperature, check_bounds
from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.metrics import ece

Objective = Literal["nll", "ece_mass", "ece_width"]

PAPER_GRID = np.arange(1, 101) / 10.0
"""0.1, 0.2, ..., 10.0: the grid of Mukhoti et al. and AdaFocal."""


@register
class TemperatureScaling(SoftmaxCalibrator):
    r"""Divide all logits by one temperature T.

    .. math:: p = \mathrm{softmax}(z / T), \qquad
              T = \arg\min_T -\frac{1}{\sum w} \sum_i w_i \log p_{i, y_i}

    z are the logits of a row, w the weights. The objective is convex in 1/T, so T is the root of
    its derivative: found by bracketed Newton steps, exact, without a learning rate. T > 1 softens
    an over-confident model, T < 1 sharpens an under-confident one. Perfectly separated labels drive
    T to 0 and uninformative scores to infinity; T then ends at a bound and `hit_bound_` is True.

    It does not change any prediction, and it cannot correct errors that differ between classes.

    Parameters
    ----------
    objective : 'nll', or one of two paper modes that try T = 0.1, 0.2, ..., 10 and take the lowest
        T with the smallest calibration error of the predicted class: 'ece_mass' in bins of equal
        mass (AdaFocal), 'ece_width' in bins of equal width (Mukhoti et al.). They are noisy.
    n_bins : bins of the paper modes
    smooth : spread :math:`1 / (N + 1)` of each label evenly over all classes, N the number of rows
        (the sum of the weights): the weight of one row, so that a few rows that are all correct do
        not make the model certain. Only for 'nll'.
    lowest, highest : bounds on T

    Attributes
    ----------
    temperature_ : T

    Examples
    --------
    The model says log-odds 2 and -2, and is right in three rows of four. Log-odds of 3/4 are
    log 3, so T = 2 / log 3:

    >>> logits = [2.0, 2.0, 2.0, 2.0, -2.0, -2.0, -2.0, -2.0]
    >>> calibrator = TemperatureScaling().fit(logits, [1, 1, 1, 0, 0, 0, 0, 1])
    >>> print(round(calibrator.temperature_, 6), round(2 / np.log(3), 6))
    1.820478 1.820478
    >>> calibrator.predict_proba([2.0]).round(6)
    array([0.75])

    References
    ----------
    Guo et al., On calibration of modern neural networks, ICML 2017, section 4.2.
    """

    method = "temperature"
    learned = ("temperature",)
    keeps_argmax = True
    keeps_ranking = True
    needs_every_class = False
    temperature_: float

    def __init__(
        self,
        objective: Objective = "nll",
        *,
        n_bins: int = 15,
        smooth: bool = False,
        lowest: float = 0.01,
        highest: float = 1e4,
    ) -> None:
        self.objective = objective
        self.n_bins = n_bins
        self.smooth = smooth
        self.lowest = lowest
        self.highest = highest

    @property
    def hit_bound_(self) -> bool:
        """Whether T ended at one of its bounds."""
        self._check_fitted()
        low, high = (self.lowest, self.highest) if self.objective == "nll" else PAPER_GRID[[0, -1]]
        return not low < self.temperature_ < high

    def _learn(self, rows: CalibrationRows) -> None:
        check_bounds(self.lowest, self.highest)
        if self.objective == "nll":
            bounds = (1.0 / self.highest, 1.0 / self.lowest)
            smoothing = 1.0 / (rows.total + 1.0) if self.smooth else 0.0
            temperature = 1.0 / best_inverse_temperature(rows, bounds, smoothing)
            self.temperature_ = float(np.clip(temperature, self.lowest, self.highest))
        elif self.objective in ("ece_mass", "ece_width"):
            self.temperature_ = _grid_search(rows, self.objective, self.n_bins)
        else:
            raise InputError(
                f"objective must be 'nll', 'ece_mass' or 'ece_width', got {self.objective!r}."
            )

    def _check_learned(self) -> None:
        if not (isinstance(self.temperature_, float) and self.temperature_ > 0):
            raise ValueError("temperature is not positive")

    def _keeps_order_of(self, position: int) -> bool:
        return self.n_classes == 2 or self.temperature_ == 1

    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        return log_probs / self.temperature_


def _grid_search(rows: CalibrationRows, objective: Objective, n_bins: int) -> float:
    """Return the best temperature of the papers' grid, the lowest among ties."""
    log_probs = rows.log_probs
    errors = [
        ece(
            rows.labels,
            probs_from_logits(log_probs / t),
            n_bins=n_bins,
            scheme="mass" if objective == "ece_mass" else "width",
            target="top-label",
            weights=rows.weights,
        )
        for t in PAPER_GRID
    ]
    return float(PAPER_GRID[int(np.argmin(errors))])
