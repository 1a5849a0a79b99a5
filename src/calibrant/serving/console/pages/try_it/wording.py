"""Sentences of the Try it page: what was decided about a row, why, and what would turn it."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

from calibrant.data.redaction.redactor import redact
from calibrant.formatting import number, quote_name, sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.predictions.reasons import UNJUDGED, apart
from calibrant.serving.console.pages.predictions.wording import visible
from calibrant.serving.console.pages.try_it.rules import Outcome, Reading, Scope
from calibrant.serving.scoring import ScoredRow

__all__ = [
    "compared_words",
    "distance_words",
    "headline_words",
    "outcome_words",
    "read_words",
    "scope_words",
    "score_pair",
    "turning_words",
    "why_words",
]

_SCOPE_SCORES = {
    "energy": "energy score",
    "entropy": "entropy",
    "max_logit": "largest logit, taken negative,",
}
_LEAST_EDGE, _MOST_ODDS = 1e-9, 1e6
"""Nearer to 0 or 1 than this, a score is told as log-odds; beyond those, nothing is told apart."""


def outcome_words(outcome: Outcome) -> str:
    """Say what is done, after "the bundle would".

    Examples
    --------
    >>> outcome_words(Outcome("act", "defect", "refund")), outcome_words(Outcome("abstain"))
    ('act on “defect” (refund)', 'leave it to a person')
    """
    if outcome.decision == "act":
        action = f" ({visible(outcome.action)})" if outcome.action else ""
        return f"act on {quote_name(visible(str(outcome.acted_as)))}{action}"
    return {"clear": "clear it"}.get(outcome.decision, "leave it to a person")


def headline_words(row: ScoredRow, found: Sequence[Reading]) -> str:
    """Say what was decided."""
    if row.decision is None:
        return "No decision: the bundle has no operating point and gives probabilities only."
    if row.decision == "out_of_scope":
        return "Left to a person: it is out of scope."
    if row.decision == "act":
        action = f": {visible(row.action)}" if row.action else ""
        return sentence(f"act on {quote_name(visible(str(row.acted_as)))}{action}")
    if row.decision == "clear":
        of = next(each.rule.point.of for each in found if each.decided)
        return f"Cleared of {quote_name(visible(str(of)))}."
    return "Left to a person."


def compared_words(reading: Reading, *, calibrator: bool) -> str:
    """Say which score a rule looks at."""
    of = reading.rule.point.of
    what = "probability" if reading.works_on_probs else "log-odds"
    about = "of the predicted class" if of is None else f"of {quote_name(visible(str(of)))}"
    if reading.calibrated:
        return f"calibrated {what} {about}"
    before = " (before calibration)" if calibrator else ""
    return f"the model’s own {what} {about}{before}"


def score_pair(reading: Reading) -> tuple[str, str]:
    """Write the row's score and the threshold so that they can be told apart."""
    point = reading.rule.point
    if reading.works_on_probs:
        return apart(reading.prob, point.threshold, above=reading.reached)
    return apart(reading.odds, point.logit, above=reading.reached)


def distance_words(reading: Reading) -> str:
    """Say how far the row's score is from the threshold."""
    point = reading.rule.point
    if reading.works_on_probs:
        far, unit = reading.prob - point.threshold, ""
    else:
        far, unit = reading.odds - point.logit, " log-odds"
    if far == 0:
        return "exactly on it"
    return f"{number(abs(far))}{unit} {'above' if reading.reached else 'below'}"


def why_words(row: ScoredRow, found: Sequence[Reading], *, calibrator: bool) -> list[str]:
    """Say why the row was decided as it was; nothing where the scope says it all."""
    if row.decision in (None, "out_of_scope"):
        return []
    deciding = next((each for each in found if each.decided), None)
    if deciding is None:
        if len(found) == 1:
            return [f"{_comparison(found[0], calibrator)}, so it is left to a person."]
        return ["No rule is for acting on it, so it is left to a person."]
    said = f"{_comparison(deciding, calibrator)} of operating point {deciding.place}"
    if deciding.rule.clears:
        return [f"{said}, and no rule is for acting on it, so it is cleared."]
    acting = sum(each.reached and not each.rule.clears for each in found)
    several = "Several rules are for acting on it: that of the most probable class decides."
    return [f"{said}, so it is acted on.", *([several] if acting > 1 else [])]


def turning_words(reading: Reading) -> str:
    """Say from which threshold on the decision is another one, in a sentence."""
    if reading.at_most.decision == "out_of_scope":
        return "No threshold changes the decision: a row out of scope is always left to a person."
    if not reading.turns:
        done = outcome_words(reading.above)
        return (
            f"No threshold of this rule changes the decision: the bundle would {done} in any case."
        )
    if reading.reached:
        other, where = reading.above, f"above {_rounded(reading, math.ceil)}"
    else:
        other, where = reading.at_most, f"of {_rounded(reading, math.floor)} or less"
    return f"With a threshold {where}, the bundle would {outcome_words(other)} instead."


def scope_words(scope: Scope) -> str:
    """Say how the row stands to the out-of-scope rule."""
    if not scope.judged:
        return UNJUDGED
    name = _SCOPE_SCORES.get(scope.name, scope.name)
    score, limit = apart(scope.score, scope.limit, above=scope.outside)
    if scope.outside:
        return (
            f"It is unlike the rows that the model knows: its {name} is {score}, above {limit}. "
            "Such a row is left to a person, whatever the operating points say."
        )
    return f"It is in scope: its {name} is {score}, and only above {limit} a row is out of scope."


def read_words(served: Served, text: str) -> str | None:
    """Return what the model reads of a text where something is taken out of it first, else None."""
    scorer = served.bundle.scorer
    if scorer is None or not scorer.redact:
        return None
    found = redact(text)
    return None if found == text else found


def _rounded(reading: Reading, to: Callable[[float], int]) -> str:
    """Write the row's score so that what is said of thresholds beyond it is true: `to` rounds."""
    edge = min(reading.prob, 1.0 - reading.prob)
    if not reading.works_on_probs or edge < _LEAST_EDGE:
        whole = max(-_MOST_ODDS, min(_MOST_ODDS, reading.odds))
        return f"{to(whole * 100) / 100:.2f} log-odds"
    digits = max(4, 2 - math.floor(math.log10(edge)))
    return f"{to(reading.prob * 10**digits) / 10**digits:.{digits}f}"


def _comparison(reading: Reading, calibrator: bool) -> str:
    said = compared_words(reading, calibrator=calibrator)
    score, threshold = score_pair(reading)
    where = "which reaches the threshold" if reading.reached else "which is below the threshold"
    return f"{said[:1].upper()}{said[1:]} is {score}, {where} {threshold}"
