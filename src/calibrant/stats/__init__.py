"""Statistics: proportions, influence intervals, betting evidence, multiple testing."""

from calibrant.stats.betting import (
    log_evidence,
    mean_upper_bound,
    running_log_evidence,
    switched_log_evidence,
)
from calibrant.stats.multiplicity import holm
from calibrant.stats.proportions import clopper_pearson, mcnemar, wilson
from calibrant.stats.robbins import robbins, share_log_evidence
from calibrant.stats.wald import wald_interval

__all__ = [
    "clopper_pearson",
    "holm",
    "log_evidence",
    "mcnemar",
    "mean_upper_bound",
    "robbins",
    "running_log_evidence",
    "share_log_evidence",
    "switched_log_evidence",
    "wald_interval",
    "wilson",
]
