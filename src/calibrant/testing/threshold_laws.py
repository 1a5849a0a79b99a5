"""Distributions of binary labels and scores with known rates at every threshold.

A law defines the distribution of labels and of scores given the label. It can draw rows, and it
can compute the share of the population at or above a threshold, by label, from which every rate
follows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Scores = NDArray[np.floating[Any]]
Labels = NDArray[np.int64]
Rng = np.random.Generator
On = Literal["probs", "logits"]
Shares = tuple[float, float]


@dataclass(frozen=True)
class ThresholdDraw:
    """Rows drawn from a threshold world.

    Parameters
    ----------
    labels : int array (n,) of 0 and 1
    probs : the model's P(positive), (n,)
    logits : the same as log-odds, in worlds whose probabilities lose precision; else None
    weights : inverse inclusion probabilities, in worlds with unequal sampling; else None
    """

    labels: Labels
    probs: Scores
    logits: Floats | None = None
    weights: Floats | None = None


class Law(Protocol):
    """Distribution of a threshold world: draws rows, and knows the shares above a threshold."""

    @property
    def prevalence(self) -> float:
        """P(positive) in the population."""
        ...

    def draw(self, n: int, rng: Rng) -> ThresholdDraw:
        """Draw n rows."""
        ...

    def draw_scores(self, labels: Labels, rng: Rng) -> ThresholdDraw:
        """Draw scores for given labels."""
        ...

    def shares_above(self, threshold: float, on: On, *, flipped: bool) -> Shares:
        """Return P(positive, score >= threshold) and P(negative, score >= threshold).

        `flipped` means that the score is 1 - P(positive), or the negative of the log-odds.
        """
        ...


@dataclass(frozen=True)
class _LabelFirstLaw:
    """Base of laws that draw labels first, then scores given the label."""

    @property
    def prevalence(self) -> float:
        raise NotImplementedError

    def draw_scores(self, labels: Labels, rng: Rng) -> ThresholdDraw:
        raise NotImplementedError

    def draw(self, n: int, rng: Rng) -> ThresholdDraw:
        """Draw n rows."""
        return self.draw_scores((rng.random(n) < self.prevalence).astype(np.int64), rng)


@dataclass(frozen=True)
class Clouds(_LabelFirstLaw):
    r"""Log-odds from a mixture of normal or Student t distributions for each label.

    Log-odds are :math:`a z + b`, with z drawn from the mixture.
    """

    share: float  # P(positive)
    # (share, centre, spread) of each component, with shares summing to 1
    positive: tuple[tuple[float, float, float], ...]
    negative: tuple[tuple[float, float, float], ...] = ((1.0, 0.0, 1.0),)
    slope: float = 1.0
    offset: float = 0.0  # b
    degrees: float | None = None  # degrees of freedom of Student's t; None for normal components
    single: bool = False  # return probabilities in float32, as networks do, together with logits

    @property
    def prevalence(self) -> float:
        """P(positive)."""
        return self.share

    def draw_scores(self, labels: Labels, rng: Rng) -> ThresholdDraw:
        """Draw scores for given labels."""
        n = len(labels)
        z = rng.standard_normal(n) if self.degrees is None else rng.standard_t(self.degrees, n)
        for label, clouds in enumerate((self.negative, self.positive)):
            rows = labels == label
            if len(clouds) == 1:
                z[rows] = z[rows] * clouds[0][2] + clouds[0][1]
            else:
                which = rng.choice(len(clouds), int(rows.sum()), p=[c[0] for c in clouds])
                table = np.array(clouds)[which]
                z[rows] = z[rows] * table[:, 2] + table[:, 1]
        logits = self.slope * z + self.offset
        probs = _sigmoid(logits)
        if not self.single:
            return ThresholdDraw(labels, probs)
        return ThresholdDraw(labels, probs.astype(np.float32), logits)

    def shares_above(self, threshold: float, on: On, *, flipped: bool) -> Shares:
        """Return the shares of the population at or above the threshold."""
        cut = threshold if on == "logits" else self._as_logit(threshold)
        cut = -cut if flipped else cut
        pos, neg = self._tail(self.positive, cut), self._tail(self.negative, cut)
        if flipped:
            pos, neg = 1.0 - pos, 1.0 - neg
        return self.share * pos, (1.0 - self.share) * neg

    def _as_logit(self, threshold: float) -> float:
        """Return the smallest log-odds whose rounded probability reaches the threshold."""
        point = threshold
        if self.single:
            # All numbers nearer to a float32 than to its neighbours round to it.
            nearest = np.float32(threshold)
            if float(nearest) < threshold:
                nearest = np.nextafter(nearest, np.float32(2.0))
            point = 0.5 * (float(nearest) + float(np.nextafter(nearest, np.float32(-1.0))))
        if not 0.0 < threshold <= 1.0:
            return -np.inf if threshold <= 0.0 else np.inf
        # In float64, 1 / (1 + exp(-z)) is 1 from z = 53 log 2 on.
        return float(np.log(point) - np.log1p(-point)) if point < 1.0 else 53 * float(np.log(2))

    def _tail(self, clouds: Sequence[tuple[float, float, float]], cut: float) -> float:
        from scipy.special import ndtr, stdtr

        z = (cut - self.offset) / self.slope
        if np.isinf(z):
            return 0.0 if z > 0 else 1.0
        total = 0.0
        for share, centre, spread in clouds:
            x = (centre - z) / spread
            total += share * float(ndtr(x) if self.degrees is None else stdtr(self.degrees, x))
        return total


@dataclass(frozen=True)
class Steps(_LabelFirstLaw):
    """Uniform scores on [0, 1) with a piecewise constant label rate."""

    # shares of the rows in each piece, from the highest scores down, summing to 1
    widths: tuple[float, ...]
    rates: tuple[float, ...]  # P(positive) in each piece

    @property
    def prevalence(self) -> float:
        """P(positive)."""
        return float(np.dot(self.widths, self.rates))

    def draw_scores(self, labels: Labels, rng: Rng) -> ThresholdDraw:
        """Draw scores for given labels."""
        depth, rows = rng.random(len(labels)), labels == 1
        edges = self._edges
        for mask, share in ((rows, np.array(self.rates)), (~rows, 1.0 - np.array(self.rates))):
            mass = np.concatenate([[0.0], np.cumsum(np.array(self.widths) * share)])
            depth[mask] = _inverse(depth[mask] * mass[-1], mass, edges)
        return ThresholdDraw(labels, 1.0 - depth)

    @property
    def _edges(self) -> Floats:
        return np.concatenate([[0.0], np.cumsum(self.widths)])

    def shares_above(self, threshold: float, on: On, *, flipped: bool) -> Shares:
        """Return the shares of the population at or above the threshold."""
        if on == "logits":
            threshold = float(_sigmoid(np.array(threshold)))
        depth = min(max(1.0 - threshold, 0.0), 1.0)
        cut = 1.0 - depth if flipped else depth
        inside = np.clip(cut - self._edges[:-1], 0.0, np.array(self.widths))
        pos = float(np.dot(inside, self.rates))
        neg = float(inside.sum()) - pos
        if flipped:
            return self.prevalence - pos, 1.0 - self.prevalence - neg
        return pos, neg


@dataclass(frozen=True)
class Atoms(_LabelFirstLaw):
    """Discrete scores, each with its share of the rows and its label rate."""

    values: tuple[float, ...]  # scores, from the highest down
    shares: tuple[float, ...]  # share of the rows at each score, summing to 1
    rates: tuple[float, ...]  # P(positive) at each score

    @property
    def prevalence(self) -> float:
        """P(positive)."""
        return float(np.dot(self.shares, self.rates))

    def draw_scores(self, labels: Labels, rng: Rng) -> ThresholdDraw:
        """Draw scores for given labels."""
        uniform, rows = rng.random(len(labels)), labels == 1
        which = np.empty(len(labels), np.intp)
        shares, rates = np.array(self.shares), np.array(self.rates)
        for mask, share in ((rows, shares * rates), (~rows, shares * (1.0 - rates))):
            mass = np.cumsum(share)
            # The last value with a positive share: rounding may go past the end.
            last = int(np.flatnonzero(share)[-1]) if share.any() else 0
            which[mask] = np.minimum(np.searchsorted(mass, uniform[mask] * mass[-1], "right"), last)
        return ThresholdDraw(labels, np.array(self.values)[which])

    def shares_above(self, threshold: float, on: On, *, flipped: bool) -> Shares:
        """Return the shares of the population at or above the threshold."""
        values = np.array(self.values)
        if on == "logits":
            with np.errstate(divide="ignore"):
                values = np.log(values) - np.log1p(-values)
            values = -values if flipped else values
        elif flipped:
            values = 1.0 - values
        share = np.array(self.shares) * (values >= threshold)
        pos = float(np.dot(share, self.rates))
        return pos, float(share.sum()) - pos


@dataclass(frozen=True)
class Strata:
    """Strata of a population that are sampled at different rates.

    Rows are drawn with replacement, with probabilities proportional to the inclusion rate of their
    stratum; the weights are the inverse of those rates. The truth is that of the population.
    """

    shares: tuple[float, ...]  # share of each stratum in the population, summing to 1
    inclusion: tuple[float, ...]  # inclusion rate of each stratum
    laws: tuple[Law, ...]  # distribution of each stratum

    @property
    def prevalence(self) -> float:
        """P(positive) in the population."""
        return sum(s * law.prevalence for s, law in zip(self.shares, self.laws, strict=True))

    def draw(self, n: int, rng: Rng) -> ThresholdDraw:
        """Draw n rows."""
        chance = np.array(self.shares) * np.array(self.inclusion)
        which = rng.choice(len(chance), n, p=chance / chance.sum())
        labels, probs = np.empty(n, np.int64), np.empty(n)
        for k, law in enumerate(self.laws):
            rows = which == k
            part = law.draw(int(rows.sum()), rng)
            labels[rows], probs[rows] = part.labels, part.probs
        return ThresholdDraw(labels, probs, weights=1.0 / np.array(self.inclusion)[which])

    def draw_scores(self, labels: Labels, rng: Rng) -> ThresholdDraw:
        """Raise: the stratum of a row cannot be inferred from its label."""
        raise NotImplementedError("a stratified world draws labels and scores together")

    def shares_above(self, threshold: float, on: On, *, flipped: bool) -> Shares:
        """Return the shares of the population at or above the threshold."""
        parts = [law.shares_above(threshold, on, flipped=flipped) for law in self.laws]
        pos = sum(s * part[0] for s, part in zip(self.shares, parts, strict=True))
        return pos, sum(s * part[1] for s, part in zip(self.shares, parts, strict=True))


def stepped_atoms(steps: Steps, cells: int) -> Atoms:
    """Round the scores of a stepped law to the centres of equal cells, with exact shares."""
    values, shares, rates = [], [], []
    above: Shares = (0.0, 0.0)
    for k in range(cells - 1, -1, -1):
        now = steps.shares_above(k / cells, "probs", flipped=False)
        pos, neg = now[0] - above[0], now[1] - above[1]
        values.append((k + 0.5) / cells)
        shares.append(pos + neg)
        rates.append(min(max(pos / (pos + neg), 0.0), 1.0))
        above = now
    return Atoms(tuple(values), tuple(shares), tuple(rates))


def _inverse(mass: Floats, cumulative: Floats, edges: Floats) -> Floats:
    """Invert an increasing piecewise linear function, skipping flat pieces."""
    piece = np.searchsorted(cumulative, mass, "right") - 1
    rising = np.flatnonzero(np.diff(cumulative) > 0)
    last = int(rising[-1]) if len(rising) else 0
    piece = np.minimum(piece, last)
    slope = np.diff(edges) / np.where(np.diff(cumulative) > 0, np.diff(cumulative), 1.0)
    out = edges[piece] + (mass - cumulative[piece]) * slope[piece]
    return np.asarray(np.minimum(out, edges[piece + 1]))


def _sigmoid(z: Floats) -> Floats:
    # The exponent is never positive, so exp cannot overflow.
    e = np.exp(-np.abs(z))
    return np.asarray(np.where(z >= 0, 1.0, e) / (1.0 + e))
