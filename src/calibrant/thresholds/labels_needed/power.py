"""How many labels would be needed, found by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import IntArray
from calibrant.thresholds.labels_needed.rank_curves import RankCurves, fitting_curves, meets
from calibrant.thresholds.labels_needed.simulation import share_certified
from calibrant.thresholds.proof.candidates import Candidates
from calibrant.thresholds.proof.certify import claim_of
from calibrant.thresholds.proof.keeping import kept_candidates
from calibrant.thresholds.proof.ranked import Ranked
from calibrant.thresholds.proof.walk import fewest_rows
from calibrant.thresholds.rates import Cost, Target

__all__ = ["MOST_ROWS", "Needed", "labels_needed", "rounded_up"]

MOST_ROWS = 10**8
"""Where more rows than this would be needed, no number is given."""

VERSIONS = 200
_MOST = 0.5
"""Where fewer of the curves meet the targets anywhere, estimates that do are put down to luck."""


@dataclass(frozen=True)
class Needed:
    """How many labels are needed before a promise can be made.

    Parameters
    ----------
    rows : labelled rows, drawn like the ones at hand; None where no number can be named
    positives : how many of them would be positive
    why : what the numbers rest on, or why there are none, as a clause
    """

    rows: int | None
    positives: int | None
    why: str


def labels_needed(
    rows: Ranked,
    targets: Sequence[Target],
    delta: float,
    *,
    power: float = 0.8,
    rng: int | np.random.Generator = 0,
    positions: IntArray | None = None,
) -> Needed:
    r"""Say with how many labelled rows a threshold would be found that keeps all targets.

    Recall needs no simulation: k positives without a miss prove :math:`\tau` when
    :math:`\tau^k \le \delta`. Otherwise draw curves of the share of positives along the ranks that
    fit the rows (see `fitting_curves`), keep those that meet the targets somewhere, draw a larger
    sample from each and put it to the same tests; the number of rows is raised until the share of
    samples that succeed reaches `power`. So `power` is an average over what the truth may be, given
    that the targets can be met: with one more sample of that size, chances are 4 in 5.

    Examples
    --------
    >>> from calibrant.thresholds.proof.ranked import rank_rows
    >>> from calibrant.thresholds.rates import recall
    >>> rows = rank_rows(np.arange(40.0), np.arange(40) >= 30)
    >>> needed = labels_needed(rows, [recall >= 0.9], 0.05)
    >>> needed.rows, needed.positives
    (128, 29)
    """
    exact = _by_count(rows, targets, delta, power)
    if exact is not None:
        return exact
    held = " and ".join(str(target) for target in targets)
    if not kept_candidates(rows, _looked_at(rows, positions), tuple(targets), None).any():
        return Needed(None, None, f"no threshold's estimates meet {held}")
    generator = np.random.default_rng(rng)
    curves = fitting_curves(rows, 4 * VERSIONS, generator)
    reach = _reach(curves, targets)
    if reach.mean() < _MOST:
        return Needed(
            None,
            None,
            f"the rows that meet {held} may do so by luck: of the curves that fit all rows, "
            f"{reach.mean():.0%} meet it anywhere",
        )
    curves = curves.take(np.resize(np.flatnonzero(reach), VERSIONS))
    fixed = None if positions is None else positions / rows.n
    seed = int(generator.integers(2**32))

    def enough(n: int) -> bool:
        again = np.random.default_rng(seed)
        return share_certified(curves, n, targets, delta, again, fixed) >= power

    found = _smallest(enough, rows.n)
    if found is None:
        return Needed(None, None, f"more than {MOST_ROWS:,} labelled rows would be needed")
    # As often as they came so far: what curves allow low ranks adds up where positives are rare.
    positives = rounded_up(found * rows.positives / rows.n)
    return Needed(
        found, positives, f"if {held} can be met, as by {reach.mean():.0%} of the fitting curves"
    )


def _looked_at(rows: Ranked, positions: IntArray | None) -> Candidates:
    return Candidates(rows.ends if positions is None else positions)


def _by_count(rows: Ranked, targets: Sequence[Target], delta: float, power: float) -> Needed | None:
    """Answer where it is enough that a group is large.

    Acting on all of it leaves no miss; acting on a single row leaves at most one.
    """
    from scipy.special import bdtrc

    if len(targets) > 1 or rows.weight is not None or isinstance(targets[0].rate, Cost):
        return None
    claim = claim_of(targets[0])
    if claim.on_a_side:
        return None
    misses = 0 if claim.event == "act" else 1
    size = fewest_rows(claim.least, delta)
    while bdtrc(size - misses - 1, size, claim.least) > delta:
        size += 1
    group = {"positive": rows.positives, "negative": rows.n - rows.positives}.get(claim.among)
    if group is None:
        return Needed(size, math.ceil(size * rows.positives / rows.n), f"{size:,} rows prove it")
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
    return Needed(high, positives, f"{size:,} {claim.among} rows {missed} prove it")


def _reach(curves: RankCurves, targets: Sequence[Target]) -> NDArray[np.bool_]:
    met = np.logical_and.reduce([meets(curves, target) for target in targets])
    return np.asarray(met.any(axis=1))


def _smallest(enough: Callable[[int], bool], n: int) -> int | None:
    """Return the smallest number of rows beyond n that is enough, to about 4 %."""
    low, high = float(n), 2.0 * n
    while not enough(int(high)):
        low, high = high, 2 * high
        if high > MOST_ROWS:
            return None
    for _ in range(4):
        middle = math.sqrt(low * high)
        low, high = (low, middle) if enough(int(middle)) else (middle, high)
    return rounded_up(high)


def rounded_up(value: float) -> int:
    """Round up to two digits, as much as a forecast of rows can tell.

    Examples
    --------
    >>> rounded_up(425304), rounded_up(57.2)
    (430000, 58)
    """
    step: int = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step - 1e-9) * step
