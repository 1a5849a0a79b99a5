"""When no threshold keeps the promise: how far one got, and how many labels are missing."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import TargetUnreachable
from calibrant.thresholds.labels_needed.power import Needed, labels_needed
from calibrant.thresholds.measures import Measures
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.certify import claim_of
from calibrant.thresholds.proof.keeping import estimates_meet, kept_candidates
from calibrant.thresholds.proof.question import Question
from calibrant.thresholds.proof.ranked import Ranked
from calibrant.thresholds.proof.walk import fewest_rows
from calibrant.thresholds.rates import Cost, Target

__all__ = ["unreachable"]

_HALVINGS = 14
_NO_HELP = "so more rows may not help"


def unreachable(
    question: Question,
    found: Candidates,
    targets: tuple[Target, ...],
    *,
    confidence: float | None,
    delta: float | None,
) -> TargetUnreachable:
    """Make the error that says what is missing."""
    rows = question.rows
    hardest = _hardest(question, found, targets, delta)
    best, place = _best(question, found, targets, hardest, delta)
    fixed = None if found.thresholds is None else found.positions
    needed = None
    if delta is not None and not (rows.withheld and _of_all_rows(targets)):
        needed = labels_needed(rows, targets, delta, positions=fixed)
    return TargetUnreachable(
        hold=[str(target) for target in targets],
        n=rows.n,
        positives=rows.positives,
        confidence=confidence,
        of=question.of,
        best=best,
        best_of=targets[hardest].rate.name,
        threshold=None if place is None else found.threshold(question, place).prob,
        labels_needed=None if needed is None else needed.rows,
        positives_needed=None if needed is None else needed.positives,
        why=_with_reason(_why(question, found, targets, hardest, delta), needed),
    )


def _with_reason(why: str, needed: Needed | None) -> str:
    """Add why no number of rows is named, where none is and that was not said yet."""
    if needed is None or needed.rows is not None or why.endswith(_NO_HELP):
        return why
    return f"{why}; {needed.why}"


def _hardest(
    question: Question, found: Candidates, targets: tuple[Target, ...], delta: float | None
) -> int:
    """Return which target fails on its own; the first where all of them fail together only."""
    share = None if delta is None else delta / len(targets)
    for place, target in enumerate(targets):
        if not kept_candidates(question.rows, found, (target,), share).any():
            return place
    return 0


def _best(
    question: Question,
    found: Candidates,
    targets: tuple[Target, ...],
    hardest: int,
    delta: float | None,
) -> tuple[float | None, int | None]:
    """Return the best value of the hardest target that could have been kept, and where.

    Found by halving: what these rows would have proved, had that been asked for.
    """
    target = targets[hardest]
    if isinstance(target.rate, Cost):
        easy = max(target.rate.matrix)
    else:
        easy = 0.0 if target.sense == ">=" else 1.0
    hard, value, place = target.value, None, None
    for _ in range(_HALVINGS):
        middle = (easy + hard) / 2
        tried = (*targets[:hardest], replace(target, value=middle), *targets[hardest + 1 :])
        kept = kept_candidates(question.rows, found, tried, delta)
        if kept.any():
            easy, value, place = middle, middle, int(np.flatnonzero(kept)[-1])
        else:
            hard = middle
    return value, place


def _of_all_rows(targets: tuple[Target, ...]) -> bool:
    """Whether a target counts rows that are not acted on; no forecast knows of withheld ones."""
    return any(isinstance(t.rate, Cost) or claim_of(t).among != "act" for t in targets)


def _met_by_estimates(
    rows: Ranked, found: Candidates, targets: tuple[Target, ...]
) -> NDArray[np.bool_]:
    """Say at which candidates the estimates meet all targets."""
    met = np.asarray(found.positions <= rows.last)
    for target in targets:
        met &= estimates_meet(rows, found, target)
    return met


def _why(
    question: Question,
    found: Candidates,
    targets: tuple[Target, ...],
    hardest: int,
    delta: float | None,
) -> str:
    """Say what stands in the way, in a clause."""
    rows = question.rows
    met = _met_by_estimates(rows, found, targets)
    target = targets[hardest]
    if not met.any() and len(targets) > 1:
        return f"no threshold meets all of them even by its estimates, {_NO_HELP}"
    if not met.any():
        return f"no threshold's estimate of the {target.rate.name} meets it, {_NO_HELP}"
    if delta is not None and not isinstance(target.rate, Cost):
        claim = claim_of(target)
        least = fewest_rows(claim.least, delta / len(targets))
        group = {"positive": rows.positives, "negative": rows.n - rows.positives}
        size = group.get(claim.among, rows.n)
        if size < least:
            kind = {"positive": "positive rows", "negative": "other rows"}.get(claim.among, "rows")
            return f"{size:,} {kind} are too few, as even {least:,} without a miss are needed"
    place = int(np.flatnonzero(met)[-1])
    value = float(Measures(rows, found.positions[place : place + 1]).estimate(target.rate)[0])
    return (
        f"the estimates meet it (lowest at {found.threshold(question, place).prob:.6g}, where "
        f"{int(found.positions[place]):,} rows give {target.rate.name} {value:.4g}), but so few "
        "rows do not prove it"
    )
