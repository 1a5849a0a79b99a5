"""The out-of-scope rule of a study, and its performance."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from calibrant.inputs import FloatArray
from calibrant.ood import SCORES, OodRule, separation
from calibrant.study.result import OutOfScope
from calibrant.study.rows.rows import StudyRows


def fit_rule(logits: dict[str, FloatArray], score: str) -> OodRule | None:
    """Fit the rule on the steer and choice rows, without trusted rows.

    Its thresholds are quantiles of the scores of in-scope rows that were not trained on. Both
    splits qualify, and a quantile per predicted class needs all of them. Selecting the epoch and
    the candidate on them hardly changes the scores of single rows. Rows that the scorer marks as
    unscorable are flagged as well.
    """
    if score == "none":
        return None
    return OodRule.fit(_in_scope_logits(logits), score=score, by_class=True, equal=True)


def _in_scope_logits(logits: Mapping[str, FloatArray]) -> FloatArray:
    return np.concatenate([logits[name] for name in ("steer", "choice") if name in logits])


def describe_rule(
    rule: OodRule | None, rows: StudyRows, logits: dict[str, FloatArray]
) -> OutOfScope | None:
    """Evaluate the rule on the test rows, and against out-of-scope rows if there are any."""
    if rule is None:
        return None
    inside = rows["test"].inside
    outside = [logits["test"][~inside]]
    outside += [logits["out_of_scope"]] if "out_of_scope" in logits else []
    foreign = np.concatenate(outside)
    scores = {}
    if len(foreign):
        for name, score in SCORES.items():
            fitted = OodRule.fit(
                _in_scope_logits(logits),
                score=name,
                quantile=rule.quantile,
                by_class=True,
                equal=True,
            )
            result = separation(score(logits["test"][inside]), score(foreign))
            caught = float(fitted.flags(foreign).mean())
            scores[name] = {"auroc": result.auroc, "fpr95": result.fpr95, "caught": caught}
    return OutOfScope(
        score=rule.score,
        threshold=rule.threshold,
        quantile=rule.quantile,
        n=rule.n,
        flagged=float(rule.flags(logits["test"][inside]).mean()),
        scores=scores,
        out_of_scope=len(foreign),
    )
