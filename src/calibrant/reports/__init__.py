"""Reports: figures, terminal text and self-contained HTML pages of results.

Names are imported lazily; matplotlib, plotly and jinja2 only when something is drawn.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant.reports.displays.bin_errors import BinErrorDisplay
    from calibrant.reports.displays.bin_history import BinHistory
    from calibrant.reports.displays.confidence_histogram import ConfidenceHistogramDisplay
    from calibrant.reports.displays.confidence_match import ConfidenceMatchDisplay
    from calibrant.reports.displays.gamma_dynamics import GammaDynamicsDisplay
    from calibrant.reports.displays.operating_curve import OperatingCurveDisplay
    from calibrant.reports.displays.precision_recall import PrecisionRecallDisplay
    from calibrant.reports.displays.reliability import ReliabilityDisplay
    from calibrant.reports.displays.risk_coverage import RiskCoverageDisplay
    from calibrant.reports.displays.threshold import ThresholdDisplay
    from calibrant.reports.evaluation.page import html, write_html
    from calibrant.reports.evaluation.text import render_comparison, render_text
    from calibrant.reports.threshold.page import threshold_html, write_threshold_html

__all__ = [
    "BinErrorDisplay",
    "BinHistory",
    "ConfidenceHistogramDisplay",
    "ConfidenceMatchDisplay",
    "GammaDynamicsDisplay",
    "OperatingCurveDisplay",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "RiskCoverageDisplay",
    "ThresholdDisplay",
    "html",
    "render_comparison",
    "render_text",
    "threshold_html",
    "write_html",
    "write_threshold_html",
]

_MODULES = {
    "BinErrorDisplay": "displays.bin_errors",
    "BinHistory": "displays.bin_history",
    "ConfidenceHistogramDisplay": "displays.confidence_histogram",
    "ConfidenceMatchDisplay": "displays.confidence_match",
    "GammaDynamicsDisplay": "displays.gamma_dynamics",
    "OperatingCurveDisplay": "displays.operating_curve",
    "PrecisionRecallDisplay": "displays.precision_recall",
    "ReliabilityDisplay": "displays.reliability",
    "RiskCoverageDisplay": "displays.risk_coverage",
    "ThresholdDisplay": "displays.threshold",
    "html": "evaluation.page",
    "render_comparison": "evaluation.text",
    "render_text": "evaluation.text",
    "threshold_html": "threshold.page",
    "write_html": "evaluation.page",
    "write_threshold_html": "threshold.page",
}


def __getattr__(name: str) -> Any:
    if name in _MODULES:
        return getattr(import_module(f"calibrant.reports.{_MODULES[name]}"), name)
    raise AttributeError(f"module 'calibrant.reports' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
