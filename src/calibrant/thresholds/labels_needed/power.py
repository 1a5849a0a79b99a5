"""Number of labels needed for a promise, estimated by simulation."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray
from calibrant.stats.betting import bets_against, mean_of_bets
from calibrant.thresholds.labels_needed.rank_curves import RankCurves, meets, sample_curves
from calibrant.thresholds.proof.candidates import FIXED_LOG_ODDS, Candidates
from calibrant.thresholds.proof.certify import ShareClaim, as_share_claim
from calibrant.thresholds.proof.keeping import screen_candidates
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.proof.walk import fewest_rows, plan_starts
from calibrant.thresholds.rates import Cost, Target

Mask = NDArray[np.bool_]
_STEP = 1.08  # Ratio of consecutive ranks, when the starts of the walk are not enough
_OUTCOMES = (("act", "positive"), ("act", "negative"), ("pass", "positive"), ("pass", "negative"))


@dataclass(frozen=True)
class _Sample:
    """Counts of simulated samples, at ranks."""

    ranks: IntArray  # (J,) numbers of rows acted on; the last is n
    # {"positive", "negative"} to (R, J, B): rows acted on, by kind of weight
    acted: dict[str, NDArray[np.int64]]
    splits: Mask  # (R, J) whether a threshold can lie between this rank and the next
    curves: RankCurves  # the curves that the samples were drawn from

    def count(self, outcome: tuple[str, str]) -> NDArray[np.int64]:
        """Return (R, J, B) rows of an outcome."""
        side, label = outcome
        acted = self.acted[label]
        return acted if side == "act" else acted[:, -1:] - acted


def simulate_success_rate(
    curves: RankCurves,
    n: int,
    targets: Sequence[Target],
    delta: float,
    rng: np.random.Generator,
    fixed: FloatArray | None = None,
) -> float:
    """Return the share of simulated samples in which some threshold is certified."""
    level = delta / len(targets)
    fixed_ranks = None if fixed is None else np.round(fixed * n).astype(np.int64)
    ranks = _test_ranks(curves, n, targets, level)
    if fixed_ranks is not None:
        ranks = np.unique(np.concatenate([ranks, fixed_ranks[fixed_ranks > 0]]))
    sample = _draw(curves, n, ranks, rng)
    held = sample.splits if fixed_ranks is None else np.isin(ranks, fixed_ranks)[None, :]
    for target in targets:
        held = held & _proves_target(sample, target, level)
    return float(held.any(axis=1).mean())


def _test_ranks(curves: RankCurves, n: int, targets: Sequence[Target], level: float) -> IntArray:
    """Return the ranks to test: starts of walks, and a grid if other ranks matter too."""
    claims = [as_share_claim(t) for t in targets if not isinstance(t.rate, Cost)]
    parts = [np.array([n])]
    starts_suffice = len(targets) == len(claims) == 1 and not curves.tied.any()
    for claim in claims:
        if not claim.on_a_side:
            starts_suffice = False
            continue
        starts, _ = plan_starts(n, claim.least, level)
        after = (starts[:, None] + np.append(0, 2 ** np.arange(40))).ravel()
        taken = starts if starts_suffice else after
        parts.append(taken if claim.among == "act" else n - taken)
    if not starts_suffice:
        grid = (_STEP ** np.arange(math.log(n) / math.log(_STEP))).astype(np.int64)
        parts += [grid, n - grid]
    ranks = np.unique(np.concatenate(parts))
    return np.asarray(ranks[(ranks > 0) & (ranks <= n)])


def _draw(curves: RankCurves, n: int, ranks: IntArray, rng: np.random.Generator) -> _Sample:
    """Draw the quantiles of the given ranks, and the number of positives between them.

    The quantile of the k-th largest of n scores is a ratio of gamma variables; rows between two of
    them are independent draws from that interval.
    """
    versions = len(curves.rates)
    gaps = np.diff(np.append(0, ranks))
    steps = rng.standard_gamma(np.append(gaps, n + 1 - ranks[-1]), (versions, len(gaps) + 1))
    quantiles = np.cumsum(steps, axis=1)
    quantiles = quantiles[:, :-1] / quantiles[:, -1:]
    cell = np.clip(np.searchsorted(curves.edges, quantiles) - 1, 0, len(curves.tied) - 1)
    rows, share = _mass_between(curves, quantiles, cell)
    taken = _split_by_kind(np.broadcast_to(gaps, quantiles.shape), rows, rng)
    hits = rng.binomial(taken, share)
    after = np.column_stack([cell[:, 1:], np.full(versions, -1)])
    splits = ~curves.tied[cell] | (cell != after)
    acted = {"positive": np.cumsum(hits, axis=1), "negative": np.cumsum(taken - hits, axis=1)}
    return _Sample(ranks, acted, splits, curves)


def _mass_between(
    curves: RankCurves, quantiles: FloatArray, cell: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return (R, J, B) mass of rows, and share of positives, between neighbouring quantiles."""
    width = np.diff(curves.edges)
    part = ((quantiles - curves.edges[cell]) / width[cell])[..., None]
    inside = curves.mass[cell] * part
    version = np.arange(len(quantiles))[:, None]
    mass = (np.cumsum(curves.mass, axis=0) - curves.mass)[cell] + inside
    positive = curves.mass * curves.rates
    hits = (np.cumsum(positive, axis=1) - positive)[version, cell]
    hits = hits + inside * curves.rates[version, cell]
    mass, hits = (np.diff(v, axis=1, prepend=0.0) for v in (mass, hits))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(mass > 0, hits / mass, 0.0)
    return np.maximum(mass, 0.0), np.clip(share, 0.0, 1.0)


