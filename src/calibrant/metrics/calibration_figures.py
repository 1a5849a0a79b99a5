"""Calibration errors of one binary problem, each with its interval and floor."""

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
from calibrant.metrics.sweep import all_sweep_edges, sweep_edges
from calibrant.metrics.tally import Tally
from calibrant.results import Floor, Interval

_MOST_EDGES = 1025  # a sweep with one bin per score is resampled on coarser bins
_REDRAWS = 200  # errors with data-dependent bins are recomputed for every redraw

ErrorFunction = Callable[[list[Tally]], Sequence[float] | FloatArray]
"""Computes the error of each of several tallies."""


@dataclass(frozen=True)
class Estimate:
    """Value, interval and floor of one calibration error."""

    value: float
    interval: Interval
    floor: Floor


@dataclass(frozen=True)
class Options:
    """Number of bins, resampling sizes and confidence level."""

    n_bins: int = 15
    replicates: int = 1000
    draws: int = 1999
    confidence: float = 0.95


def check_options(n_bins: int, confidence: float) -> Options:
    """Validate the number of bins and the confidence level, and return the options."""
    check_bins(n_bins, "width", 1)
    if not 0.5 <= confidence <= 0.99:
        raise InputError(
            f"confidence must lie between 0.5 and 0.99, got {confidence!r}: "
            "resampling is not precise enough beyond that."
        )
    # At least 25 replicates beyond either end of the interval.
    replicates = max(1000, math.ceil(100 / (1 - confidence) / 2))
    return Options(n_bins=n_bins, replicates=replicates, confidence=confidence)


class BootstrapTally:
    """A tally with its cells, bootstrap noise and null residuals, drawn once for all errors."""

    def __init__(self, tally: Tally, options: Options, rng: np.random.Generator) -> None:
        self.tally = tally
        self.options = options
        self.rng = rng
        self.width = width_edges(options.n_bins)
        self.mass = mass_edges(tally.score, tally.mass, options.n_bins)
        schemes: tuple[Scheme, ...] = ("width", "mass")
        self.sweeps = {s: sweep_edges(tally, s) for s in schemes}
        self.coarse = {s: _coarsen(edges, tally) for s, edges in self.sweeps.items()}
        edges = np.concatenate([self.width, self.mass, *self.coarse.values()])
        self.cells = tally.compress(np.unique(edges))
        self.noise = bootstrap_noise(self.cells, options.replicates, rng)
        self.null = null_residuals(self.cells, options.draws, rng)

    def interval(self, size: Seminorm, estimate: float) -> Interval:
        """Return the confidence interval of a calibration error."""
        return interval_from_sizes(
            estimate,
            size(self.noise),
            size(self.cells.residual + self.noise),
            size(self.null),
            self.options.confidence,
        )

    @property
    def deviations(self) -> float:
        """Half-width of a normal interval in standard errors."""
        from scipy.special import ndtri

        return float(ndtri(0.5 + self.options.confidence / 2))

    def estimate_fixed(self, size: Seminorm) -> Estimate:
        """Estimate an error whose bins depend only on the scores."""
        value = float(size(self.cells.residual))
        return Estimate(value, self.interval(size, value), floor_of_sizes(size(self.null)))

    def estimate_redrawn(self, size: Seminorm, value: float, compute: ErrorFunction) -> Estimate:
        """Estimate an error whose bins depend on the labels; its floor needs full recomputation."""
        plug_in = float(size(self.cells.residual))
        floor = floor_by_redrawing(self.cells, compute, _REDRAWS, self.rng)
        return Estimate(value, self.interval(size, plug_in), floor)


def binned_estimates(sample: BootstrapTally) -> Iterator[tuple[str, Estimate]]:
    """Yield ECE by width and mass, MCE, debiased ECE and KS."""
    cells = sample.cells
    yield "ece_ew", sample.estimate_fixed(binned_size(cells, sample.width))
    yield "ece_em", sample.estimate_fixed(binned_size(cells, sample.mass))
    worst = sample.estimate_fixed(binned_size(cells, sample.width, np.inf))
    most = min(worst.interval.high, 1.0)  # no gap exceeds 1
    yield "mce", replace(worst, interval=replace(worst.interval, high=most))
    yield (
        "ece_debiased",
        sample.estimate_redrawn(
            binned_size(cells, sample.mass, 2),
            _debiased_error(cells, sample.mass),
            lambda tallies: [_debiased_error(tally, sample.mass) for tally in tallies],
        ),
    )
    yield "ks", ks_estimate(sample)


