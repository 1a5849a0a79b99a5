"""Rows that are not like the train rows: scores, a rule that flags them, and how well it tells."""

from calibrant.ood.rule import OodRule
from calibrant.ood.scores import SCORES, energy, entropy, max_logit
from calibrant.ood.separation import Separation, separation

__all__ = ["SCORES", "OodRule", "Separation", "energy", "entropy", "max_logit", "separation"]
