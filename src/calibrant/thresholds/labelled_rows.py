"""Labelled rows with a model's logits, on which promises are certified."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, TargetUnreachable
from calibrant.inputs import FloatArray, IntArray
from calibrant.thresholds.chosen import DEFAULT_CONFIDENCE, measure_rates
from calibrant.thresholds.objective import resolve_objective
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.question import Threshold, ThresholdProblem, build_problem
from calibrant.thresholds.proof.seen_labels import NO_LABEL_USE, LabelUse
from calibrant.thresholds.rates import RATES, Cost, Rate, Target
from calibrant.thresholds.selection import solve_problem

BY_HAND = "it was set by hand"


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with known labels, possibly outside all classes, and the scores of a model.

    Acting on a row outside all classes is an error. Withheld rows, such as those flagged as out of
    scope, are never acted on, whatever their score, and count as passed over.
    """

    logits: FloatArray  # (n, K) of the model, or (n,) log-odds of the second of two classes
    codes: IntArray  # (n,) position of each row's class; -1 for rows outside all classes
    classes: tuple[Any, ...]  # names of all classes, in the order of the columns
    weights: FloatArray | None = None  # (n,) inverse inclusion probabilities, or None
    withheld: NDArray[np.bool_] | None = None  # (n,) rows that are never acted on, or None
    # largest weight that the sampling design allows; by default the largest observed weight, and
    # promises say so
    largest_weight: float | None = None

    @property
    def masks(self) -> dict[str, Any]:
        """Masks of the withheld rows and of the rows outside all classes, or None."""
        outside = np.asarray(self.codes < 0)
        return {"withheld": self.withheld, "outside": outside if outside.any() else None}

    def build_problem(
        self, of: Any, rates: Iterable[Rate | Cost] = (), *, promised: bool = False
    ) -> ThresholdProblem:
        """Rank the rows for the threshold of a class."""
        rates = list(rates) or [RATES["accuracy" if of is None else "precision"]]
        problem = build_problem(
            fill_missing_codes(self.codes),
            None,
            self.logits,
            rates,
            weights=self.weights,
            largest_weight=self.largest_weight,
            positive=None if of is None else self.classes.index(of),
            promised=promised,
            needs_both=False,
            **self.masks,
        )
        # Built on codes, since looking up the names of many rows is slow.
        of = None if problem.of is None else self.classes[problem.of]
        return replace(problem, of=of, classes=self.classes)

    def select_point(
        self,
        of: Any,
        targets: tuple[Target, ...],
        *,
        confidence: float,
        share: float = 1.0,
        clears: bool = False,
        label_use: LabelUse = NO_LABEL_USE,
    ) -> OperatingPoint | TargetUnreachable:
        """Choose the threshold that keeps its targets, or return why there is none."""
        minimise = RATES["coverage"] if clears else None
        objective, sign = resolve_objective(targets, None, minimise, one_class=of is not None)
        rates = [*(target.rate for target in targets), objective]
        problem = self.build_problem(of, rates, promised=True)
        try:
            return solve_problem(
                problem,
                targets,
                objective,
                sign,
                confidence=confidence,
                label_use=label_use,
                share=share,
            )
        except TargetUnreachable as error:
            return error

    def measure_threshold(
        self, of: Any, *, prob: float | None = None, logit: float | None = None
    ) -> OperatingPoint:
        """Measure a threshold set by hand; it carries no promise."""
        problem = self.build_problem(of)
        threshold = _fixed_threshold(problem, prob, logit)
        reached = problem.count_reaching(
            threshold.logit if problem.on == "logits" else threshold.prob
        )
        return OperatingPoint(
            threshold=threshold.prob,
            logit=threshold.logit,
            on=problem.on,
            of=problem.of,
            classes=problem.classes,
            hold=(),
            objective="set by hand",
            confidence=None,
            guarantee=None,
            why=BY_HAND,
            rates=measure_rates(problem, min(reached, problem.rows.last), DEFAULT_CONFIDENCE),
            n=problem.rows.n,
            positives=problem.rows.positives,
            method="estimates alone",
            weighted=problem.rows.weight is not None,
            both_kinds=threshold.both_kinds,
        )


def fill_missing_codes(codes: IntArray) -> IntArray:
    """Replace missing codes by a valid one; masks identify these rows."""
    return np.maximum(codes, 0)


def _fixed_threshold(
    problem: ThresholdProblem, prob: float | None, logit: float | None
) -> Threshold:
    if (prob is None) == (logit is None):
        raise InputError("give the threshold as either prob or logit.")
    if prob is not None and not 0 <= prob <= 1:
        raise InputError(f"a threshold is a probability from 0 to 1, got {prob:g}.")
    if logit is not None and math.isnan(logit):
        raise InputError("a threshold as log-odds must be a number, got nan.")
    if prob == 0 or logit == -math.inf:
        return Threshold(0.0, -math.inf, True)  # every row that may be acted on is
    if prob is not None:
        return problem.fixed_threshold(prob)
    assert logit is not None
    return problem.fixed_logit(logit)
