"""Ranking metrics: AUROC, AUPRC (average precision) and AURC (risk-coverage)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, ScoredRows, as_scored_rows
from calibrant.metrics.problem import class_problem, target_problem
from calibrant.metrics.tally import Tally, tally_rows


def auroc(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Area under the ROC curve: probability that an event outranks a non-event, ties count 1/2.

    .. math:: P(S_+ > S_-) + \tfrac12 P(S_+ = S_-)

    with :math:`S_+` and :math:`S_-` the scores of an event and a non-event. For more than two
    classes it is the one-vs-rest mean over classes with rows. It depends only on the order of the
    scores: any strictly increasing recalibration leaves it unchanged.

    Examples
    --------
    >>> auroc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8])
    0.875
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    return mean_over_classes(scored, lambda tally: auroc_influence(tally)[0])


def auprc(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Average precision: mean over events of the precision at the event's score.

    .. math:: \frac{1}{P}\sum_{i:\,y_i=1} \frac{\#\{j: y_j = 1, s_j \ge s_i\}}{\#\{j: s_j \ge s_i\}}

    with :math:`P` the number of events, :math:`y_i` the events and :math:`s_i` the scores. The
    curve is not interpolated, which would be optimistic. For more than two classes it is the
    one-vs-rest mean over classes with rows. Its value for random scores is the event rate, not 1/2.

    Examples
    --------
    >>> round(auprc([0, 1, 0, 1], [0.1, 0.4, 0.4, 0.8]), 4)
    0.8333
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    return mean_over_classes(scored, lambda tally: auprc_influence(tally)[0])


def aurc(
    labels: Any, probs: Any, *, weights: Any = None, classes: Sequence[Any] | None = None
) -> float:
    r"""Area under the risk-coverage curve: mean error rate among the most confident rows.

    .. math:: \frac{1}{N}\sum_{j=1}^N \frac{\text{errors in the } j \text{ most confident rows}}{j}

    The confidence of a row is its largest probability. For ties the expectation over random orders
    is computed exactly, so the order of rows does not matter. Weights are scaled to a mean of 1, so
    their scale does not matter; a weight of 2 then differs from repeating a row by about 1/N.

    Examples
    --------
    >>> aurc([1, 1], [0.9, 0.2])
    0.25

    References
    ----------
    Geifman & El-Yaniv (2017), NeurIPS.
    """
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    return aurc_influence(tally_rows(*target_problem(scored, "top-label"), scored.weights))[0]


def auroc_influence(tally: Tally) -> tuple[float, FloatArray]:
    """Return the AUROC and the influence (C, 2) of a row at each score without and with event."""
    without, events = tally.weight[:, 0], tally.weight[:, 1]
    negatives, positives = without.sum(), events.sum()
    below = (np.cumsum(without) - without / 2) / negatives  # share of non-events outranked
    above = (positives - np.cumsum(events) + events / 2) / positives
    value = float(events @ below / positives)
    influence = np.column_stack(
        [(above - value) * tally.total / negatives, (below - value) * tally.total / positives]
    )
    return value, influence


def auprc_influence(tally: Tally) -> tuple[float, FloatArray]:
    """Return the average precision and the influence (C, 2) of a row at each score."""
    events = tally.hits
    flagged, correct = _sum_from_top(tally.mass), _sum_from_top(events)
    level = correct / np.where(flagged > 0, flagged, 1.0)
    value = float(events @ level / events.sum())
    # Adding a row at a score changes the precision at that score and at every lower one.
    per_row = events / np.where(flagged > 0, flagged, 1.0)
    push, pull = np.cumsum(per_row), np.cumsum(per_row * level)
    influence = np.column_stack([-pull, (level - value) + push - pull])
    return value, influence * tally.total / events.sum()


def aurc_influence(tally: Tally) -> tuple[float, FloatArray]:
    """Return the AURC of a top-label tally and the influence (C, 2) of a row at each score."""
    from scipy.special import digamma, polygamma

    scale = tally.n / tally.total  # scales weights to n rows
    mass, wrong = tally.mass * scale, tally.weight[:, 0] * scale
    covered, errors = _sum_from_top(mass), _sum_from_top(wrong)
    before, errors_before = covered - mass, errors - wrong
    rate = wrong / mass
    # A group of m ties after c rows: the sum over j of (E + j r)/(c + j) in closed form.
    level, slope = (g(np.append(covered, 0.0) + 1.0) for g in (digamma, lambda x: polygamma(1, x)))
    harmonic = level[:-1] - level[1:]  # the rows before a group are those covered by the next one
    excess = errors_before - rate * before
    value = float((wrong + excess * harmonic).sum() / tally.n)
    # A row also shifts every group below it, by its error and by its rank.
    push = np.cumsum(harmonic) - harmonic
    shift = excess * (slope[:-1] - slope[1:]) - rate * harmonic
    moved = np.cumsum(shift) - shift + excess * slope[:-1] - value
    influence = [
        is_wrong - before * (is_wrong - rate) / mass * harmonic + is_wrong * push + moved
        for is_wrong in (1.0, 0.0)
    ]
    return value, np.column_stack(influence)


def _sum_from_top(values: FloatArray) -> FloatArray:
    """Return cumulative sums from the highest score down."""
    return np.cumsum(values[::-1])[::-1]


def ranked_classes(scored: ScoredRows) -> list[int]:
    """Return the classes with rows in and outside the class; raise if there are none."""
    if scored.binary:
        ranked = [1] if 0 < np.count_nonzero(scored.labels) < scored.n else []
    else:
        rows = np.bincount(scored.labels, minlength=len(scored.classes))
        ranked = [k for k, m in enumerate(rows) if 0 < m < scored.n]
    if not ranked:
        name = scored.classes[int(scored.labels[0])]
        raise InputError(
            f"labels contain only class {name!r}, but ranking needs rows of at least two classes."
        )
    return ranked


def mean_over_classes(scored: ScoredRows, value: Callable[[Tally], float]) -> float:
    """Return the mean of a one-vs-rest metric over the classes that can be ranked."""
    tallies = (
        tally_rows(*class_problem(scored, k), scored.weights) for k in ranked_classes(scored)
    )
    return float(np.mean([value(tally) for tally in tallies]))
