"""Calibrators: logits in, trustworthy probabilities out; one file for each method."""

from calibrant.calibrators.base import Calibrator
from calibrant.calibrators.chain import Chain
from calibrant.calibrators.identity import Identity
from calibrant.calibrators.prior import PriorCorrection
from calibrant.calibrators.registry import methods, register
from calibrant.calibrators.temperature import TemperatureScaling

__all__ = [
    "Calibrator",
    "Chain",
    "Identity",
    "PriorCorrection",
    "TemperatureScaling",
    "from_dict",
    "methods",
    "register",
]

from_dict = Calibrator.from_dict
