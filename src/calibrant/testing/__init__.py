"""Contract checks for metrics, calibrators and losses, and synthetic data with known truth."""

from calibrant.testing.calibrator_checks import check_calibrator
from calibrant.testing.checks import check_metric
from calibrant.testing.loss_checks import check_loss
from calibrant.testing.threshold_laws import ThresholdDraw
from calibrant.testing.threshold_worlds import THRESHOLD_WORLDS, ThresholdWorld
from calibrant.testing.worlds import (
    WORLDS,
    Draw,
    World,
    posterior_error,
    shifted_world,
    true_ce,
)

__all__ = [
    "THRESHOLD_WORLDS",
    "WORLDS",
    "Draw",
    "ThresholdDraw",
    "ThresholdWorld",
    "World",
    "check_calibrator",
    "check_loss",
    "check_metric",
    "posterior_error",
    "shifted_world",
    "true_ce",
]