def _split_by_kind(
    total: IntArray, mass: FloatArray, rng: np.random.Generator
) -> NDArray[np.int64]:
    """Distribute rows among kinds of weight, in proportion to their mass."""
    left, mass_left = np.array(total), mass.sum(axis=2)
    kinds = []
    for kind in range(mass.shape[2] - 1):
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(mass_left > 0, mass[:, :, kind] / mass_left, 0.0)
        kinds.append(rng.binomial(left, np.clip(share, 0.0, 1.0)))
        left, mass_left = left - kinds[-1], mass_left - mass[:, :, kind]
    return np.stack([*kinds, left], axis=2)


def _proves_target(sample: _Sample, target: Target, level: float) -> Mask:
    """Return an (R, J) mask of the positions at which the target is proved."""
    if isinstance(target.rate, Cost):
        gains = dict(zip(_OUTCOMES, _savings(target), strict=True))
        return _p_by_bets(sample, gains) <= level / (len(FIXED_LOG_ODDS) + 1)
    claim = as_share_claim(target)
    if sample.curves.largest_weight is None:
        p_values = _p_exact(sample, claim)
    else:
        p_values = _p_by_bets(sample, {o: _gain(claim, o) for o in _OUTCOMES})
    if not claim.on_a_side:
        return np.asarray(p_values <= level)
    n = int(sample.ranks[-1])
    if claim.among == "act":
        return _walk(sample.ranks, p_values, *plan_starts(n, claim.least, level))
    back = _walk(n - sample.ranks[::-1], p_values[:, ::-1], *plan_starts(n, claim.least, level))
    mask = back[:, ::-1]
    if sample.splits.all():
        return mask
    # From below, a threshold between a rank and the next is reached after the next.
    return np.column_stack([mask[:, 1:], np.zeros(len(mask), dtype=bool)])


def _savings(target: Target) -> list[float]:
    assert isinstance(target.rate, Cost)
    fp, fn, tp, tn = target.rate.matrix
    return [target.value - cost for cost in (tp, fp, fn, tn)]


def _gain(claim: ShareClaim, outcome: tuple[str, str]) -> float:
    if claim.among not in (*outcome, "all"):
        return 0.0
    return 1 - claim.least if claim.event in outcome else -claim.least


def _p_exact(sample: _Sample, claim: ShareClaim) -> FloatArray:
    from scipy.special import betainc

    whole = sum(sample.count(o) for o in _OUTCOMES if claim.among in (*o, "all"))
    part = sum(
        sample.count(o) for o in _OUTCOMES if claim.among in (*o, "all") and claim.event in o
    )
    hits, rows = (np.asarray(v).sum(axis=2).astype(np.float64) for v in (part, whole))
    p_values = betainc(np.maximum(hits, 1.0), np.maximum(rows - hits + 1.0, 1.0), claim.least)
    return np.where(hits > 0, p_values, 1.0)


def _p_by_bets(sample: _Sample, gains: dict[tuple[str, str], float]) -> FloatArray:
    heavy = sample.curves.weights
    worst = min(gains.values()) * (sample.curves.largest_weight or 1.0)
    evidence = mean_of_bets(
        sum(sample.count(o) @ np.log1p(bet * gain * heavy) for o, gain in gains.items() if gain)
        for bet in bets_against(worst)
    )
    return np.asarray(np.exp(-np.maximum(evidence, 0.0)))


def _walk(positions: IntArray, p_values: FloatArray, starts: IntArray, shares: FloatArray) -> Mask:
    """Carry levels along the positions, as `calibrant.thresholds.proof.walk` does."""
    added = np.zeros(len(positions))
    known = starts <= positions[-1]
    added[np.searchsorted(positions, starts[known])] = shares[known]
    alive = np.zeros(len(p_values))
    mask = np.zeros(p_values.shape, dtype=bool)
    for index, share in enumerate(added):
        alive += share
        alive[p_values[:, index] > alive] = 0.0
        mask[:, index] = alive > 0
    return mask


MOST_ROWS = 10**8  # No number is reported beyond this many rows
VERSIONS = 200
_MOST = 0.5  # If a smaller share of the curves meets the targets, meeting estimates count as chance


@dataclass(frozen=True)
class LabelsNeeded:
    """How many labels are needed before a promise can be made."""

    rows: int | None  # labelled rows, drawn like the current ones; None if no number can be given
    positives: int | None  # expected number of positives among them
    why: str  # the basis of the numbers, or why there are none, as a clause


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
    """Round up to two digits, the precision of a forecast."""
    step: int = 10 ** max(0, math.floor(math.log10(max(value, 1))) - 1)
    return math.ceil(value / step - 1e-9) * step
