"""Comparisons of each rule for one row, and the decision at other thresholds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.bundle import Bundle, BundlePoint
from calibrant.bundle.decisions import RuleDecision, decide_rows, to_rule_decision
from calibrant.bundle.points import Rule
from calibrant.bundle.scores import ModelScores, class_positions
from calibrant.convert import log_odds_of, probs_from_logits
from calibrant.inputs import FloatArray
from calibrant.serving.console.pages.model.points import place_words
from calibrant.serving.scoring import ScoredRow
from calibrant.thresholds.scores import row_scores


@dataclass(frozen=True)
class RowDecision:
    """Decision about a row."""

    decision: str  # "act", "clear", "abstain" or "out_of_scope"
    acted_as: str | None = None  # class acted on
    action: str | None = None


@dataclass(frozen=True)
class RuleComparison:
    """Comparison of one rule for a row."""

    position: int  # position of its operating point
    rule: Rule
    calibrated: bool  # whether it compares calibrated scores
    prob: float  # score of the row; `odds` are its log-odds
    odds: float
    reached: bool  # whether the score reaches the threshold
    decided: bool  # whether the rule made the decision
    at_most: RowDecision  # decision with the threshold at or below the row's score
    above: RowDecision  # with the threshold above it
    place: str = ""  # where the threshold lies among calibrated probabilities, if elsewhere

    @property
    def resolved_by_probs(self) -> bool:
        """Whether probabilities resolve score and threshold; otherwise log-odds do."""
        return self.rule.point.works_on_probs

    @property
    def turns(self) -> bool:
        """Whether some threshold of this rule changes the decision."""
        return self.at_most != self.above


@dataclass(frozen=True)
class ScopeCheck:
    """Check of a row by the out-of-scope rule."""

    name: str
    score: float
    limit: float  # the limit above which a row is out of scope
    outside: bool  # whether the row is out of scope
    # False if the row is out of scope because the model cannot judge it, whatever its score
    judged: bool = True


def compare_rules(bundle: Bundle, row: ScoredRow, point: int | None = None) -> list[RuleComparison]:
    """Return the comparisons of every rule involved, in the order of the operating points."""
    logits = np.array([row.logits], dtype=np.float64)
    log_probs = None if bundle.calibration is None else bundle.calibration.log_probs(logits)
    inputs = ModelScores.from_input(bundle.classes, logits=logits)
    comparisons: list[tuple[RuleDecision, Rule, tuple[float, float]]] = []
    for i in _deciding_points(bundle, point):
        bundle_point = bundle.points[i]
        point_verdicts = bundle_point.apply_rules(inputs, log_probs, bundle.classes)
        scores = log_probs if bundle_point.decides_on == "calibrated" else logits
        assert scores is not None  # a bundle whose points need a calibrator has one
        for rule, outcome in zip(bundle_point.rules, point_verdicts, strict=True):
            verdict = to_rule_decision(i, rule, outcome)
            comparisons.append((verdict, rule, _score(bundle, bundle_point, rule, scores)))
    verdicts = [verdict for verdict, _, _ in comparisons]
    return [
        _compare_rule(bundle, row, verdicts, i, rule, score)
        for i, (_, rule, score) in enumerate(comparisons)
    ]


def check_scope(bundle: Bundle, row: ScoredRow) -> ScopeCheck | None:
    """Check a row by the out-of-scope rule; None without a rule."""
    rule = bundle.ood
    if rule is None or row.out_of_scope is None:
        return None
    logits = np.array([row.logits], dtype=np.float64)
    return ScopeCheck(
        rule.score,
        float(rule.scores(logits)[0]),
        float(rule.limits(logits)[0]),
        row.out_of_scope,
        judged=not rule.cannot_judge(logits)[0],
    )


def _deciding_points(bundle: Bundle, point: int | None) -> list[int]:
    if point is not None:
        return [point]
    return [i for i in range(len(bundle.points)) if not bundle.is_alternative(i)]


def _score(
    bundle: Bundle, each: BundlePoint, rule: Rule, scores: FloatArray
) -> tuple[float, float]:
    """Return the score that a rule compares, as a probability and as log-odds."""
    point = rule.point
    order = class_positions(each.classes, bundle.classes, owners=("the point", "the bundle"))
    ordered = np.ascontiguousarray(scores[:, order])
    if point.on == "logits":
        odds = np.asarray(
            row_scores(ordered, on="logits", of=point.of, classes=point.classes), np.float64
        )
        return float(probs_from_logits(odds)[0]), float(odds[0])
    probs = np.exp(ordered) if each.decides_on == "calibrated" else probs_from_logits(ordered)
    prob = np.asarray(row_scores(probs, on="probs", of=point.of, classes=point.classes), np.float64)
    return float(prob[0]), float(log_odds_of(prob)[0])


def _compare_rule(
    bundle: Bundle,
    row: ScoredRow,
    verdicts: Sequence[RuleDecision],
    index: int,
    rule: Rule,
    score: tuple[float, float],
) -> RuleComparison:
    verdict = verdicts[index]
    with_it, without_it = (
        _decide_row(
            bundle, row, [*verdicts[:index], _with_verdict(verdict, acts), *verdicts[index + 1 :]]
        )
        for acts in (True, False)
    )
    at_most, above = (without_it, with_it) if rule.clears else (with_it, without_it)
    return RuleComparison(
        position=verdict.entry,
        rule=rule,
        calibrated=bundle.points[verdict.entry].decides_on == "calibrated",
        prob=score[0],
        odds=score[1],
        reached=bool(verdict.acts[0]) != rule.clears,
        decided=row.operating_point == verdict.entry and _is_deciding(row, rule),
        at_most=at_most,
        above=above,
        place=place_words(bundle, verdict.entry, rule),
    )


def _with_verdict(verdict: RuleDecision, acts: bool) -> RuleDecision:
    return replace(verdict, acts=np.array([acts]))


def _decide_row(bundle: Bundle, row: ScoredRow, verdicts: Sequence[RuleDecision]) -> RowDecision:
    """Decide about a row with other verdicts, using the code of serving."""
    if row.out_of_scope:
        return RowDecision("out_of_scope")
    decisions = decide_rows(
        bundle.classes,
        np.array([row.probs]),
        verdicts,
        actions=[bundle.actions.get(str(name)) for name in bundle.classes],
    )
    acted_as, action = decisions.acted_as[0], decisions.action[0]
    return RowDecision(
        str(decisions.decision[0]), None if acted_as is None else str(acted_as), action
    )


def _is_deciding(row: ScoredRow, rule: Rule) -> bool:
    """Whether a rule of the deciding point made the decision."""
    if row.decision == "clear":
        return rule.clears
    of = rule.point.of
    return row.decision == "act" and not rule.clears and (of is None or str(of) == row.acted_as)
