"""Checks of an operating point on later labelled rows."""

from __future__ import annotations

import html
from dataclasses import dataclass
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, as_labels, as_weights
from calibrant.thresholds.after.target_check import (
    TargetCheck,
    TransferVerdict,
    check_mean,
    check_share,
)
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.largest_weight import (
    check_largest_weight,
    condition_clause,
    resolve_largest_weight,
)
from calibrant.thresholds.rates import Cost, Rate, Target, check_confidence, parse_target
from calibrant.thresholds.scores import as_scores, predict_classes

Mask = NDArray[np.bool_]


@dataclass(frozen=True)
class Transfer:
    """Whether the promises of an operating point held on later labelled rows.

    All verdicts are jointly correct with the stated confidence: `kept` means that the opposite was
    rejected, `broken` that the promise was.

    Parameters
    ----------
    verdict : `kept` if every target is, `broken` if any is, else `undecidable`
    checks : one for each target
    confidence : of all verdicts together
    n : later labelled rows
    condition : what the verdicts assume besides exchangeable rows, like "no row could weigh more
        than 20, the largest seen"; None if rows have no weights
    """

    verdict: TransferVerdict
    checks: tuple[TargetCheck, ...]
    confidence: float
    n: int
    condition: str | None = None

    @property
    def text(self) -> str:
        """The result as one sentence."""
        sure = f"confidence {self.confidence * 100:.4g} %{condition_clause(self.condition)}"
        return (
            f"{self.verdict.capitalize()} ({sure}): "
            + "; ".join(check.text for check in self.checks)
            + "."
        )

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        return f"<p>{html.escape(self.text)}</p>"

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        return {
            "verdict": self.verdict,
            "text": self.text,
            "confidence": self.confidence,
            "n": self.n,
            "condition": self.condition,
            "checks": [check.to_dict() for check in self.checks],
        }


def check_transfer(
    point: OperatingPoint,
    labels: Any,
    probs: Any = None,
    *,
    logits: Any = None,
    weights: Any = None,
    largest_weight: float | None = None,
    confidence: float = 0.95,
    withheld: Mask | None = None,
    outside: Mask | None = None,
) -> Transfer:
    r"""Check the promises of an operating point on later labelled rows.

    The threshold is fixed, so one exact test decides each of m targets at level
    :math:`\alpha = (1 - confidence) / m`: kept when :math:`P(Bin(n, \tau) \ge h) \le \alpha`,
    broken when :math:`P(Bin(n, \tau) \le h) \le \alpha`, with h events among the n rows of the
    condition and :math:`\tau` the target. Only one of the two verdicts can be wrong, so each is
    tested at the full level; the interval is two-sided and may still contain the target.
    Expected costs, and rows with weights, are tested by betting on their mean.

    The rows must be a random sample of what the point is used on (for precision, of the rows
    acted on) and must not have been used to choose the threshold. The test is valid for one look,
    not for repeated looks while rows arrive.

    Parameters
    ----------
    point : from `select`
    labels : later labels, named as the point's classes
    probs, logits : scores of the same rows, one of the two
    weights : inverse inclusion probabilities, or None
    largest_weight : largest weight that the sampling design allows; by default the largest
        observed weight, and the result says so
    confidence : that all verdicts are correct
    withheld : rows that are never acted on, such as those flagged as out of scope
    outside : rows that belong to no class, whatever their label

    Examples
    --------
    >>> from calibrant.thresholds import precision, select
    >>> probs = np.linspace(0, 1, 1000)
    >>> point = select(probs > 0.4, probs, hold=precision >= 0.9)
    >>> check_transfer(point, probs > 0.7, probs).verdict
    'broken'
    """
    if not point.hold:
        raise InputError("the point holds no target, so there is nothing to check.")
    acted = point.act(probs, logits=logits)
    codes, _ = as_labels(labels, n_classes=len(point.classes), classes=point.classes)
    if len(codes) != len(acted):
        raise InputError(
            f"labels and scores must have the same length, got {len(codes)} and {len(acted)}: "
            "give one label for each row."
        )
    level = _level_per_target(confidence, len(point.hold))
    positive = _positive_mask(point, codes, probs, logits)
    acted = acted if withheld is None else acted & ~withheld
    positive = positive if outside is None else positive & ~outside
    heavy = as_weights(weights, len(codes))
    check_largest_weight(largest_weight, heavy)
    if heavy is not None:  # a row of weight 0 does not count
        positive, acted, heavy = positive[heavy > 0], acted[heavy > 0], heavy[heavy > 0]
    limit = resolve_largest_weight(heavy, largest_weight)
    largest = 1.0 if limit is None else limit.value
    checks = tuple(
        _check_target(target, positive, acted, heavy, largest, level) for target in point.hold
    )
    condition = None if limit is None else limit.condition
    return Transfer(_overall_verdict(checks), checks, confidence, len(acted), condition)


