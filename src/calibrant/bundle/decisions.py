"""Decisions of a bundle: act, clear or abstain for each row."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray

if TYPE_CHECKING:
    from calibrant.bundle.points import Rule, RuleOutcome


SCORE_COLUMNS = ("decision_rule", "decision_score", "decision_threshold")
"""Columns of the rule that decided, or came closest: its name, its score, its threshold."""


def predict_columns(
    classes: Sequence[Any],
    *,
    decides: bool = True,
    scoped: bool = True,
    stored: bool = True,
    scored: bool = True,
    explained: bool = False,
) -> list[str]:
    """Return the column names in order; by default all but `reasons`, which are added on demand."""
    names = ["predicted", *(f"prob_{name}" for name in classes)]
    names += ["decision", "acted_as", "action"] if decides else []
    names += SCORE_COLUMNS if decides and scored else []
    names += ["out_of_scope"] if scoped else []
    names += ["reasons"] if explained else []
    return [*names, "prediction_id"] if stored else names


WORDS = ("act", "clear", "abstain")


@dataclass(frozen=True, eq=False)
class Decisions:
    """Decisions about n rows.

    Parameters
    ----------
    classes : class names of the columns of `probabilities`
    label : (n,) the most probable class
    probabilities : (n, K), calibrated if the bundle has a calibrator
    decision : (n,) `act`; `abstain`, for a person to decide; or, below a band, `clear`
    acted_as : (n,) the class that is acted on, or None
    action : (n,) the name of the action of that class, or None
    operating_point : (n,) position of the operating point that decided, -1 if the bundle abstains
    rules : names of the active rules
    acts : (n, rules) whether each rule applies to the row (acts on it or clears it); a promise is
        about all rows of its column, whichever rule decided
    out_of_scope : (n,) whether the row is out of scope; such a row is left to a person, and no rule
        applies to it
    scope_checked : whether the bundle has an out-of-scope rule
    scores : (n, rules) decision scores, which the rules compare with their thresholds; they are
        not `probabilities`, unless a point decides on calibrated scores
    thresholds : (rules,) threshold of each rule, on the scale of its scores
    rule : (n,) position of the rule that decided; of a row left to a person, that of the most
        probable class; -1 for a row out of scope, to which no rule is applied

    Examples
    --------
    >>> decisions = Decisions(("no", "yes"), np.array(["yes"]), np.array([[0.1, 0.9]]),
    ...     np.array(["act"]), np.array(["yes"]), np.array(["refund"]), np.array([0]),
    ...     ("act on 'yes'",), np.array([[True]]), np.array([False]), scores=np.array([[0.8]]),
    ...     thresholds=np.array([0.7]), rule=np.array([0]))
    >>> print(decisions)
    1 row: 1 act, 0 clear, 0 abstain.
    >>> decisions.decision_score, decisions.decision_threshold
    (array([0.8]), array([0.7]))
    >>> decisions.to_rows()[0]["probabilities"]
    {'no': 0.1, 'yes': 0.9}
    """

    classes: tuple[Any, ...]
    label: NDArray[Any]
    probabilities: FloatArray
    decision: NDArray[np.str_]
    acted_as: NDArray[Any]
    action: NDArray[Any]
    operating_point: IntArray
    rules: tuple[str, ...]
    acts: NDArray[np.bool_]
    out_of_scope: NDArray[np.bool_]
    scope_checked: bool = False
    scores: FloatArray = field(kw_only=True)
    thresholds: FloatArray = field(kw_only=True)
    rule: IntArray = field(kw_only=True)

    def __len__(self) -> int:
        return len(self.label)

    @property
    def counts(self) -> dict[str, int]:
        """Number of rows by decision."""
        return {word: int(np.count_nonzero(self.decision == word)) for word in WORDS}

    @property
    def decision_rule(self) -> NDArray[Any]:
        """(n,) name of the rule at `rule`; None for a row out of scope."""
        return _object_array([*self.rules, None])[self.rule]

    @property
    def decision_score(self) -> FloatArray:
        """(n,) score that this rule compared; NaN for a row out of scope."""
        scores = self.scores[np.arange(len(self)), self.rule]
        return np.where(self.rule < 0, np.nan, scores)

    @property
    def decision_threshold(self) -> FloatArray:
        """(n,) threshold of this rule; NaN for a row out of scope."""
        return np.where(self.rule < 0, np.nan, self.thresholds[self.rule])

    def to_rows(self) -> list[dict[str, Any]]:
        """Return one dictionary of JSON values per row."""
        names = [str(name) for name in self.classes]
        return [
            {
                "label": label,
                "probabilities": dict(zip(names, probs, strict=True)),
                "decision": decision,
                "acted_as": acted_as,
                "action": action,
                "operating_point": point if point >= 0 else None,
                "out_of_scope": outside,
                "decision_rule": rule,
                "decision_score": None if rule is None else score,
                "decision_threshold": None if rule is None else finite_or_none(threshold),
            }
            for (
                label,
                probs,
                decision,
                acted_as,
                action,
                point,
                outside,
                rule,
                score,
                threshold,
            ) in zip(
                self.label.tolist(),
                self.probabilities.tolist(),
                self.decision.tolist(),
                self.acted_as.tolist(),
                self.action.tolist(),
                self.operating_point.tolist(),
                self.out_of_scope.tolist(),
                self.decision_rule.tolist(),
                self.decision_score.tolist(),
                self.decision_threshold.tolist(),
                strict=True,
            )
        ]

    def to_dict(self) -> dict[str, Any]:
        """Return the decisions as JSON values."""
        return {
            "n": len(self),
            "decisions": self.counts,
            "classes": list(self.classes),
            "rows": self.to_rows(),
        }

    def __str__(self) -> str:
        parts = ", ".join(f"{n:,} {word}" for word, n in self.counts.items())
        outside = int(np.count_nonzero(self.out_of_scope))
        scope = f" ({outside:,} out of scope)" if self.scope_checked else ""
        return f"{len(self):,} {'row' if len(self) == 1 else 'rows'}: {parts}{scope}."

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


@dataclass(frozen=True)
class RuleDecision:
    """Rows to which one rule applies."""

    entry: int  # position of the operating point
    rule: str
    acts: NDArray[np.bool_]  # (n,) whether the rule applies
    of: IntArray  # (n,) position of the class that is acted on, -1 for cleared rows
    clears: bool  # whether the rule clears rows
    scores: FloatArray  # (n,) decision scores
    threshold: float


def to_rule_decision(position: int, rule: Rule, outcome: RuleOutcome) -> RuleDecision:
    """Name what a rule of the operating point at `position` says about rows."""
    limit = rule.point.decision_threshold
    return RuleDecision(position, rule.name, *outcome[:2], rule.clears, outcome.scores, limit)


def decide_rows(
    classes: Sequence[Any],
    probabilities: FloatArray,
    verdicts: Sequence[RuleDecision],
    *,
    actions: Sequence[str | None],
    out_of_scope: NDArray[np.bool_] | None = None,
) -> Decisions:
    """Choose the deciding rule of each row: among those that act, that of the most probable class.

    A row is cleared only if no rule acts on it. A row out of scope is neither acted on nor cleared.
    """
    n, rows = len(probabilities), np.arange(len(probabilities))
    flagged = np.zeros(n, dtype=bool) if out_of_scope is None else out_of_scope
    verdicts = [replace(each, acts=each.acts & ~flagged) for each in verdicts]
    acting = [(i, verdict) for i, verdict in enumerate(verdicts) if not verdict.clears]
    clearing = [(i, verdict) for i, verdict in enumerate(verdicts) if verdict.clears]
    entry, column, rule = np.full(n, -1), np.full(n, -1), np.full(n, -1)
    best, closest = np.full(n, -1.0), np.full(n, -1.0)
    for i, verdict in acting:  # in case no rule decides: the most probable class
        prob = probabilities[rows, verdict.of]
        closer = (prob > closest) & ~flagged
        rule[closer], closest[closer] = i, prob[closer]
    for i, verdict in clearing:
        cleared = verdict.acts & (entry < 0)
        entry[cleared], rule[cleared] = verdict.entry, i
    for i, verdict in acting:
        prob = probabilities[rows, verdict.of]
        better = verdict.acts & (prob > best)
        entry[better], column[better], rule[better], best[better] = (
            verdict.entry, verdict.of[better], i, prob[better],
        )  # fmt: skip
    act, clear, abstain = WORDS
    return Decisions(
        classes=tuple(classes),
        label=_name_array(classes)[probabilities.argmax(axis=1)],
        probabilities=probabilities,
        decision=np.where(column >= 0, act, np.where(entry >= 0, clear, abstain)),
        acted_as=_object_array([*classes, None])[column],
        action=_object_array([*actions, None])[column],
        operating_point=entry,
        rules=tuple(verdict.rule for verdict in verdicts),
        acts=np.column_stack([verdict.acts for verdict in verdicts]),
        out_of_scope=flagged,
        scope_checked=out_of_scope is not None,
        scores=np.column_stack([verdict.scores for verdict in verdicts]),
        thresholds=np.array([verdict.threshold for verdict in verdicts]),
        rule=rule,
    )


def finite_or_none(value: float) -> float | None:
    """Return a number that JSON can hold; None for an infinite threshold."""
    return value if math.isfinite(value) else None


def _object_array(values: Sequence[Any]) -> NDArray[Any]:
    out = np.empty(len(values), dtype=object)
    out[:] = values
    return out


def _name_array(names: Sequence[Any]) -> NDArray[Any]:
    """Return names as an array of their type, or of objects for mixed types."""
    same = len({type(name) for name in names}) == 1
    return np.asarray(list(names)) if same else _object_array(names)
