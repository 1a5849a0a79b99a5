"""Operating point of a chosen candidate: the promise in words, and all rates at its position."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from calibrant.thresholds.measures import Measures
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.keeping import cost_bound, cost_value
from calibrant.thresholds.proof.largest_weight import condition_clause
from calibrant.thresholds.proof.question import ThresholdProblem
from calibrant.thresholds.proof.seen_labels import LabelUse
from calibrant.thresholds.rates import RATES, Cost, RateValue, Target

DEFAULT_CONFIDENCE = 0.95  # Confidence of intervals when no promise is made


@dataclass(frozen=True)
class ChosenCandidate:
    """A chosen candidate, with its targets and objective."""

    problem: ThresholdProblem  # the ranked rows and the class that is acted on
    candidates: Candidates  # all candidates
    index: int  # index of the chosen one
    targets: tuple[Target, ...]  # the targets held and the objective optimised
    objective: str
    cost: Cost | None

    @property
    def position(self) -> int:
        """Number of rows acted on."""
        return int(self.candidates.positions[self.index])

    def to_point(
        self, *, confidence: float | None, delta: float | None, label_use: LabelUse
    ) -> OperatingPoint:
        """Build the operating point."""
        problem = self.problem
        why = self._why_no_promise(confidence, label_use)
        hold = self.targets or self._provable_cost_limit(delta)
        if why is None and not hold:
            why = "there are too few rows to prove a limit below the largest cost"
        threshold = self.candidates.threshold_at(problem, self.index)
        promise = None
        if why is None and confidence is not None:
            promise = self._promise(hold, confidence, label_use)
        return OperatingPoint(
            threshold=threshold.prob,
            logit=threshold.logit,
            on=problem.on,
            of=problem.of,
            classes=problem.classes,
            hold=hold,
            objective=self.objective,
            confidence=confidence if why is None else None,
            guarantee=promise,
            why=why,
            rates=self._rates(confidence or DEFAULT_CONFIDENCE),
            n=problem.rows.n,
            positives=problem.rows.positives,
            method=self._method(confidence),
            weighted=problem.rows.weight is not None,
            candidates=label_use.candidates,
            cost=self.cost,
            baseline=self._baseline(),
            both_kinds=threshold.both_kinds,
            condition=None if promise is None else self._condition,
            notes=() if promise is None else problem.notes,
        )

    def _rates(self, confidence: float) -> dict[str, RateValue]:
        rates = measure_rates(self.problem, self.position, confidence)
        if self.cost is not None:
            rates["cost"] = cost_value(self.problem.rows, self.cost, self.position, confidence)
        return rates

    def _provable_cost_limit(self, delta: float | None) -> tuple[Target, ...]:
        """Return the cost limit that these rows prove, when no target was given."""
        assert self.cost is not None
        if delta is None:
            return ()
        level = delta / len(self.candidates.positions)
        bound = cost_bound(self.problem.rows, self.cost, self.position, level)
        bound = _round_up(bound)  # easier to quote, and still safe
        return (self.cost <= bound,) if bound < max(self.cost.matrix) else ()

    def _promise(self, hold: tuple[Target, ...], confidence: float, label_use: LabelUse) -> str:
        held = " and ".join(target.words for target in hold)
        about = "" if self.problem.top_label else f" for class {str(self.problem.of)!r}"
        among = f", chosen among {label_use.candidates} models" if label_use.candidates > 1 else ""
        sentence = f"{held}{about}, with {confidence * 100:.6g} % confidence{among}"
        condition = condition_clause(self._condition)
        drawn = f"on new rows drawn like these {self.problem.rows.n:,}{condition}"
        return f"{sentence[0].upper()}{sentence[1:]}, {drawn}."

    @property
    def _condition(self) -> str | None:
        largest = self.problem.largest
        return None if largest is None else largest.condition

    def _why_no_promise(self, confidence: float | None, label_use: LabelUse) -> str | None:
        if confidence is None:
            return (
                "this is the plain empirical choice: it met the target on these rows and promises "
                "nothing about others"
            )
        problem = self.problem
        why = label_use.why_no_promise(top_label=problem.top_label, n_classes=len(problem.classes))
        if why is None and label_use.changed_scores and self.candidates.thresholds is not None:
            return (
                "the calibrator was fitted on these rows, and a cost can only be certified at "
                "probabilities fixed beforehand: fit it on other rows"
            )
        return why

    def _method(self, confidence: float | None) -> str:
        if confidence is None:
            return "estimates alone"
        if self.problem.rows.weight is not None:
            return "bets on weighted rows"
        if any(isinstance(target.rate, Cost) for target in self.targets) or not self.targets:
            return "bets at thresholds fixed beforehand"
        return "exact binomial tests along the ranks"

    def _baseline(self) -> dict[str, float] | None:
        if self.cost is None:
            return None
        position = self.problem.position_of(self.cost.baseline)
        value = Measures(self.problem.rows, np.array([position])).estimate(self.cost)[0]
        return {"threshold": self.cost.baseline, "cost": float(value)}


def measure_rates(
    problem: ThresholdProblem, position: int, confidence: float
) -> dict[str, RateValue]:
    """Measure every applicable rate when the first `position` rows are acted on."""
    measures = Measures(problem.rows, np.array([position]))
    kind = "top-label" if problem.top_label else "class"
    return {
        name: measures.value(rate, confidence)
        for name, rate in RATES.items()
        if rate.of in (kind, "any")
    }


def _round_up(value: float) -> float:
    """Round up to three significant digits."""
    digits = 2 - math.floor(math.log10(value))
    return float(round(math.ceil(value * 10.0**digits) / 10.0**digits, max(0, digits)))
