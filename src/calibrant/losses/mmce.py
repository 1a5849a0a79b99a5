"""Cross-entropy with a kernel penalty on calibration (MMCE), plain and weighted."""

from __future__ import annotations

from numbers import Real
from typing import Any, Literal, get_args

import torch
from torch import Tensor

from calibrant.errors import InputError
from calibrant.fitting.gammas import check_gamma
from calibrant.losses.batch_loss import BatchLoss, as_batch, reduce_batch
from calibrant.losses.cross_entropy import cross_entropy_loss
from calibrant.losses.names import register
from calibrant.losses.rows import IGNORE, Reduction, as_rows
from calibrant.losses.true_odds import true_odds

Normalisation = Literal["correct", "released"]
FLOOR = 1e-12  # squares below it count as 0: the root of 0 has no gradient


def mmce_loss(
    logits: Tensor,
    labels: Tensor,
    *,
    strength: float = 2.0,
    weighted: bool = True,
    width: float = 0.4,
    normalisation: Normalisation = "correct",
    weight: Any = None,
    ignore_index: int = IGNORE,
    reduction: Reduction = "mean",
) -> Tensor:
    r"""Cross-entropy of a batch plus its kernel calibration error.

    $$ L = -\frac{1}{n} \sum_i \log p_{iy_i} + \lambda \, \text{MMCE} $$

    $p_{iy_i}$ is the probability of row $i$'s class, $\lambda$ the strength, and the second term is
    `mmce_penalty`, which has the formula.

    The penalty is a number of the batch and not a sum over rows: shares of classes, class weights
    and `reduction="none"` are refused. The papers' strengths (2, and 8 on 20 Newsgroups) were
    tuned with `normalisation="released"`, whose term is about 20 times smaller on a batch of 128;
    with the correct one the same strength acts that much stronger.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes
    strength : factor of the penalty, at least 0
    weighted, width, normalisation : see `mmce_penalty`
    weight : must be None
    ignore_index : label of ignored rows
    reduction : "mean", or "sum" for the mean times the number of rows that are not ignored

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import mmce_loss
    >>> right = torch.tensor([[2.0, 0.0]]), torch.tensor([0])
    >>> round(float(mmce_loss(*right)), 4)  # no wrong row: the penalty is 0
    0.1269

    References
    ----------
    Kumar et al. (2018), Trainable calibration measures for neural networks from kernel mean
    embeddings, sections 3 and 4.
    """
    check_gamma(strength, low=0.0, name="strength")
    rows = as_batch(
        logits,
        labels,
        loss="mmce",
        weight=weight,
        ignore_index=ignore_index,
        reduction=reduction,
    )
    penalty = mmce_penalty(
        logits,
        labels,
        weighted=weighted,
        width=width,
        normalisation=normalisation,
        ignore_index=ignore_index,
    )
    mean = cross_entropy_loss(logits, labels, ignore_index=ignore_index)
    return reduce_batch(mean + strength * penalty, rows, reduction)


