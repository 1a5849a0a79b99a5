"""What the Thresholds page shows: a threshold, what others would do, and what was asked of it."""

from __future__ import annotations

from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any

import numpy as np

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
    threshold_words,
)
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.thresholds.rows import AskedRows
from calibrant.serving.console.pages.thresholds.rules import (
    Choice,
    Current,
    choices_of,
    current_of,
    positions_told,
    promised,
    together_of,
)
from calibrant.serving.console.pages.thresholds.tried import Tried, why_not_saved
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.http.problems import Problem
from calibrant.thresholds.chosen import DEFAULT_CONFIDENCE, measure_rates
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.rates import LARGEST_COST, Cost

__all__ = ["Costs", "Look", "choice_named", "explored", "points_data", "read_costs", "rows_of"]

_NO_ROWS = (
    "This bundle has no calibrate rows, so there is nothing to draw a curve from or to prove a "
    "promise on. Bundles of calibrant train have them; for a classifier of your own, pack again "
    "with calibrant pack --calib SCORES."
)


@dataclass(frozen=True)
class Costs:
    """What wrong decisions cost, as typed.

    Parameters
    ----------
    fp, fn : as typed, to show them again
    cost : what they make; None where none are given, or wrong ones
    fault : what is wrong with them
    """

    fp: str = ""
    fn: str = ""
    cost: Cost | None = None
    fault: str = ""


@dataclass(frozen=True)
class Look:
    """What a visitor looks at.

    Parameters
    ----------
    served : the bundle
    choice : one of its thresholds
    costs : what wrong decisions cost
    tried : the target that they want to see, or None
    """

    served: Served
    choice: Choice
    costs: Costs
    tried: Tried | None = None

    @property
    def current(self) -> Current | None:
        """The threshold that decides now."""
        return current_of(self.served.bundle, self.choice)

    @property
    def decides_on(self) -> DecidesOn:
        """The scores that the curve is about: those of the threshold that is marked."""
        if self.tried is not None or self.current is None:
            return "raw"
        return self.current.decides_on


def rows_of(served: Served) -> tuple[AskedRows | None, str]:
    """Return the calibrate rows of a bundle, and why there are none where there are none."""
    try:
        calib = served.bundle.calib
    except CalibrantError as error:
        return None, sentence(f"the calibrate rows cannot be read: {error}")
    return (None, _NO_ROWS) if calib is None else (AskedRows(served, calib), "")


def choice_named(served: Served, code: str | None) -> Choice:
    """Return a threshold by its code; by default the first that decides."""
    choices = choices_of(served.bundle)
    if code is None:
        return choices[0]
    for each in choices:
        if each.code == code:
            return each
    raise Problem(
        HTTPStatus.NOT_FOUND,
        f"this bundle has no threshold {code[:40]!r}: choose one from the list of the page.",
    )


def read_costs(form: Form) -> Costs:
    """Read what wrong decisions cost."""
    typed = Costs(form.fields.get("fp", "")[:40], form.fields.get("fn", "")[:40])
    try:
        fp, fn = (form.number(name, low=0.0, high=LARGEST_COST) for name in ("fp", "fn"))
        if fp is None and fn is None:
            return typed
        if fp is None or fn is None:
            return replace(typed, fault="Give both costs, or neither.")
        return replace(typed, cost=Cost(fp, fn))
    except Problem:
        return replace(typed, fault=f"Costs are numbers above 0, up to {LARGEST_COST:g}.")
    except InputError:
        return replace(typed, fault="A wrong decision must cost more than 0.")


def explored(look: Look, rows: AskedRows) -> dict[str, Any] | None:
    """Gather the curve, what it says of the marked threshold, and what was tried.

    None where every row is out of scope, so that no threshold acts on any.
    """
    view = _view(look, rows)
    if not len(view.curve.threshold):
        return None
    part = section_data(view, 0)
    return {
        "part": part,
        "charts": [chart_data(view)],
        "marked": view.point is not None,
        "on": look.decides_on,
        "costs": _cost_words(view),
        "tried": None if look.tried is None else _tried_data(look, look.tried, rows),
        "threshold": _typed(view),
        "positions": positions_told(look.served.bundle, look.choice, look.decides_on),
    }


def points_data(look: Look) -> dict[str, Any]:
    """Gather every point of the bundle: what it decides, and what it promises."""
    bundle = look.served.bundle
    listed = [
        {
            "entry": i,
            "about": _about(rule.point.of, rule.clears),
            "threshold": threshold_words(rule.point.threshold, rule.point.logit),
            "scores": "calibrated" if each.decides_on == "calibrated" else "the model's own",
            "promise": _promise(rule.point),
            "alternative": bundle.is_alternative(i),
        }
        for i, each in enumerate(bundle.points)
        for rule in each.rules
    ]
    return {
        "listed": listed,
        "promises": promised(bundle.points),
        "together": _few(together_of(bundle) or 0.0),
    }


