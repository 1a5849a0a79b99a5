"""Dirichlet calibration: matrix scaling of log-probabilities."""

from __future__ import annotations

from calibrant.calibrators.base.affine_calibrator import AffineCalibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.fits.affine import Penalty
from calibrant.calibrators.methods.matrix import odir
from calibrant.inputs import FloatArray


@register
class DirichletCalibration(AffineCalibrator):
    r"""Mix log-probabilities linearly.

    .. math:: p' = \mathrm{softmax}(W \log p + b)

    p are the model's probabilities. It is the correct calibration map if the predictions of each
    class follow a Dirichlet distribution; with two classes it is beta calibration without its sign
    constraint. It differs from `MatrixScaling` in its input: log-probabilities include the
    normaliser of their row. W and b are regularised in the same way (ODIR). It can change
    predictions.

    Parameters
    ----------
    strength : s of `MatrixScaling`

    Attributes
    ----------
    weight_ : W
    intercept_ : b

    Examples
    --------
    >>> logits = [[2, 0, 0], [0, 2, 0], [0, 0, 2], [0, 2, 0]] * 5
    >>> calibrator = DirichletCalibration().fit(logits, [0, 1, 2, 0] * 5)
    >>> calibrator.predict([[0, 0, 3]])
    array([2])

    References
    ----------
    Kull et al., Beyond temperature scaling, NeurIPS 2019, sections 2.3 and 3.
    """

    method = "dirichlet"

    def __init__(self, *, strength: float = 3.0) -> None:
        self.strength = strength

    def _penalty(self, rows: CalibrationRows) -> Penalty:
        return odir(rows, self.strength)

    def _keeps_order_of(self, position: int) -> bool:
        if self.n_classes > 2:
            return False
        # The features log(1 - p) and log p fall and rise, each without bound on its own side.
        first, second = self._slopes()
        return first <= 0 <= second and first < second

    def _features(self, log_probs: FloatArray) -> FloatArray:
        return log_probs