def ks_estimate(sample: BootstrapTally) -> Estimate:
    """Estimate the KS error; the noise of the running sum at one score bounds it from above.

    The spread of the replicates is not enough: when the error is no larger than its noise, the
    maximum of many running sums varies less than the sum at the relevant score.
    """
    value = float(running_size(sample.tally.residual))  # within cells too
    margin = sample.deviations * float(np.cumsum(sample.noise, axis=1).std(axis=0).max())
    interval = sample.interval(running_size, value)
    high = max(interval.high, value + margin)
    return Estimate(value, replace(interval, high=high), floor_of_sizes(running_size(sample.null)))


def smooth_estimate(sample: BootstrapTally) -> Estimate:
    """Estimate the smooth ECE; its interval holds the bandwidth fixed."""
    value = tally_smooth(sample.tally)
    size = smoothed_size(sample.cells, max(value, 1e-3))
    return sample.estimate_redrawn(
        size, value, lambda tallies: tallies_smooth(tallies, points=2048)
    )


def sweep_estimates(sample: BootstrapTally) -> Iterator[tuple[str, Estimate]]:
    """Yield the sweep errors, whose bins depend on every label."""
    cells = sample.cells
    names: dict[Scheme, str] = {"width": "ece_sweep_ew", "mass": "ece_sweep_em"}
    for scheme, name in names.items():
        value = float(binned_size(sample.tally, sample.sweeps[scheme])(sample.tally.residual))
        size = binned_size(cells, sample.coarse[scheme])
        yield name, sample.estimate_redrawn(size, value, _sweep_error_function(scheme))


class MeanError:
    """ECE of one problem, or its mean over classes, resampled bin by bin.

    Classes are resampled independently; two classes are treated as mirror images of each other.
    """

    def __init__(self, scheme: Scheme, options: Options, rng: np.random.Generator) -> None:
        self.scheme, self.options, self.rng = scheme, options, rng
        self.values: list[float] = []
        self.sizes: list[list[FloatArray]] = [[], [], []]  # noise, replicates, null draws

    def add(self, tally: Tally) -> None:
        """Add a class."""
        options, rng = self.options, self.rng
        edges = (
            width_edges(options.n_bins)
            if self.scheme == "width"
            else mass_edges(tally.score, tally.mass, options.n_bins)
        )
        bins = _merge_bins(tally, edges)
        noise = bootstrap_noise(bins, options.replicates, rng)
        self.values.append(float(np.abs(bins.residual).sum()))
        self.sizes[0].append(np.abs(noise).sum(axis=1))
        self.sizes[1].append(np.abs(bins.residual + noise).sum(axis=1))
        self.sizes[2].append(_null_sizes(tally, edges, options.draws, rng))

    def estimate(self) -> Estimate:
        """Return the mean over the classes added."""
        if len(self.values) == 2:  # both classes have the same errors
            self.sizes = [[np.sort(column) for column in columns] for columns in self.sizes]
        noise, replicate, null = (np.mean(columns, axis=0) for columns in self.sizes)
        value = float(np.mean(self.values))
        interval = interval_from_sizes(value, noise, replicate, null, self.options.confidence)
        return Estimate(value, interval, floor_of_sizes(null))


def _merge_bins(tally: Tally, edges: FloatArray) -> Tally:
    starts = np.unique(tally.starts(edges))
    return tally.merge_at(starts[starts < len(tally.score)])


def _null_sizes(
    tally: Tally, edges: FloatArray, draws: int, rng: np.random.Generator
) -> FloatArray:
    """Draw error sizes under calibration, with events of each bin matching its mean and variance.

    A binomial with these two moments is accurate for rare events, unlike the normal limit.
    """
    event_variance = tally.chance * (1.0 - tally.chance)
    expected = tally.per_bin(edges, tally.rows * tally.chance)
    variance = tally.per_bin(edges, tally.rows * event_variance)
    spread = tally.per_bin(edges, tally.leverage * event_variance)
    varies = variance > 1e-12
    mean, spread = expected[varies], spread[varies] / variance[varies]
    trials = np.ceil(mean**2 / np.maximum(mean - variance[varies], 1e-12))
    trials = np.clip(trials, np.ceil(mean), 1e15).astype(np.int64)
    events = rng.binomial(trials, mean / trials, size=(draws, len(mean)))
    return np.asarray((np.abs(events - mean) * np.sqrt(spread)).sum(axis=1) / tally.total)


def _debiased_error(tally: Tally, edges: FloatArray) -> float:
    return float(np.sqrt(max(0.0, debiased_square(tally, edges))))


def _sweep_error_function(scheme: Scheme) -> ErrorFunction:
    def compute(tallies: list[Tally]) -> list[float]:
        pairs = zip(tallies, all_sweep_edges(tallies, scheme), strict=True)
        return [float(binned_size(tally, edges)(tally.residual)) for tally, edges in pairs]

    return compute


def _coarsen(edges: FloatArray, tally: Tally) -> FloatArray:
    if len(edges) <= _MOST_EDGES:
        return edges
    return mass_edges(tally.score, tally.mass, _MOST_EDGES - 1)
