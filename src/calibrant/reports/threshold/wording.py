"""Text of thresholds, rates and targets."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable

from calibrant.errors import TargetUnreachable
from calibrant.formatting import number, percent, quote_name
from calibrant.results import Interval
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.rates import RATES, RateValue

Aim = tuple[str, str, float]  # A target: the name of the rate, ">=" or "<=", and the value

_TITLES = {
    "precision": "Precision",
    "recall": "Recall",
    "specificity": "Specificity",
    "fpr": "False positive rate",
    "npv": "Negative predictive value",
    "false_discovery": "False discovery rate",
    "accuracy": "Accuracy",
    "coverage": "Share acted on",
    "abstention": "Share passed over",
    "cost": "Expected cost",
}
_TOP_LABEL = {"coverage": "Share accepted", "abstention": "Share handed over"}
_MEANINGS = {
    "cost": "mean cost of a row",
    "coverage": "share of all rows that is acted on",
    "abstention": "share of all rows that is passed over",
}
_TOP_LABEL_MEANINGS = {
    "coverage": "share of all predictions that is accepted",
    "abstention": "share of all predictions that is handed to a person",
}
_MOST_DIGITS = 12


def rate_title(name: str, of: object = "") -> str:
    """Return the title of a rate; `of` is None if predictions of any class are accepted."""
    if of is None and name in _TOP_LABEL:
        return _TOP_LABEL[name]
    return _TITLES.get(name, name)


def rate_meaning(name: str, of: object = "") -> str:
    """Return the definition of a rate in words."""
    if of is None and name in _TOP_LABEL_MEANINGS:
        return _TOP_LABEL_MEANINGS[name]
    if name in _MEANINGS:
        return _MEANINGS[name]
    return RATES[name].words if name in RATES else ""


def rate_value(name: str, value: float | None) -> str:
    """Format a rate in percent, or an expected cost as a number."""
    return number(value) if name == "cost" else percent(value)


def rate_interval(name: str, interval: Interval | None) -> str:
    """Format the interval of a rate as `low to high`."""
    if interval is None:
        return ""
    return f"{rate_value(name, interval.low)} to {rate_value(name, interval.high)}"


def measured_interval(point: OperatingPoint, name: str, measured: RateValue | None = None) -> str:
    """Format the interval of a rate at a point; "by definition" if the rule itself fixes it."""
    rate = measured or point.rates[name]
    # On other rows, where some are withheld, the rate may differ.
    if rate.value in (0.0, 1.0) and point.settles(name):
        return "by definition"
    return rate_interval(name, rate.interval)


def threshold_words(threshold: float, logit: float | None = None) -> str:
    """Format a threshold with enough digits to distinguish it from 0 and 1."""
    edge = min(threshold, 1.0 - threshold)
    if edge > 0:
        digits = max(4, 2 - math.floor(math.log10(edge)))
        if digits <= _MOST_DIGITS or (threshold < 0.5 and digits < 300):
            few = f"{threshold:.3g}" if threshold < 0.001 else f"{threshold:.{digits}f}"
            return few.rstrip("0").rstrip(".") if "." in few and "e" not in few else few
    whole = "0" if threshold < 0.5 else "1"
    if logit is None or not math.isfinite(logit) or threshold == logit:
        return whole
    return f"{whole} (log-odds {logit:.4g})"


def score_source(of: object, *, source: str = "") -> str:
    """Describe the probability that a decision score is; `source` names whose it is."""
    whose = f"the {source} probability" if source else "the probability"
    return f"{whose} of {'the predicted class' if of is None else f'class {quote_name(of)}'}"


def decision_score_words(
    threshold: float, logit: float | None = None, *, calibrated: float | None = None
) -> str:
    """Format a threshold on the decision score, and its place among calibrated probabilities."""
    more = "" if calibrated is None else f" (calibrated probability {threshold_words(calibrated)})"
    return f"a decision score of {threshold_words(threshold, logit)}{more}"


def same_place_words(threshold: str, prob: float, logit: float | None = None) -> str:
    """Say where a threshold on the decision score lies among calibrated probabilities."""
    calibrated = threshold_words(prob, logit)
    return f"A decision score of {threshold} is a calibrated probability of {calibrated}."


def aims_of(result: OperatingPoint | TargetUnreachable) -> list[Aim]:
    """Return the targets of a result."""
    if isinstance(result, OperatingPoint):
        return [(target.rate.name, target.sense, target.value) for target in result.hold]
    return list(_parse_aims(result.hold))


def aim_words(aim: Aim) -> str:
    """Format a target: "precision is at least 85 %"."""
    name, sense, value = aim
    bound = "at least" if sense == ">=" else "at most"
    if name == "cost":
        return f"the expected cost is {bound} {value:.6g} a row"
    title = rate_title(name).lower()
    article = "" if name in ("precision", "recall", "specificity", "accuracy") else "the "
    return f"{article}{title} is {bound} {100 * value:.6g} %"


def class_words(of: object) -> str:
    """Return the class that is acted on, in words."""
    return "predictions of any class" if of is None else f"class {quote_name(of)}"


def _parse_aims(hold: Iterable[str]) -> Iterable[Aim]:
    for text in hold:
        match = re.fullmatch(r"(\w+)\s*(>=|<=)\s*(\S+)", text)
        if match is not None:
            yield match[1], match[2], float(match[3])
