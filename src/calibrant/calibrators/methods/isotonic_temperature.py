"""Temperature scaling followed by isotonic maps."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from calibrant.calibrators.base.registry import register
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.calibrators.methods.isotonic import IsotonicCalibration
from calibrant.calibrators.methods.temperature import TemperatureScaling
from calibrant.inputs import FloatArray


@register
class IsotonicTemperature(IsotonicCalibration):
    r"""Divide the logits by a temperature, then map each class by isotonic regression.

    .. math:: p_k = f_k(s_k) / \sum_j f_j(s_j), \qquad
              s_k = \frac{z_k}{T} - \log \sum_{j \neq k} e^{z_j / T}

    z are the logits of a row, T is the temperature with the lowest NLL, s_k the log-odds of class
    k against the rest after it, f_k the isotonic map of class k. With several
    classes T changes the order of rows by log-odds, so the maps start from better scores than those
    of `IsotonicCalibration` alone.

    With two classes it is not better than that: T does not reorder rows, and only the interpolation
    between fitted scores differs. It creates ties and can change the predicted class.

    Parameters
    ----------
    pseudo_count : weight of the two extra rows, as in `IsotonicCalibration`; 0 for the textbook fit

    Attributes
    ----------
    temperature_ : T
    maps_ : `scores` at which steps begin and end, and their `probs`

    Examples
    --------
    Log-odds 2 are right three times in four, which is T = 2 / log 3. With one extra row of the
    other kind at either end that makes three of five:

    >>> logits = [2.0, 2.0, 2.0, 2.0, -2.0, -2.0, -2.0, -2.0]
    >>> calibrator = IsotonicTemperature().fit(logits, [1, 1, 1, 0, 0, 0, 0, 1])
    >>> print(round(calibrator.temperature_, 4), calibrator.predict_proba([-2.0, 2.0]))
    1.8205 [0.4 0.6]

    References
    ----------
    Zhang, Kailkhura and Han, Mix-n-Match: ensemble and compositional methods for uncertainty
    calibration in deep learning, ICML 2020: composition of isotonic one-vs-all and temperature
    scaling (IROvA-TS).
    """

    method = "irova_ts"
    learned = ("temperature", "maps")
    temperature_: float

    def _learn(self, rows: CalibrationRows) -> None:
        self.temperature_ = TemperatureScaling().fit_rows(rows).temperature_
        scaled = rows.canonical / self.temperature_
        super()._learn(CalibrationRows(scaled, rows.labels, rows.weights, rows.classes))

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        return super()._log_probs(logits / self.temperature_)

    def _params(self) -> dict[str, Any]:
        return {"temperature": self.temperature_, **super()._params()}

    def _restore(self, params: Mapping[str, Any]) -> None:
        super()._restore(params)
        self.temperature_ = float(params["temperature"])
        if not self.temperature_ > 0:
            raise ValueError(f"temperature is {self.temperature_}")
