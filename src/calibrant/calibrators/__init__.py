"""Calibrators: logits in, trustworthy probabilities out; one file for each method."""

from calibrant.calibrators.auto import AutoCalibrator, default_candidates
from calibrant.calibrators.base import Calibrator
from calibrant.calibrators.bayesian_binning import BayesianBinning
from calibrant.calibrators.beta import BetaCalibration
from calibrant.calibrators.chain import Chain
from calibrant.calibrators.choice import Candidate, Choice
from calibrant.calibrators.dirichlet import DirichletCalibration
from calibrant.calibrators.enir import NearIsotonicEnsemble
from calibrant.calibrators.ensemble_temperature import EnsembleTemperatureScaling
from calibrant.calibrators.focal_recovery import FocalRecovery
from calibrant.calibrators.focal_temperature import FocalTemperatureScaling
from calibrant.calibrators.histogram import HistogramBinning
from calibrant.calibrators.identity import Identity
from calibrant.calibrators.isotonic import IsotonicCalibration
from calibrant.calibrators.isotonic_temperature import IsotonicTemperature
from calibrant.calibrators.matrix import MatrixScaling
from calibrant.calibrators.model import CalibratedModel
from calibrant.calibrators.platt import PlattScaling
from calibrant.calibrators.pooled_isotonic import PooledIsotonic
from calibrant.calibrators.prior import PriorCorrection
from calibrant.calibrators.prior_shift import (
    PriorEstimate,
    PriorShift,
    confusion_matrix,
    estimate_prior,
)
from calibrant.calibrators.quadratic import QuadraticScaling
from calibrant.calibrators.registry import methods, register
from calibrant.calibrators.scaling_binning import ScalingBinning
from calibrant.calibrators.spline import SplineCalibration
from calibrant.calibrators.strict_isotonic import StrictIsotonic
from calibrant.calibrators.structured_matrix import StructuredMatrixScaling
from calibrant.calibrators.structured_vector import StructuredVectorScaling
from calibrant.calibrators.temperature import TemperatureScaling
from calibrant.calibrators.vector import VectorScaling
from calibrant.calibrators.venn_abers import VennAbers

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
    "methods",
    "register",
]

from_dict = Calibrator.from_dict
