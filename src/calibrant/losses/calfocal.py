"""CalFocal: focal loss whose gamma grows with the calibration error of the steer split."""

from __future__ import annotations

import math
from typing import Any, ClassVar, Literal

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from calibrant.errors import InputError
from calibrant.fitting.confidence_bins import Scale
from calibrant.fitting.gamma_history import GammaHistory
from calibrant.fitting.gamma_rules import (
    MIN_COUNT,
    BinUpdate,
    bin_by_rank,
    check_count,
    check_strength,
)
from calibrant.fitting.gammas import GAMMAS
from calibrant.inputs import FloatArray
from calibrant.losses.binned import BinnedLoss
from calibrant.losses.confidence_bins import check_edges, look_up, per_bin
from calibrant.losses.focal import focal_of_odds
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, LossRows, Reduction, as_rows, reduce_values
from calibrant.losses.top_class import as_scores
from calibrant.losses.true_odds import true_odds

_MAX_LOG_GAMMA = math.log(GAMMAS[1])


def calfocal_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    accuracies: Any,
    edges: Any,
    confidences: Any = None,
    strength: float = 10.0,
    scale: Scale = "log-odds",
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Focal loss of a batch, with a gamma that depends on the calibration error of its bin.

    $$ L = -(1 - p_y)^\gamma \log p_y, \qquad \gamma = e^{\lambda (p_y - A_b)}
       \quad\text{or}\quad \gamma = e^{\lambda (C_b - A_b)} $$

    $p_y$ is the probability of the true class, $b$ the bin it falls into, $A_b$ and $C_b$ the
    accuracy and the mean confidence of the steer rows in that bin, $\lambda$ the strength. The
    first form (Eq. 2 of the paper) gives each row its own gamma; the second (Eq. 3) is used where
    `confidences` are given. Gamma is a constant of the row: no gradient flows through it. It is
    held at 100 at most: the exponential of a strength of 100 would overflow, and at 100 the loss
    of a row that is surer than its bin is right has long vanished.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes; soft labels are refused
    accuracies : (M,) accuracy of each bin; NaN for an unknown bin, with gamma 1
    edges : (M-1,) lower edges of bins 1 .. M-1, in ascending order
    confidences : (M,) mean confidence of each bin, for the second form
    strength : lambda
    scale : scale of the edges: log-odds $\log p / (1 - p)$, or probabilities
    weight : (K,) weight of each class
    ignore_index : label of ignored rows
    reduction : "mean" (divided by the sum of weights), "sum" or "none"

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import calfocal_loss
    >>> logits, label = torch.tensor([[0.0, 0.0]]), torch.tensor([0])  # p = 0.5, gamma = e
    >>> round(float(calfocal_loss(logits, label, accuracies=[0.4], edges=[])), 4)
    0.1053

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal: calibration-aware adaptive focal loss, section 5.1.
    """
    check_strength(strength)
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    right = per_bin(accuracies, "accuracies", rows.logits)
    checked = check_edges(edges, len(right), scale, rows.logits)
    confidence = None if confidences is None else per_bin(confidences, "confidences", rows.logits)
    if confidence is not None and len(confidence) != len(right):
        raise InputError(
            "confidences and accuracies must be of the same bins, "
            f"got {len(confidence)} and {len(right)}."
        )
    values = _values(rows, right, confidence, checked, strength, scale)
    return reduce_values(values, rows, weight=weight, reduction=reduction)


def _values(
    rows: LossRows,
    accuracies: Tensor,
    confidences: Tensor | None,
    edges: Tensor,
    strength: float,
    scale: Scale,
) -> Tensor:
    odds = true_odds(rows.logits, rows.require_classes("CalFocal"))
    constant = odds.detach()
    bins = look_up(as_scores(constant, scale), edges)
    right = accuracies.to(constant)
    if confidences is None:
        gammas = _gammas(torch.sigmoid(constant), right.index_select(0, bins), strength)
    else:
        gammas = _gammas(confidences.to(constant), right, strength).index_select(0, bins)
    return focal_of_odds(odds, gammas)


def _gammas(confidence: Tensor, right: Tensor, strength: float) -> Tensor:
    """Return gamma, 1 for unknown bins."""
    return (strength * (confidence - right)).clamp(max=_MAX_LOG_GAMMA).exp().nan_to_num(nan=1.0)


@register("calfocal")
class CalFocalLoss(BinnedLoss):
    r"""CalFocal: gamma is large where the steer split shows over-confidence; see `calfocal_loss`.

    It has no memory: once a bin is calibrated its gamma returns to 1, where AdaFocal's stays. Call
    `update` with the logits and labels of the steer split after each epoch; before the first
    update, and in bins of fewer than `min_count` rows, gamma is 1. Bins are AdaFocal's: equally
    filled, in log-odds, equal scores together, merged where the split is too small to fill them.

    Parameters
    ----------
    per : "sample" for $\gamma = e^{\lambda (p_y - A_b)}$ (Eq. 2), "bin" for
        $\gamma = e^{\lambda (C_b - A_b)}$ (Eq. 3)
    strength : lambda; the paper shows 10 and 100, which costs accuracy
    n_bins : number of bins
    min_count : rows below which nothing is learned from a bin
    update_every : optimiser steps between updates, for the training loop; None for once an epoch
    weight, ignore_index, reduction : see `calfocal_loss`

    Attributes
    ----------
    accuracies, confidences : (M,) float64 of the steer rows in each bin, NaN where not known
    edges : (M-1,) float64, in log-odds
    gammas : (M,) gamma of each bin; per sample, of a row as sure as the bin's average
    history : `GammaHistory`, one row per update, saved in `state_dict`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import CalFocalLoss
    >>> loss = CalFocalLoss(per="bin", n_bins=1)
    >>> logits = torch.tensor([[4.0, 0.0]]).repeat(100, 1)  # 98 % sure, right 9 times in 10
    >>> loss.update(logits, torch.tensor([0] * 9 + [1]).repeat(10))
    >>> [round(gamma, 3) for gamma in loss.gammas.tolist()]  # exp(10 * 0.082)
    [2.271]

    References
    ----------
    Ghosh, Schaaf & Gormley (2022), AdaFocal: calibration-aware adaptive focal loss, section 5.1.
    """

    exact: ClassVar[tuple[str, ...]] = ("edges", "accuracies", "confidences")
    learned: ClassVar[tuple[str, ...]] = ("_table", *exact)
    accuracies: Tensor
    confidences: Tensor

    def __init__(
        self,
        per: Literal["sample", "bin"] = "sample",
        strength: float = 10.0,
        n_bins: int = 15,
        *,
        min_count: int = MIN_COUNT,
        update_every: int | None = None,
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        options = {"weight": weight, "ignore_index": ignore_index, "reduction": reduction}
        super().__init__(n_bins, update_every=update_every, **options)
        if per not in ("sample", "bin"):
            raise InputError(f"per must be 'sample' or 'bin', got {per!r}.")
        check_strength(strength)
        check_count(min_count, "min_count")
        self.per, self.strength, self.min_count = per, strength, min_count
        self._start_bins()
        for name in ("accuracies", "confidences"):
            unknown = torch.full((self.n_bins,), torch.nan, dtype=torch.float64)
            self.register_buffer(name, unknown)

    @property
    def gammas(self) -> Tensor:
        """Gamma of each bin; per sample, of a row as sure as the bin's average."""
        return _gammas(self.confidences, self.accuracies, self.strength)

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        rows = as_rows(logits, labels, ignore_index=self.ignore_index)
        confidence = self.confidences if self.per == "bin" else None
        values = _values(rows, self.accuracies, confidence, self.edges, self.strength, self.scale)
        return reduce_values(values, rows, weight=self.weight, reduction=self.reduction)

    def _compute_update(self, scores: FloatArray, right: NDArray[np.bool_]) -> BinUpdate:
        edges, figures = bin_by_rank(scores, right, self.n_bins, self.min_count)
        known = torch.from_numpy(np.where(figures.count >= self.min_count, 0.0, np.nan))
        confidence, accuracy = (
            torch.from_numpy(figures.confidence),
            torch.from_numpy(figures.accuracy),
        )
        return edges, figures, _gammas(confidence + known, accuracy, self.strength).numpy()

    def _apply_update(self, update: GammaHistory) -> None:
        known = update.count[0] >= self.min_count
        for name in ("accuracies", "confidences"):
            figure = update.accuracy if name == "accuracies" else update.confidence
            getattr(self, name).copy_(torch.from_numpy(np.where(known, figure[0], np.nan)))

    def extra_repr(self) -> str:
        """Show the options in the repr."""
        return (
            f"per={self.per!r}, strength={self.strength:g}, n_bins={self.n_bins}, "
            f"min_count={self.min_count}, update_every={self.update_every}, "
            f"reduction={self.reduction!r}"
        )
