"""Structured vector scaling: temperature scaling, then a penalised scale and shift per class."""

from __future__ import annotations

import numpy as np

from calibrant.calibrators.base.affine_calibrator import (
    AffineCalibrator,
    centre_rows,
    check_strength,
)
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.fits.affine import Penalty
from calibrant.calibrators.methods.temperature import TemperatureScaling
from calibrant.convert import log_probs_from_logits
from calibrant.inputs import FloatArray


@register
class StructuredVectorScaling(AffineCalibrator):
    r"""Temperature scaling, then a penalised scale and shift for each class (SVS).

    .. math:: x = \log\big((1 - \epsilon)\, \mathrm{softmax}(z / T) + \epsilon / K\big), \qquad
              p = \mathrm{softmax}\big((1 + v) \circ (x - \bar x) + b\big)

    z are the logits, :math:`\bar x` is the mean of x in its row. T is fitted first, by
    `TemperatureScaling(smooth=True)`, and :math:`\epsilon = 1 / (N + 1)` smooths by the
    weight of one row, N the number of rows (the sum of the weights): no class is ruled out beyond
    what N rows can show. v and b then minimise the NLL plus
    :math:`\frac{s K}{N} (\|v\|^2 + \|b\|^2)`. With few rows they stay near 0, which is
    temperature scaling; with many they are free. It can change predictions.

    Parameters
    ----------
    strength : s

    Attributes
    ----------
    temperature_ : T
    doubt_ : :math:`\epsilon`
    weight_ : 1 + v
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
    learned = ("temperature", "doubt", "weight", "intercept")
    temperature_: float
    doubt_: float

    def __init__(self, *, strength: float = 1.0) -> None:
        self.strength = strength

    def _penalty(self, rows: CalibrationRows) -> Penalty:
        check_strength(self.strength)
        scale = self.strength * rows.k / rows.total
        return Penalty(diagonal=scale, off_diagonal=np.inf, intercept=scale)

    def _learn(self, rows: CalibrationRows) -> None:
        self.temperature_ = TemperatureScaling(smooth=True).fit_rows(rows).temperature_
        self.doubt_ = 1.0 / (rows.total + 1.0)
        super()._learn(rows)

    def _features(self, log_probs: FloatArray) -> FloatArray:
        scaled = log_probs_from_logits(log_probs / self.temperature_)
        uniform = np.log(self.doubt_ / log_probs.shape[1])
        return centre_rows(np.logaddexp(np.log1p(-self.doubt_) + scaled, uniform))

    def _check_learned(self) -> None:
        if not (self.temperature_ > 0 and 0 < self.doubt_ < 1):
            raise ValueError("temperature or doubt is out of range")
