"""What samples of a given size would prove, if a curve of positives along the ranks were true."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray
from calibrant.stats.betting import bets_against, mean_of_bets
from calibrant.thresholds.labels_needed.rank_curves import RankCurves
from calibrant.thresholds.proof.candidates import FIXED_LOG_ODDS
from calibrant.thresholds.proof.certify import Claim, claim_of
from calibrant.thresholds.proof.walk import plan
from calibrant.thresholds.rates import Cost, Target

__all__ = ["share_certified"]

Mask = NDArray[np.bool_]

_STEP = 1.08
"""Ranks that are looked at lie this factor apart, where starts alone do not tell."""

_OUTCOMES = (("act", "positive"), ("act", "negative"), ("pass", "positive"), ("pass", "negative"))


@dataclass(frozen=True)
class _Sample:
    """Counts of simulated samples, at ranks.

    Parameters
    ----------
    ranks : (J,) rows acted on, the last is n
    acted : {"positive", "negative"} to (R, J, B): rows acted on, by kind of weight
    splits : (R, J) whether a threshold can lie between this rank and the next
    curves : what the samples were drawn from
    """

    ranks: IntArray
    acted: dict[str, NDArray[np.int64]]
    splits: Mask
    curves: RankCurves

    def count(self, outcome: tuple[str, str]) -> NDArray[np.int64]:
        """Return (R, J, B) rows of an outcome."""
        side, label = outcome
        acted = self.acted[label]
        return acted if side == "act" else acted[:, -1:] - acted


def share_certified(
    curves: RankCurves,
    n: int,
    targets: Sequence[Target],
    delta: float,
    rng: np.random.Generator,
    fixed: FloatArray | None = None,
) -> float:
    """Return in which share of simulated samples some threshold holds all targets for certain."""
    level = delta / len(targets)
    looked_at = None if fixed is None else np.round(fixed * n).astype(np.int64)
    ranks = _ranks(curves, n, targets, level)
    if looked_at is not None:
        ranks = np.unique(np.concatenate([ranks, looked_at[looked_at > 0]]))
    sample = _draw(curves, n, ranks, rng)
    held = sample.splits if looked_at is None else np.isin(ranks, looked_at)[None, :]
    for target in targets:
        held = held & _certified(sample, target, level)
    return float(held.any(axis=1).mean())


def _ranks(curves: RankCurves, n: int, targets: Sequence[Target], level: float) -> IntArray:
    """Return the ranks to look at: starts of walks, and more where other ranks matter too."""
    claims = [claim_of(t) for t in targets if not isinstance(t.rate, Cost)]
    found = [np.array([n])]
    starts_tell = len(targets) == len(claims) == 1 and not curves.tied.any()
    for claim in claims:
        if not claim.on_a_side:
            starts_tell = False
            continue
        starts, _ = plan(n, claim.least, level)
        after = (starts[:, None] + np.append(0, 2 ** np.arange(40))).ravel()
        taken = starts if starts_tell else after
        found.append(taken if claim.among == "act" else n - taken)
    if not starts_tell:
        grid = (_STEP ** np.arange(math.log(n) / math.log(_STEP))).astype(np.int64)
        found += [grid, n - grid]
    ranks = np.unique(np.concatenate(found))
    return np.asarray(ranks[(ranks > 0) & (ranks <= n)])


def _draw(curves: RankCurves, n: int, ranks: IntArray, rng: np.random.Generator) -> _Sample:
    """Draw where the rows of the given ranks lie, and how many positives come between them.

    The k-th largest of n scores lies at a rank that is a ratio of gamma variables; rows between
    two of them are independent draws from that stretch.
    """
    versions = len(curves.rates)
    gaps = np.diff(np.append(0, ranks))
    steps = rng.standard_gamma(np.append(gaps, n + 1 - ranks[-1]), (versions, len(gaps) + 1))
    places = np.cumsum(steps, axis=1)
    places = places[:, :-1] / places[:, -1:]
    cell = np.clip(np.searchsorted(curves.edges, places) - 1, 0, len(curves.tied) - 1)
    rows, share = _between(curves, places, cell)
    taken = _split(np.broadcast_to(gaps, places.shape), rows, rng)
    hits = rng.binomial(taken, share)
    after = np.column_stack([cell[:, 1:], np.full(versions, -1)])
    splits = ~curves.tied[cell] | (cell != after)
    acted = {"positive": np.cumsum(hits, axis=1), "negative": np.cumsum(taken - hits, axis=1)}
    return _Sample(ranks, acted, splits, curves)


def _between(
    curves: RankCurves, places: FloatArray, cell: IntArray
) -> tuple[FloatArray, FloatArray]:
    """Return (R, J, B) mass of rows, and share of positives, between neighbouring places."""
    width = np.diff(curves.edges)
    part = ((places - curves.edges[cell]) / width[cell])[..., None]
    inside = curves.mass[cell] * part
    version = np.arange(len(places))[:, None]
    mass = (np.cumsum(curves.mass, axis=0) - curves.mass)[cell] + inside
    positive = curves.mass * curves.rates
    hits = (np.cumsum(positive, axis=1) - positive)[version, cell]
    hits = hits + inside * curves.rates[version, cell]
    mass, hits = (np.diff(v, axis=1, prepend=0.0) for v in (mass, hits))
    with np.errstate(invalid="ignore", divide="ignore"):
        share = np.where(mass > 0, hits / mass, 0.0)
    return np.maximum(mass, 0.0), np.clip(share, 0.0, 1.0)


def _split(total: IntArray, mass: FloatArray, rng: np.random.Generator) -> NDArray[np.int64]:
    """Share rows out among kinds of weight, in proportion to their mass."""
    left, mass_left = np.array(total), mass.sum(axis=2)
    kinds = []
    for kind in range(mass.shape[2] - 1):
        with np.errstate(invalid="ignore", divide="ignore"):
            share = np.where(mass_left > 0, mass[:, :, kind] / mass_left, 0.0)
        kinds.append(rng.binomial(left, np.clip(share, 0.0, 1.0)))
        left, mass_left = left - kinds[-1], mass_left - mass[:, :, kind]
    return np.stack([*kinds, left], axis=2)


def _certified(sample: _Sample, target: Target, level: float) -> Mask:
    """Say (R, J) where the target would be proved."""
    if isinstance(target.rate, Cost):
        gains = dict(zip(_OUTCOMES, _savings(target), strict=True))
        return _p_by_bets(sample, gains) <= level / (len(FIXED_LOG_ODDS) + 1)
    claim = claim_of(target)
    if sample.curves.largest_weight is None:
        p_values = _p_exact(sample, claim)
    else:
        p_values = _p_by_bets(sample, {o: _gain(claim, o) for o in _OUTCOMES})
    if not claim.on_a_side:
        return np.asarray(p_values <= level)
    n = int(sample.ranks[-1])
    if claim.among == "act":
        return _walk(sample.ranks, p_values, *plan(n, claim.least, level))
    back = _walk(n - sample.ranks[::-1], p_values[:, ::-1], *plan(n, claim.least, level))
    found = back[:, ::-1]
    if sample.splits.all():
        return found
    # From below, a threshold between a rank and the next is reached after the next.
    return np.column_stack([found[:, 1:], np.zeros(len(found), dtype=bool)])


def _savings(target: Target) -> list[float]:
    assert isinstance(target.rate, Cost)
    fp, fn, tp, tn = target.rate.matrix
    return [target.value - cost for cost in (tp, fp, fn, tn)]


def _gain(claim: Claim, outcome: tuple[str, str]) -> float:
    if claim.among not in (*outcome, "all"):
        return 0.0
    return 1 - claim.least if claim.event in outcome else -claim.least


def _p_exact(sample: _Sample, claim: Claim) -> FloatArray:
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
    """Carry levels along the positions as `calibrant.thresholds.proof.walk` does at every one."""
    given = np.zeros(len(positions))
    known = starts <= positions[-1]
    given[np.searchsorted(positions, starts[known])] = shares[known]
    alive = np.zeros(len(p_values))
    found = np.zeros(p_values.shape, dtype=bool)
    for place, share in enumerate(given):
        alive += share
        alive[p_values[:, place] > alive] = 0.0
        found[:, place] = alive > 0
    return found
