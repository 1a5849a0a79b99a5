"""The out-of-scope rule of a study, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.ood import SCORES, OodRule, separation
from calibrant.study.result import OutOfScope
from calibrant.study.rows.rows import StudyRows

__all__ = ["describe_rule", "fit_rule"]


def fit_rule(logits: dict[str, FloatArray], score: str) -> OodRule | None:
    """Fit the rule on the steer and the choice rows: no trusted row has a say in whom it stops.

    Its thresholds are quantiles of rows that belong to a class and that no weight was learned from.
    Both splits are such rows, and a quantile for each predicted class needs all of them. That one
    picked the epoch and the other the candidate hardly moves the scores of single rows. Rows that
    the scorer says it cannot judge are stopped as well.
    """
    if score == "none":
        return None
    return OodRule.fit(_in_scope(logits), score=score, by_class=True, equal=True)


def _in_scope(logits: Mapping[str, FloatArray]) -> FloatArray:
    return np.concatenate([logits[name] for name in ("steer", "choice") if name in logits])


def describe_rule(
    rule: OodRule | None, rows: StudyRows, logits: dict[str, FloatArray]
) -> OutOfScope | None:
    """Measure the rule on the test rows; against rows of no class where there are some."""
    if rule is None:
        return None
    inside = rows["test"].inside
    outside = [logits["test"][~inside]]
    outside += [logits["out_of_scope"]] if "out_of_scope" in logits else []
    strange = np.concatenate(outside)
    scores = {}
    if len(strange):
        for name, score in SCORES.items():
            own = OodRule.fit(
                _in_scope(logits), score=name, quantile=rule.quantile, by_class=True, equal=True
            )
            apart = separation(score(logits["test"][inside]), score(strange))
            caught = float(own.flags(strange).mean())
            scores[name] = {"auroc": apart.auroc, "fpr95": apart.fpr95, "caught": caught}
    return OutOfScope(
        score=rule.score,
        threshold=rule.threshold,
        quantile=rule.quantile,
        n=rule.n,
        flagged=float(rule.flags(logits["test"][inside]).mean()),
        scores=scores,
        out_of_scope=len(strange),
    )