def mmce_penalty(
    logits: Tensor,
    labels: Tensor,
    *,
    weighted: bool = True,
    width: float = 0.4,
    normalisation: Normalisation = "correct",
    ignore_index: int = IGNORE,
) -> Tensor:
    r"""Maximum mean calibration error of a batch, without the cross-entropy.

    $$ \text{MMCE} = \sqrt{\sum_{i,j} v_i v_j e^{-|r_i - r_j| / w}} $$

    $r_i$ is the confidence (largest probability) of row $i$ and $w$ the width of the kernel. Of $n$
    rows, $m$ are predicted rightly. Plain: $v_i = (1[\text{right}] - r_i) / n$. Weighted: $v_i =
    (1 - r_i) / m$ for right rows and $-r_i / (n - m)$ for wrong ones, so that both kinds count
    alike; a batch with only one kind then has 0 and no gradient, as in the published code.

    `normalisation="released"` reproduces the published code: weighted, each mean is
    divided by its number of rows once more ($m^2$ and $(n - m)^2$ in place of $m$ and $n - m$);
    plain, the root is left out.

    Whether a row is right has no gradient: the penalty moves confidences only. It needs
    $n^2$ numbers, and at the batch sizes of training it is biased upwards: even a perfectly
    calibrated model has a value above 0.

    Parameters
    ----------
    logits : (n, K) or (n, K, ...) tensor, of any floating precision
    labels : (n,) or (n, ...) classes
    weighted : give correct and wrong rows the same total weight
    width : of the kernel, above 0
    normalisation : "correct" or "released"
    ignore_index : label of ignored rows

    Examples
    --------
    One right row and one wrong row, both at 0.75: the root of 0.25² + 0.75² - 2 · 0.25 · 0.75.

    >>> import torch
    >>> from calibrant.losses import mmce_penalty
    >>> logits = torch.tensor([[0.75, 0.25], [0.75, 0.25]]).log()
    >>> round(float(mmce_penalty(logits, torch.tensor([0, 1]))), 4)
    0.5

    References
    ----------
    Kumar et al. (2018), Trainable calibration measures for neural networks from kernel mean
    embeddings, sections 3 and 4.
    """
    _check_kernel(width, normalisation)
    rows = as_rows(logits, labels, ignore_index=ignore_index)
    classes = rows.require_classes("mmce")
    top = rows.logits.detach().argmax(-1)
    odds = true_odds(rows.logits, top)
    confidence, doubt = torch.sigmoid(odds), torch.sigmoid(-odds)
    mask = torch.ones_like(top, dtype=torch.bool) if rows.mask is None else rows.mask
    right, wrong = mask & (top == classes), mask & (top != classes)
    released = normalisation == "released"
    if weighted:
        share = _inverse_counts(right, wrong, power=2 if released else 1, dtype=confidence.dtype)
    else:
        share = mask.to(confidence.dtype) / mask.sum().clamp_min(1)
    signed = torch.where(right, doubt, -confidence) * share
    likeness = torch.exp((confidence.unsqueeze(0) - confidence.unsqueeze(1)).abs() / -width)
    square = (signed.unsqueeze(0) * signed.unsqueeze(1) * likeness).sum()
    if released and not weighted:
        return square
    positive = square > FLOOR
    return torch.where(positive, square, 1.0).sqrt() * positive


def _inverse_counts(right: Tensor, wrong: Tensor, *, power: int, dtype: torch.dtype) -> Tensor:
    """Return 1 / (number of rows of the same kind) per row; 0 if there is only one kind."""
    hits, misses = right.sum(), wrong.sum()
    both = ((hits > 0) & (misses > 0)).to(dtype)
    of_right = both / hits.clamp_min(1).to(dtype) ** power
    of_wrong = both / misses.clamp_min(1).to(dtype) ** power
    return torch.where(right, of_right, of_wrong) * (right | wrong)


def _check_kernel(width: float, normalisation: str) -> None:
    known = isinstance(width, Real) and not isinstance(width, bool)
    if not known or not 0 < width < float("inf"):
        raise InputError(f"width of the kernel must be a number above 0, got {width!r}.")
    if normalisation not in get_args(Normalisation):
        raise InputError(f"normalisation must be 'correct' or 'released', got {normalisation!r}.")


@register("mmce")
class MMCELoss(BatchLoss):
    """Cross-entropy plus a kernel penalty on calibration; see `mmce_loss` and `mmce_penalty`.

    Parameters
    ----------
    strength : factor of the penalty, at least 0
    weighted : give correct and wrong rows the same total weight
    width : of the kernel, above 0
    normalisation : "correct", or "released" to reproduce the published code
    weight : must be None
    ignore_index, reduction : see `mmce_loss`

    Examples
    --------
    >>> import torch
    >>> from calibrant.losses import MMCELoss
    >>> loss = MMCELoss(strength=1, weighted=False)
    >>> logits = torch.tensor([[0.8, 0.2]]).log()  # one right row: -log 0.8 + (1 - 0.8)
    >>> round(float(loss(logits, torch.tensor([0]))), 4)
    0.4231
    """

    def __init__(
        self,
        strength: float = 2.0,
        *,
        weighted: bool = True,
        width: float = 0.4,
        normalisation: Normalisation = "correct",
        weight: Any = None,
        ignore_index: int = IGNORE,
        reduction: Reduction = "mean",
    ) -> None:
        super().__init__(weight=weight, ignore_index=ignore_index, reduction=reduction)
        check_gamma(strength, low=0.0, name="strength")
        _check_kernel(width, normalisation)
        self.strength = strength
        self.weighted = weighted
        self.width = width
        self.normalisation = normalisation

    def forward(self, logits: Tensor, labels: Tensor) -> Tensor:
        """Return the loss of a batch."""
        return mmce_loss(
            logits,
            labels,
            strength=self.strength,
            weighted=self.weighted,
            width=self.width,
            normalisation=self.normalisation,
            **self.options,
        )

    def extra_repr(self) -> str:
        """Show the options in the repr."""
        return (
            f"strength={self.strength:g}, weighted={self.weighted}, width={self.width:g}, "
            f"normalisation={self.normalisation!r}"
        )
