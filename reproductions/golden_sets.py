"""Simulation of a promise over many golden sets: how often a threshold keeps it.

One golden set shows one threshold, which holds or does not. Whoever tunes on it wants to know how
often that goes well: many sets of the same size are drawn from messages with known truth.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from calibrant.inputs import FloatArray, IntArray
from calibrant.study.promises import PromiseRequest
from calibrant.thresholds.objective import resolve_objective
from calibrant.thresholds.proof.candidates import candidates_at_ends
from calibrant.thresholds.proof.keeping import screen_candidates
from calibrant.thresholds.proof.question import ThresholdProblem, build_problem
from calibrant.thresholds.scores import predict_classes, row_scores
from reproductions.parts import Part

__all__ = ["Population", "golden_sets", "question_of"]

MOST_SETS = 100


@dataclass(frozen=True, eq=False)
class Population:
    """Rows of which it is known how likely acting on each is right.

    Parameters
    ----------
    scores : (n,) log-odds that a threshold is compared with, falling
    right : (n,) how likely the row is of the class acted on, or its prediction right, added up
    """

    scores: FloatArray
    right: FloatArray

    @classmethod
    def of(
        cls, rows: Part, logits: FloatArray, promise: PromiseRequest, classes: Sequence[str]
    ) -> Population:
        """Sort rows by their scores; labels stand in where the posterior is not known."""
        truth = rows.posterior
        if truth is None:
            truth = np.eye(len(classes))[rows.labels]
        column = (
            predict_classes(logits, "logits") if promise.of is None else classes.index(promise.of)
        )
        scores = row_scores(logits, on="logits", of=promise.of, classes=classes)
        order = np.argsort(-scores, kind="stable")
        right = truth[np.arange(len(truth)), column][order]
        return cls(np.asarray(scores[order]), np.asarray(right.cumsum()))

    def acted_on(self, logit: float) -> int:
        """Return how many rows reach a threshold."""
        return int(np.searchsorted(-self.scores, -logit, side="right"))

    def precision(self, logit: float) -> float | None:
        """Return how often acting is right; None where no row is acted on."""
        n = self.acted_on(logit)
        return None if n == 0 else float(self.right[n - 1]) / n

    def recall(self, logit: float) -> float:
        """Return how much of what is right to act on is acted on."""
        n = self.acted_on(logit)
        return 0.0 if n == 0 else float(self.right[n - 1] / self.right[-1])


def question_of(
    labels: IntArray,
    logits: FloatArray,
    promise: PromiseRequest,
    classes: Sequence[str],
    *,
    promised: bool,
) -> ThresholdProblem:
    """Put a promise to golden rows; the ranking is that of the model's own logits."""
    objective, _ = resolve_objective(promise.targets, None, None, one_class=promise.of is not None)
    return build_problem(
        np.asarray(classes)[labels],
        None,
        logits,
        [*(target.rate for target in promise.targets), objective],
        classes=classes,
        positive=promise.of,
        promised=promised,
        needs_both=False,
    )


def golden_sets(
    rows: Part,
    logits: FloatArray,
    promise: PromiseRequest,
    classes: Sequence[str],
    *,
    size: int,
    delta: float,
) -> dict[str, Any] | None:
    r"""Cut rows into golden sets, choose a threshold on each, and hold it against the truth.

    "naive" is the smallest threshold whose precision on the golden set is at least the target,
    which is how thresholds are tuned by hand. "certified" is the one that
    `calibrant.thresholds.select` promises with confidence :math:`1 - \delta`.

    Sets are disjoint, and the truth is that of all rows together: a set of 1 % of them has its own
    small part in it.

    Parameters
    ----------
    rows : with a posterior
    logits : (n, K) of these rows
    promise : the promise, of one target
    classes : names of the columns
    size : rows of a golden set
    delta : allowed chance of a broken promise

    Returns
    -------
    number of sets, and for both ways how many thresholds were given, how many of them broke the
    target, and their mean recall; None where the rows give less than two sets
    """
    n_sets = min(MOST_SETS, len(rows) // size)
    if rows.posterior is None or n_sets < 2:
        return None
    truth = Population.of(rows, logits, promise, classes)
    thresholds: dict[str, list[float | None]] = {"naive": [], "certified": []}
    for i in range(n_sets):
        part = slice(i * size, (i + 1) * size)
        question = question_of(rows.labels[part], logits[part], promise, classes, promised=False)
        thresholds["naive"].append(_logit(question, promise, None))
        thresholds["certified"].append(_logit(question, promise, delta))
    outcomes = {way: _count_kept(chosen, truth, promise) for way, chosen in thresholds.items()}
    return {"sets": n_sets, "rows": size, **outcomes}


def _logit(problem: ThresholdProblem, promise: PromiseRequest, delta: float | None) -> float | None:
    """Return the smallest threshold that keeps the targets, as log-odds; None where none does."""
    candidates = candidates_at_ends(problem)
    passing = np.flatnonzero(screen_candidates(problem.rows, candidates, promise.targets, delta))
    if not len(passing):
        return None
    return problem.threshold_at(int(candidates.positions[passing].max())).logit


def _count_kept(
    thresholds: Sequence[float | None], truth: Population, promise: PromiseRequest
) -> dict[str, Any]:
    target = promise.targets[0]
    logits = [logit for logit in thresholds if logit is not None]
    reached = [truth.precision(logit) for logit in logits]
    values = [value for value in reached if value is not None]
    return {
        "given": len(logits),
        "broken": sum(not target.met_by(value) for value in values),
        "mean_precision": float(np.mean(values)) if values else None,
        "mean_recall": float(np.mean([truth.recall(x) for x in logits])) if logits else None,
    }
