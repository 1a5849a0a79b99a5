"""Contract check for losses, usable by third parties."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from calibrant.testing.calibrator_cases import expect, expect_refusal
from calibrant.testing.loss_cases import (
    HUGE,
    LossCase,
    autocast,
    copy_loss,
    drawn,
    expect_alike,
    expect_finite,
    expect_near,
    extremes,
    gradient,
    has_option,
    numeric_gradient,
    one_hot,
    save_and_load,
    with_options,
)

Rule = Callable[[LossCase], None]
_FEW = 6  # rows for numeric derivatives
_DERIVATIVE = 1e-6
_ROUNDING = {"float32": 1e-5, "bfloat16": 2e-2, "float16": 2e-2}
_TIMES = (1, 3, 0, 2)


def one_number(case: LossCase) -> None:
    """Check that the value is one finite number, with a gradient like the logits."""
    for logits in (case.logits, case.logits.float()):
        value, grad = gradient(case.loss, logits, case.labels)
        expect_finite("an ordinary batch", logits, (value, grad))
        expect(bool(grad.any()), "the gradient is 0 everywhere")


def arguments(case: LossCase) -> None:
    """Check that logits and labels are not modified."""
    logits, labels = case.logits.clone(), case.labels.clone()
    case.loss(logits, labels)
    expect(logits.equal(case.logits), "it wrote to its logits")
    expect(labels.equal(case.labels), "it wrote to its labels")


def same_value(case: LossCase) -> None:
    """Check that calls have no side effects and no randomness."""
    first = case.loss(case.logits, case.labels)
    case.loss(*drawn(case.k, 1))
    expect_near("the value", first, case.loss(case.logits, case.labels), 0.0)


def order_of_rows(case: LossCase) -> None:
    """Check that the order of rows changes neither value nor gradient."""
    value, grad = gradient(case.loss, case.logits, case.labels)
    reversed_rows = gradient(case.loss, case.logits.flip(0), case.labels.flip(0))
    expect_alike("in reverse order", (value, grad.flip(0)), reversed_rows)


def row_constants(case: LossCase) -> None:
    """Check that only differences of logits matter."""
    constants = case.logits.new_tensor([[3.0 * i - 20.0] for i in range(len(case.labels))])
    expect_alike(
        "with a constant",
        gradient(case.loss, case.logits, case.labels),
        gradient(case.loss, case.logits + constants, case.labels),
    )


def huge_logits(case: LossCase) -> None:
    """Check values and gradients when probabilities round to 0 and 1."""
    for what, wide, labels in extremes(case.k):
        for logits in (wide.float(), wide):
            expect_finite(what, logits, gradient(case.loss, logits, labels))


def half_precision(case: LossCase) -> None:
    """Check that half precision loses no more than the rounding of the logits."""
    for what, wide, labels in extremes(case.k):
        for logits in (wide.bfloat16(), wide.half()):
            expect_finite(what, logits, gradient(case.loss, logits, labels))
    for narrow in (case.logits.bfloat16(), case.logits.half()):
        single = gradient(case.loss, narrow.float(), case.labels)
        name = str(narrow.dtype).removeprefix("torch.")
        expect_alike(name, single, gradient(case.loss, narrow, case.labels), _ROUNDING[name])


def mixed_precision(case: LossCase) -> None:
    """Check that autocast does not lower the precision inside the loss."""
    single = case.logits.float()
    usual = gradient(case.loss, single, case.labels)
    with autocast():
        mixed = gradient(case.loss, single, case.labels)
        expect_alike("under autocast", usual, mixed, _ROUNDING["float32"])
        for what, wide, labels in extremes(case.k):
            for logits in (wide.float(), wide.bfloat16()):
                result = gradient(case.loss, logits, labels)
                expect_finite(f"under autocast, {what}", logits, result)


def small_batches(case: LossCase) -> None:
    """Check a batch of one row and a batch of one class."""
    one_class = case.labels == 0
    for what, chosen in (("one row", slice(0, 1)), ("rows of one class", one_class)):
        logits, labels = case.logits[chosen], case.labels[chosen]
        expect_finite(what, logits, gradient(case.loss, logits, labels))


def derivative(case: LossCase) -> None:
    """Check the gradient against differences, also for confident logits."""
    logits, labels = case.first_rows(_FEW)
    targets = {"": labels}
    if case.soft_labels:
        targets[" with shares"] = (one_hot(labels, case.k) + logits.softmax(-1).flip(0)) / 2
    for scale in (0.3, 1.0, 3.0):
        for kind, target in targets.items():
            value, grad = gradient(case.loss, scale * logits, target)
            steps = numeric_gradient(case.loss, scale * logits, target)
            what = f"differences at logits x {scale}{kind}"
            expect_alike(what, (value, grad), (value, steps), _DERIVATIVE)


def descent(case: LossCase) -> None:
    """Check that a small step against the gradient lowers the loss."""
    before, grad = gradient(case.loss, case.logits, case.labels)
    after = case.loss(case.logits - 1e-3 * grad / grad.abs().max(), case.labels)
    expect(bool(after < before), f"{float(before)!r} became {float(after.detach())!r}")


def copies(case: LossCase) -> None:
    """Check that a copy gives the same value and gradient."""
    usual = gradient(case.loss, case.logits, case.labels)
    expect_alike("a copy", usual, gradient(copy_loss(case.loss), case.logits, case.labels), 0.0)


def saving(case: LossCase) -> None:
    """Check that `state_dict` contains the whole state."""
    learned, fresh = copy_loss(case.loss), copy_loss(case.loss)
    for loss in (learned, fresh):
        if callable(set_epoch := getattr(loss, "set_epoch", None)):
            set_epoch(3)
    if getattr(learned, "steered", False):
        for seed in range(3):
            learned.update(*drawn(case.k, seed, 300))  # type: ignore[operator]
    fresh.load_state_dict(save_and_load(learned.state_dict()))
    expect_alike(
        "after loading",
        gradient(learned, case.logits, case.labels),
        gradient(fresh, case.logits, case.labels),
        0.0,
    )


def rows_add_up(case: LossCase) -> None:
    """Check that a batch is the mean of its rows."""
    loss, n = case.unweighted, len(case.labels)
    rows = [loss(case.logits[i : i + 1], case.labels[i : i + 1]) for i in range(n)]
    expect_near("the mean of rows alone", sum(rows) / n, loss(case.logits, case.labels))


def reductions(case: LossCase) -> None:
    """Check that "none", "sum" and "mean" agree, if the loss has `reduction`."""
    if not has_option(case.loss, "reduction"):
        return
    n, mean = len(case.labels), case.unweighted
    none, total = (with_options(mean, reduction=name) for name in ("none", "sum"))
    values = none(case.logits, case.labels)
    expect(values.shape == case.labels.shape, f"'none' gives shape {tuple(values.shape)}")
    value, grad = gradient(mean, case.logits, case.labels)
    expect_near("the mean of 'none'", value, values.mean())
    summed = gradient(total, case.logits, case.labels)
    expect_alike("'sum'", (n * value, n * grad), summed)


def ignored_rows(case: LossCase) -> None:
    """Check that rows with the label `ignore_index` have no effect, whatever their logits."""
    if not has_option(case.loss, "ignore_index"):
        return
    loss = with_options(case.loss, ignore_index=-100)
    labels = case.labels.clone()
    labels[::3] = -100
    used = labels != -100
    value, grad = gradient(loss, case.logits[used], case.labels[used])
    fillings = [2.0, HUGE, -HUGE] + ([float("nan"), float("inf")] if case.refuses else [])
    for filling in fillings:
        logits = case.logits.clone()
        logits[~used, ::2] = filling
        total, all_grads = gradient(loss, logits, labels)
        expect(not bool(all_grads[~used].any()), f"an ignored row of {filling:g} has a gradient")
        expect_alike(f"ignored rows of {filling:g}", (value, grad), (total, all_grads[used]))


def nothing_left(case: LossCase) -> None:
    """Check that a batch of ignored rows gives 0 instead of NaN, if bad input is refused."""
    if not case.refuses or not has_option(case.loss, "ignore_index"):
        return
    loss = with_options(case.loss, ignore_index=-100)
    leaf = case.logits.clone().requires_grad_()
    value = loss(leaf, case.labels * 0 - 100)
    expect(float(value.detach()) == 0.0, f"the value is {float(value.detach())}")
    expect(value.requires_grad, "the value has no gradient, so a training step would fail")
    value.backward()
    expect(leaf.grad is None or not bool(leaf.grad.any()), "the gradient is not 0")


def class_weights(case: LossCase) -> None:
    """Check that the weight of a class equals a repetition of its rows."""
    unweighted = case.unweighted
    times = [_TIMES[i % len(_TIMES)] for i in range(case.k)]
    weight = case.logits.new_tensor(times)
    repeats = weight.long()[case.labels]
    logits = case.logits.repeat_interleave(repeats, 0)
    labels = case.labels.repeat_interleave(repeats, 0)
    names: list[str | None] = ["sum"] if has_option(unweighted, "reduction") else [None]
    if case.refuses:  # some torch losses divide the mean by the rows instead of their weights
        names.append(None)
    for name in names:
        chosen = unweighted if name is None else with_options(unweighted, reduction=name)
        weighted = with_options(chosen, weight=weight)(case.logits, case.labels)
        expect_near(f"the {name or 'mean'}", chosen(logits, labels), weighted)


def more_dimensions(case: LossCase) -> None:
    """Check that (n, K, ...) gives the same as rows."""
    value, grad = gradient(case.loss, case.logits, case.labels)
    shape = (len(case.labels) // 6, 2, 3)
    wide = case.logits.reshape(*shape, case.k).movedim(-1, 1)
    wide_value, wide_grad = gradient(case.loss, wide, case.labels.reshape(shape))
    flat = wide_grad.movedim(1, -1).reshape(-1, case.k)
    expect_alike("(n, K, 2, 3)", (value, grad), (wide_value, flat))


def soft_labels(case: LossCase) -> None:
    """Check that one-hot labels give the same as classes."""
    expect_alike(
        "one-hot labels",
        gradient(case.loss, case.logits, case.labels),
        gradient(case.loss, case.logits, one_hot(case.labels, case.k)),
    )


def bad_input(case: LossCase) -> None:
    """Check that bad input is refused with an InputError."""
    if not case.refuses:
        return
    logits, labels = case.logits, case.labels
    whole = one_hot(labels, case.k)
    broken = {"NaN": float("nan"), "infinity": float("inf")}
    pairs: dict[str, tuple[Any, Any]] = {
        "a label beyond the classes": (logits, labels + (labels == 1) * case.k),
        "a negative label": (logits, labels - 7 * (labels == 1)),
        "one label too few": (logits, labels[:-1]),
        "labels of two columns": (logits, labels.reshape(-1, 2)),
        "logits without classes": (logits[:, 0], labels),
        "logits of one class": (logits[:, :1], labels * 0),
        "integers as logits": (logits.long(), labels),
        "an array as logits": (logits.numpy(), labels),
        "a list as labels": (logits, labels.tolist()),
        "soft labels that do not sum to 1": (logits, 0.5 * whole),
        "a negative soft label": (logits, 2 * whole - whole.roll(1, -1)),
    }
    for name, value in broken.items():
        invalid = logits.clone()
        invalid[3, labels[3]] = value
        pairs[f"{name} as a logit"] = (invalid, labels)
    if not case.soft_labels:
        pairs["soft labels"] = (logits, whole)
    for what, pair in pairs.items():
        expect_refusal(what, lambda pair=pair: case.loss(*pair))  # type: ignore[misc]
    if has_option(case.loss, "weight"):
        short = with_options(case.loss, weight=logits.new_tensor([1.0] * (case.k + 1)))
        expect_refusal("one weight too many", lambda: short(logits, labels))
    if not case.rowwise and has_option(case.loss, "reduction"):
        none = with_options(case.loss, reduction="none")
        expect_refusal("'none' of a whole batch", lambda: none(logits, labels))


RULES: dict[str, Rule] = {
    "arguments must not be modified": arguments,
    "the value must be one finite number with a gradient like the logits": one_number,
    "the same input must give the same value": same_value,
    "the order of rows must not matter": order_of_rows,
    "a constant added to a row's logits must have no effect": row_constants,
    "gradients must be finite for logits up to 10,000": huge_logits,
    "half precision must match single precision": half_precision,
    "autocast must not lower the precision": mixed_precision,
    "one row, and rows of one class, must be accepted": small_batches,
    "a one-hot label must equal a class": soft_labels,
    "the gradient must be the derivative of the value": derivative,
    "a step against the gradient must lower the loss": descent,
    "a copy must give the same value": copies,
    "a saved state must load": saving,
    "a batch must be the mean of its rows": rows_add_up,
    "'none', 'sum' and 'mean' must agree": reductions,
    "ignored rows must have no effect": ignored_rows,
    "a batch of ignored rows must give 0": nothing_left,
    "a class weight must equal a repetition": class_weights,
    "(n, K, ...) must equal rows": more_dimensions,
    "bad input must be refused": bad_input,
}
"""All rules by the text in their error messages, in the order of checking."""


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
