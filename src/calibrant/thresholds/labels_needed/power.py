"""Number of labels needed for a promise, estimated by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import IntArray
from calibrant.thresholds.labels_needed.rank_curves import RankCurves, meets, sample_curves
from calibrant.thresholds.labels_needed.simulation import simulate_success_rate
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.proof.keeping import screen_candidates
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.proof.walk import fewest_rows
from calibrant.thresholds.rates import Cost, Target

__all__ = ["MOST_ROWS", "LabelsNeeded", "estimate_labels_needed", "round_up"]

MOST_ROWS = 10**8
"""No number is reported beyond this many rows."""

VERSIONS = 200
_MOST = 0.5
"""If a smaller share of the curves meets the targets, meeting estimates count as chance."""


@dataclass(frozen=True)
class LabelsNeeded:
    """How many labels are needed before a promise can be made.

    Parameters
    ----------
    rows : labelled rows, drawn like the current ones; None if no number can be given
    positives : expected number of positives among them
    why : the basis of the numbers, or why there are none, as a clause
    """

    rows: int | None
    positives: int | None
    why: str


def estimate_labels_needed(
    rows: RankedRows,
    targets: Sequence[Target],
    delta: float,
    *,
    power: float = 0.8,
    rng: int | np.random.Generator = 0,
    positions: IntArray | None = None,
) -> LabelsNeeded:
    r"""Estimate how many labelled rows are needed to certify a threshold for all targets.

    Recall needs no simulation: k positives without a miss prove :math:`\tau` when
    :math:`\tau^k \le \delta`. Otherwise draw curves of the share of positives along the ranks that
    fit the rows (see `sample_curves`), keep those that meet the targets somewhere, draw a larger
    sample from each and run the same tests; the number of rows is raised until the share of
    successful samples reaches `power`. So `power` is an average over plausible truths, given that
    the targets can be met.

    Examples
    --------
    >>> from calibrant.thresholds.proof.ranked import rank_rows
    >>> from calibrant.thresholds.rates import recall
    >>> rows = rank_rows(np.arange(40.0), np.arange(40) >= 30)
    >>> needed = estimate_labels_needed(rows, [recall >= 0.9], 0.05)
    >>> needed.rows, needed.positives
    (128, 29)
    """
    exact = _needed_by_count(rows, targets, delta, power)
    if exact is not None:
        return exact
    held = " and ".join(str(target) for target in targets)
    if not screen_candidates(rows, _as_candidates(rows, positions), tuple(targets), None).any():
        return LabelsNeeded(None, None, f"no threshold's estimates meet {held}")
    generator = np.random.default_rng(rng)
    curves = sample_curves(rows, 4 * VERSIONS, generator)
    reach = _reachable(curves, targets)
    if reach.mean() < _MOST:
        return LabelsNeeded(
            None,
            None,
            f"the rows that meet {held} may do so by chance: of the curves that fit all rows, "
            f"{reach.mean():.0%} meet it anywhere",
        )
    curves = curves.take(np.resize(np.flatnonzero(reach), VERSIONS))
    fixed = None if positions is None else positions / rows.n
    seed = int(generator.integers(2**32))

    def enough(n: int) -> bool:
        generator = np.random.default_rng(seed)
        return simulate_success_rate(curves, n, targets, delta, generator, fixed) >= power

    size = _find_smallest(enough, rows.n)
    if size is None:
        return LabelsNeeded(None, None, f"more than {MOST_ROWS:,} labelled rows would be needed")
    # Observed rate: the curves overestimate it in low ranks when positives are rare.
    positives = round_up(size * rows.positives / rows.n)
    return LabelsNeeded(
        size, positives, f"if {held} can be met, as by {reach.mean():.0%} of the fitting curves"
    )


def _as_candidates(rows: RankedRows, positions: IntArray | None) -> Candidates:
    return Candidates(rows.ends if positions is None else positions)


def _needed_by_count(
    rows: RankedRows, targets: Sequence[Target], delta: float, power: float
) -> LabelsNeeded | None:
    """Return the exact answer when only the size of a group matters.

    Acting on the whole group leaves no miss; acting on a single row leaves at most one.
    """
    from scipy.special import bdtrc

    if len(targets) > 1 or rows.weight is not None or isinstance(targets[0].rate, Cost):
        return None
    claim = as_share_claim(targets[0])
    if claim.on_a_side:
        return None
    misses = 0 if claim.event == "act" else 1
    size = fewest_rows(claim.least, delta)
    while bdtrc(size - misses - 1, size, claim.least) > delta:
        size += 1
    group = {"positive": rows.positives, "negative": rows.n - rows.positives}.get(claim.among)
    if group is None:
        return LabelsNeeded(
            size, math.ceil(size * rows.positives / rows.n), f"{size:,} rows prove it"
        )
    share = (group + 0.5) / (rows.n + 1)
    low, high = size - 1, 2 * size
    while bdtrc(size - 1, high, share) < power:
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        done = bdtrc(size - 1, middle, share) >= power
        low, high = (low, middle) if done else (middle, high)
    positives = size if claim.among == "positive" else math.ceil(high * rows.positives / rows.n)
    missed = "with at most one miss" if misses else "without a miss"
    return LabelsNeeded(high, positives, f"{size:,} {claim.among} rows {missed} prove it")


def _reachable(curves: RankCurves, targets: Sequence[Target]) -> NDArray[np.bool_]:
    met = np.logical_and.reduce([meets(curves, target) for target in targets])
    return np.asarray(met.any(axis=1))


def _find_smallest(enough: Callable[[int], bool], n: int) -> int | None:
    """Return the smallest number of rows beyond n that is enough, to about 4 %."""
    low, high = float(n), 2.0 * n
    while not enough(int(high)):
        low, high = high, 2 * high
        if high > MOST_ROWS:
            return None
    for _ in range(4):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(int(middle)) else (middle, high)
    return round_up(high)


def round_up(value: float) -> int:
    """Round up to two digits, the precision of a forecast.

    Examples
    --------
    >>> round_up(425304), round_up(57.2)
    (430000, 58)
    """
    step: int = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step - 1e-9) * step
