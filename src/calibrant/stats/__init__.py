"""Statistics the product stands on: proportions, influence intervals, resampling, multiplicity."""

from calibrant.stats.multiplicity import holm
from calibrant.stats.proportions import clopper_pearson, mcnemar, wilson
from calibrant.stats.wald import wald_interval

__all__ = ["clopper_pearson", "holm", "mcnemar", "wald_interval", "wilson"]
