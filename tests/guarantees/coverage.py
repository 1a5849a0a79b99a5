"""How often an interval holds the truth, on worlds whose truth is known."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from calibrant import metrics
from calibrant.inputs import as_scored_rows
from calibrant.metrics.binning import mass_edges, width_edges
from calibrant.metrics.calibration_figures import BootstrapTally, MeanError, Options, ks_estimate
from calibrant.metrics.influence_figures import (
    ClassRanks,
    aurc_estimate,
    confusion_estimates,
    loss_interval,
)
from calibrant.metrics.seminorms import binned_size, running_size, smoothed_size
from calibrant.metrics.smooth import tally_smooth
from calibrant.metrics.summary import compute_statistics
from calibrant.metrics.tally import Tally, tally_rows
from calibrant.testing import WORLDS, Draw

GAPS = (0.0, 0.01, 0.03, 0.08)
SIZES = (300, 1000, 5000)
METRICS = ("ece_ew", "ece_em", "ece_debiased", "ece_sweep_em", "ks", "ece_smooth")

Sampler = Callable[[int, np.random.Generator], tuple[np.ndarray, np.ndarray]]


def even(gap: float) -> Sampler:
    """Scores spread evenly over [0.1, 0.9], each too far from the middle by `gap`."""

    def draw(n, rng):
        scores = rng.uniform(0.1, 0.9, n)
        return scores, scores - gap * np.where(scores >= 0.5, 1, -1)

    return draw


def skewed(gap: float) -> Sampler:
    """Mostly low scores, as on imbalanced data, each too high by `gap`."""

    def draw(n, rng):
        scores = 0.1 + 0.85 * rng.beta(0.6, 3.0, n)
        return scores, scores - gap

    return draw


FAMILIES = {"even": even, "skewed": skewed}


def population(draw: Sampler, rng: np.random.Generator, n: int = 40_000) -> Tally:
    """A tally in which each score has its exact share of events: no label noise is left."""
    scores, eta = draw(n, rng)
    order = np.argsort(scores)
    weight = np.column_stack([1 - eta[order], eta[order]])
    return Tally(scores[order], weight, weight, weight)


def truths(whole: Tally, sample: BootstrapTally, sigma: float) -> dict[str, float]:
    """Population values of the same functionals, with the sample's bins and bandwidth."""
    rest = whole.residual
    coarse = whole.compress(np.array([0.0, 1.0]), 300)
    return {
        "ece_ew": float(binned_size(whole, sample.width)(rest)),
        "ece_em": float(binned_size(whole, sample.mass)(rest)),
        "ece_debiased": float(binned_size(whole, sample.mass, 2)(rest)),
        "ece_sweep_em": float(binned_size(whole, sample.sweeps["mass"])(rest)),
        "ks": float(running_size(rest)),
        "ece_smooth": float(smoothed_size(coarse, sigma)(coarse.residual)),
    }


def coverage(
    family: str, gap: float, n: int, repetitions: int, seed: int, metrics: tuple[str, ...] = METRICS
) -> dict[str, float]:
    """Share of repetitions whose 95 % interval holds the truth, for each metric."""
    rng = np.random.default_rng([seed, n, round(1000 * gap)])
    draw = FAMILIES[family](gap)
    whole = population(draw, rng)
    held = dict.fromkeys(metrics, 0)
    for _ in range(repetitions):
        scores, eta = draw(n, rng)
        tally = tally_rows(scores, rng.random(n) < eta)
        sample = BootstrapTally(tally, Options(replicates=250, draws=250), rng)
        sigma = max(tally_smooth(tally, points=2048), 1e-3) if "ece_smooth" in metrics else 0.1
        sizes = {
            "ece_ew": binned_size(sample.cells, sample.width),
            "ece_em": binned_size(sample.cells, sample.mass),
            "ece_debiased": binned_size(sample.cells, sample.mass, 2),
            "ece_sweep_em": binned_size(sample.cells, sample.sweeps["mass"]),
        }
        if "ece_smooth" in metrics:
            sizes["ece_smooth"] = smoothed_size(sample.cells, sigma)
        truth = truths(whole, sample, sigma)
        for name in metrics:
            found = (
                ks_estimate(sample).interval
                if name == "ks"
                else sample.interval(sizes[name], float(sizes[name](sample.cells.residual)))
            )
            held[name] += found.low <= truth[name] + 1e-9 and truth[name] - 1e-9 <= found.high
    return {name: count / repetitions for name, count in held.items()}


SMOOTH = (
    "nll", "brier", "accuracy", "precision_macro", "recall_macro", "f1_macro", "matthews", "auroc",
    "auprc", "aurc",
)  # fmt: skip


