"""Matrix scaling: every new logit is a linear function of all logits."""

from __future__ import annotations

from calibrant.calibrators.base.affine_calibrator import AffineCalibrator, check_strength
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.fits.affine import Penalty


@register
class MatrixScaling(AffineCalibrator):
    r"""Apply a linear map to the logits.

    .. math:: p = \mathrm{softmax}(W x + b)

    x are the logits minus the mean of their row, W is K by K. With K² + K parameters it needs
    off-diagonal and intercept regularisation (ODIR, Kull et al.): the NLL plus
    :math:`\lambda_o \sum_{j \neq k} W_{jk}^2 + \lambda_b \|b\|^2`. The strengths are ours:
    they grow with the number of penalised parameters and fall with the number of rows N,
    :math:`\lambda_o = s K (K - 1) / N` and :math:`\lambda_b = s K / N`. The diagonal is left
    nearly free (:math:`1 / N`, to keep separated labels finite). It can change predictions.

    `StructuredMatrixScaling` starts from a fitted temperature and is usually the better choice.

    Parameters
    ----------
    strength : s

    Attributes
    ----------
    weight_ : W
    intercept_ : b

    Examples
    --------
    >>> logits = [[2, 0, 0], [0, 2, 0], [0, 0, 2], [0, 2, 0]] * 5
    >>> calibrator = MatrixScaling().fit(logits, [0, 1, 2, 0] * 5)
    >>> calibrator.weight_.shape
    (3, 3)

    References
    ----------
    Kull et al., Beyond temperature scaling, NeurIPS 2019, section 3 (ODIR).
    """

    method = "matrix"

    def __init__(self, *, strength: float = 3.0) -> None:
        self.strength = strength

    def _penalty(self, rows: CalibrationRows) -> Penalty:
        return odir(rows, self.strength)


def odir(rows: CalibrationRows, strength: float) -> Penalty:
    """Return the penalty of off-diagonal and intercept regularisation."""
    check_strength(strength)
    scale = strength / rows.total
    k = rows.k
    return Penalty(diagonal=1.0 / rows.total, off_diagonal=scale * k * (k - 1), intercept=scale * k)
