"""Calibrators: map logits to calibrated probabilities, one method per file."""

from calibrant.calibrators.base.calibrator import Calibrator
from calibrant.calibrators.base.registry import list_methods, register
from calibrant.calibrators.chain import Chain
from calibrant.calibrators.choice.auto import AutoCalibrator, default_candidates
from calibrant.calibrators.choice.comparison import Candidate, Choice
from calibrant.calibrators.methods.bayesian_binning import BayesianBinning
from calibrant.calibrators.methods.beta import BetaCalibration
from calibrant.calibrators.methods.dirichlet import DirichletCalibration
from calibrant.calibrators.methods.enir import NearIsotonicEnsemble
from calibrant.calibrators.methods.ensemble_temperature import EnsembleTemperatureScaling
from calibrant.calibrators.methods.focal_recovery import FocalRecovery
from calibrant.calibrators.methods.focal_temperature import FocalTemperatureScaling
from calibrant.calibrators.methods.histogram import HistogramBinning
from calibrant.calibrators.methods.identity import Identity
from calibrant.calibrators.methods.isotonic import IsotonicCalibration
from calibrant.calibrators.methods.isotonic_temperature import IsotonicTemperature
from calibrant.calibrators.methods.matrix import MatrixScaling
from calibrant.calibrators.methods.platt import PlattScaling
from calibrant.calibrators.methods.pooled_isotonic import PooledIsotonic
from calibrant.calibrators.methods.prior import PriorCorrection
from calibrant.calibrators.methods.prior_shift import (
    PriorEstimate,
    PriorShift,
    confusion_matrix,
    estimate_prior,
)
from calibrant.calibrators.methods.quadratic import QuadraticScaling
from calibrant.calibrators.methods.scaling_binning import ScalingBinning
from calibrant.calibrators.methods.spline import SplineCalibration
from calibrant.calibrators.methods.strict_isotonic import StrictIsotonic
from calibrant.calibrators.methods.structured_matrix import StructuredMatrixScaling
from calibrant.calibrators.methods.structured_vector import StructuredVectorScaling
from calibrant.calibrators.methods.temperature import TemperatureScaling
from calibrant.calibrators.methods.vector import VectorScaling
from calibrant.calibrators.methods.venn_abers import VennAbers
from calibrant.calibrators.model import CalibratedModel

__all__ = [
    "AutoCalibrator",
    "BayesianBinning",
    "BetaCalibration",
    "CalibratedModel",
    "Calibrator",
    "Candidate",
    "Chain",
    "Choice",
    "DirichletCalibration",
    "EnsembleTemperatureScaling",
    "FocalRecovery",
    "FocalTemperatureScaling",
    "HistogramBinning",
    "Identity",
    "IsotonicCalibration",
    "IsotonicTemperature",
    "MatrixScaling",
    "NearIsotonicEnsemble",
    "PlattScaling",
    "PooledIsotonic",
    "PriorCorrection",
    "PriorEstimate",
    "PriorShift",
    "QuadraticScaling",
    "ScalingBinning",
    "SplineCalibration",
    "StrictIsotonic",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "VectorScaling",
    "VennAbers",
    "confusion_matrix",
    "default_candidates",
    "estimate_prior",
    "from_dict",
    "list_methods",
    "register",
]

from_dict = Calibrator.from_dict