def check_counts(target: Target | str, hits: int, n: int, *, confidence: float = 0.95) -> Transfer:
    """Check one target by counts alone: `hits` events among `n` rows that meet its condition.

    Parameters
    ----------
    target : like `precision >= 0.85`, or "precision>=0.85"
    hits, n : for precision the positives among the rows acted on, and all rows acted on
    confidence : that the verdict is correct

    Examples
    --------
    A classifier tuned to 85 % precision, on 485 rows that it acted on later:

    >>> print(check_counts("precision>=0.85", 384, 485))
    Broken (confidence 95 %): it is false that precision is at least 85 % (79.2 % on 485 rows acted
    on, interval 75.3 % to 82.7 %).
    """
    held = parse_target(target)[1] if isinstance(target, str) else target
    if isinstance(held.rate, Cost):
        raise InputError("a cost is not a count: use check_transfer with the rows themselves.")
    numbers = isinstance(hits, Real) and isinstance(n, Real)
    if not numbers or not 0 <= hits <= n or int(hits) != hits or int(n) != n:
        raise InputError(
            f"hits must be a whole number from 0 to n, got {hits!r} of {n!r}: give counts, not "
            "shares."
        )
    check = check_share(held, int(hits), int(n), _level_per_target(confidence, 1))
    return Transfer(check.verdict, (check,), confidence, int(n))


def _level_per_target(confidence: float, targets: int) -> float:
    check_confidence(confidence)
    return (1 - confidence) / targets


def _positive_mask(
    point: OperatingPoint, codes: NDArray[np.int64], probs: Any, logits: Any
) -> Mask:
    """Return which rows are of the class acted on, or, without one, predicted correctly."""
    if point.of is not None:
        return np.asarray(codes == list(point.classes).index(point.of))
    array, on, _ = as_scores(probs, logits, point.classes)
    return np.asarray(predict_classes(array, on) == codes)


def _overall_verdict(checks: tuple[TargetCheck, ...]) -> TransferVerdict:
    verdicts = {check.verdict for check in checks}
    if "broken" in verdicts:
        return "broken"
    return "undecidable" if "undecidable" in verdicts else "kept"


def _check_target(
    target: Target,
    positive: Mask,
    acted: Mask,
    weights: FloatArray | None,
    largest: float,
    level: float,
) -> TargetCheck:
    if isinstance(target.rate, Cost):
        fp, fn, tp, tn = target.rate.matrix
        costs = np.where(acted, np.where(positive, tp, fp), np.where(positive, fn, tn))
        heavy = np.ones(len(costs)) if weights is None else weights
        return check_mean(target, costs, heavy, largest, level)
    inside, event = _condition_and_event(target.rate, positive, acted)
    if weights is None:
        return check_share(target, int((inside & event).sum()), int(inside.sum()), level)
    values = event[inside].astype(np.float64)
    return check_mean(target, values, weights[inside], largest, level)


def _condition_and_event(rate: Rate, positive: Mask, acted: Mask) -> tuple[Mask, Mask]:
    """Return which rows meet the condition of a rate, and which show its event."""
    masks = {"positive": positive, "negative": ~positive, "act": acted, "pass": ~acted}
    return masks.get(rate.condition, np.ones(len(acted), dtype=bool)), masks[rate.event]
