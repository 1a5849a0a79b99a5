"""Boosted trees (LightGBM) for tables, with the losses of the focal family as objectives."""

from calibrant.boosting.classifier import BoostingClassifier
from calibrant.boosting.names import objectives
from calibrant.boosting.scorer import BoostingScorer

__all__ = ["BoostingClassifier", "BoostingScorer", "objectives"]
