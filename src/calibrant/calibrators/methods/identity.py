"""No calibration: the model's own probabilities."""

from __future__ import annotations

from calibrant.calibrators.base.calibrator import SoftmaxCalibrator
from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.inputs import FloatArray


@register
class Identity(SoftmaxCalibrator):
    """Softmax of the unchanged logits: the baseline that every other method has to beat.

    Examples
    --------
    >>> Identity().fit([-2.0, 0.0, 2.0], [0, 0, 1]).predict_proba([0.0])
    array([0.5])
    """

    method = "identity"
    keeps_argmax = True
    keeps_ranking = True
    needs_every_class = False
    fewest_rows = 1

    def _learn(self, rows: CalibrationRows) -> None:
        """Do nothing: only the class names are learned."""

    def _remember(self, rows: CalibrationRows) -> None:
        """Do nothing: nothing is learned from the rows."""

    def _keeps_order_of(self, position: int) -> bool:
        return True

    def _new_logits(self, log_probs: FloatArray) -> FloatArray:
        return log_probs
