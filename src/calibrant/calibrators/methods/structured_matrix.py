"""Structured matrix scaling: temperature scaling, then a penalised full matrix."""

from __future__ import annotations

from calibrant.calibrators.base.affine_calibrator import check_strength
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.fits.affine import Penalty
from calibrant.calibrators.methods.structured_vector import StructuredVectorScaling


@register
class StructuredMatrixScaling(StructuredVectorScaling):
    r"""Temperature scaling, then a penalised matrix (SMS).

    .. math:: p = \mathrm{softmax}\big((I + M) (x - \bar x) + b\big)

    x are the logarithms of the temperature-scaled and smoothed probabilities, as in
    `StructuredVectorScaling`, and :math:`\bar x` is their mean in the row. M and b minimise the
    NLL plus :math:`\frac{s K}{N} (\sum_k M_{kk}^2 + \|b\|^2) +
    \frac{s K (K - 1)}{N} \sum_{j \neq k} M_{jk}^2`, N the number of rows (the sum of the weights).
    It can change predictions.

    Parameters
    ----------
    strength : s

    Attributes
    ----------
    temperature_, doubt_ : as in `StructuredVectorScaling`
    weight_ : I + M
    intercept_ : b

    Examples
    --------
    >>> logits = [[2, 0, 0], [0, 2, 0], [0, 0, 2], [0, 2, 0]] * 5
    >>> StructuredMatrixScaling().fit(logits, [0, 1, 2, 0] * 5).weight_.shape
    (3, 3)

    References
    ----------
    Berta, Holzmüller, Jordan and Bach, Structured matrix scaling for multi-class calibration,
    AISTATS 2026.
    """

    method = "sms"

    def _penalty(self, rows: CalibrationRows) -> Penalty:
        check_strength(self.strength)
        scale = self.strength * rows.k / rows.total
        return Penalty(diagonal=scale, off_diagonal=scale * (rows.k - 1), intercept=scale)
