"""Rows that are out of scope: flagged by the bundle's rule on the model's own logits."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from calibrant.bundle.scores import GivenScores
from calibrant.convert import logits_from_probs
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.ood import OodRule

__all__ = ["flagged"]

_BY_PROBS = ("entropy",)
"""Scores that do not change where a constant is added to all logits of a row."""


def flagged(
    rule: OodRule | None, given: GivenScores, *, with_model: bool
) -> NDArray[np.bool_] | None:
    """Return which rows (n,) a rule flags; None where there is no rule.

    Energy and the largest logit cannot be told from probabilities, nor from log-odds where the rule
    was fitted on a model's logits of all classes: such scores are refused.

    Examples
    --------
    >>> from calibrant.ood import OodRule
    >>> rule = OodRule("max_logit", -3.0, 0.95, 100)
    >>> flagged(rule, GivenScores("logits", np.array([[2.0, 0.0], [4.0, 0.0]])), with_model=True)
    array([ True, False])
    """
    if rule is None:
        return None
    if rule.score in _BY_PROBS:
        return rule.flags(given.matrix if given.kind == "logits" else _logits(given))
    if given.kind == "probs":
        raise InputError(
            f"the out-of-scope rule looks at the {rule.score} of logits, which probs do not have: "
            "give logits, of every class."
        )
    if with_model and given.array.ndim == 1:
        raise InputError(
            f"the out-of-scope rule looks at the {rule.score} of the model's logits, which log-odds"
            " do not have: give logits of both classes, (n, 2)."
        )
    return rule.flags(given.array)


def _logits(given: GivenScores) -> NDArray[np.float64]:
    from calibrant.scores.checks import FLOOR

    return logits_from_probs(given.probs, floor=FLOOR)
