"""Details of unreachable targets: the best provable value, and the labels needed."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import TargetUnreachable
from calibrant.thresholds.labels_needed.power import LabelsNeeded, estimate_labels_needed
from calibrant.thresholds.measures import Measures
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.proof.keeping import estimates_meet, screen_candidates
from calibrant.thresholds.proof.question import ThresholdProblem
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.proof.walk import fewest_rows
from calibrant.thresholds.rates import Cost, Target

_BISECTIONS = 14
_NO_HELP = "so more rows may not help"


def build_unreachable_error(
    problem: ThresholdProblem,
    candidates: Candidates,
    targets: tuple[Target, ...],
    *,
    confidence: float | None,
    delta: float | None,
) -> TargetUnreachable:
    """Return the error that says what is missing."""
    rows = problem.rows
    hardest = _find_hardest(problem, candidates, targets, delta)
    best, index = _find_best(problem, candidates, targets, hardest, delta)
    fixed = None if candidates.thresholds is None else candidates.positions
    needed = None
    if delta is not None and not (rows.withheld and _counts_all_rows(targets)):
        needed = estimate_labels_needed(rows, targets, delta, positions=fixed)
    return TargetUnreachable(
        hold=[str(target) for target in targets],
        n=rows.n,
        positives=rows.positives,
        confidence=confidence,
        of=problem.of,
        best=best,
        best_of=targets[hardest].rate.name,
        threshold=None if index is None else candidates.threshold_at(problem, index).prob,
        labels_needed=None if needed is None else needed.rows,
        positives_needed=None if needed is None else needed.positives,
        why=_append_reason(_explain(problem, candidates, targets, hardest, delta), needed),
    )


def _append_reason(why: str, needed: LabelsNeeded | None) -> str:
    """Append why no number of rows is given, unless the text says so already."""
    if needed is None or needed.rows is not None or why.endswith(_NO_HELP):
        return why
    return f"{why}; {needed.why}"


def _find_hardest(
    problem: ThresholdProblem,
    candidates: Candidates,
    targets: tuple[Target, ...],
    delta: float | None,
) -> int:
    """Return the index of the target that fails alone; 0 if they only fail jointly."""
    share = None if delta is None else delta / len(targets)
    for index, target in enumerate(targets):
        if not screen_candidates(problem.rows, candidates, (target,), share).any():
            return index
    return 0


def _find_best(
    problem: ThresholdProblem,
    candidates: Candidates,
    targets: tuple[Target, ...],
    hardest: int,
    delta: float | None,
) -> tuple[float | None, int | None]:
    """Return the best provable value of the hardest target, by bisection, and its candidate."""
    target = targets[hardest]
    if isinstance(target.rate, Cost):
        easy = max(target.rate.matrix)
    else:
        easy = 0.0 if target.sense == ">=" else 1.0
    hard, value, index = target.value, None, None
    for _ in range(_BISECTIONS):
        middle = (easy + hard) / 2
        tried = (*targets[:hardest], replace(target, value=middle), *targets[hardest + 1 :])
        holds = screen_candidates(problem.rows, candidates, tried, delta)
        if holds.any():
            easy, value, index = middle, middle, int(np.flatnonzero(holds)[-1])
        else:
            hard = middle
    return value, index


def _counts_all_rows(targets: tuple[Target, ...]) -> bool:
    """Whether a target counts rows not acted on; the simulation ignores withheld ones."""
    return any(isinstance(t.rate, Cost) or as_share_claim(t).among != "act" for t in targets)


def _estimates_meet_all(
    rows: RankedRows, candidates: Candidates, targets: tuple[Target, ...]
) -> NDArray[np.bool_]:
    """Return a mask of the candidates whose estimates meet all targets."""
    met = np.asarray(candidates.positions <= rows.last)
    for target in targets:
        met &= estimates_meet(rows, candidates, target)
    return met


def _explain(
    problem: ThresholdProblem,
    candidates: Candidates,
    targets: tuple[Target, ...],
    hardest: int,
    delta: float | None,
) -> str:
    """Return a clause that says why no threshold was certified."""
    rows = problem.rows
    met = _estimates_meet_all(rows, candidates, targets)
    target = targets[hardest]
    if not met.any() and len(targets) > 1:
        return f"no threshold's estimates meet all of them, {_NO_HELP}"
    if not met.any():
        return f"no threshold's estimate of the {target.rate.name} meets it, {_NO_HELP}"
    if delta is not None and not isinstance(target.rate, Cost):
        claim = as_share_claim(target)
        least = fewest_rows(claim.least, delta / len(targets))
        group = {"positive": rows.positives, "negative": rows.n - rows.positives}
        size = group.get(claim.among, rows.n)
        if size < least:
            kind = {"positive": "positive rows", "negative": "other rows"}.get(claim.among, "rows")
            return f"{size:,} {kind} are too few: at least {least:,} without a miss are needed"
    index = int(np.flatnonzero(met)[-1])
    value = float(Measures(rows, candidates.positions[index : index + 1]).estimate(target.rate)[0])
    threshold = candidates.threshold_at(problem, index).prob
    return (
        f"the estimates meet it (lowest at {threshold:.6g}, where "
        f"{int(candidates.positions[index]):,} rows give {target.rate.name} {value:.4g}), but that "
        "is too few rows to prove it"
    )
