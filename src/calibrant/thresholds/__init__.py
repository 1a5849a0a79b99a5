"""Operating points: decision thresholds with statistical guarantees."""

from calibrant.errors import TargetUnreachable
from calibrant.thresholds.after.forecast import Forecast, forecast
from calibrant.thresholds.after.target_check import TargetCheck
from calibrant.thresholds.after.transfer import Transfer, check_counts, check_transfer
from calibrant.thresholds.band import Band, select_band
from calibrant.thresholds.classes import OperatingPoints, select_each
from calibrant.thresholds.curve import OperatingCurve, RateCurve, operating_curve
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.seen_labels import LabelUse
from calibrant.thresholds.rates import (
    RATES,
    Cost,
    Rate,
    RateValue,
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
from calibrant.thresholds.risk_coverage import RiskCoverage, risk_coverage
from calibrant.thresholds.selection import select

__all__ = [
    "RATES",
    "Band",
    "Cost",
    "Forecast",
    "LabelUse",
    "OperatingCurve",
    "OperatingPoint",
    "OperatingPoints",
    "Rate",
    "RateCurve",
    "RateValue",
    "RiskCoverage",
    "Target",
    "TargetCheck",
    "TargetUnreachable",
    "Transfer",
    "abstention",
    "accuracy",
    "check_counts",
    "check_transfer",
    "coverage",
    "false_discovery",
    "forecast",
    "fpr",
    "npv",
    "operating_curve",
    "parse_target",
    "precision",
    "rate_named",
    "recall",
    "risk_coverage",
    "select",
    "select_band",
    "select_each",
    "specificity",
]
