"""Vector scaling: a scale and a shift for the logit of each class."""

from __future__ import annotations

from calibrant.calibrators.base.affine_calibrator import AffineCalibrator, check_strength
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.fits.affine import Penalty


@register
class VectorScaling(AffineCalibrator):
    r"""Scale and shift the logit of each class on its own.

    .. math:: p = \mathrm{softmax}(v \circ x + b)

    x are the logits minus the mean of their row, v the K scales, b the K shifts. They minimise the
    NLL plus :math:`\frac{\lambda}{N} (\|v - 1\|^2 + \|b\|^2)`, N the number of rows (the sum of
    the weights). With the default :math:`\lambda = 1` the penalty is negligible; it keeps the
    fit finite if labels are separated. It can change predictions.

    Parameters
    ----------
    strength : :math:`\lambda`

    Attributes
    ----------
    weight_ : v
    intercept_ : b

    Examples
    --------
    All scores are equal, so only the shifts matter, and they recover the class frequencies:

    >>> calibrator = VectorScaling(strength=1e-9).fit([[0, 0, 0]] * 10, [0] * 5 + [1] * 3 + [2] * 2)
    >>> calibrator.predict_proba([[0, 0, 0]]).round(4)
    array([[0.5, 0.3, 0.2]])

    References
    ----------
    Guo et al., On calibration of modern neural networks, ICML 2017, section 4.2.
    """

    method = "vector"

    def __init__(self, *, strength: float = 1.0) -> None:
        self.strength = strength

    def _penalty(self, rows: CalibrationRows) -> Penalty:
        check_strength(self.strength)
        scale = self.strength / rows.total
        return Penalty(diagonal=scale, off_diagonal=float("inf"), intercept=scale)
