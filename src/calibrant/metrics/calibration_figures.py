"""Calibration errors of one problem, each with its interval and its floor."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.metrics.binning import Scheme, check_bins, mass_edges, width_edges
from calibrant.metrics.debiased import debiased_square
from calibrant.metrics.resampling import (
    bootstrap_noise,
    floor_by_redrawing,
    floor_of_sizes,
    interval_from_sizes,
    null_residuals,
)
from calibrant.metrics.seminorms import Seminorm, binned_size, running_size, smoothed_size
from calibrant.metrics.smooth import tallies_smooth, tally_smooth
from calibrant.metrics.sweep import sweep_edges, sweeps
from calibrant.metrics.tally import Tally
from calibrant.results import Floor, Interval

__all__ = [
    "Estimate",
    "MeanError",
    "Resampled",
    "binned_estimates",
    "checked_options",
    "ks_estimate",
    "smooth_estimate",
    "sweep_estimates",
]

_MOST_EDGES = 1025  # a sweep that ends with a bin per score is resampled on coarser bins
_REDRAWS = 200  # for errors that choose their own bins, each redraw is a full computation

Again = Callable[[list[Tally]], Sequence[float] | FloatArray]
"""The error of each of several tallies, computed anew."""


@dataclass(frozen=True)
class Estimate:
    """Value, interval and floor of one calibration error."""

    value: float
    interval: Interval
    floor: Floor


@dataclass(frozen=True)
class Options:
    """How estimates are made."""

    n_bins: int = 15
    replicates: int = 1000
    draws: int = 1999
    confidence: float = 0.95


def checked_options(n_bins: int, confidence: float) -> Options:
    """Return options for these bins and this confidence, or say what is wrong with them."""
    check_bins(n_bins, "width", 1)
    if not 0.5 <= confidence <= 0.99:
        raise InputError(
            f"confidence must lie between 0.5 and 0.99, got {confidence!r}: "
            "resampling cannot tell apart anything closer to certainty."
        )
    # At least 25 replicates beyond either end of the interval.
    replicates = max(1000, math.ceil(100 / (1 - confidence) / 2))
    return Options(n_bins=n_bins, replicates=replicates, confidence=confidence)


class Resampled:
    """A tally with its cells, bootstrap noise and redrawn residuals, drawn once for all errors."""

    def __init__(self, tally: Tally, options: Options, rng: np.random.Generator) -> None:
        self.tally = tally
        self.options = options
        self.rng = rng
        self.width = width_edges(options.n_bins)
        self.mass = mass_edges(tally.score, tally.mass, options.n_bins)
        schemes: tuple[Scheme, ...] = ("width", "mass")
        self.sweeps = {s: sweep_edges(tally, s) for s in schemes}
        self.coarse = {s: _at_most(edges, tally) for s, edges in self.sweeps.items()}
        every = np.concatenate([self.width, self.mass, *self.coarse.values()])
        self.cells = tally.compress(np.unique(every))
        self.noise = bootstrap_noise(self.cells, options.replicates, rng)
        self.null = null_residuals(self.cells, options.draws, rng)

    def interval(self, size: Seminorm, estimate: float) -> Interval:
        """Interval of a calibration error around its estimate."""
        return interval_from_sizes(
            estimate,
            size(self.noise),
            size(self.cells.residual + self.noise),
            size(self.null),
            self.options.confidence,
        )

    @property
    def deviations(self) -> float:
        """Standard errors on either side of a normal interval."""
        from scipy.special import ndtri

        return float(ndtri(0.5 + self.options.confidence / 2))

    def fixed(self, size: Seminorm) -> Estimate:
        """Estimate an error whose bins depend on the scores alone."""
        value = float(size(self.cells.residual))
        return Estimate(value, self.interval(size, value), floor_of_sizes(size(self.null)))

    def redrawn(self, size: Seminorm, value: float, again: Again) -> Estimate:
        """Estimate an error that chooses its bins by the labels, so floors are computed anew."""
        plug_in = float(size(self.cells.residual))
        floor = floor_by_redrawing(self.cells, again, _REDRAWS, self.rng)
        return Estimate(value, self.interval(size, plug_in), floor)


def binned_estimates(sample: Resampled) -> Iterator[tuple[str, Estimate]]:
    """ECE by width and mass, MCE, debiased, KS."""
    cells = sample.cells
    yield "ece_ew", sample.fixed(binned_size(cells, sample.width))
    yield "ece_em", sample.fixed(binned_size(cells, sample.mass))
    worst = sample.fixed(binned_size(cells, sample.width, np.inf))
    most = min(worst.interval.high, 1.0)  # no gap is larger
    yield "mce", replace(worst, interval=replace(worst.interval, high=most))
    yield (
        "ece_debiased",
        sample.redrawn(
            binned_size(cells, sample.mass, 2),
            _debiased(cells, sample.mass),
            lambda drawn: [_debiased(one, sample.mass) for one in drawn],
        ),
    )
    yield "ks", ks_estimate(sample)


def ks_estimate(sample: Resampled) -> Estimate:
    """KS error; its linear form is the running sum at one score, whose own noise bounds it.

    The replicates' spread is not enough: where the error is no larger than its noise, the largest
    of many running sums varies less than the one that matters.
    """
    value = float(running_size(sample.tally.residual))  # between the cells' ends too
    margin = sample.deviations * float(np.cumsum(sample.noise, axis=1).std(axis=0).max())
    found = sample.interval(running_size, value)
    high = max(found.high, value + margin)
    return Estimate(value, replace(found, high=high), floor_of_sizes(running_size(sample.null)))


def smooth_estimate(sample: Resampled) -> Estimate:
    """Smooth ECE; its interval holds the bandwidth fixed."""
    value = tally_smooth(sample.tally)
    size = smoothed_size(sample.cells, max(value, 1e-3))
    return sample.redrawn(size, value, lambda drawn: tallies_smooth(drawn, points=2048))


def sweep_estimates(sample: Resampled) -> Iterator[tuple[str, Estimate]]:
    """Sweep errors, which choose their bins by looking at every label."""
    cells = sample.cells
    names: dict[Scheme, str] = {"width": "ece_sweep_ew", "mass": "ece_sweep_em"}
    for scheme, name in names.items():
        value = float(binned_size(sample.tally, sample.sweeps[scheme])(sample.tally.residual))
        size = binned_size(cells, sample.coarse[scheme])
        yield name, sample.redrawn(size, value, _sweep_again(scheme))


class MeanError:
    """ECE of one problem, or its mean over classes, resampled bin by bin.

    Classes are resampled independently, two classes as mirror images of each other.
    """

    def __init__(self, scheme: Scheme, options: Options, rng: np.random.Generator) -> None:
        self.scheme, self.options, self.rng = scheme, options, rng
        self.values: list[float] = []
        self.sizes: list[list[FloatArray]] = [[], [], []]  # of noise, replicates, calibrated models

    def add(self, tally: Tally) -> None:
        """Take the next class."""
        options, rng = self.options, self.rng
        edges = (
            width_edges(options.n_bins)
            if self.scheme == "width"
            else mass_edges(tally.score, tally.mass, options.n_bins)
        )
        bins = _bins_only(tally, edges)
        noise = bootstrap_noise(bins, options.replicates, rng)
        self.values.append(float(np.abs(bins.residual).sum()))
        self.sizes[0].append(np.abs(noise).sum(axis=1))
        self.sizes[1].append(np.abs(bins.residual + noise).sum(axis=1))
        self.sizes[2].append(_null_sizes(tally, edges, options.draws, rng))

    def estimate(self) -> Estimate:
        """Return the mean over the classes taken."""
        if len(self.values) == 2:  # both classes err together
            self.sizes = [[np.sort(column) for column in columns] for columns in self.sizes]
        noise, replicate, null = (np.mean(columns, axis=0) for columns in self.sizes)
        value = float(np.mean(self.values))
        interval = interval_from_sizes(value, noise, replicate, null, self.options.confidence)
        return Estimate(value, interval, floor_of_sizes(null))


def _bins_only(tally: Tally, edges: FloatArray) -> Tally:
    starts = np.unique(tally.starts(edges))
    return tally.merge_at(starts[starts < len(tally.score)])


def _null_sizes(
    tally: Tally, edges: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Sizes under calibration: events of each bin redrawn with the mean and variance they have.

    A binomial with these two moments is right for rare events, where the normal limit is not.
    """
    doubt = tally.chance * (1.0 - tally.chance)
    expected = tally.per_bin(edges, tally.rows * tally.chance)
    variance = tally.per_bin(edges, tally.rows * doubt)
    spread = tally.per_bin(edges, tally.leverage * doubt)
    varies = variance > 1e-12
    mean, spread = expected[varies], spread[varies] / variance[varies]
    trials = np.ceil(mean**2 / np.maximum(mean - variance[varies], 1e-12))
    trials = np.clip(trials, np.ceil(mean), 1e15).astype(np.int64)
    came = rng.binomial(trials, mean / trials, size=(draws, len(mean)))
    return np.asarray((np.abs(came - mean) * np.sqrt(spread)).sum(axis=1) / tally.total)


def _debiased(tally: Tally, edges: FloatArray) -> float:
    return float(np.sqrt(max(0.0, debiased_square(tally, edges))))


def _sweep_again(scheme: Scheme) -> Again:
    def values(drawn: list[Tally]) -> list[float]:
        pairs = zip(drawn, sweeps(drawn, scheme), strict=True)
        return [float(binned_size(one, edges)(one.residual)) for one, edges in pairs]

    return values


def _at_most(edges: FloatArray, tally: Tally) -> FloatArray:
    if len(edges) <= _MOST_EDGES:
        return edges
    return mass_edges(tally.score, tally.mass, _MOST_EDGES - 1)
