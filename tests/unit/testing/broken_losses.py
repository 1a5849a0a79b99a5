"""Losses that each break one rule of `check_loss`."""

import random

import torch
import torch.nn.functional as F  # noqa: N812  # torch's own convention

from calibrant.losses import CrossEntropyLoss, Loss, cross_entropy_loss


class Changed(CrossEntropyLoss):
    """Cross-entropy of logits that are changed on the way in, and a value on the way out."""

    def before(self, logits, labels):
        return logits, labels

    def after(self, value, logits, labels):
        return value

    def forward(self, logits, labels):
        value = super().forward(*self.before(logits, labels))
        return self.after(value, logits, labels)


class ReturnsRows(Changed):
    def after(self, value, logits, labels):
        return value + torch.zeros(2)


class ReturnsAPlainNumber(Changed):
    def after(self, value, logits, labels):
        return float(value.detach())


class ForgetsTheGradient(Changed):
    def before(self, logits, labels):
        return logits.detach(), labels


class IsFlat(Changed):
    def after(self, value, logits, labels):
        return 0 * value


class WritesToItsLogits(Changed):
    def after(self, value, logits, labels):
        with torch.no_grad():
            logits -= 1
        return value


class WritesToItsLabels(Changed):
    def after(self, value, logits, labels):
        if not labels.is_floating_point():
            labels[0] = 1 - labels[0]
        return value


class IsRandom(Changed):
    def after(self, value, logits, labels):
        return value * (1 + 1e-9 * random.random())


class CountsItsCalls(Changed):
    calls = 0

    def after(self, value, logits, labels):
        self.calls += 1
        return value + 1e-9 * self.calls


class LikesTheFirstRow(Changed):
    def after(self, value, logits, labels):
        return value + 1e-3 * torch.log_softmax(logits, 1)[:1].mean()


class PenalisesLogits(Changed):
    def after(self, value, logits, labels):
        return value + 1e-3 * logits.clamp(-5, 5).square().mean()


def naive_focal(logits, labels):
    p = logits.softmax(-1).gather(-1, labels[:, None])
    return -((1 - p) ** 0.5 * p.log()).mean()


class OverflowsInHalf(Changed):
    def after(self, value, logits, labels):
        if logits.dtype != torch.float16:
            return value
        total = value.half() * len(labels)
        return total / len(labels)


class RoundsInHalf(Changed):
    def before(self, logits, labels):
        return (logits * 4).round() / 4 if logits.dtype == torch.bfloat16 else logits, labels


class MultipliesMatrices(Changed):
    def before(self, logits, labels):
        if logits.ndim == 2:
            logits = logits @ torch.eye(logits.shape[1], dtype=logits.dtype)
        return logits, labels


class NeedsTwoRows(Changed):
    def after(self, value, logits, labels):
        return value + 0 * logits.std(0).mean()


class NeedsEveryClass(Changed):
    def after(self, value, logits, labels):
        kinds = len(labels.unique()) if not labels.is_floating_point() else 2
        return value / (kinds - 1) * (kinds - 1) if len(labels) > 1 else value


class HardensShares(Changed):
    def before(self, logits, labels):
        if labels.is_floating_point():
            labels = 0.9 * labels + 0.1 * labels.roll(1, 1)
        return logits, labels


class HoldsAFactorConstant(Changed):
    def after(self, value, logits, labels):
        return value * value.detach()


class GoesUphill(Changed):
    """So that differences, which are taken of few rows, do not notice."""

    def after(self, value, logits, labels):
        return value if len(labels) < 20 else 2 * value.detach() - value


class CannotBeCopied(Changed):
    def __deepcopy__(self, memo):
        return CrossEntropyLoss(reduction=self.reduction)

    def after(self, value, logits, labels):
        return 2 * value


class SavesNothing(Changed):
    steered = True
    factor = 1.0

    def update(self, logits, labels):
        self.factor *= 1.1

    def after(self, value, logits, labels):
        return value * self.factor


class DividesByTheClasses(Changed):
    def after(self, value, logits, labels):
        return value if self.reduction != "mean" else value * len(labels) / (len(labels) + 1)


class SumsToAnotherSum(Changed):
    def after(self, value, logits, labels):
        return 2 * value if self.reduction == "sum" else value


class ForgetsTheShapeOfRows(Changed):
    def after(self, value, logits, labels):
        return value.unsqueeze(-1) if self.reduction == "none" else value


class CountsIgnoredRows(Changed):
    def after(self, value, logits, labels):
        kept = (labels != self.ignore_index).float().mean()
        return value if labels.is_floating_point() or self.reduction != "mean" else value * kept


