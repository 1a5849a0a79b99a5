"""Ranking: AUROC, AUPRC (average precision) and AURC (risk against coverage)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, Scored, as_scored
from calibrant.metrics.problem import class_problem, problem
from calibrant.metrics.tally import Tally, tally_rows

__all__ = ["auprc", "aurc", "auroc", "mean_over_classes"]


def auroc(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Area under the ROC curve: the chance that an event outranks a non-event, ties half.

    .. math:: P(S_+ > S_-) + \tfrac12 P(S_+ = S_-)

    For more than two classes: the mean of one-vs-rest over classes that have rows. It sees only
    the order of the scores; any rising recalibration leaves it unchanged.

    Examples
    --------
    >>> auroc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    return mean_over_classes(scored, lambda tally: auroc_influence(tally)[0])


def auprc(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Average precision: the mean, over events, of the precision at that event's score.

    .. math:: \frac{1}{P}\sum_{i:\,y_i=1} \frac{\#\{j: y_j = 1, s_j \ge s_i\}}{\#\{j: s_j \ge s_i\}}

    No line is drawn between the points of the curve (that would flatter). For more than two
    classes: the mean of one-vs-rest over classes that have rows. Its value for random scores is
    the event rate, not 1/2.

    Examples
    --------
    >>> round(auprc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8]), 4)
    0.8333
    """
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    return mean_over_classes(scored, lambda tally: auprc_influence(tally)[0])


def aurc(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Area under the risk-coverage curve: the mean error rate when only the surest are kept.

    .. math:: \frac{1}{N}\sum_{j=1}^N \frac{\text{errors among the } j \text{ surest rows}}{j}

    Sureness is the largest probability. Rows that tie enter in random order, of which the exact
    expectation is taken, so the order of rows does not matter. Weights are scaled to a mean of 1,
    so that they may have any scale; a weight of 2 then differs from a repetition by about 1/N.

    Examples
    --------
    >>> aurc([1, 1], [0.9, 0.2])
    0.25

    References
    ----------
    Geifman & El-Yaniv (2017), NeurIPS.
    """
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    return aurc_influence(tally_rows(*problem(scored, "top-label"), scored.weights))[0]


def auroc_influence(tally: Tally) -> tuple[float, FloatArray]:
    """Return the AUROC and the influence (C, 2) of a row at each score without and with event."""
    without, came = tally.weight[:, 0], tally.weight[:, 1]
    negatives, positives = without.sum(), came.sum()
    below = (np.cumsum(without) - without / 2) / negatives  # share of non-events outranked
    above = (positives - np.cumsum(came) + came / 2) / positives
    value = float(came @ below / positives)
    influence = np.column_stack(
        [(above - value) * tally.total / negatives, (below - value) * tally.total / positives]
    )
    return value, influence


def auprc_influence(tally: Tally) -> tuple[float, FloatArray]:
    """Return the average precision and the influence (C, 2) of a row at each score."""
    came = tally.hits
    kept, right = _from_top(tally.mass), _from_top(came)
    level = right / np.where(kept > 0, kept, 1.0)
    value = float(came @ level / came.sum())
    # Adding a row at a score changes the precision at that score and at every lower one.
    per_row = came / np.where(kept > 0, kept, 1.0)
    push, pull = np.cumsum(per_row), np.cumsum(per_row * level)
    influence = np.column_stack([-pull, (level - value) + push - pull])
    return value, influence * tally.total / came.sum()


def aurc_influence(tally: Tally) -> tuple[float, FloatArray]:
    """Return the AURC of a top-label tally and the influence (C, 2) of a row at each score."""
    from scipy.special import digamma, polygamma

    scale = tally.n / tally.total  # weights of any scale stand for n rows
    mass, wrong = tally.mass * scale, tally.weight[:, 0] * scale
    kept, errors = _from_top(mass), _from_top(wrong)
    before, errors_before = kept - mass, errors - wrong
    rate = wrong / mass
    # A group of m ties after c rows: the sum over j of (E + j r)/(c + j) in closed form.
    level, slope = (g(np.append(kept, 0.0) + 1.0) for g in (digamma, lambda x: polygamma(1, x)))
    harmonic = level[:-1] - level[1:]  # the rows before a group are those kept with the next one
    excess = errors_before - rate * before
    value = float((wrong + excess * harmonic).sum() / tally.n)
    # A row also moves every group below it, by its error and by its place in the queue.
    push = np.cumsum(harmonic) - harmonic
    shift = excess * (slope[:-1] - slope[1:]) - rate * harmonic
    moved = np.cumsum(shift) - shift + excess * slope[:-1] - value
    influence = [
        is_wrong - before * (is_wrong - rate) / mass * harmonic + is_wrong * push + moved
        for is_wrong in (1.0, 0.0)
    ]
    return value, np.column_stack(influence)


def _from_top(values: FloatArray) -> FloatArray:
    """Sum from the highest score down to each."""
    return np.cumsum(values[::-1])[::-1]


def ranked_classes(scored: Scored) -> list[int]:
    """Return the classes with rows inside and outside; none is an error."""
    if scored.binary:
        found = [1] if 0 < np.count_nonzero(scored.labels) < scored.n else []
    else:
        rows = np.bincount(scored.labels, minlength=len(scored.classes))
        found = [k for k, m in enumerate(rows) if 0 < m < scored.n]
    if not found:
        name = scored.classes[int(scored.labels[0])]
        raise InputError(
            f"labels hold only the class {name!r}, but ranking needs rows of at least two classes."
        )
    return found


def mean_over_classes(scored: Scored, value: Callable[[Tally], float]) -> float:
    """Return the mean of a one-vs-rest figure over the classes that can be ranked."""
    tallies = (
        tally_rows(*class_problem(scored, k), scored.weights) for k in ranked_classes(scored)
    )
    return float(np.mean([value(tally) for tally in tallies]))
