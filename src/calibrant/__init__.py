"""Calibrant: probabilities that can be trusted, and decisions that keep a promise.

    data ─► losses + training ─► logits ─► calibrators ─► probs ─► thresholds ─► bundle ─► serving
     ▲                              judged by metrics + stats, shown by reports               │
     └──── recalibrate ◄── golden (audit) ◄── monitoring, abtests ◄── store ◄─────────────────┘

Every station is a folder. The names below are loaded when they are first used, so that importing
`calibrant` costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant import calibrators, metrics, reports, testing, thresholds
    from calibrant.bundle import load_bundle
    from calibrant.calibrators import AutoCalibrator, CalibratedModel, TemperatureScaling
    from calibrant.errors import CalibrantError, InputError, TargetUnreachable
    from calibrant.metrics import compare, ece, evaluate, measure
    from calibrant.metrics.streaming import StreamingEvaluation
    from calibrant.reports import (
        ConfidenceHistogramDisplay,
        PrecisionRecallDisplay,
        ReliabilityDisplay,
        ThresholdDisplay,
    )
    from calibrant.results import Comparison, Evaluation
    from calibrant.thresholds import OperatingPoint, select

__all__ = [
    "AutoCalibrator",
    "CalibrantError",
    "CalibratedModel",
    "Comparison",
    "ConfidenceHistogramDisplay",
    "Evaluation",
    "InputError",
    "OperatingPoint",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "StreamingEvaluation",
    "TargetUnreachable",
    "TemperatureScaling",
    "ThresholdDisplay",
    "__version__",
    "calibrators",
    "compare",
    "ece",
    "evaluate",
    "load_bundle",
    "measure",
    "metrics",
    "reports",
    "select",
    "testing",
    "thresholds",
]

_HOME = {
    "AutoCalibrator": "calibrant.calibrators",
    "CalibrantError": "calibrant.errors",
    "CalibratedModel": "calibrant.calibrators",
    "Comparison": "calibrant.results",
    "ConfidenceHistogramDisplay": "calibrant.reports",
    "Evaluation": "calibrant.results",
    "InputError": "calibrant.errors",
    "OperatingPoint": "calibrant.thresholds",
    "PrecisionRecallDisplay": "calibrant.reports",
    "ReliabilityDisplay": "calibrant.reports",
    "StreamingEvaluation": "calibrant.metrics.streaming",
    "TargetUnreachable": "calibrant.errors",
    "TemperatureScaling": "calibrant.calibrators",
    "ThresholdDisplay": "calibrant.reports",
    "compare": "calibrant.metrics",
    "ece": "calibrant.metrics",
    "evaluate": "calibrant.metrics",
    "load_bundle": "calibrant.bundle",
    "measure": "calibrant.metrics",
    "select": "calibrant.thresholds",
}
_FOLDERS = ("calibrators", "metrics", "reports", "testing", "thresholds")


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from importlib.metadata import version

        return version("calibrant")
    if name in _FOLDERS:
        return import_module(f"calibrant.{name}")
    if name in _HOME:
        return getattr(import_module(_HOME[name]), name)
    raise AttributeError(f"module 'calibrant' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted(__all__)
