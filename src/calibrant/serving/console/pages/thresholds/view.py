"""Data of the Thresholds page: current threshold, operating curve and tried target."""

from __future__ import annotations

from dataclasses import astuple, dataclass, replace
from http import HTTPStatus
from typing import Any

import numpy as np

from calibrant.bundle.decision_rules import calibrate_threshold
from calibrant.bundle.points import DecidesOn
from calibrant.errors import CalibrantError, InputError, TargetUnreachable
from calibrant.formatting import number, sentence
from calibrant.reports.threshold.section import section_data
from calibrant.reports.threshold.view import PointView, chart_data
from calibrant.reports.threshold.wording import (
    class_words,
    measured_interval,
    rate_title,
    rate_value,
    same_place_words,
    threshold_words,
)
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.thresholds.rows import CachedRows
from calibrant.serving.console.pages.thresholds.rules import (
    CurrentThreshold,
    ThresholdChoice,
    count_promises,
    describe_positions,
    find_current,
    joint_confidence,
    list_choices,
)
from calibrant.serving.console.pages.thresholds.tried import TriedTarget, unsavable_reason
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.http.problems import Problem
from calibrant.thresholds.chosen import DEFAULT_CONFIDENCE, measure_rates
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.rates import LARGEST_COST, Cost

_NO_ROWS = (
    "This bundle has no calibrate rows, which are needed to draw the curve and to certify a "
    "promise. Bundles from calibrant train include them; for your own classifier, pack it again "
    "with calibrant pack --calib SCORES."
)


@dataclass(frozen=True)
class Costs:
    """Costs of wrong decisions, as typed."""

    fp: str = ""  # as typed, to show it again
    fn: str = ""
    cost: Cost | None = None
    fault: str = ""


@dataclass(frozen=True)
class Selection:
    """What a visitor selected on the page."""

    served: Served
    choice: ThresholdChoice
    costs: Costs
    tried: TriedTarget | None = None  # target to show, or None

    @property
    def current(self) -> CurrentThreshold | None:
        """The threshold that currently decides."""
        return find_current(self.served.bundle, self.choice)

    @property
    def decides_on(self) -> DecidesOn:
        """Scores of the curve: those of the marked threshold."""
        if self.tried is not None or self.current is None:
            return "raw"
        return self.current.decides_on


def load_rows(served: Served) -> tuple[CachedRows | None, str]:
    """Return the calibrate rows of a bundle, or the reason there are none."""
    try:
        calib = served.bundle.calib
    except CalibrantError as error:
        return None, sentence(f"the calibrate rows cannot be read: {error}")
    return (None, _NO_ROWS) if calib is None else (CachedRows(served, calib), "")


def find_choice(served: Served, code: str | None) -> ThresholdChoice:
    """Return a threshold by its code; by default the first one that decides."""
    choices = list_choices(served.bundle)
    if code is None:
        return choices[0]
    for each in choices:
        if each.code == code:
            return each
    raise Problem(
        HTTPStatus.NOT_FOUND,
        f"this bundle has no threshold {code[:40]!r}: select one from the list on the page.",
    )


def read_costs(form: Form) -> Costs:
    """Parse the costs of wrong decisions."""
    typed = Costs(form.fields.get("fp", "")[:40], form.fields.get("fn", "")[:40])
    try:
        fp, fn = (form.number(name, low=0.0, high=LARGEST_COST) for name in ("fp", "fn"))
        if fp is None and fn is None:
            return typed
        if fp is None or fn is None:
            return replace(typed, fault="Enter both costs or neither.")
        return replace(typed, cost=Cost(fp, fn))
    except Problem:
        return replace(typed, fault=f"Costs must be numbers above 0 and at most {LARGEST_COST:g}.")
    except InputError:
        return replace(typed, fault="Both costs must be greater than 0.")


