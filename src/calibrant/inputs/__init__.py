"""Checks of arrays: labels, logits, probs, weights and groups become typed numpy arrays.

Every function that takes arrays checks them here, and nowhere else. Checks of files, settings and
request bodies live where those enter.
"""

from calibrant.inputs.checks import (
    LARGEST_LOGIT,
    LARGEST_SEED,
    LARGEST_WEIGHT,
    SUM_TOLERANCE,
    FloatArray,
    IntArray,
    ScoredRows,
    Target,
    as_groups,
    as_labels,
    as_logits,
    as_probs,
    as_scored_rows,
    as_seed,
    as_weights,
    check_two_classes,
    resolve_single_target,
    resolve_target,
)

__all__ = [
    "LARGEST_LOGIT",
    "LARGEST_SEED",
    "LARGEST_WEIGHT",
    "SUM_TOLERANCE",
    "FloatArray",
    "IntArray",
    "ScoredRows",
    "Target",
    "as_groups",
    "as_labels",
    "as_logits",
    "as_probs",
    "as_scored_rows",
    "as_seed",
    "as_weights",
    "check_two_classes",
    "resolve_single_target",
    "resolve_target",
]
