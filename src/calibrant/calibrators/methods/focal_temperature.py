"""Focal temperature scaling: a temperature, then the map that undoes the focal loss."""

from __future__ import annotations

import numpy as np

from calibrant.calibrators.base.calibrator import SoftmaxCalibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows, two_columns
from calibrant.calibrators.fits.inverse_temperature import best_inverse_temperature, check_bounds
from calibrant.calibrators.fits.scalar_search import find_minimum, subsample_rows
from calibrant.calibrators.methods.focal_recovery import check_gamma, recover_logits
from calibrant.convert import log_probs_from_logits
from calibrant.inputs import FloatArray
from calibrant.metrics.problem import map_blocks

GAMMAS = (0.0, 0.25, 0.5, 0.75, 1.0, 2.0, 3.0, 5.0)
"""Default grid of gamma; 0 is temperature scaling."""

_ENTRIES = 1 << 15  # Logits per block, so that the temporaries fit in the CPU cache


@register
class FocalTemperatureScaling(SoftmaxCalibrator):
    r"""Divide the logits by a temperature T and then undo a focal loss of focus gamma.

    .. math:: p = \Psi_\gamma(\mathrm{softmax}(z / T)), \qquad
              (T, \gamma) = \arg\min -\frac{1}{\sum w} \sum_i w_i \log p_{i, y_i}

    z are the logits of a row, w the weights, :math:`\Psi_\gamma` the map of `FocalRecovery`. With
    more than two classes it is a non-linear map of the logits, which helps models trained with any
    loss. The NLL need not be convex in T: a grid finds the local minima and Brent's method refines
    them. Ties between gammas go to the smallest. `hit_bound_` is True if T ended at a bound.

    It does not change any prediction. With two classes :math:`\Psi_\gamma` is nearly a temperature
    itself, and there is little to gain. gamma is a shape parameter here, not that of training; the
    paper also tries values down to -1, which are not supported.

    Parameters
    ----------
    gamma : 0 or more; None takes the one of 0, 0.25, 0.5, 0.75, 1, 2, 3, 5 with the lowest NLL,
        each with its own T
    lowest, highest : bounds on T

    Attributes
    ----------
    temperature_ : T
    gamma_ : gamma, as passed or as fitted

    Examples
    --------
    gamma = 0 is a temperature: log-odds 2 that are right three times in four need T = 2 / log 3.

    >>> logits, labels = [2.0, 2.0, 2.0, 2.0, -2.0, -2.0, -2.0, -2.0], [1, 1, 1, 0, 0, 0, 0, 1]
    >>> print(round(FocalTemperatureScaling(gamma=0).fit(logits, labels).temperature_, 6))
    1.820478

    With gamma = 1 another T gives the same answer, 3/4:

    >>> calibrator = FocalTemperatureScaling(gamma=1).fit(logits, labels)
    >>> print(round(calibrator.temperature_, 2), calibrator.predict_proba([2.0]).round(6))
    3.23 [0.75]

    References
    ----------
    Komisarenko and Kull, Improving calibration by relating focal loss, temperature scaling, and
    properness, ECAI 2024: focal temperature scaling.
    """

    method = "focal_temperature"
    learned = ("temperature", "gamma")
    keeps_argmax = True
    keeps_ranking = True
    needs_every_class = False
    temperature_: float
    gamma_: float

    def __init__(
        self, gamma: float | None = None, *, lowest: float = 0.01, highest: float = 1e4
    ) -> None:
        self.gamma = gamma
        self.lowest = lowest
        self.highest = highest

    @property
    def hit_bound_(self) -> bool:
        """Whether T ended at one of its bounds."""
        self._check_fitted()
        return not self.lowest < self.temperature_ < self.highest

    def _learn(self, rows: CalibrationRows) -> None:
        check_bounds(self.lowest, self.highest)
        gammas = GAMMAS if self.gamma is None else (check_gamma(self.gamma),)
        fits = [(*self._temperature(rows, gamma), gamma) for gamma in gammas]
        _, self.temperature_, self.gamma_ = min(fits, key=lambda fit: fit[0])

    def _keeps_order_of(self, position: int) -> bool:
        return self.n_classes == 2 or (self.temperature_ == 1 and self.gamma_ == 0)

    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        return recover_logits(log_probs / self.temperature_, self.gamma_)

    def _temperature(self, rows: CalibrationRows, gamma: float) -> tuple[float, float]:
        """Return the lowest NLL with this gamma, and its T."""
        bounds = self.lowest, self.highest
        if gamma == 0:
            temperature = 1.0 / best_inverse_temperature(rows, (1.0 / bounds[1], 1.0 / bounds[0]))
            best = float(np.clip(temperature, *bounds))
        else:
            sample = subsample_rows(rows)
            best = find_minimum(
                lambda t: _nll(rows, t, gamma), bounds, coarse=lambda t: _nll(sample, t, gamma)
            )
        return _nll(rows, best, gamma), best


def _nll(rows: CalibrationRows, temperature: float, gamma: float) -> float:
    def block_nll(block: slice) -> float:
        part = rows.take(block)
        new = recover_logits(two_columns(part.canonical) / temperature, gamma)
        losses = -log_probs_from_logits(new)[np.arange(part.n), part.labels]
        return float(losses.sum() if part.weights is None else part.weights @ losses)

    size = max(1, _ENTRIES // rows.k)
    losses = map_blocks(block_nll, rows.n, costly=rows.logits.size > 1 << 18, size=size)
    return float(np.sum(losses)) / rows.total
