"""Out-of-scope flags from the uncalibrated logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.bundle.scores import ModelScores
from calibrant.convert import logits_from_probs
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.ood import OodRule


# Scores that are invariant to a constant added to all logits of a row
_BY_PROBS = ("entropy", "unreadable")


def flag_rows(
    rule: OodRule | None, scores: ModelScores, *, with_model: bool
) -> NDArray[np.bool_] | None:
    """Return which rows (n,) a rule flags; None without a rule.

    Energy and the largest logit cannot be computed from probabilities, nor from log-odds if the
    rule was fitted on the logits of all classes: such scores raise `InputError`.
    """
    if rule is None:
        return None
    if rule.score in _BY_PROBS:
        return rule.flags(scores.matrix if scores.kind == "logits" else _scores_to_logits(scores))
    if scores.kind == "probs":
        raise InputError(
            f"the out-of-scope rule needs the {rule.score} of logits, which probs do not have: "
            "give logits of every class."
        )
    if with_model and scores.array.ndim == 1:
        raise InputError(
            f"the out-of-scope rule needs the {rule.score} of the model's logits, which log-odds"
            " do not have: give logits of both classes, (n, 2)."
        )
    return rule.flags(scores.array)


def _scores_to_logits(scores: ModelScores) -> NDArray[np.float64]:
    from calibrant.scores.checks import FLOOR

    return logits_from_probs(scores.probs, floor=FLOOR)