def _promise(point: OperatingPoint) -> str:
    said = point.guarantee or sentence(f"no promise: {point.why}")
    return said.replace(" %", "\N{NO-BREAK SPACE}%")


def _view(look: Look, rows: AskedRows) -> PointView:
    """Put the marked threshold beside what every other one would do."""
    result = _marked(look, rows)
    curve = rows.curve(look.choice, result, look.decides_on)
    cost = look.costs.cost or (result.cost if isinstance(result, OperatingPoint) else None)
    if look.choice.of is None or look.choice.clears:
        cost = None
    return PointView(result, curve, cost, "clear" if look.choice.clears else "")


def _marked(look: Look, rows: AskedRows) -> OperatingPoint | TargetUnreachable:
    """Return what is marked: what was tried, else what decides now, else nothing."""
    if look.tried is not None:
        return look.tried.result
    if look.current is not None:
        # With the bundle's own classes: a point may name them otherwise, or in another order.
        point, classes = look.current.rule.point, look.served.bundle.classes
        point = replace(point, of=look.choice.of, classes=classes)
        if look.costs.cost is None:
            return point
        rates = {name: rate for name, rate in point.rates.items() if name != "cost"}
        return replace(point, cost=None, baseline=None, rates=rates)
    found = rows.question(look.choice, "raw").rows
    return TargetUnreachable(
        hold=(), n=found.n, positives=found.positives, confidence=None, of=look.choice.of,
        why="no target was asked for",
    )  # fmt: skip


def _tried_data(look: Look, tried: Tried, rows: AskedRows) -> dict[str, Any]:
    return {
        "id": tried.id,
        "text": tried.asked.text,
        "place": tried.place,
        "promises": tried.promises,
        "share": f"{100 * tried.share:.3g}\N{NO-BREAK SPACE}%",
        "confidence": _few(tried.confidence),
        "reached": isinstance(tried.result, OperatingPoint),
        "why_not": why_not_saved(look.served, tried),
        "together": None if tried.together is None else _few(tried.together),
        "together_before": None if tried.together_before is None else _few(tried.together_before),
        "lowered": tried.together != tried.together_before and tried.together_before is not None,
        "positions": positions_told(look.served.bundle, tried.choice, "raw"),
        "compared": _compared(look, tried, rows),
    }


def _compared(look: Look, tried: Tried, rows: AskedRows) -> list[dict[str, str]]:
    """Return the threshold of now beside the one that was certified, both on these rows."""
    new, current = tried.result, look.current
    if current is None or isinstance(new, TargetUnreachable):
        return []
    old = current.rule.point
    measured = [
        measure_rates(
            question, min(question.count_reaching(logit), question.rows.last), DEFAULT_CONFIDENCE
        )
        for question, logit in (
            (rows.question(look.choice, current.decides_on), old.logit),
            (rows.question(look.choice, "raw"), new.logit),
        )
    ]
    names = [target.rate.name for target in tried.asked.targets]
    usual = ["accuracy", "coverage"] if look.choice.of is None else ["precision", "recall"]
    usual = ["npv", "abstention"] if look.choice.clears else [*usual, "coverage"]
    kept = [name for name in dict.fromkeys([*names, *usual]) if name in measured[0]]
    table = [
        {
            "title": "Threshold",
            "now": threshold_words(old.threshold, old.logit),
            "now_more": "on calibrated scores" if current.decides_on == "calibrated" else "",
            "new": threshold_words(new.threshold, new.logit),
            "new_more": "",
        }
    ]
    for name in kept:
        now, then = (each[name] for each in measured)
        table.append(
            {
                "title": rate_title(name, look.choice.of),
                "now": rate_value(name, now.value),
                "now_more": measured_interval(old, name, now),
                "new": rate_value(name, then.value),
                "new_more": measured_interval(new, name, then),
            }
        )
    return table


def _cost_words(view: PointView) -> list[str]:
    """Say what the marked threshold costs on these rows, and which one costs least."""
    if view.cost is None:
        return []
    costs = view.curve.cost(view.cost)
    best = int(np.nanargmin(costs))
    least = threshold_words(float(view.curve.threshold[best]), float(view.curve.logit[best]))
    found = [f"On these rows, threshold {least} costs least: {number(float(costs[best]))} a row."]
    place = view.place
    if place is not None and place < len(costs):
        here = f"The marked threshold {view.words} costs {number(float(costs[place]))} a row."
        found.insert(0, here)
    return found


def _typed(view: PointView) -> dict[str, str]:
    """Return the marked threshold, or one in the middle, as a field holds it."""
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
    return f"{class_words(of)}, rows that are cleared" if clears else class_words(of)


def _few(share: float) -> str:
    """Write a share in percent with four digits that count."""
    return f"{100 * share:.4g}\N{NO-BREAK SPACE}%"
