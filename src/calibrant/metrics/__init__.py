"""Metrics as pure functions of (labels, probs), and evaluation with confidence intervals."""

from calibrant.metrics.classification import (
    accuracy,
    confusion_matrix,
    f1,
    f1_macro,
    matthews,
    precision,
    precision_macro,
    recall,
    recall_macro,
)
from calibrant.metrics.comparison import compare
from calibrant.metrics.debiased import ece_debiased
from calibrant.metrics.decomposition import Decomposition, decompose
from calibrant.metrics.ece import ace, ece, ece_classwise, mce, sce
from calibrant.metrics.evaluation import evaluate
from calibrant.metrics.ks import calibration_test, ks
from calibrant.metrics.measure import measure
from calibrant.metrics.proper import brier, nll
from calibrant.metrics.ranking import auprc, aurc, auroc
from calibrant.metrics.smooth import ece_smooth
from calibrant.metrics.spiegelhalter import spiegelhalter
from calibrant.metrics.sweep import ece_sweep
from calibrant.metrics.true_ce import true_ce

__all__ = [
    "Decomposition",
    "accuracy",
    "ace",
    "auprc",
    "aurc",
    "auroc",
    "brier",
    "calibration_test",
    "compare",
    "confusion_matrix",
    "decompose",
    "ece",
    "ece_classwise",
    "ece_debiased",
    "ece_smooth",
    "ece_sweep",
    "evaluate",
    "f1",
    "f1_macro",
    "ks",
    "matthews",
    "mce",
    "measure",
    "nll",
    "precision",
    "precision_macro",
    "recall",
    "recall_macro",
    "sce",
    "spiegelhalter",
    "true_ce",
]
