"""Operating points: thresholds that keep a promise."""

from calibrant.errors import TargetUnreachable
from calibrant.thresholds.band import Band, select_band
from calibrant.thresholds.classes import OperatingPoints, select_each
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.rate_value import RateValue
from calibrant.thresholds.rates import (
    RATES,
    Cost,
    Rate,
    Target,
    abstention,
    accuracy,
    coverage,
    false_discovery,
    fpr,
    npv,
    parse_target,
    precision,
    rate_named,
    recall,
    specificity,
)
from calibrant.thresholds.seen import Seen
from calibrant.thresholds.selection import select

__all__ = [
    "RATES",
    "Band",
    "Cost",
    "OperatingPoint",
    "OperatingPoints",
    "Rate",
    "RateValue",
    "Seen",
    "Target",
    "TargetUnreachable",
    "abstention",
    "accuracy",
    "coverage",
    "false_discovery",
    "fpr",
    "npv",
    "parse_target",
    "precision",
    "rate_named",
    "recall",
    "select",
    "select_band",
    "select_each",
    "specificity",
]
