"""Choose among trained candidates: the first of a fixed order that is not clearly worse."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.study.candidates.candidate import StudyCandidate
from calibrant.study.candidates.train_all import Outcome
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import BASELINE

_WAYS = ("one", "mc_dropout", "ensemble", "weighted")
"""Kinds of candidates, the cheapest first."""


@dataclass(frozen=True)
class PairedChoice:
    """How far each candidate is behind the best one on the choice rows.

    Parameters
    ----------
    chosen : position of the first candidate of the order that is within one standard error of the
        best
    best : position of the candidate with the smallest mean loss
    behind : for each candidate its mean loss minus that of the best; None where it failed
    errors : standard error of each of these paired differences
    """

    chosen: int
    best: int
    behind: tuple[float | None, ...]
    errors: tuple[float | None, ...]


def choose_among(losses: Sequence[FloatArray | None], order: Sequence[int]) -> PairedChoice:
    """Return the first candidate of the order within one paired standard error of the best.

    The difference of two candidates is measured row by row, so that rows that are hard for both
    do not blur it. With a fixed order, the choice among candidates that the rows cannot distinguish
    is not a draw: on 500 choice rows the smallest mean is often smallest by chance.

    Parameters
    ----------
    losses : the loss of each choice row (n,), for each candidate; None for a failed one
    order : positions of the candidates, the preferred one first

    Examples
    --------
    >>> plain, lucky = np.array([0.2, 0.4, 0.3, 0.5]), np.array([0.3, 0.2, 0.4, 0.4])
    >>> choose_among([lucky, plain], order=[1, 0]).chosen
    1
    >>> choose_among([lucky, plain + 1], order=[1, 0]).chosen
    0
    """
    means = {i: float(loss.mean()) for i, loss in enumerate(losses) if loss is not None}
    best = min(means, key=lambda i: (means[i], order.index(i)))
    smallest = losses[best]
    assert smallest is not None
    behind: list[float | None] = []
    errors: list[float | None] = []
    for loss in losses:
        difference, error = (None, None) if loss is None else paired_mean(loss - smallest)
        behind.append(difference)
        errors.append(error)
    chosen = next(
        i for i in order if (mean := behind[i]) is not None and mean <= (errors[i] or 0.0)
    )
    return PairedChoice(chosen, best, tuple(behind), tuple(errors))


def paired_mean(differences: FloatArray, weights: FloatArray | None = None) -> tuple[float, float]:
    r"""Return the weighted mean of differences and its standard error.

    $$ \bar d = \frac{\sum_i w_i d_i}{\sum_i w_i}, \qquad
       s = \sqrt{\frac{n}{n - 1} \frac{\sum_i w_i^2 (d_i - \bar d)^2}{(\sum_i w_i)^2}} $$

    Examples
    --------
    >>> paired_mean(np.array([1.0, 2.0, 3.0]))
    (2.0, 0.5773502691896257)
    """
    n = len(differences)
    w = np.ones(n) if weights is None else weights
    mean = float((w * differences).sum() / w.sum())
    if n < 2:
        return mean, 0.0
    spread = float((w**2 * (differences - mean) ** 2).sum()) * n / (n - 1)
    return mean, float(np.sqrt(spread) / w.sum())


def compare_candidates(
    rows: StudyRows,
    candidates: Sequence[StudyCandidate],
    outcomes: Sequence[Outcome],
    models: Sequence[str],
) -> PairedChoice:
    """Compare candidates on the choice rows, which no candidate was trained or steered on.

    The order prefers single models to averages, the models in the given order, cross-entropy to
    other losses, and then the order of the candidates. No trusted label is used, so promises
    certified on trusted rows need no correction for the choice.
    """
    losses = [
        outcome.choice_losses(rows) if isinstance(outcome, TrainedCandidate) else None
        for outcome in outcomes
    ]
    return choose_among(losses, preference(candidates, models))


def preference(candidates: Sequence[StudyCandidate], models: Sequence[str]) -> list[int]:
    """Return the positions of candidates, the preferred one first."""

    def rank(i: int) -> tuple[int, int, bool, int]:
        one = candidates[i]
        return _WAYS.index(one.way), list(models).index(one.model), one.loss != BASELINE, i

    return sorted(range(len(candidates)), key=rank)
