"""Contract check for losses, usable by third parties."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from calibrant.testing.loss_cases import LossCase, drawn
from calibrant.testing.loss_rules import RULES, Rule

__all__ = ["check_loss"]

_RULES_OF_OPTION: dict[str, tuple[str, ...]] = {
    "rowwise": ("a batch must be the mean of its rows", "'none', 'sum' and 'mean' must agree"),
    "weight": ("a class weight must equal a repetition",),
    "soft_labels": ("a one-hot label must equal a class",),
    "more_dimensions": ("(n, K, ...) must equal rows",),
    "half": ("half precision must match single precision",),
    "shift": ("a constant added to a row's logits must have no effect",),
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
    """Check that a loss of `(logits, labels)` follows the loss contract.

    It must return one finite number, and a finite gradient for logits up to 10,000 in single and
    half precision and under autocast; a gradient that matches float64 differences and decreases the
    loss; the same value for any order of rows, for a constant added to a row's logits, for a copy,
    and after saving and loading its state; and it must not modify its arguments. If it has
    `reduction`, `ignore_index` or `weight` (an attribute of the Module, or a keyword of the
    function), these must behave as in torch's cross-entropy: a class weight equals a repetition of
    its rows, an ignored row has no effect, and "mean" is the mean of "none".

    Rules that a loss cannot follow are switched off by name. It is not a proof that the loss is
    useful, nor that it trains calibrated models.

    Parameters
    ----------
    loss : a Module, a function or a name, as for `as_loss`
    rowwise : whether it is a mean over rows; a loss of the whole batch is not
    soft_labels : whether labels can be class probabilities
    weight : whether it supports class weights
    more_dimensions : whether it supports logits of shape (n, K, ...)
    half : whether it supports half precision; a function always gets single precision
    shift : whether only differences of logits matter, as with a softmax
    derivative : whether its gradient is the derivative of its value; not if a factor is held
        constant
    refuses : whether it must refuse bad input (labels out of range, wrong shapes, NaN logits) with
        an `InputError` and return 0 for a batch of ignored rows; by default required of a
        `calibrant.losses.Loss`, but not of a function or another Module
    n_classes : numbers of classes to test
    seed : seed of the test data

    Raises
    ------
    AssertionError
        naming the violated rule.

    Examples
    --------
    >>> from calibrant.testing import check_loss
    >>> check_loss("focal:gamma=0.5")

    The naive formula has no gradient for a confident and correct row:

    >>> def naive(logits, labels):
    ...     p = logits.softmax(-1).gather(-1, labels[:, None])
    ...     return -((1 - p) ** 0.5 * p.log()).mean()
    >>> check_loss(naive, soft_labels=False, weight=False, more_dimensions=False)
    Traceback (most recent call last):
    AssertionError: gradients must be finite for logits up to 10,000 (2 classes): logits of 60 for
    the true class: the gradient contains nan in torch.float32
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
    for name in [name for name, holds in facts.items() if not holds]:
        for text in _RULES_OF_OPTION[name]:
            del rules[text]
    for k in n_classes:
        case = LossCase(module, *drawn(k, seed), soft_labels, refuses, rowwise)
        for text, rule in rules.items():
            _run_rule(text, rule, case)


def _run_rule(text: str, rule: Rule, case: LossCase) -> None:
    """Run one rule; any exception counts as a violation."""
    what = f"{text} ({case.k} classes)"
    remedy = _remedy(text)
    try:
        rule(case)
    except AssertionError as violation:
        raise AssertionError(f"{what}: {violation}{remedy}") from violation.__cause__
    except Exception as error:
        detail = f"{type(error).__name__}: {error}"
        raise AssertionError(f"{what}: {detail}{remedy}") from error


def _remedy(text: str) -> str:
    for name, texts in _RULES_OF_OPTION.items():
        if text in texts:
            return f"; if the rule does not apply to this loss, pass {name}=False"
    return ""
