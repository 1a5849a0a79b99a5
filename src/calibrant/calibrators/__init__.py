"""Calibrators: logits in, trustworthy probabilities out; one file for each method."""

from calibrant.calibrators.base import Calibrator
from calibrant.calibrators.beta import BetaCalibration
from calibrant.calibrators.chain import Chain
from calibrant.calibrators.dirichlet import DirichletCalibration
from calibrant.calibrators.identity import Identity
from calibrant.calibrators.isotonic import IsotonicCalibration
from calibrant.calibrators.matrix import MatrixScaling
from calibrant.calibrators.platt import PlattScaling
from calibrant.calibrators.prior import PriorCorrection
from calibrant.calibrators.quadratic import QuadraticScaling
from calibrant.calibrators.registry import methods, register
from calibrant.calibrators.strict_isotonic import StrictIsotonic
from calibrant.calibrators.structured_matrix import StructuredMatrixScaling
from calibrant.calibrators.structured_vector import StructuredVectorScaling
from calibrant.calibrators.temperature import TemperatureScaling
from calibrant.calibrators.vector import VectorScaling

__all__ = [
    "BetaCalibration",
    "Calibrator",
    "Chain",
    "DirichletCalibration",
    "Identity",
    "IsotonicCalibration",
    "MatrixScaling",
    "PlattScaling",
    "PriorCorrection",
    "QuadraticScaling",
    "StrictIsotonic",
    "StructuredMatrixScaling",
    "StructuredVectorScaling",
    "TemperatureScaling",
    "VectorScaling",
    "from_dict",
    "methods",
    "register",
]

from_dict = Calibrator.from_dict