def smooth_coverage(world: str, n: int, repetitions: int, seed: int) -> dict[str, float]:
    """Share of intervals that hold the population value, for figures that are smooth in the data.

    The population value is taken from a million rows.
    """
    rng = np.random.default_rng(seed)
    whole = WORLDS[world].draw(1_000_000, rng)
    truth = {name: getattr(metrics, name)(whole.labels, whole.probs) for name in SMOOTH}
    held = dict.fromkeys(SMOOTH, 0)
    for _ in range(repetitions):
        draw = WORLDS[world].draw(n, rng)
        for name, _, interval in _smooth_estimates(as_scored_rows(draw.labels, draw.probs)):
            held[name] += interval.low <= truth[name] <= interval.high
    return {name: count / repetitions for name, count in held.items()}


def _smooth_estimates(scored):
    summary = compute_statistics(scored)
    for name in ("nll", "brier"):
        moments = getattr(summary, name)
        yield name, moments.mean, loss_interval(moments, summary.n, 0.95)
    yield from confusion_estimates(summary.confusion, weighted=False, confidence=0.95)
    ranks = ClassRanks(len(summary.classes), None)
    for view in summary.by_class():
        ranks.add(view)
    yield from ranks.estimates(0.95)
    yield aurc_estimate(summary.top, 0.95)


def population_gaps(whole: Draw) -> list[Callable[[np.ndarray], float]]:
    """For each class the error of the population over any bins: its rows are sorted only once."""

    def of(scores: np.ndarray, posterior: np.ndarray) -> Callable[[np.ndarray], float]:
        order = np.argsort(scores)
        scores, below = scores[order], np.r_[0.0, np.cumsum((posterior - scores)[order])]

        def error(edges: np.ndarray) -> float:
            starts = np.searchsorted(scores, edges[1:-1], side="left")
            ends = below[np.r_[0, starts, len(scores)]]
            return float(np.abs(np.diff(ends)).sum() / len(scores))

        return error

    return [of(s, p) for s, p in zip(whole.probs.T, whole.posterior.T, strict=True)]


def classwise_coverage(world: str, n: int, repetitions: int, seed: int) -> dict[str, float]:
    """Share of intervals of the class-wise errors that hold the value of the population.

    The population has the same bins, and its exact share of events at every score.
    """
    rng = np.random.default_rng(seed)
    gaps = population_gaps(WORLDS[world].draw(100_000, rng))
    schemes = {"ece_classwise": "width", "ace": "mass"}
    held = dict.fromkeys(schemes, 0)
    for _ in range(repetitions):
        draw = WORLDS[world].draw(n, rng)
        for name, scheme in schemes.items():
            error, truths_by_class = MeanError(scheme, Options(replicates=250, draws=250), rng), []
            for k in range(draw.probs.shape[1]):
                tally = tally_rows(draw.probs[:, k], draw.labels == k)
                error.add(tally)
                edges = (
                    width_edges(15)
                    if scheme == "width"
                    else mass_edges(tally.score, tally.mass, 15)
                )
                truths_by_class.append(gaps[k](edges))
            found, truth = error.estimate().interval, np.mean(truths_by_class)
            held[name] += found.low <= truth <= found.high
    return {name: count / repetitions for name, count in held.items()}


def rejections(world: str, n: int, repetitions: int, seed: int) -> float:
    """Share of samples in which the calibration test speaks up at the 5 % level."""
    rng = np.random.default_rng(seed)
    found = 0
    for _ in range(repetitions):
        draw = WORLDS[world].draw(n, rng)
        test = metrics.calibration_test(draw.labels, draw.probs, draws=499, rng=rng)
        found += test.p_value < 0.05
    return found / repetitions


def comparison_coverage(gap: float, n: int, repetitions: int, seed: int) -> dict[str, float]:
    """Share of paired intervals that hold the true difference between a model and its repair."""
    rng = np.random.default_rng(seed)
    draw = even(gap)
    scores, eta = draw(1_000_000, rng)
    # Expected log loss given the posterior: no label noise in the truth.
    loss = [-(eta * np.log(p) + (1 - eta) * np.log(1 - p)).mean() for p in (scores, eta)]
    # Of 15 equal-mass bins the one around 1/2 holds errors of both signs, which cancel.
    truth = {"nll": loss[1] - loss[0], "ece_debiased": -gap * np.sqrt(14 / 15)}
    held = dict.fromkeys(truth, 0)
    for _ in range(repetitions):
        scores, eta = draw(n, rng)
        labels = (rng.random(n) < eta).astype(int)
        found = metrics.compare(labels, scores, eta, rng=rng)
        for name in truth:
            interval = found[name].interval
            held[name] += interval.low <= truth[name] <= interval.high
    return {name: count / repetitions for name, count in held.items()}
