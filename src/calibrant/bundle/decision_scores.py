"""Decision scores of single rows: what a rule compared, and with which threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.bundle.bundle import Bundle
from calibrant.bundle.decision_rules import DecisionRule
from calibrant.bundle.decisions import Decisions, finite_or_none
from calibrant.bundle.loading import assemble_bundle


@dataclass(frozen=True, slots=True)
class DecisionScore:
    """The decision score of a row, and the rule that compared it."""

    rule: DecisionRule  # that decided or, for a row left to a person, of the most probable class
    score: float  # on the scale of the rule's threshold

    @property
    def threshold(self) -> float:
        """The threshold that the score was compared with."""
        return self.rule.rule.point.decision_threshold

    def to_dict(self) -> dict[str, Any]:
        """Return the fields of an answer: keys may be added, never renamed."""
        calibrated = self.rule.calibrated
        return {
            "decision_rule": self.rule.rule.name,
            "decision_score": self.score,
            "decision_threshold": finite_or_none(self.threshold),
            "calibrated_threshold": None if calibrated is None else calibrated.prob,
        }


NO_SCORE: dict[str, Any] = dict.fromkeys(
    ("decision_rule", "decision_score", "decision_threshold", "calibrated_threshold")
)
"""The same fields for a row to which no rule was applied."""


def score_decisions(
    decisions: Decisions, rules: Sequence[DecisionRule]
) -> list[DecisionScore | None]:
    """Return the decision score of each row; None for rows out of scope."""
    scores = decisions.decision_score.tolist()
    return [
        DecisionScore(rules[i], score) if i >= 0 else None
        for i, score in zip(decisions.rule.tolist(), scores, strict=True)
    ]


def rebuild_bundle(manifest: dict[str, Any]) -> Bundle:
    """Rebuild a bundle from a recorded manifest, without its model: it takes logits."""
    return assemble_bundle(manifest, Path(), None)


def score_logits(
    bundle: Bundle, logits: Sequence[Sequence[float]], point: int | None = None
) -> list[DecisionScore | None]:
    """Return the decision score of each row of logits; None without an operating point."""
    if not bundle.points:
        return [None] * len(logits)
    decisions = bundle.decide(logits=np.array(logits, dtype=np.float64), point=point)
    return score_decisions(decisions, bundle.active_rules(point))
