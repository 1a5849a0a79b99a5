"""Reasons of predictions: the parts of a row that move the model's logits most."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.data.explanation import Explanation, Reason, RowExplanation
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

if TYPE_CHECKING:
    from calibrant.data.row_scorer import RowScorer

_KINDS = {"text": "texts", "table": "tables", "image": "images"}
_WITH_REASONS = (
    "boosted trees, n-grams and linear models of tables give them (--model boosting, ngrams or "
    "linear)"
)


def why_unexplained(scorer: RowScorer | None) -> str | None:
    """Return why the model of a bundle gives no reasons, as a part of a sentence; None if it does.

    An ensemble averages probabilities: its logits are the logarithm of a sum, so contributions of
    its members do not add up to them.
    """
    if scorer is None:
        return f"the bundle has no model, so it gives no reasons; {_WITH_REASONS}"
    if scorer.explains:
        return None
    if scorer.config["model"] == "ensemble":
        return (
            "the model of the bundle is an ensemble, which averages probabilities, so its logits "
            "are not a sum over the parts of a row, and it gives no reasons; single "
            f"{_WITH_REASONS}"
        )
    names = " and ".join(dict.fromkeys(scorer.networks))
    model = f"{names}, for {_KINDS[scorer.kind]}"
    return f"the model of the bundle ({model}) gives no reasons; {_WITH_REASONS}"


def explain_rows(scorer: RowScorer | None, inputs: Any) -> Explanation:
    """Return the contributions to the logits of each row, or refuse a model that gives none."""
    why = why_unexplained(scorer)
    if scorer is None or why is not None:
        raise InputError(f"{why}.")
    explanation = scorer.explain(inputs)
    assert explanation is not None  # it explains
    return explanation


def list_reasons(
    explained: Sequence[RowExplanation], logits: FloatArray, labels: Sequence[int], most: int
) -> list[list[Reason]]:
    """Return the strongest parts of each row for its class; none where the model cannot judge it.

    Parameters
    ----------
    explained : (n,) contributions, as `explain_rows` returns them
    logits : (n, K) logits of the model; a row with equal logits was not scored
    labels : (n,) position of the class of each row
    most : largest number of parts of a row
    """
    judged = np.ptp(logits, axis=1) > 0.0
    return [
        row.reasons(label, most) if known else []
        for row, label, known in zip(explained, labels, judged.tolist(), strict=True)
    ]
