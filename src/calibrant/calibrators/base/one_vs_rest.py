"""Base class of one-vs-rest calibrators: one map for two classes, else one map per class."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from calibrant.calibrators.base.calibrator import Calibrator, load_numbers, to_json_values
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.convert import log_odds_from_logits, log_probs_from_logits, log_sigmoid
from calibrant.inputs import FloatArray

ScoreMap = dict[str, Any]  # Parameters of one map: floats and arrays by name


class OneVsRestCalibrator(Calibrator):
    r"""Base class of methods that map one score to one probability.

    The score of class k is its log-odds against the rest,
    :math:`z_k - \log \sum_{j \neq k} e^{z_j}`. With two classes one map is learned, for the second
    class. With more, each class has its own map f_k, and the results are normalised:

    .. math:: p_k = f_k(s_k) / \sum_j f_j(s_j)
    """

    learned: ClassVar[tuple[str, ...]] = ("maps",)
    maps_: list[ScoreMap]

    def _learn(self, rows: CalibrationRows) -> None:
        scores = rows.log_odds
        if rows.k == 2:
            self.maps_ = [self._learn_map(scores, rows.labels == 1, rows.weights)]
            return
        self.maps_ = [
            self._learn_map(np.ascontiguousarray(scores[:, k]), rows.labels == k, rows.weights)
            for k in range(rows.k)
        ]

    def _log_probs(self, logits: FloatArray) -> FloatArray:
        scores = log_odds_from_logits(logits)
        if scores.ndim == 1:
            odds = self._new_log_odds(self.maps_[0], scores)
            return np.column_stack([log_sigmoid(-odds), log_sigmoid(odds)])
        columns = [
            log_sigmoid(self._new_log_odds(learned, scores[:, k]))
            for k, learned in enumerate(self.maps_)
        ]
        log_probs = np.column_stack(columns)
        log_probs[np.isneginf(log_probs).all(axis=1)] = (
            0.0  # every map gives 0: use equal probabilities
        )
        return log_probs_from_logits(log_probs)

    @abstractmethod
    def _learn_map(
        self, scores: FloatArray, events: np.typing.NDArray[np.bool_], weights: FloatArray | None
    ) -> ScoreMap:
        """Fit the map of one class to its scores and the indicator of the label."""

    @abstractmethod
    def _new_log_odds(self, learned: ScoreMap, scores: FloatArray) -> FloatArray:
        """Return log-odds of the calibrated probability; infinite for exactly 0 and 1."""

    def _params(self) -> dict[str, Any]:
        return {"maps": [to_json_values(learned) for learned in self.maps_]}

    def _restore(self, params: Mapping[str, Any]) -> None:
        self.maps_ = [
            {k: load_numbers(v, k) for k, v in learned.items()} for learned in params["maps"]
        ]
        if len(self.maps_) != (1 if len(self.classes_) == 2 else len(self.classes_)):
            raise ValueError(f"{len(self.maps_)} maps for {len(self.classes_)} classes")
