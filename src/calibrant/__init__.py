"""Calibrant: probabilities that can be trusted, and decisions that keep a promise.

    data ─► losses + training ─► logits ─► calibrators ─► probs ─► thresholds ─► bundle ─► serving
     ▲                              judged by metrics + stats, shown by reports               │
     └──── recalibrate ◄── golden (audit) ◄── monitoring, abtests ◄── store ◄─────────────────┘

Each station is a folder. The names below are imported on first use, which keeps `import calibrant`
fast.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from calibrant import (
        boosting,
        calibrators,
        losses,
        metrics,
        ood,
        reports,
        study,
        testing,
        thresholds,
        training,
    )
    from calibrant.boosting import BoostingClassifier
    from calibrant.bundle import load_bundle
    from calibrant.calibrators import AutoCalibrator, CalibratedModel, TemperatureScaling
    from calibrant.client.client import Client
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
    from calibrant.study import StudyConfig, run_study
    from calibrant.thresholds import OperatingPoint, select
    from calibrant.training.image import ImageClassifier
    from calibrant.training.ngrams import NgramClassifier
    from calibrant.training.tabular import TabularClassifier
    from calibrant.training.text import TextClassifier

__all__ = [
    "AutoCalibrator",
    "BoostingClassifier",
    "CalibrantError",
    "CalibratedModel",
    "Client",
    "Comparison",
    "ConfidenceHistogramDisplay",
    "Evaluation",
    "ImageClassifier",
    "InputError",
    "NgramClassifier",
    "OperatingPoint",
    "PrecisionRecallDisplay",
    "ReliabilityDisplay",
    "StreamingEvaluation",
    "StudyConfig",
    "TabularClassifier",
    "TargetUnreachable",
    "TemperatureScaling",
    "TextClassifier",
    "ThresholdDisplay",
    "__version__",
    "boosting",
    "calibrators",
    "compare",
    "ece",
    "evaluate",
    "load_bundle",
    "losses",
    "measure",
    "metrics",
    "ood",
    "reports",
    "run_study",
    "select",
    "study",
    "testing",
    "thresholds",
    "training",
]

_MODULES = {
    "AutoCalibrator": "calibrant.calibrators",
    "BoostingClassifier": "calibrant.boosting",
    "CalibrantError": "calibrant.errors",
    "CalibratedModel": "calibrant.calibrators",
    "Client": "calibrant.client",
    "Comparison": "calibrant.results",
    "ConfidenceHistogramDisplay": "calibrant.reports",
    "Evaluation": "calibrant.results",
    "ImageClassifier": "calibrant.training.image",
    "InputError": "calibrant.errors",
    "NgramClassifier": "calibrant.training.ngrams",
    "OperatingPoint": "calibrant.thresholds",
    "PrecisionRecallDisplay": "calibrant.reports",
    "ReliabilityDisplay": "calibrant.reports",
    "StreamingEvaluation": "calibrant.metrics.streaming",
    "StudyConfig": "calibrant.study",
    "TabularClassifier": "calibrant.training.tabular",
    "TargetUnreachable": "calibrant.errors",
    "TemperatureScaling": "calibrant.calibrators",
    "TextClassifier": "calibrant.training.text",
    "ThresholdDisplay": "calibrant.reports",
    "compare": "calibrant.metrics",
    "ece": "calibrant.metrics",
    "evaluate": "calibrant.metrics",
    "load_bundle": "calibrant.bundle",
    "measure": "calibrant.metrics",
    "run_study": "calibrant.study",
    "select": "calibrant.thresholds",
}
_FOLDERS = (
    "boosting", "calibrators", "losses", "metrics", "ood", "reports", "study", "testing",
    "thresholds", "training",
)  # fmt: skip
_TORCH = ("torch", "lightning_fabric", "safetensors")  # packages of the extra "torch"


def __getattr__(name: str) -> Any:
    if name == "__version__":
        from calibrant.distribution import own_version

        return own_version()
    if name not in _FOLDERS and name not in _MODULES:
        raise AttributeError(f"module 'calibrant' has no attribute {name!r}")
    try:
        if name in _FOLDERS:
            return import_module(f"calibrant.{name}")
        return getattr(import_module(_MODULES[name]), name)
    except ModuleNotFoundError as error:
        if (error.name or "").split(".")[0] not in _TORCH:
            raise
        from calibrant.errors import MissingExtra

        raise MissingExtra(f"calibrant.{name}", "torch") from None


def __dir__() -> list[str]:
    return sorted(__all__)