class SeesHugeIgnoredRows(Changed):
    def after(self, value, logits, labels):
        if labels.is_floating_point() or self.reduction != "mean":
            return value
        return value + 1e-3 * (logits.logsumexp(1) * (labels == self.ignore_index)).mean()


class GivesNaNForNothing(Changed):
    def after(self, value, logits, labels):
        if labels.is_floating_point() or bool((labels != self.ignore_index).any()):
            return value
        return value / 0


class WeighsByTheRoot(Changed):
    def forward(self, logits, labels):
        weight = None if self.weight is None else self.weight.sqrt()
        return cross_entropy_loss(logits, labels, **{**self.options, "weight": weight})


class WeighsTheMeanByRows(Changed):
    def after(self, value, logits, labels):
        if self.weight is None or self.reduction != "mean" or labels.is_floating_point():
            return value
        return value * self.weight[labels].mean()


class HasNoWeight(Loss):
    def forward(self, logits, labels):
        return cross_entropy_loss(logits, labels)


class TakesTheLastDimension(Changed):
    def before(self, logits, labels):
        return (logits if logits.ndim <= 2 else logits.flip(2)), labels


class SmoothesClasses(Changed):
    def forward(self, logits, labels):
        if labels.is_floating_point():
            return super().forward(logits, labels)
        shares = F.one_hot(labels.clamp_min(0), logits.shape[1]).movedim(-1, 1).to(logits.dtype)
        mixed = 0.9 * shares + 0.1 / logits.shape[1]
        value = cross_entropy_loss(logits, mixed, reduction="none")
        kept = labels != self.ignore_index
        return self._gathered(value.where(kept, 0.0), labels, kept)

    def _gathered(self, value, labels, kept):
        weight = torch.ones(()) if self.weight is None else self.weight[labels.clamp_min(0)]
        weighted = value * weight
        if self.reduction == "none":
            return weighted
        mass = (weight * kept).sum().clamp_min(1)
        return weighted.sum() if self.reduction == "sum" else weighted.sum() / mass


class TakesNaN(Changed):
    def before(self, logits, labels):
        return logits.nan_to_num() if isinstance(logits, torch.Tensor) else logits, labels


class TakesLabelsModuloK(Changed):
    def before(self, logits, labels):
        if isinstance(labels, torch.Tensor) and not labels.is_floating_point():
            labels = labels.where(labels < 0, labels % max(logits.shape[-1], 1))
        return logits, labels


class TakesAnyWeight(Changed):
    def forward(self, logits, labels):
        kept = self.weight
        if kept is not None and torch.is_tensor(logits) and logits.ndim > 1:
            kept = kept[: logits.shape[1]]
        return cross_entropy_loss(logits, labels, **{**self.options, "weight": kept})


CAUGHT = {
    "the value must be one finite number with a gradient like the logits": [
        ReturnsRows,
        ReturnsAPlainNumber,
        ForgetsTheGradient,
        IsFlat,
    ],
    "arguments must not be modified": [WritesToItsLogits, WritesToItsLabels],
    "the same input must give the same value": [IsRandom, CountsItsCalls],
    "the order of rows must not matter": [LikesTheFirstRow],
    "a constant added to a row's logits must have no effect": [PenalisesLogits],
    "gradients must be finite for logits up to 10,000": [naive_focal],
    "half precision must match single precision": [OverflowsInHalf, RoundsInHalf],
    "autocast must not lower the precision": [MultipliesMatrices],
    "one row, and rows of one class, must be accepted": [NeedsTwoRows, NeedsEveryClass],
    "the gradient must be the derivative of the value": [HoldsAFactorConstant],
    "a step against the gradient must lower the loss": [GoesUphill],
    "a copy must give the same value": [CannotBeCopied],
    "a saved state must load": [SavesNothing],
    "a batch must be the mean of its rows": [DividesByTheClasses],
    "'none', 'sum' and 'mean' must agree": [SumsToAnotherSum, ForgetsTheShapeOfRows],
    "ignored rows must have no effect": [CountsIgnoredRows, SeesHugeIgnoredRows],
    "a batch of ignored rows must give 0": [GivesNaNForNothing],
    "a class weight must equal a repetition": [WeighsByTheRoot, WeighsTheMeanByRows, HasNoWeight],
    "(n, K, ...) must equal rows": [TakesTheLastDimension],
    "a one-hot label must equal a class": [HardensShares, SmoothesClasses],
    "bad input must be refused": [TakesNaN, TakesLabelsModuloK, TakesAnyWeight],
}
