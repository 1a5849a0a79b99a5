"""Rows that are never acted on, and rows that belong to no class."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from calibrant.errors import TargetUnreachable
from calibrant.reports.threshold.page import point_view
from calibrant.thresholds import OperatingPoint, check_transfer, precision, recall
from calibrant.thresholds.objective import resolve_objective
from calibrant.thresholds.proof.candidates import candidates_at_ends
from calibrant.thresholds.proof.keeping import screen_candidates
from calibrant.thresholds.proof.question import build_problem
from calibrant.thresholds.rates import Target
from calibrant.thresholds.selection import solve_problem


def _chosen(
    labels: Any, logits: Any, target: Target, confidence: float | None = 0.95, **masks: Any
) -> OperatingPoint:
    objective, sign = resolve_objective((target,), None, None)
    rates = [target.rate, objective]
    problem = build_problem(labels, None, logits, rates, needs_both=False, **masks)
    return solve_problem(problem, (target,), objective, sign, confidence=confidence)


def _world(n: int, seed: int) -> tuple[Any, Any]:
    rng = np.random.default_rng(seed)
    logits = rng.normal(0, 2, n)
    return rng.random(n) < 1 / (1 + np.exp(-logits)), logits


def test_masks_that_mark_no_row_change_nothing() -> None:
    labels, logits = _world(2000, 0)
    nobody = np.zeros(2000, dtype=bool)
    plain = _chosen(labels, logits, precision >= 0.8)
    masked = _chosen(labels, logits, precision >= 0.8, withheld=nobody, outside=nobody)
    assert masked.to_dict() == plain.to_dict()


def test_withheld_rows_count_as_passed_over() -> None:
    # By hand: of five positives the surest is withheld, so acting on all others finds four.
    labels, logits = np.array([1, 1, 1, 1, 1, 0]), np.array([5.0, 4.0, 3.0, 2.0, 1.0, -1.0])
    withheld = np.array([True, False, False, False, False, False])
    point = _chosen(labels, logits, recall >= 0.8, None, withheld=withheld)
    assert point["recall"].value == pytest.approx(4 / 5)
    assert point["precision"].value == 1.0


def test_acting_on_every_row_let_through_needs_no_score() -> None:
    labels, logits = np.ones(100), np.linspace(-3, 3, 100)
    withheld = np.arange(100) < 10
    point = _chosen(labels, logits, precision >= 0.8, withheld=withheld)
    assert (point.threshold, point.logit) == (0.0, -np.inf)
    assert point["coverage"].value == pytest.approx(0.9)


def test_a_recall_that_withheld_rows_rule_out_is_unreachable() -> None:
    labels, logits = np.ones(1000), np.linspace(-3, 3, 1000)
    with pytest.raises(TargetUnreachable) as caught:
        _chosen(labels, logits, recall >= 0.95, withheld=np.arange(1000) % 10 == 0)
    assert caught.value.labels_needed is None
    assert caught.value.best is not None
    assert caught.value.best < 0.9


def test_rows_of_no_class_are_wrong_to_act_on() -> None:
    labels, logits = np.array([1, 1, 1, 1, 0]), np.array([5.0, 4.0, 3.0, 2.0, 1.0])
    outside = np.array([False, True, False, False, False])
    point = _chosen(labels, logits, precision >= 0.75, None, outside=outside)
    assert point["precision"].value == pytest.approx(3 / 4)
    assert point["recall"].value == 1.0


def test_later_rows_are_judged_with_the_same_masks() -> None:
    labels, logits = _world(3000, 1)
    point = _chosen(labels, logits, precision >= 0.8)
    acted = point.act(logits=logits)
    wrong = acted & ~labels
    before = check_transfer(point, labels, logits=logits).checks[0]
    after = check_transfer(point, labels, logits=logits, withheld=wrong).checks[0]
    outside = check_transfer(point, labels, logits=logits, outside=acted).checks[0]
    assert after.value == 1.0
    assert after.n == before.n - int(wrong.sum())
    assert outside.value == 0.0


def test_the_curve_of_a_page_stops_at_the_withheld_rows() -> None:
    labels, logits = _world(500, 2)
    withheld = np.arange(500) % 5 == 0
    point = _chosen(labels, logits, precision >= 0.7, withheld=withheld)
    view = point_view(
        point, labels=labels, scores=logits, on="logits", classes=[False, True], withheld=withheld
    )
    assert view.curve.acted.max() == 400
    assert np.isfinite(view.curve.logit).all()


def test_promises_with_withheld_and_outside_rows_are_kept() -> None:
    """A label rate just below the target everywhere: whatever is promised here is broken."""
    rng = np.random.default_rng(0)
    broken, repetitions, n = 0, 400, 600
    target = precision >= 0.8
    for _ in range(repetitions):
        # Among rows let through, 0.9 * 0.878 = 0.79 are right to act on, whatever the score.
        problem = build_problem(
            rng.random(n) < 0.878, None, rng.normal(size=n), [target.rate], needs_both=False,
            withheld=rng.random(n) < 0.05, outside=rng.random(n) < 0.1,
        )  # fmt: skip
        found = candidates_at_ends(problem)
        broken += bool(screen_candidates(problem.rows, found, (target,), 0.05).any())
    assert broken <= repetitions * 0.05 + 3 * np.sqrt(repetitions * 0.05 * 0.95)


def test_the_curve_of_many_rows_with_weights_stops_there_too() -> None:
    labels, logits = _world(6000, 3)
    withheld = logits < -1.0
    weights = np.where(labels, 1.0, 2.0)
    point = _chosen(labels, logits, precision >= 0.5, None, withheld=withheld)
    view = point_view(
        point, labels=labels, scores=logits, on="logits", classes=[False, True],
        weights=weights, withheld=withheld,
    )  # fmt: skip
    assert view.curve.acted.max() == int((~withheld).sum())


def test_no_forecast_is_made_where_the_withheld_rows_stand_in_the_way() -> None:
    # 91 % of the positives may be acted on: that meets 90 %, but 1,000 rows do not prove it.
    labels, logits = np.ones(1000), np.linspace(-3, 3, 1000)
    with pytest.raises(TargetUnreachable) as caught:
        _chosen(labels, logits, recall >= 0.9, withheld=np.arange(1000) < 90)
    assert caught.value.labels_needed is None or caught.value.labels_needed > 1000