def explorer_data(selection: Selection, rows: CachedRows) -> dict[str, Any] | None:
    """Gather the curve, the marked threshold, and the tried target.

    None if every row is out of scope, so that no threshold acts on any of them.
    """
    view = _point_view(selection, rows)
    if not len(view.curve.threshold):
        return None
    part = section_data(view, 0, source=_score_source(selection))
    return {
        "part": part,
        "place": _place_words(selection, view.point),
        "charts": [chart_data(view)],
        "marked": view.point is not None,
        "on": selection.decides_on,
        "costs": _cost_words(view),
        "tried": None if selection.tried is None else _tried_data(selection, selection.tried, rows),
        "threshold": _threshold_field(view),
        "positions": describe_positions(
            selection.served.bundle, selection.choice, selection.decides_on
        ),
    }


def _score_source(selection: Selection) -> str:
    """Name whose probabilities the decision scores of the curve are."""
    if selection.decides_on == "calibrated":
        return "calibrated"
    return "model’s own" if selection.served.bundle.changes_probabilities else ""


def _place_words(selection: Selection, point: OperatingPoint | None) -> str:
    """Say where the marked threshold lies among calibrated probabilities; empty if nowhere else."""
    bundle = selection.served.bundle
    raw = selection.decides_on == "raw" and bundle.changes_probabilities
    if not raw or point is None or bundle.calibration is None:
        return ""
    place = calibrate_threshold(bundle.calibration, point, bundle.classes)
    if place is None:
        return ""
    shown = threshold_words(point.threshold, point.logit)
    return same_place_words(shown, place.prob, place.logit)


def points_data(selection: Selection) -> dict[str, Any]:
    """Gather every point of the bundle: threshold, scores and promise."""
    bundle = selection.served.bundle
    listed = [
        {
            "entry": each.position,
            "about": _about(each.rule.point.of, each.rule.clears),
            "threshold": threshold_words(each.rule.point.threshold, each.rule.point.logit),
            "calibrated": "" if each.moved is None else threshold_words(*astuple(each.moved)),
            "score": "the calibrated probability"
            if each.decides_on == "calibrated"
            else "the model’s own probability",
            "promise": _promise(each.rule.point),
            "alternative": each.alternative,
        }
        for each in bundle.decision_rules
    ]
    return {
        "listed": listed,
        "promises": count_promises(bundle.points),
        "joint": _percent(joint_confidence(bundle) or 0.0),
    }


def _promise(point: OperatingPoint) -> str:
    promise = point.guarantee or sentence(f"no promise: {point.why}")
    return promise.replace(" %", "\N{NO-BREAK SPACE}%")


def _point_view(selection: Selection, rows: CachedRows) -> PointView:
    """Return the marked threshold together with the curve."""
    result = _marked_result(selection, rows)
    curve = rows.curve(selection.choice, result, selection.decides_on)
    cost = selection.costs.cost or (result.cost if isinstance(result, OperatingPoint) else None)
    if selection.choice.of is None or selection.choice.clears:
        cost = None
    return PointView(result, curve, cost, "clear" if selection.choice.clears else "")


def _marked_result(selection: Selection, rows: CachedRows) -> OperatingPoint | TargetUnreachable:
    """Return the result to mark: the tried target, else the current threshold, else none."""
    if selection.tried is not None:
        return selection.tried.result
    if selection.current is not None:
        # Use the bundle's classes: a point may have other types or another order.
        point, classes = selection.current.rule.point, selection.served.bundle.classes
        point = replace(point, of=selection.choice.of, classes=classes)
        if selection.costs.cost is None:
            return point
        rates = {name: rate for name, rate in point.rates.items() if name != "cost"}
        return replace(point, cost=None, baseline=None, rates=rates)
    labelled = rows.build_problem(selection.choice, "raw").rows
    return TargetUnreachable(
        hold=(), n=labelled.n, positives=labelled.positives, confidence=None,
        of=selection.choice.of, why="no target was given",
    )  # fmt: skip


