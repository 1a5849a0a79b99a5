"""Structured vector scaling: temperature first, then small changes to each class."""

from __future__ import annotations

import numpy as np

from calibrant.calibrators.affine import Penalty, fit_affine
from calibrant.calibrators.affine_calibrator import AffineCalibrator, check_strength
from calibrant.calibrators.registry import register
from calibrant.calibrators.rows import Rows
from calibrant.calibrators.temperature import TemperatureScaling

__all__ = ["StructuredVectorScaling"]


@register
class StructuredVectorScaling(AffineCalibrator):
    r"""Temperature scaling, then a penalised scale and shift for each class (SVS).

    .. math:: p = \mathrm{softmax}\big((1 + v) \circ x / T + b\big)

    x are the logits less the mean of their row. T is fitted first, by
    `TemperatureScaling(smooth=True)`; v and b then minimise the NLL plus
    :math:`\frac{s K}{N} (\|v\|^2 + \|b\|^2)`, N the number of rows (the sum of the weights). With
    few rows v and b stay near 0 and temperature scaling remains; with many they are free. It can
    change predictions.

    Parameters
    ----------
    strength : s

    Attributes
    ----------
    weight_ : (1 + v) / T
    intercept_ : b

    Examples
    --------
    >>> logits = [[2, 0, 0], [0, 2, 0], [0, 0, 2], [0, 2, 0]] * 5
    >>> StructuredVectorScaling().fit(logits, [0, 1, 2, 0] * 5).weight_.shape
    (3,)

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, Structured matrix scaling for multi-class calibration,
    AISTATS 2026.
    """

    method = "svs"

    def __init__(self, *, strength: float = 1.0) -> None:
        self.strength = strength

    def _penalty(self, rows: Rows) -> Penalty:
        check_strength(self.strength)
        each = self.strength * rows.k / rows.total
        return Penalty(diagonal=each, off_diagonal=np.inf, intercept=each)

    def _learn(self, rows: Rows) -> None:
        temperature = TemperatureScaling(smooth=True).fit_rows(rows).temperature_
        scaled = self._features(rows.log_probs) / temperature
        fitted = fit_affine(scaled, rows, self._penalty(rows))
        self.weight_, self.intercept_ = fitted.weight / temperature, fitted.intercept
