"""Synthetic data with a known posterior.

A world draws rows (x, y) together with the probabilities of a model. Every draw contains the
posterior eta = P(y | x), so that a metric, a calibrator or a threshold can be compared with the
truth instead of another estimate.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import resolve_target

FloatArray = NDArray[np.float64]
Probs = NDArray[np.floating[Any]]
Rng = np.random.Generator

MIN_ROWS = 200_000
ROWS_PER_BIN = 1_000
MAX_N_BINS = 1_000


@dataclass(frozen=True)
class Draw:
    """Rows drawn from a world.

    Parameters
    ----------
    labels : int array (n,)
    probs : the model's probabilities: (n,) P(positive) in a binary world, else (n, K)
    posterior : the true P(y | x), in the shape of `probs`
    """

    labels: NDArray[np.int64]
    probs: Probs
    posterior: FloatArray


@dataclass(frozen=True)
class World:
    """A named distribution of rows with a known posterior.

    Parameters
    ----------
    name : its key in `WORLDS`
    n_classes : K
    description : one sentence
    sampler : draws n rows with a generator
    """

    name: str
    n_classes: int
    description: str
    sampler: Callable[[int, Rng], Draw] = field(repr=False)

    def draw(self, n: int, rng: int | Rng) -> Draw:
        """Draw n rows.

        Parameters
        ----------
        n : number of rows, at least 1
        rng : a seed, or a generator that is advanced

        Examples
        --------
        >>> draw = WORLDS["multiclass"].draw(50, 0)
        >>> draw.labels.shape, draw.probs.shape, draw.posterior.shape
        ((50,), (50, 5), (50, 5))
        """
        if n < 1:
            raise InputError(f"n must be at least 1, got {n}: draw one row or more.")
        return self.sampler(n, np.random.default_rng(rng))


def true_ce(
    source: World | Draw,
    *,
    target: Literal["positive", "top-label"] | None = None,
    n: int = 400_000,
    rng: int | Rng = 0,
) -> float:
    r"""Return the true calibration error, as from an unlimited sample.

    .. math:: E\,|c - E[\eta_{\hat y} \mid c]|

    c is the model's confidence (P(positive), or the largest probability), :math:`\hat y` the class
    it refers to, :math:`\eta_{\hat y}` the true posterior of that class. The inner mean is over
    fine equal-mass bins, with tied confidences in the same bin. Labels are not used, so there is no
    floor from label noise.

    It is not `posterior_error`: a model that predicts the base rate for every row is perfectly
    calibrated, although it misses the posterior of each row.

    Parameters
    ----------
    source : a world, or rows drawn from one (with one bin for each thousand rows)
    target : 'positive' (default for two classes) or 'top-label' (default for more)
    n : number of rows to draw from a world, at least 200,000
    rng : a seed, or a generator that is advanced; not used for a draw

    Examples
    --------
    >>> round(true_ce(shifted_world(0.03)), 3)
    0.03
    """
    if isinstance(source, World):
        if n < MIN_ROWS:
            raise InputError(
                f"n must be at least {MIN_ROWS}, got {n}: with fewer rows the bins are coarse."
            )
        source = source.draw(n, rng)
    conf, eta = _target_confidence(source, target)
    bins = _fine_bins(conf)
    # The share of a bin times the gap of its means equals the gap of its sums over n.
    gap = np.bincount(bins, weights=conf - eta)
    return float(np.abs(gap).sum()) / len(conf)


def posterior_error(draw: Draw) -> float:
    r"""Return the mean distance between the model's probabilities and the true posterior.

    .. math:: \frac{1}{n K} \sum_{i,k} |p_{ik} - \eta_{ik}|

    n is the number of rows, K that of columns (1 in a binary world, which has only P(positive)), p
    the model's probabilities, :math:`\eta` the posterior. All entries have equal weight, so the
    value shrinks with K. It is not a calibration error: see `true_ce`.

    Parameters
    ----------
    draw : rows of a world

    Examples
    --------
    >>> rows = Draw(np.array([0, 1]), np.array([0.5, 0.5]), np.array([0.2, 0.8]))
    >>> round(posterior_error(rows), 3), round(true_ce(rows), 3)
    (0.3, 0.0)
    """
    return float(np.abs(draw.probs - draw.posterior).mean())


def shifted_world(gap: float) -> World:
    """Return a binary world whose true calibration error is exactly `gap`.

    The score s is uniform on [0.1, 0.9]; the posterior is s - gap for s >= 0.5 and s + gap below.
    The model is over-confident everywhere and the error has one sign in each half, so averaging
    over bins that do not cross 0.5 loses nothing. It is not monotone: at 0.5 the posterior drops by
    twice the gap.

    Parameters
    ----------
    gap : between 0 and 0.5

    Examples
    --------
    >>> draw = shifted_world(0.03).draw(50, 0)
    >>> round(posterior_error(draw), 6)
    0.03
    """
    if not 0.0 <= gap <= 0.5:
        raise InputError(f"gap must lie in [0, 0.5], got {gap}: the posterior would leave [0, 1].")

    def sampler(n: int, rng: Rng) -> Draw:
        s = rng.uniform(0.1, 0.9, n)
        return _binary(s, np.where(s >= 0.5, s - gap, s + gap), rng)

    text = f"Uniform scores that are too extreme by {gap:g} everywhere."
    return World(f"shifted({gap:g})", 2, text, sampler)


def _target_confidence(draw: Draw, target: str | None) -> tuple[FloatArray, FloatArray]:
    """Return the confidence and the true posterior of the class it refers to."""
    p = draw.probs.astype(np.float64)
    resolved = resolve_target(target, 2 if p.ndim == 1 else p.shape[1])
    if resolved == "classwise":
        raise InputError("target must be 'positive' or 'top-label', got 'classwise'.")
    if p.ndim == 2:
        rows, top = np.arange(len(p)), p.argmax(axis=1)
        return p[rows, top], draw.posterior[rows, top]
    if resolved == "positive":
        return p, draw.posterior
    up = p >= 0.5
    return np.where(up, p, 1.0 - p), np.where(up, draw.posterior, 1.0 - draw.posterior)


def _fine_bins(conf: FloatArray) -> NDArray[np.intp]:
    # Edges at values instead of ranks keep ties in one bin: a constant model has one bin.
    count = int(np.clip(len(conf) // ROWS_PER_BIN, 1, MAX_N_BINS))
    cuts = np.sort(conf)[np.arange(1, count) * len(conf) // count]
    return np.searchsorted(cuts, conf, side="right")


def _binary(probs: Probs, posterior: FloatArray, rng: Rng) -> Draw:
    labels = (rng.random(len(posterior)) < posterior).astype(np.int64)
    return Draw(labels, probs, posterior)


def _sharpen(p: FloatArray, factor: float) -> FloatArray:
    """Multiply the log-odds, as a temperature of 1 / factor does."""
    # Beta draws reach 0 and 1 in floats, where the log-odds are infinite.
    safe = np.clip(p, 1e-300, 1.0 - 1e-16)
    return _sigmoid(factor * (np.log(safe) - np.log1p(-safe)))


def _sigmoid(z: FloatArray) -> FloatArray:
    # The exponent is never positive, so exp cannot overflow.
    e = np.exp(-np.abs(z))
    return np.where(z >= 0, 1.0, e) / (1.0 + e)


def _softmax(z: FloatArray) -> FloatArray:
    e = np.exp(z - z.max(axis=1, keepdims=True))
    return np.asarray(e / e.sum(axis=1, keepdims=True))


def _beta(a: float, b: float, factor: float = 1.0, *, grid: int = 0) -> Callable[..., Draw]:
    """Return a sampler: eta ~ Beta(a, b), log-odds times factor, scores rounded to 1 / grid."""

    def sampler(n: int, rng: Rng) -> Draw:
        eta = rng.beta(a, b, n)
        p = eta.copy() if factor == 1.0 else _sharpen(eta, factor)
        return _binary(np.round(p * grid) / grid if grid else p, eta, rng)

    return sampler


def _classes(prior: FloatArray, distance: float, factor: float = 1.0) -> Callable[..., Draw]:
    """Return a sampler of unit Gaussian classes with their exact posterior.

    y ~ prior and x ~ N(distance e_y, I) give log P(y = k | x) = log prior_k + distance x_k + const,
    so the class frequencies are the prior and Bayes' rule needs no approximation.
    """

    def sampler(n: int, rng: Rng) -> Draw:
        labels = rng.choice(len(prior), size=n, p=prior)
        logits = rng.standard_normal((n, len(prior)))
        logits[np.arange(n), labels] += distance
        logits *= distance
        logits += np.log(prior)
        posterior = _softmax(logits)
        probs = posterior.copy() if factor == 1.0 else _softmax(factor * logits)
        return Draw(labels, probs, posterior)

    return sampler


def _saturated(n: int, rng: Rng) -> Draw:
    z = 1.5 * rng.standard_normal(n)
    # The rounded larger probability and its complement, as from a float32 softmax.
    top = _sigmoid(17.0 * np.abs(z)).astype(np.float32)
    return _binary(np.where(z >= 0, top, np.float32(1.0) - top), _sigmoid(z), rng)


def _rare(n: int, rng: Rng) -> Draw:
    # A few rows with high scores (positive three times in four) among many negatives:
    # 0.012 * 0.75 + 0.988 * 0.001 = 0.01, and high precision is still reachable.
    hot = rng.random(n) < 0.012
    eta = np.where(hot, rng.beta(6.0, 2.0, n), rng.beta(0.1, 98.7, n))
    return _binary(_sharpen(eta, 1.5), eta, rng)


def _zipf(k: int) -> FloatArray:
    weight = 1.0 / np.arange(1.0, k + 1.0)
    return np.asarray(weight / weight.sum())


_EVEN = np.full(5, 0.2)

WORLDS: dict[str, World] = {
    world.name: world
    for world in (
        World("binary", 2, "Beta scores, 16 % positive, over-confident.", _beta(0.8, 4.2, 1.6)),
        World("calibrated", 2, "Beta scores, 16 % positive, exact.", _beta(0.8, 4.2)),
        World("multiclass", 5, "Even classes, over-confident.", _classes(_EVEN, 1.5, 1.7)),
        World("calibrated_multiclass", 5, "Even classes, exact.", _classes(_EVEN, 1.5)),
        World("long_tailed", 20, "Zipf prior, over-confident.", _classes(_zipf(20), 2.0, 1.5)),
        World("tied", 2, "Over-confident, rounded to 0.05.", _beta(1.2, 2.4, 1.5, grid=20)),
        World("saturated", 2, "Half of the float32 scores are exactly 0 or 1.", _saturated),
        World("rare", 2, "One row in a hundred is positive, over-confident.", _rare),
    )
}
"""All worlds without parameters, by name."""