def _tried_data(selection: Selection, tried: TriedTarget, rows: CachedRows) -> dict[str, Any]:
    return {
        "id": tried.id,
        "text": tried.target.text,
        "number": tried.number,
        "promises": tried.promises,
        "share": f"{100 * tried.share:.3g}\N{NO-BREAK SPACE}%",
        "confidence": _percent(tried.confidence),
        "reached": isinstance(tried.result, OperatingPoint),
        "why_not": unsavable_reason(selection.served, tried),
        "joint": None if tried.joint is None else _percent(tried.joint),
        "joint_before": None if tried.joint_before is None else _percent(tried.joint_before),
        "lowered": tried.joint != tried.joint_before and tried.joint_before is not None,
        "positions": describe_positions(selection.served.bundle, tried.choice, "raw"),
        "compared": _comparison_rows(selection, tried, rows),
    }


def _comparison_rows(
    selection: Selection, tried: TriedTarget, rows: CachedRows
) -> list[dict[str, str]]:
    """Return the current and the certified threshold side by side on these rows."""
    new, current = tried.result, selection.current
    if current is None or isinstance(new, TargetUnreachable):
        return []
    old = current.rule.point
    measured = [
        measure_rates(
            question, min(question.count_reaching(logit), question.rows.last), DEFAULT_CONFIDENCE
        )
        for question, logit in (
            (rows.build_problem(selection.choice, current.decides_on), old.logit),
            (rows.build_problem(selection.choice, "raw"), new.logit),
        )
    ]
    names = [target.rate.name for target in tried.target.targets]
    usual = ["accuracy", "coverage"] if selection.choice.of is None else ["precision", "recall"]
    usual = ["npv", "abstention"] if selection.choice.clears else [*usual, "coverage"]
    shown = [name for name in dict.fromkeys([*names, *usual]) if name in measured[0]]
    table = [
        {
            "title": "Threshold on the decision score",
            "now": threshold_words(old.threshold, old.logit),
            "now_more": "a calibrated probability" if current.decides_on == "calibrated" else "",
            "new": threshold_words(new.threshold, new.logit),
            "new_more": "",
        }
    ]
    for name in shown:
        now, then = (each[name] for each in measured)
        table.append(
            {
                "title": rate_title(name, selection.choice.of),
                "now": rate_value(name, now.value),
                "now_more": measured_interval(old, name, now),
                "new": rate_value(name, then.value),
                "new_more": measured_interval(new, name, then),
            }
        )
    return table


def _cost_words(view: PointView) -> list[str]:
    """Describe the cost at the marked threshold, and the threshold with the lowest cost."""
    if view.cost is None:
        return []
    costs = view.curve.cost(view.cost)
    best = int(np.nanargmin(costs))
    least = threshold_words(float(view.curve.threshold[best]), float(view.curve.logit[best]))
    lowest = number(float(costs[best]))
    sentences = [
        f"On these rows, a decision score of {least} has the lowest cost: {lowest} per row."
    ]
    place = view.place
    if place is not None and place < len(costs):
        marked = f"The marked threshold {view.words} costs {number(float(costs[place]))} per row."
        sentences.insert(0, marked)
    return sentences


def _threshold_field(view: PointView) -> dict[str, str]:
    """Return the marked threshold, or a middle one, as shown in the form."""
    place = view.place
    if place is None or place >= len(view.curve.threshold):
        place = len(view.curve.threshold) // 2
    point = view.point
    prob = float(view.curve.threshold[place]) if point is None else point.threshold
    logit = float(view.curve.logit[place]) if point is None else point.logit
    saturated = not 0.0 < prob < 1.0 and np.isfinite(logit)
    return {
        "value": f"{logit:.10g}" if saturated else f"{prob:.10g}",
        "unit": "log-odds" if saturated else "probability",
    }


def _about(of: object, clears: bool) -> str:
    return f"{class_words(of)}, cleared rows" if clears else class_words(of)


def _percent(share: float) -> str:
    """Format a share in percent with four significant digits."""
    return f"{100 * share:.4g}\N{NO-BREAK SPACE}%"
