"""Plausible curves of the share of positives along the ranks.

They serve to plan how many labels to collect. Estimates at single thresholds are not enough: the
best of many is too good by chance, and the top ranks hold few rows. So a smooth curve is fitted,
and many others are drawn around it.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, IntArray
from calibrant.thresholds.proof.ranked import RankedRows
from calibrant.thresholds.rates import Cost, Target

_FEWEST = 5  # Size of the smallest cells, at both ends of the ranks

_GROWTH = 1.1
_KNOTS = 6
_KINDS = 3  # Number of weight groups

_LOOSE = {"level": 1e-3, "slope": 0.1, "bend": 0.25}
"""Ridge penalties of the intercept, the slope and the bends of a curve."""


@dataclass(frozen=True)
class RankCurves:
    """Shares of positives in cells of ranks, in one or many versions."""

    # (C + 1,) ranks from 0 (highest score) to 1, at which cells of whole ties end
    edges: FloatArray
    mass: FloatArray  # (C, B) share of all rows in each cell, by kind of weight
    rates: FloatArray  # (R, C, B) share of positives, in R versions
    weights: FloatArray  # (B,) weight of each kind
    largest_weight: float | None  # largest possible weight of a row; None if rows have no weights
    tied: NDArray[np.bool_]  # (C,) whether a cell is mostly one tie, which no threshold splits

    def running(self) -> tuple[FloatArray, FloatArray]:
        """Return (C,) and (R, C): weight of all rows, and of positives, up to each cell's end."""
        heavy = self.mass * self.weights
        return np.cumsum(heavy.sum(axis=1)), np.cumsum((heavy * self.rates).sum(axis=2), axis=1)

    def take(self, versions: NDArray[np.bool_] | IntArray) -> RankCurves:
        """Return some of the versions."""
        return replace(self, rates=self.rates[versions])


def meets(curves: RankCurves, target: Target) -> NDArray[np.bool_]:
    """Return for each version and each cell's end whether a threshold there meets the target."""
    everything, positive = curves.running()
    all_rows, all_positive = everything[-1], positive[:, -1:]
    cells = {
        ("act", "positive"): positive,
        ("act", "negative"): everything - positive,
        ("pass", "positive"): all_positive - positive,
        ("pass", "negative"): (all_rows - everything) - (all_positive - positive),
    }
    rate = target.rate
    if isinstance(rate, Cost):
        kinds = (("act", "negative"), ("pass", "positive"), ("act", "positive"))
        total = sum(
            cost * cells[kind]
            for cost, kind in zip(rate.matrix, (*kinds, ("pass", "negative")), strict=True)
        )
        return np.asarray(total <= target.value * all_rows)
    part = sum(v for k, v in cells.items() if rate.event in k and rate.condition in (*k, "all"))
    whole = sum(v for k, v in cells.items() if rate.condition in (*k, "all"))
    reached = part >= target.value * whole if target.sense == ">=" else part <= target.value * whole
    return np.asarray(reached & (whole > 1e-12 * all_rows))


def sample_curves(rows: RankedRows, versions: int, rng: np.random.Generator) -> RankCurves:
    r"""Sample curves that fit the rows.

    .. math:: \mathrm{logit}\, P(Y = 1 \mid u) = b_0 + b_1 x + \sum_j c_j (x - k_j)_+,
        \quad x = \mathrm{logit}\, u

    with u the rank (0 is the highest score), fitted with a light ridge; the versions are drawn from
    the normal distribution around the fit.
    """
    edges, tied = _cells(rows)
    kind, weights = _kinds_of_weight(rows.weight)
    count, hits = (_table(v, edges, kind, len(weights)) for v in (None, rows.event))
    middle = (edges[1:] + edges[:-1]) / (2 * rows.n)
    basis = _basis(np.log(middle) - np.log1p(-middle), len(weights))
    penalty = np.full(basis.shape[1], _LOOSE["bend"])
    penalty[:2] = _LOOSE["level"], _LOOSE["slope"]
    centre, spread = _fit(basis, count.ravel(), hits.ravel(), penalty)
    drawn = centre + rng.standard_normal((versions, len(centre))) @ spread.T
    rates = _expit(drawn @ basis.T).reshape(versions, *count.shape)
    largest = None if rows.weight is None else rows.largest_weight
    return RankCurves(edges / rows.n, count / rows.n, rates, weights, largest, tied)


