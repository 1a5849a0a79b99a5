"""`evaluate`: every figure with its interval, floor and definition, and one verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.inputs import (
    Scored,
    Target,
    as_groups,
    as_scored,
    check_two_classes,
    one_target,
)
from calibrant.metrics.binning import Scheme
from calibrant.metrics.calibration_figures import (
    Estimate,
    MeanError,
    Options,
    Resampled,
    binned_estimates,
    checked_options,
    smooth_estimate,
    sweep_estimates,
)
from calibrant.metrics.catalogue import CATALOGUE, NAMES
from calibrant.metrics.class_walk import walk_classes
from calibrant.metrics.curves import reliability_bins, smooth_curve
from calibrant.metrics.decomposition import tally_decomposition
from calibrant.metrics.influence_figures import (
    ClassRanks,
    aurc_estimate,
    confusion_estimates,
    loss_interval,
)
from calibrant.metrics.ks import tally_test
from calibrant.metrics.problem import problem
from calibrant.metrics.spiegelhalter import spiegelhalter, without_spiegelhalter
from calibrant.metrics.summary import Summary, summarise
from calibrant.metrics.tally import tally_rows
from calibrant.metrics.verdict import verdict
from calibrant.results import CalibrationTest, Evaluation, Figure
from calibrant.stats import holm

__all__ = ["evaluate"]


def evaluate(
    labels: Any,
    probs: Any,
    *,
    classes: Sequence[Any] | None = None,
    target: Target | None = None,
    weights: Any = None,
    groups: Any = None,
    rng: int | np.random.Generator = 0,
    n_bins: int = 15,
    confidence: float = 0.95,
) -> Evaluation:
    """Measure how far probabilities can be trusted.

    Gives calibration errors (with intervals and the floor that a perfectly calibrated model with
    these scores would get), proper scores, accuracy and ranking, tests, reliability tables, and a
    verdict in words from one pre-declared test.

    Parameters
    ----------
    labels : (n,) labels
    probs : (n,) P(positive) or (n, K)
    classes : names behind the columns, when labels are names and the columns of a table do not say
    target : "positive" (default for two classes) or "top-label" (default for more)
    weights : inverse inclusion probabilities
    groups : (n,) names; each group gets its own figures and a Holm-adjusted verdict, and rows
        whose name is missing are the group "(missing)"
    rng : seed of the resampling
    n_bins : bins of the binned errors, at most 10,000
    confidence : nominal coverage of the intervals

    Examples
    --------
    >>> from calibrant.testing import WORLDS
    >>> draw = WORLDS["binary"].draw(2000, 0)
    >>> result = evaluate(draw.labels, draw.probs)
    >>> print(result.verdict.text)
    probabilities too low by about 4.7 percentage points on average: mean 9.7%, event rate 14.4% ...
    >>> result["ece_ew"].interval.low > 0
    True
    """
    scored = as_scored(labels, probs, weights=weights, classes=classes)
    what = one_target(target, len(scored.classes))
    check_two_classes(np.bincount(scored.labels), scored.classes)
    names = None if groups is None else as_groups(groups, len(labels))
    if names is not None and weights is not None:
        names = names[np.asarray(weights) > 0]  # as_scored has left out rows of weight 0
    generator = np.random.default_rng(rng)
    options = checked_options(n_bins, confidence)
    whole = _evaluate_scored(scored, what, options, generator)
    if names is None:
        return whole
    parts = {
        str(name): _evaluate_scored(scored.rows(names == name), what, options, generator)
        for name in np.unique(names)
    }
    return whole.with_groups(_adjusted(parts, scored, names, what))


def _evaluate_scored(
    scored: Scored, target: Target, options: Options, rng: np.random.Generator
) -> Evaluation:
    form = "vector" if target == "top-label" and not scored.binary else target
    test = (
        spiegelhalter(scored.labels, scored.probs, target=form)
        if scored.weights is None
        else without_spiegelhalter("it has no form for weighted rows")
    )
    return evaluation_of(summarise(scored), target, options, rng, brier_test=test)


def evaluation_of(
    summary: Summary,
    target: Target,
    options: Options,
    rng: np.random.Generator,
    *,
    brier_test: CalibrationTest,
    sweeps: bool = True,
) -> Evaluation:
    """Compute an evaluation from sufficient statistics; a stream cannot sweep."""
    walk = walk_classes(summary, options, rng)
    sample = Resampled(walk.last if target == "positive" else summary.top, options, rng)
    estimates = {**dict(binned_estimates(sample)), "ece_smooth": smooth_estimate(sample)}
    if sweeps:
        estimates |= dict(sweep_estimates(sample))
    if target == "positive":
        schemes: dict[str, Scheme] = {"ece_ew_top_label": "width", "ece_em_top_label": "mass"}
        for name, scheme in schemes.items():
            beside = MeanError(scheme, options, rng)
            beside.add(summary.top)
            estimates[name] = beside.estimate()
    test = tally_test(sample.cells, draws=options.draws, rng=rng)
    return Evaluation(
        n=summary.n,
        classes=summary.classes,
        target=target,
        figures=_figures(summary, target, {**estimates, **walk.errors}, walk.ranks, options),
        verdict=verdict(sample.cells, test, target),
        tests={"ks": test, "spiegelhalter": brier_test},
        bins={
            "width": reliability_bins(sample, "width", target),
            "mass": reliability_bins(sample, "mass", target),
        },
        per_class=walk.table,
        confusion=summary.confusion.weight,
        decomposition={
            "brier": tally_decomposition(sample.tally, "brier").to_dict(),
            "nll": tally_decomposition(sample.tally, "nll").to_dict(),
        },
        confidence=options.confidence,
        weighted=summary.weighted,
        curves={"classes": walk.curves, "smooth": smooth_curve(sample)},
    )


def _figures(
    summary: Summary,
    target: str,
    estimates: dict[str, Estimate],
    ranks: ClassRanks,
    options: Options,
) -> dict[str, Figure]:
    """Gather all figures in the order of the catalogue."""
    fill = {"n_bins": options.n_bins, "target": target, "k": len(summary.classes)}
    found: dict[str, Figure] = {}

    def put(name: str, **parts: Any) -> None:
        found[name] = Figure(name, definition=CATALOGUE[name].definition.format(**fill), **parts)

    for name, e in estimates.items():
        put(name, value=e.value, interval=e.interval, floor=e.floor)
    for name, moments in (("nll", summary.nll), ("brier", summary.brier)):
        if moments.infinite:
            rows = f"{moments.infinite:,} row{'s' if moments.infinite > 1 else ''}"
            put(name, value=None, why=f"infinite: {rows} gave probability 0 to the label")
        else:
            interval = loss_interval(moments, summary.n, options.confidence)
            put(name, value=moments.mean, interval=interval)
    smooth = (
        *confusion_estimates(
            summary.confusion, weighted=summary.weighted, confidence=options.confidence
        ),
        *ranks.estimates(options.confidence),
        aurc_estimate(summary.top, options.confidence),
    )
    for name, value, interval in smooth:
        put(name, value=value, interval=interval)
    for name in NAMES:
        if name not in found and not name.endswith("_top_label"):
            put(name, value=None, why=_why_missing(name))
    return {name: found[name] for name in NAMES if name in found}


def _why_missing(name: str) -> str:
    if name in ("auroc", "auprc"):
        return "ranking needs rows of at least two classes, and only one occurs"
    return "this error chooses its bins by every single score, which a stream does not keep"


def _adjusted(
    parts: dict[str, Evaluation], scored: Scored, names: Any, target: Target
) -> dict[str, Evaluation]:
    """Replace each group's verdict by one with a Holm-adjusted p-value."""
    p_values = holm([float(part.tests["ks"].p_value or 1.0) for part in parts.values()])
    out = {}
    for (name, part), p in zip(parts.items(), p_values, strict=True):
        rows = scored.rows(names == name)
        tally = tally_rows(*problem(rows, target), rows.weights)
        words = verdict(tally, part.tests["ks"], target, p_value=float(p))
        out[name] = replace(part, verdict=words)
    return out
