"""AdaFocal: focal loss with one gamma per confidence bin, updated from the steer split."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrant.fitting.confidence_bins import Scale
from calibrant.fitting.gamma_history import GammaHistory
from calibrant.fitting.gamma_rules import BinUpdate, RobustRule, make_rule
from calibrant.inputs import FloatArray
from calibrant.losses.binned import BinnedLoss
from calibrant.losses.confidence_bins import check_edges, look_up, per_bin
from calibrant.losses.focal import focal_of_odds
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, LossRows, Reduction, as_rows, reduce_values
from calibrant.losses.top_class import as_scores
from calibrant.losses.true_odds import true_odds


def adafocal_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    gammas: Any,
    edges: Any,
    scale: Scale = "log-odds",
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Focal loss of a batch, with the gamma of the bin that each row falls into.

    $$ L = -(1 - p_y)^{\gamma_b} \log p_y \;\; (\gamma_b \ge 0), \qquad
       L = -(1 + p_y)^{|\gamma_b|} \log p_y \;\; (\gamma_b < 0) $$

    $p_y$ is the probability of the true class and $b$ the bin with $e_b \le p_y < e_{b+1}$. Gamma
    is a constant of the row: no gradient flows through the look-up. It is not a proper score, and
    because gamma depends on the unknown label it cannot be inverted: calibrate afterwards.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes; soft labels are refused
    gammas : (M,) gamma of each bin; below 0 it means inverse focal loss
    edges : (M-1,) lower edges of bins 1 .. M-1, in ascending order
    scale : scale of the edges: log-odds $\log p / (1 - p)$, or probabilities
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import adafocal_loss
    >>> logits = torch.tensor([[0.0, 0.0], [3.0, 0.0]])  # p = 0.5 and 0.953
    >>> options = {"gammas": [2.0, -1.0], "edges": [0.8], "scale": "probability"}
    >>> found = adafocal_loss(logits, torch.tensor([0, 0]), reduction="none", **options)
    >>> [round(value, 4) for value in found.tolist()]  # 0.25 log 2 and 1.953 * 0.0486
    [0.1733, 0.0949]

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal: calibration-aware adaptive focal loss, Eq. 5.
    """
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    of_bins = per_bin(gammas, "gammas", rows.logits)
    checked = check_edges(edges, len(of_bins), scale, rows.logits)
    values = _values(rows, of_bins, checked, scale)
    return reduce_values(values, rows, weight=weight, reduction=reduction)


def _values(rows: LossRows, gammas: Tensor, edges: Tensor, scale: Scale) -> Tensor:
    odds = true_odds(rows.logits, rows.require_classes("AdaFocal"))
    bins = look_up(as_scores(odds.detach(), scale), edges)
    return focal_of_odds(odds, gammas.to(odds).index_select(0, bins))


