"""From a chosen position to an operating point: the promise in words, and every rate there."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.thresholds.measures import Measures
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.expected_cost import cost_bound, cost_value
from calibrant.thresholds.proof.largest_weight import provided
from calibrant.thresholds.proof.question import Question
from calibrant.thresholds.proof.seen_labels import Seen
from calibrant.thresholds.rate_value import RateValue
from calibrant.thresholds.rates import RATES, Cost, Target

__all__ = ["USUAL", "Chosen", "rates_at"]

USUAL = 0.95
"""Confidence of intervals where there is no promise that has one."""


@dataclass(frozen=True)
class Chosen:
    """A position that was chosen, and what for.

    Parameters
    ----------
    question : the rows and what they were asked
    found : the candidates
    place : which of them was chosen
    targets, objective, cost : what was to be held and made best
    """

    question: Question
    found: Candidates
    place: int
    targets: tuple[Target, ...]
    objective: str
    cost: Cost | None

    @property
    def position(self) -> int:
        """Rows acted on."""
        return int(self.found.positions[self.place])

    def point(self, *, confidence: float | None, delta: float | None, seen: Seen) -> OperatingPoint:
        """Put everything together."""
        question = self.question
        why = self._why_no_promise(confidence, seen)
        hold = self.targets or self._limit_of_cost(delta)
        if why is None and not hold:
            why = "so few rows prove no limit below the largest cost"
        threshold = self.found.threshold(question, self.place)
        promise = None
        if why is None and confidence is not None:
            promise = self._promise(hold, confidence, seen)
        return OperatingPoint(
            threshold=threshold.prob,
            logit=threshold.logit,
            on=question.on,
            of=question.of,
            classes=question.classes,
            hold=hold,
            objective=self.objective,
            confidence=confidence if why is None else None,
            guarantee=promise,
            why=why,
            rates=self._rates(confidence or USUAL),
            n=question.rows.n,
            positives=question.rows.positives,
            method=self._method(confidence),
            weighted=question.rows.weight is not None,
            candidates=seen.candidates,
            cost=self.cost,
            baseline=self._baseline(),
            both_kinds=threshold.both_kinds,
            condition=None if promise is None else self._condition,
            notes=() if promise is None else question.notes,
        )

    def _rates(self, confidence: float) -> dict[str, RateValue]:
        rates = rates_at(self.question, self.position, confidence)
        if self.cost is not None:
            rates["cost"] = cost_value(self.question.rows, self.cost, self.position, confidence)
        return rates

    def _limit_of_cost(self, delta: float | None) -> tuple[Target, ...]:
        """Return the limit that the cost is certain to stay under, where only that was asked."""
        assert self.cost is not None
        if delta is None:
            return ()
        level = delta / len(self.found.positions)
        bound = cost_bound(self.question.rows, self.cost, self.position, level)
        bound = _rounded_up(bound)  # a limit to be quoted, and no less safe
        return (self.cost <= bound,) if bound < max(self.cost.matrix) else ()

    def _promise(self, hold: tuple[Target, ...], confidence: float, seen: Seen) -> str:
        held = " and ".join(target.words for target in hold)
        about = "" if self.question.top_label else f" for class {str(self.question.of)!r}"
        among = f", chosen among {seen.candidates} models" if seen.candidates > 1 else ""
        sentence = f"{held}{about}, with {confidence * 100:.6g} % confidence{among}"
        drawn = f"on new rows drawn like these {self.question.rows.n:,}{provided(self._condition)}"
        return f"{sentence[0].upper()}{sentence[1:]}, {drawn}."

    @property
    def _condition(self) -> str | None:
        largest = self.question.largest
        return None if largest is None else largest.condition

    def _why_no_promise(self, confidence: float | None, seen: Seen) -> str | None:
        if confidence is None:
            return (
                "this is the plain empirical choice: it met the target on these rows and promises "
                "nothing about others"
            )
        question = self.question
        why = seen.why_no_promise(top_label=question.top_label, n_classes=len(question.classes))
        if why is None and seen.changed_scores and self.found.thresholds is not None:
            return (
                "the calibrator was fitted on these very rows, and a cost is certified at "
                "probabilities that must be known beforehand: fit it on other rows"
            )
        return why

    def _method(self, confidence: float | None) -> str:
        if confidence is None:
            return "estimates alone"
        if self.question.rows.weight is not None:
            return "bets on weighted rows"
        if any(isinstance(target.rate, Cost) for target in self.targets) or not self.targets:
            return "bets at thresholds fixed beforehand"
        return "exact binomial tests along the ranks"

    def _baseline(self) -> dict[str, float] | None:
        if self.cost is None:
            return None
        place = self.question.position_of(self.cost.baseline)
        value = Measures(self.question.rows, np.array([place])).estimate(self.cost)[0]
        return {"threshold": self.cost.baseline, "cost": float(value)}


def rates_at(question: Question, position: int, confidence: float) -> dict[str, RateValue]:
    """Measure every rate that a question can be about when the first rows are acted on."""
    here = Measures(question.rows, np.array([position]))
    kind = "top-label" if question.top_label else "class"
    return {
        name: here.value(rate, confidence)
        for name, rate in RATES.items()
        if rate.of in (kind, "any")
    }


def _rounded_up(value: float) -> float:
    """Return the value with three digits, never smaller."""
    digits = 2 - math.floor(math.log10(value))
    return float(round(math.ceil(value * 10.0**digits) / 10.0**digits, max(0, digits)))
