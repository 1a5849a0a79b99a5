"""Studies: train, compare, calibrate and certify candidates, and pack the best into a bundle."""

from calibrant.study.settings.config import StudyConfig
from calibrant.study.study import run_study

__all__ = ["StudyConfig", "run_study"]