@register("adafocal")
class AdaFocalLoss(BinnedLoss):
    r"""AdaFocal: each confidence bin has its own gamma, updated by its calibration error.

    $$ \gamma_b \leftarrow \gamma_b e^{\pm \lambda E_b}, \qquad E_b = C_b - A_b $$

    $C_b$ is the mean confidence of the steer rows in bin $b$ (probability of their top class),
    $A_b$ their accuracy, $\lambda$ the strength; the sign is that of $\gamma_b$. Over-confidence
    raises gamma, under-confidence lowers it; below `switch` it switches to inverse focal loss,
    written as a negative gamma. A training row takes the gamma of the bin that the probability of
    its *true* class falls into (`adafocal_loss`). Gammas belong to the rank of a bin: each update
    makes new bins of equal count, and the least confident bin keeps the first gamma. With two
    classes no steer row has a confidence below one half, so all misclassified training rows share
    that gamma.

    Call `update` with the logits and labels of the steer split after each epoch, or every
    `update_every` steps; `calibrant.training` does. Do not fit calibrators or thresholds on the
    same rows, which are no longer held out. A short run needs more strength: at an error of 0.1
    gamma only reaches 1.5 in four updates.

    **mode="robust"** differs from the released rule in four ways. Bins are made in log-odds, in
    float64, equal scores share a bin, and rows are counted by the look-up that training uses: where
    confidences saturate at 1 the most confident bins are still updated. Each error is shrunk by its
    standard error (`calibrant.fitting.gamma_rules.shrink_errors`), so that noise moves gammas less.
    A bin of fewer than `min_count` rows keeps its gamma, and bins are merged where the split is too
    small to fill them. `gamma_min` is -1.5, because below -1.6 the optimum of a coin flip is not
    1/2.

    **mode="paper"** is the released rule, number by number. It deviates from Algorithm 1 of the
    paper:

    - gammas are updated after an epoch of minibatches, not after one step on all rows;
    - the switch is tested before gammas are clipped;
    - a gamma of 0 goes to `+switch`, not to `-switch`;
    - edges are the sorted confidences, interpolated at ranks i n / M: the smallest confidence is in
      no bin;
    - steer rows are counted in (l, u] but training rows looked up in [l, u), with the first and the
      last bin open-ended, where the algorithm leaves both ends of all bins open;
    - a bin without rows keeps its gamma. If 1 in M confidences is exactly 1, the most confident
      bins are empty, their gammas never change, and the most confident training rows use them.

    It differs from the released code in two points: nothing is added inside the power (the release
    adds 1e-20), and `update_with` restores the mode of the model. For the
    paper's setting choose `reduction="sum"` and clip gradients at norm 2.

    Parameters
    ----------
    n_bins : number of bins
    strength : lambda
    gamma_init : gamma of all bins before the first update
    gamma_min, gamma_max : bounds; `gamma_min` is -1.5, in paper mode -2
    switch : gammas nearer to 0 change their sign and become this large; 0 never switches
    mode : "robust" or "paper"
    min_count : rows below which a bin keeps its gamma; 20, not available in paper mode
    update_every : optimiser steps between updates, for the training loop; None for once an epoch
    weight, ignore_index, reduction : see `adafocal_loss`

    Attributes
    ----------
    gammas : (M,) float64
    edges : (M-1,) float64, in log-odds; in paper mode probabilities
    history : `GammaHistory`, one row per update, saved in `state_dict`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import AdaFocalLoss
    >>> loss = AdaFocalLoss(n_bins=1)
    >>> logits = torch.tensor([[4.0, 0.0]]).repeat(100, 1)  # 98 % sure, and right every other time
    >>> loss.update(logits, torch.tensor([0, 1] * 50))
    >>> [round(gamma, 3) for gamma in loss.gammas.tolist()]  # exp(0.477)
    [1.611]

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal: calibration-aware adaptive focal loss, NeurIPS,
    section 5.2 and Algorithm 1.
    """

    exact: ClassVar[tuple[str, ...]] = ("edges", "gammas")
    learned: ClassVar[tuple[str, ...]] = ("_table", *exact)
    gammas: Tensor

    def __init__(
        self,
        n_bins: int = 15,
        strength: float = 1.0,
        gamma_init: float = 1.0,
        *,
        gamma_min: float | None = None,
        gamma_max: float = 20.0,
        switch: float = 0.2,
        mode: Literal["robust", "paper"] = "robust",
        min_count: int | None = None,
        update_every: int | None = None,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        options = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
        super().__init__(n_bins, update_every=update_every, **options)
        self.mode, self.gamma_init = mode, gamma_init
        self.rule = make_rule(
            n_bins=self.n_bins,
            strength=strength,
            gamma_init=gamma_init,
            gamma_min=gamma_min,
            gamma_max=gamma_max,
            switch=switch,
            mode=mode,
            min_count=min_count,
        )
        self.scale = self.rule.scale
        self._start_bins()
        gammas = torch.full((self.n_bins,), float(gamma_init), dtype=torch.float64)
        self.register_buffer("gammas", gammas)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        rows = as_rows(logits, labels, ignore_index=self.ignore_index)
        values = _values(rows, self.gammas, self.edges, self.scale)
        return reduce_values(values, rows, weight=self.weight, reduction=self.reduction)

    def _compute_update(self, scores: FloatArray, right: NDArray[np.bool_]) -> BinUpdate:
        gammas: FloatArray = self.gammas.cpu().double().numpy()
        return self.rule.update_bins(scores, right, gammas)

    def _apply_update(self, update: GammaHistory) -> None:
        self.gammas.copy_(torch.from_numpy(update.gamma[0]))

    def extra_repr(self) -> str:
        """Show the options when the loss is printed."""
        rule = self.rule
        shown = (
            f"n_bins={self.n_bins}, strength={rule.strength:g}, gamma_init={self.gamma_init:g}, "
            f"gamma_min={rule.low:g}, gamma_max={rule.high:g}, switch={rule.switch:g}, "
            f"mode={self.mode!r}, update_every={self.update_every}, reduction={self.reduction!r}"
        )
        return f"{shown}, min_count={rule.min_count}" if isinstance(rule, RobustRule) else shown