def _cells(rows: RankedRows) -> tuple[IntArray, NDArray[np.bool_]]:
    """Cut the ranks into cells of whole ties, small at both ends."""
    n = rows.n
    sizes = [_FEWEST]
    while sum(sizes) < n / 2:
        sizes.append(max(_FEWEST, int(sum(sizes) * (_GROWTH - 1))))
    half = np.cumsum(sizes)
    wanted = np.unique(np.concatenate([half[half <= n / 2], n - half[half <= n / 2]]))
    inner = rows.ends[np.searchsorted(rows.ends, wanted)]
    edges = np.unique(np.concatenate([[0], inner, [n]]))
    tie = np.searchsorted(rows.ends, (edges[1:] + edges[:-1]) // 2, side="right")
    ties = np.diff(np.append(0, rows.ends))
    sizes_of_cells = np.diff(edges)
    return edges, np.asarray((ties[tie] > 1) & (2 * ties[tie] > sizes_of_cells))


def _kinds_of_weight(weight: FloatArray | None) -> tuple[IntArray | None, FloatArray]:
    """Group weights into a few kinds: return each row's kind, and each kind's weight."""
    if weight is None:
        return None, np.ones(1)
    values, inverse = np.unique(weight, return_inverse=True)
    if len(values) > _KINDS:
        cuts = np.quantile(weight, np.arange(1, _KINDS) / _KINDS)
        _, inverse = np.unique(np.searchsorted(cuts, weight), return_inverse=True)
    count = np.bincount(inverse)
    return inverse, np.bincount(inverse, weights=weight) / count


def _table(
    event: NDArray[np.bool_] | None, edges: IntArray, kind: IntArray | None, kinds: int
) -> FloatArray:
    """Count rows, or events, in each cell by kind of weight."""
    columns = []
    for k in range(kinds):
        inside = np.ones(edges[-1], dtype=bool) if kind is None else kind == k
        counted = inside if event is None else inside & event
        running = np.append(0, np.cumsum(counted))
        columns.append(np.diff(running[edges]))
    return np.stack(columns, axis=1).astype(np.float64)


def _basis(x: FloatArray, kinds: int) -> FloatArray:
    """Return the spline basis, one row for each cell and kind."""
    knots = np.linspace(x[0], x[-1], _KNOTS + 2)[1:-1]
    shape = np.column_stack([np.ones(len(x)), x, np.maximum(x[:, None] - knots, 0.0)])
    other = np.eye(kinds)[:, 1:]
    return np.column_stack([np.repeat(shape, kinds, axis=0), np.tile(other, (len(x), 1))])


def _fit(
    basis: FloatArray, count: FloatArray, hits: FloatArray, penalty: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Fit a logistic regression with a ridge by Newton's method; return it and its spread."""
    start = np.zeros(basis.shape[1])
    start[0] = np.log((hits.sum() + 0.5) / (count.sum() - hits.sum() + 0.5))
    beta = start.copy()
    for _ in range(60):
        rate = _expit(basis @ beta)
        slope = basis.T @ (hits - count * rate) - penalty * (beta - start)
        bend = (basis * (count * rate * (1 - rate))[:, None]).T @ basis + np.diag(penalty)
        step = np.linalg.solve(bend, slope)
        beta = beta + step / max(1.0, float(np.abs(step).max()) / 2)
        if np.abs(step).max() < 1e-8:
            break
    return beta, np.linalg.cholesky(np.linalg.inv(bend))


def _expit(x: FloatArray) -> FloatArray:
    from scipy.special import expit

    return np.asarray(expit(x))
