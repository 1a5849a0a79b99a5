"""AdaFocal as an objective: gammas of confidence bins, updated from the steer rows."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from calibrant.boosting.focal import FocalObjective, Gamma, true_odds
from calibrant.boosting.objective import Reduction
from calibrant.convert import log_sigmoid, probs_from_logits
from calibrant.fitting.confidence_bins import even_edges, find_bins
from calibrant.fitting.gamma_history import GammaHistory
from calibrant.fitting.gamma_rules import check_count, make_rule
from calibrant.inputs import FloatArray, IntArray


class AdaFocalObjective(FocalObjective):
    r"""AdaFocal; see `calibrant.losses.AdaFocalLoss` for the rule and its modes.

    Parameters
    ----------
    n_bins, strength, gamma_init, gamma_min, gamma_max, switch, mode, min_count :
        see `AdaFocalLoss`
    update_every : rounds between updates; None for one update at each evaluation
    weight, reduction : see `Objective`

    Examples
    --------
    >>> objective = AdaFocalObjective(n_bins=1)
    >>> logits = np.tile([4.0, 0.0], (100, 1))  # 98 % sure, and right every other time
    >>> objective.update(logits, np.array([0, 1] * 50))
    >>> objective.gammas.round(3)
    array([1.611])
    """

    name: ClassVar[str] = "adafocal"
    steered: ClassVar[bool] = True

    def __init__(
        self,
        n_bins: int = 15,
        strength: float = 1.0,
        gamma_init: float = 1.0,
        *,
        gamma_min: float | None = None,
        gamma_max: float = 20.0,
        switch: float = 0.2,
        mode: str = "robust",
        min_count: int | None = None,
        update_every: int | None = None,
        weight: Any = None,
        reduction: Reduction = "mean",
    ) -> None:
        check_count(n_bins, "n_bins")
        if update_every is not None:
            check_count(update_every, "update_every")
        self.rule = make_rule(
            n_bins=int(n_bins),
            strength=strength,
            gamma_init=gamma_init,
            gamma_min=gamma_min,
            gamma_max=gamma_max,
            switch=switch,
            mode=mode,
            min_count=min_count,
        )
        super().__init__(gamma_init, weight=weight, reduction=reduction)
        self.mode, self.update_every = mode, update_every
        self.gammas = np.full(self.rule.n_bins, float(gamma_init))
        self.edges = even_edges(self.rule.n_bins, self.rule.scale)
        self._table: list[FloatArray] = []

    def update(self, logits: FloatArray, labels: IntArray) -> None:
        """Update bins and gammas from the steer rows."""
        top = logits.argmax(axis=1)
        if self.rule.scale == "probability":
            scores = probs_from_logits(logits).max(axis=1)
        else:
            scores, _ = true_odds(logits, top)
        right = top == labels
        order = np.lexsort((right, scores))
        edges, figures, gammas = self.rule.update_bins(scores[order], right[order], self.gammas)
        columns = (edges, figures.count, gammas, figures.confidence, figures.accuracy)
        self.edges, self.gammas = edges, gammas
        self._table.append(np.concatenate(columns))

    @property
    def history(self) -> GammaHistory:
        """Bins and gammas of all updates, one row per update."""
        n = self.rule.n_bins
        table = np.array(self._table, dtype=np.float64).reshape(-1, 5 * n - 1)
        if self.rule.scale == "log-odds":
            table[:, : n - 1] = np.exp(log_sigmoid(table[:, : n - 1]))
        return GammaHistory.from_table(table, n)

    @property
    def gammas_range(self) -> tuple[float, float]:
        """Smallest and largest gamma."""
        return float(self.gammas.min()), float(self.gammas.max())

    def log_shift(self) -> None:
        """Return None: the shift is unknown."""
        return

    def _gamma_of(self, odds: FloatArray) -> Gamma:
        scores = odds if self.rule.scale == "log-odds" else np.exp(log_sigmoid(odds))
        return np.asarray(self.gammas[find_bins(scores, self.edges)])

    def _options(self) -> dict[str, Any]:
        rule = {name: getattr(self.rule, name) for name in ("n_bins", "strength", "switch")}
        bounds = {"gamma_min": self.rule.low, "gamma_max": self.rule.high}
        more = {"mode": self.mode, "update_every": self.update_every}
        return {**rule, **bounds, "gamma_init": self.gamma, **more}
