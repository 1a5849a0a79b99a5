"""Out-of-scope detection: scores, a rule that flags rows, and its accuracy."""

from calibrant.ood.rule import OodRule
from calibrant.ood.scores import SCORES, energy, entropy, max_logit, unreadable
from calibrant.ood.separation import Separation, separation

__all__ = [
    "SCORES", "OodRule", "Separation", "energy", "entropy", "max_logit", "separation", "unreadable",
]  # fmt: skip
