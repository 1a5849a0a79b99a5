"""The study: from noisy logs and a golden set to a bundle that keeps its promise."""

from calibrant.study.settings.config import StudyConfig
from calibrant.study.study import run_study

__all__ = ["StudyConfig", "run_study"]
