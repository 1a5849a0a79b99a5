"""What each deciding rule makes of one row, and what it would with another threshold."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.bundle import Bundle, BundlePoint
from calibrant.bundle.decisions import RuleDecision, decide_rows
from calibrant.bundle.points import Rule
from calibrant.bundle.scores import ModelScores, class_positions
from calibrant.convert import log_odds_of, probs_from_logits
from calibrant.inputs import FloatArray
from calibrant.serving.scoring import ScoredRow
from calibrant.thresholds.scores import row_scores

__all__ = ["Outcome", "Reading", "Scope", "readings", "scope_of"]


@dataclass(frozen=True)
class Outcome:
    """What is decided about a row.

    Parameters
    ----------
    decision : "act", "clear", "abstain" or "out_of_scope"
    acted_as, action : the class that is acted on, and what is done then
    """

    decision: str
    acted_as: str | None = None
    action: str | None = None


@dataclass(frozen=True)
class Reading:
    """What one rule compared of a row.

    Parameters
    ----------
    place : position of its operating point
    rule : the rule
    calibrated : whether it looks at calibrated scores
    prob, odds : the row's score, as a probability and as log-odds
    reached : whether the score reaches the threshold
    decided : whether it is the rule that decided
    at_most, above : what is decided with a threshold of at most the row's score, and above it; the
        other rules stay as they are
    """

    place: int
    rule: Rule
    calibrated: bool
    prob: float
    odds: float
    reached: bool
    decided: bool
    at_most: Outcome
    above: Outcome

    @property
    def told_by_probs(self) -> bool:
        """Whether probabilities can tell the score from the threshold; else log-odds do."""
        return self.rule.point.told_by_probs

    @property
    def turns(self) -> bool:
        """Whether some threshold of this rule changes the decision."""
        return self.at_most != self.above


@dataclass(frozen=True)
class Scope:
    """How a row stands to the out-of-scope rule.

    Parameters
    ----------
    name : of the score
    score, limit : of the row, and above which one is out of scope
    outside : whether this one is
    judged : False where it is outside because the model cannot judge it, whatever it scores
    """

    name: str
    score: float
    limit: float
    outside: bool
    judged: bool = True


def readings(bundle: Bundle, row: ScoredRow, point: int | None = None) -> list[Reading]:
    """Return what every rule that has a say compared, in the order of the operating points."""
    logits = np.array([row.logits], dtype=np.float64)
    log_probs = None if bundle.calibration is None else bundle.calibration.log_probs(logits)
    given = ModelScores.from_input(bundle.classes, logits=logits)
    found: list[tuple[RuleDecision, Rule, tuple[float, float]]] = []
    for i in _deciding(bundle, point):
        each = bundle.points[i]
        said = each.apply_rules(given, log_probs, bundle.classes)
        scores = log_probs if each.decides_on == "calibrated" else logits
        assert scores is not None  # a bundle whose points need a calibrator has one
        for rule, (acts, of) in zip(each.rules, said, strict=True):
            verdict = RuleDecision(i, str(rule), acts, of, rule.clears)
            found.append((verdict, rule, _score(bundle, each, rule, scores)))
    verdicts = [verdict for verdict, _, _ in found]
    return [
        _reading(bundle, row, verdicts, place, rule, score)
        for place, (_, rule, score) in enumerate(found)
    ]


def scope_of(bundle: Bundle, row: ScoredRow) -> Scope | None:
    """Say how a row stands to the out-of-scope rule; None where there is none."""
    rule = bundle.ood
    if rule is None or row.out_of_scope is None:
        return None
    logits = np.array([row.logits], dtype=np.float64)
    return Scope(
        rule.score,
        float(rule.scores(logits)[0]),
        float(rule.limits(logits)[0]),
        row.out_of_scope,
        judged=not rule.cannot_judge(logits)[0],
    )


def _deciding(bundle: Bundle, point: int | None) -> list[int]:
    if point is not None:
        return [point]
    return [i for i in range(len(bundle.points)) if not bundle.is_alternative(i)]


def _score(
    bundle: Bundle, each: BundlePoint, rule: Rule, scores: FloatArray
) -> tuple[float, float]:
    """Return the one number that a rule looks at, as a probability and as log-odds."""
    point = rule.point
    order = class_positions(each.classes, bundle.classes, owners=("the point", "the bundle"))
    own = np.ascontiguousarray(scores[:, order])
    if point.on == "logits":
        odds = np.asarray(
            row_scores(own, on="logits", of=point.of, classes=point.classes), np.float64
        )
        return float(probs_from_logits(odds)[0]), float(odds[0])
    probs = np.exp(own) if each.decides_on == "calibrated" else probs_from_logits(own)
    prob = np.asarray(row_scores(probs, on="probs", of=point.of, classes=point.classes), np.float64)
    return float(prob[0]), float(log_odds_of(prob)[0])


def _reading(
    bundle: Bundle,
    row: ScoredRow,
    verdicts: Sequence[RuleDecision],
    place: int,
    rule: Rule,
    score: tuple[float, float],
) -> Reading:
    own = verdicts[place]
    with_it, without = (
        _outcome(bundle, row, [*verdicts[:place], _saying(own, acts), *verdicts[place + 1 :]])
        for acts in (True, False)
    )
    at_most, above = (without, with_it) if rule.clears else (with_it, without)
    return Reading(
        place=own.entry,
        rule=rule,
        calibrated=bundle.points[own.entry].decides_on == "calibrated",
        prob=score[0],
        odds=score[1],
        reached=bool(own.acts[0]) != rule.clears,
        decided=row.operating_point == own.entry and _is_of(row, rule),
        at_most=at_most,
        above=above,
    )


def _saying(verdict: RuleDecision, acts: bool) -> RuleDecision:
    return replace(verdict, acts=np.array([acts]))


def _outcome(bundle: Bundle, row: ScoredRow, verdicts: Sequence[RuleDecision]) -> Outcome:
    """Decide about the row by other verdicts, with the code that decides for all."""
    if row.out_of_scope:
        return Outcome("out_of_scope")
    made = decide_rows(
        bundle.classes,
        np.array([row.probs]),
        verdicts,
        actions=[bundle.actions.get(str(name)) for name in bundle.classes],
    )
    acted_as, action = made.acted_as[0], made.action[0]
    return Outcome(str(made.decision[0]), None if acted_as is None else str(acted_as), action)


def _is_of(row: ScoredRow, rule: Rule) -> bool:
    """Whether a rule of the point that decided is the one that did."""
    if row.decision == "clear":
        return rule.clears
    of = rule.point.of
    return row.decision == "act" and not rule.clears and (of is None or str(of) == row.acted_as)
