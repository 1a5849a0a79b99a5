"""The public contract of losses, as a check that a third party can run too."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.testing.loss_cases import Case, drawn
from calibrant.testing.loss_rules import RULES, Rule

__all__ = ["check_loss"]

_SWITCHED_OFF_BY: dict[str, tuple[str, ...]] = {
    "rowwise": ("a batch must be the mean of its rows", "'none', 'sum' and 'mean' must agree"),
    "weight": ("a class weight must equal a repetition",),
    "soft_labels": ("a whole share must equal a class",),
    "more_dimensions": ("(n, K, ...) must equal rows",),
    "half": ("half precision must be as good as single precision",),
    "shift": ("a constant added to a row's logits must change nothing",),
    "derivative": (
        "the gradient must be the derivative of the value",
        "a step against the gradient must lower the loss",
    ),
}


def check_loss(
    loss: Any,
    *,
    rowwise: bool = True,
    soft_labels: bool = True,
    weight: bool = True,
    more_dimensions: bool = True,
    half: bool = True,
    shift: bool = True,
    derivative: bool = True,
    refuses: bool | None = None,
    n_classes: Sequence[int] = (2, 5),
    seed: int = 0,
) -> None:
    """Check that a loss of `(logits, labels)` keeps the house contract.

    It must give one finite number, and a finite gradient for logits up to 10,000 in single and half
    precision and under autocast; a gradient that float64 differences agree with, and that lowers
    the loss; the same value for any order of rows, for a constant added to a row's logits, for a
    copy and after its state was saved and loaded; and leave its arguments alone. Where it can be
    told `reduction`, `ignore_index` or `weight` (an attribute of the Module, or a keyword of the
    function), these must do what they do in torch's cross-entropy: a weight of a class equals a
    repetition of its rows, an ignored row has no effect, "none" tells what "mean" is the mean of.

    What a loss cannot keep is switched off by name. It is not a proof that the loss is of any use,
    nor that it trains calibrated models.

    Parameters
    ----------
    loss : a Module, a function or a text, as for `as_loss`
    rowwise : whether it is a mean over rows; a loss of a batch as a whole is not
    soft_labels : whether labels can be shares of classes
    weight : whether it takes weights of classes
    more_dimensions : whether it takes logits of shape (n, K, ...)
    half : whether it takes logits in half precision; a function is always handed single precision
    shift : whether only differences of logits count, as they do behind a softmax
    derivative : whether its gradient is the derivative of its value; a loss that holds a factor
        constant has another one
    refuses : whether it must refuse bad input (labels out of range, wrong shapes, logits that are
        NaN) with an `InputError` and give 0 for a batch of ignored rows; by default asked of a
        `calibrant.losses.Loss`, but not of a function or of another Module, which cannot know
    n_classes : numbers of classes to try it with
    seed : of the rows it is tried on

    Raises
    ------
    AssertionError
        naming the rule that is broken.

    Examples
    --------
    >>> from calibrant.testing import check_loss
    >>> check_loss("focal:gamma=0.5")

    The formula as it is often written has no gradient for a row that is sure and right:

    >>> def naive(logits, labels):
    ...     p = logits.softmax(-1).gather(-1, labels[:, None])
    ...     return -((1 - p) ** 0.5 * p.log()).mean()
    >>> check_loss(naive, soft_labels=False, weight=False, more_dimensions=False)
    Traceback (most recent call last):
    AssertionError: gradients must be finite for logits up to 10,000 (2 classes): logits of 60 for
    the true class: the gradient holds nan in torch.float32
    """
    from calibrant.losses import FunctionLoss, Loss, as_loss

    module = as_loss(loss)
    if refuses is None:
        refuses = isinstance(module, Loss) and not isinstance(module, FunctionLoss)
    facts = {
        "rowwise": rowwise,
        "weight": weight,
        "soft_labels": soft_labels,
        "more_dimensions": more_dimensions,
        "half": half,
        "shift": shift,
        "derivative": derivative,
    }
    rules = dict(RULES)
    for name in [name for name, kept in facts.items() if not kept]:
        for text in _SWITCHED_OFF_BY[name]:
            del rules[text]
    for k in n_classes:
        case = Case(module, *drawn(k, seed), soft_labels, refuses, rowwise)
        for text, rule in rules.items():
            _check(text, rule, case)


def _check(text: str, rule: Rule, case: Case) -> None:
    """Run one rule; whatever goes wrong in it is a broken rule."""
    what = f"{text} ({case.k} classes)"
    remedy = _remedy(text)
    try:
        rule(case)
    except AssertionError as broken:
        raise AssertionError(f"{what}: {broken}{remedy}") from broken.__cause__
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        raise AssertionError(f"{what}: {detail}{remedy}") from error


def _remedy(text: str) -> str:
    for name, texts in _SWITCHED_OFF_BY.items():
        if text in texts:
            return f"; a loss that need not keep this rule is checked with {name}=False"
    return ""
