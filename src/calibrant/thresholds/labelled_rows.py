"""Labelled rows with a model's own logits: what promises are certified on, rows of no class too."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError, TargetUnreachable
from calibrant.inputs import FloatArray, IntArray
from calibrant.thresholds.chosen import USUAL, rates_at
from calibrant.thresholds.objective import objective_of
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.question import Question, Threshold, put_question
from calibrant.thresholds.proof.seen_labels import NOTHING_SEEN, Seen
from calibrant.thresholds.rates import RATES, Cost, Rate, Target
from calibrant.thresholds.selection import answer

__all__ = ["LabelledRows", "filled"]

BY_HAND = "it was set by hand"


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows whose class is known, or known to be none, with the scores of a model.

    Rows of no class are wrong to act on. Rows that are withheld, such as those a rule flags as out
    of scope, are never acted on, whatever their score, and count as passed over.

    Parameters
    ----------
    logits : (n, K) the model's own, or (n,) log-odds of the second of two classes
    codes : (n,) position of each row's class; -1 for rows of no class
    classes : names of all classes, in the order of the columns
    weights : (n,) inverse inclusion probabilities, or None
    withheld : (n,) rows that are never acted on, or None
    largest_weight : the most that any row could weigh by the design; by default the largest weight
        given, and promises say so

    Examples
    --------
    >>> from calibrant.thresholds import precision
    >>> logits, codes = np.linspace(-3, 3, 200), np.repeat([0, 1], 100)
    >>> rows = LabelledRows(logits, codes, ("no", "yes"))
    >>> print(rows.certified("yes", (precision >= 0.9,), confidence=0.95).guarantee)
    Precision is at least 90 % for class 'yes', with 95 % confidence, on new rows drawn like these
    200.
    """

    logits: FloatArray
    codes: IntArray
    classes: tuple[Any, ...]
    weights: FloatArray | None = None
    withheld: NDArray[np.bool_] | None = None
    largest_weight: float | None = None

    @property
    def masks(self) -> dict[str, Any]:
        """Which rows are never acted on, and which belong to no class; None where there is none."""
        outside = np.asarray(self.codes < 0)
        return {"withheld": self.withheld, "outside": outside if outside.any() else None}

    def question(
        self, of: Any, rates: Iterable[Rate | Cost] = (), *, promised: bool = False
    ) -> Question:
        """Put the rows in order for the threshold of a class."""
        asked = list(rates) or [RATES["accuracy" if of is None else "precision"]]
        found = put_question(
            filled(self.codes),
            None,
            self.logits,
            asked,
            weights=self.weights,
            largest_weight=self.largest_weight,
            positive=None if of is None else self.classes.index(of),
            promised=promised,
            needs_both=False,
            **self.masks,
        )
        # Positions stood for the names: looking up the names of many rows takes long.
        named = None if found.of is None else self.classes[found.of]
        return replace(found, of=named, classes=self.classes)

    def certified(
        self,
        of: Any,
        targets: tuple[Target, ...],
        *,
        confidence: float,
        share: float = 1.0,
        clears: bool = False,
        seen: Seen = NOTHING_SEEN,
    ) -> OperatingPoint | TargetUnreachable:
        """Choose the threshold that keeps its targets, or say why there is none."""
        least = RATES["coverage"] if clears else None
        objective, sign = objective_of(targets, None, least, one_class=of is not None)
        rates = [*(target.rate for target in targets), objective]
        question = self.question(of, rates, promised=True)
        try:
            return answer(
                question, targets, objective, sign, confidence=confidence, seen=seen, share=share
            )
        except TargetUnreachable as error:
            return error

    def set_by_hand(
        self, of: Any, *, prob: float | None = None, logit: float | None = None
    ) -> OperatingPoint:
        """Measure a threshold that somebody set; it carries no promise.

        Examples
        --------
        >>> rows = LabelledRows(np.array([-2.0, -1.0, 1.0, 2.0]), np.array([0, 1, 0, 1]), (0, 1))
        >>> point = rows.set_by_hand(1, prob=0.5)
        >>> point["precision"].value, point["recall"].value, point.guarantee, point.why
        (0.5, 0.5, None, 'it was set by hand')
        """
        question = self.question(of)
        threshold = _fixed(question, prob, logit)
        reached = question.reaching(threshold.logit if question.on == "logits" else threshold.prob)
        return OperatingPoint(
            threshold=threshold.prob,
            logit=threshold.logit,
            on=question.on,
            of=question.of,
            classes=question.classes,
            hold=(),
            objective="set by hand",
            confidence=None,
            guarantee=None,
            why=BY_HAND,
            rates=rates_at(question, min(reached, question.rows.last), USUAL),
            n=question.rows.n,
            positives=question.rows.positives,
            method="estimates alone",
            weighted=question.rows.weight is not None,
            both_kinds=threshold.both_kinds,
        )


def filled(codes: IntArray) -> IntArray:
    """Return codes with a class in the place of none; masks say which rows that is."""
    return np.maximum(codes, 0)


def _fixed(question: Question, prob: float | None, logit: float | None) -> Threshold:
    if (prob is None) == (logit is None):
        raise InputError("give the threshold as prob or as logit, one of the two.")
    if prob is not None and not 0 <= prob <= 1:
        raise InputError(f"a threshold is a probability from 0 to 1, got {prob:g}.")
    if logit is not None and math.isnan(logit):
        raise InputError("a threshold as log-odds must be a number, got nan.")
    if prob == 0 or logit == -math.inf:
        return Threshold(0.0, -math.inf, True)  # every row that may be acted on is
    if prob is not None:
        return question.fixed_threshold(prob)
    assert logit is not None
    return question.fixed_logit(logit)
