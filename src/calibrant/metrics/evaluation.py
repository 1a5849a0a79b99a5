"""Evaluation of a classifier: metrics with intervals, floors and definitions, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.inputs import (
    ScoredRows,
    Target,
    as_groups,
    as_scored_rows,
    check_two_classes,
    resolve_single_target,
)
from calibrant.metrics.binning import Scheme
from calibrant.metrics.calibration_figures import (
    BootstrapTally,
    Estimate,
    MeanError,
    Options,
    binned_estimates,
    check_options,
    smooth_estimate,
    sweep_estimates,
)
from calibrant.metrics.catalogue import CATALOGUE, NAMES
from calibrant.metrics.class_walk import evaluate_classes
from calibrant.metrics.curves import reliability_bins, smooth_curve
from calibrant.metrics.decomposition import tally_decomposition
from calibrant.metrics.influence_figures import (
    ClassRanks,
    aurc_estimate,
    confusion_estimates,
    loss_interval,
)
from calibrant.metrics.ks import tally_test
from calibrant.metrics.problem import target_problem
from calibrant.metrics.spiegelhalter import spiegelhalter, unavailable_spiegelhalter
from calibrant.metrics.summary import SufficientStatistics, compute_statistics
from calibrant.metrics.tally import tally_rows
from calibrant.metrics.verdict import make_verdict
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
    """Evaluate the calibration and accuracy of predicted probabilities.

    Returns calibration errors (with intervals and the floor that a perfectly calibrated model with
    these scores would get), proper scores, accuracy and ranking metrics, tests, reliability tables,
    and a verdict in words from one pre-declared test.

    Parameters
    ----------
    labels : (n,) labels
    probs : (n,) P(positive) or (n, K)
    classes : class names in column order, if labels are names and no table columns name them
    target : "positive" (default for two classes) or "top-label" (default for more)
    weights : inverse inclusion probabilities
    groups : (n,) group names; each group gets its own metrics and a Holm-adjusted verdict, and
        rows without a name form the group "(missing)"
    rng : seed of the resampling
    n_bins : number of bins of the binned errors, at most 10,000
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
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    resolved = resolve_single_target(target, len(scored.classes))
    check_two_classes(np.bincount(scored.labels), scored.classes)
    names = None if groups is None else as_groups(groups, len(labels))
    if names is not None and weights is not None:
        names = names[np.asarray(weights) > 0]  # as_scored_rows drops rows of weight 0
    generator = np.random.default_rng(rng)
    options = check_options(n_bins, confidence)
    overall = _evaluate_rows(scored, resolved, options, generator)
    if names is None:
        return overall
    parts = {
        str(name): _evaluate_rows(scored.rows(names == name), resolved, options, generator)
        for name in np.unique(names)
    }
    return overall.with_groups(_adjust_verdicts(parts, scored, names, resolved))


def _evaluate_rows(
    scored: ScoredRows, target: Target, options: Options, rng: np.random.Generator
) -> Evaluation:
    form = "vector" if target == "top-label" and not scored.binary else target
    test = (
        spiegelhalter(scored.labels, scored.probs, target=form)
        if scored.weights is None
        else unavailable_spiegelhalter("the test is not defined for weighted rows")
    )
    return build_evaluation(compute_statistics(scored), target, options, rng, brier_test=test)


def build_evaluation(
    summary: SufficientStatistics,
    target: Target,
    options: Options,
    rng: np.random.Generator,
    *,
    brier_test: CalibrationTest,
    sweeps: bool = True,
) -> Evaluation:
    """Build an evaluation from sufficient statistics; sweep errors need every score."""
    by_class = evaluate_classes(summary, options, rng)
    sample = BootstrapTally(by_class.last if target == "positive" else summary.top, options, rng)
    estimates = {**dict(binned_estimates(sample)), "ece_smooth": smooth_estimate(sample)}
    if sweeps:
        estimates |= dict(sweep_estimates(sample))
    if target == "positive":
        schemes: dict[str, Scheme] = {"ece_ew_top_label": "width", "ece_em_top_label": "mass"}
        for name, scheme in schemes.items():
            top_error = MeanError(scheme, options, rng)
            top_error.add(summary.top)
            estimates[name] = top_error.estimate()
    test = tally_test(sample.cells, draws=options.draws, rng=rng)
    return Evaluation(
        n=summary.n,
        classes=summary.classes,
        target=target,
        figures=_collect_figures(
            summary, target, {**estimates, **by_class.errors}, by_class.ranks, options
        ),
        verdict=make_verdict(sample.cells, test, target),
        tests={"ks": test, "spiegelhalter": brier_test},
        bins={
            "width": reliability_bins(sample, "width", target),
            "mass": reliability_bins(sample, "mass", target),
        },
        per_class=by_class.table,
        confusion=summary.confusion.weight,
        decomposition={
            "brier": tally_decomposition(sample.tally, "brier").to_dict(),
            "nll": tally_decomposition(sample.tally, "nll").to_dict(),
        },
        confidence=options.confidence,
        weighted=summary.weighted,
        curves={"classes": by_class.curves, "smooth": smooth_curve(sample)},
    )


def _collect_figures(
    summary: SufficientStatistics,
    target: str,
    estimates: dict[str, Estimate],
    ranks: ClassRanks,
    options: Options,
) -> dict[str, Figure]:
    """Return all metrics in the order of the catalogue."""
    fill = {"n_bins": options.n_bins, "target": target, "k": len(summary.classes)}
    figures: dict[str, Figure] = {}

    def add(name: str, **parts: Any) -> None:
        definition = CATALOGUE[name].definition.format(**fill)
        figures[name] = Figure(name, definition=definition, **parts)

    for name, e in estimates.items():
        add(name, value=e.value, interval=e.interval, floor=e.floor)
    for name, moments in (("nll", summary.nll), ("brier", summary.brier)):
        if moments.infinite:
            rows = f"{moments.infinite:,} row{'s' if moments.infinite > 1 else ''}"
            add(name, value=None, why=f"infinite: {rows} gave probability 0 to the label")
        else:
            interval = loss_interval(moments, summary.n, options.confidence)
            add(name, value=moments.mean, interval=interval)
    smooth = (
        *confusion_estimates(
            summary.confusion, weighted=summary.weighted, confidence=options.confidence
        ),
        *ranks.estimates(options.confidence),
        aurc_estimate(summary.top, options.confidence),
    )
    for name, value, interval in smooth:
        add(name, value=value, interval=interval)
    for name in NAMES:
        if name not in figures and not name.endswith("_top_label"):
            add(name, value=None, why=_why_missing(name))
    return {name: figures[name] for name in NAMES if name in figures}


def _why_missing(name: str) -> str:
    if name in ("auroc", "auprc"):
        return "ranking needs rows of at least two classes, but only one is present"
    return "the bins of this error depend on every score, which a stream does not store"


def _adjust_verdicts(
    parts: dict[str, Evaluation], scored: ScoredRows, names: Any, target: Target
) -> dict[str, Evaluation]:
    """Return the groups with verdicts from Holm-adjusted p-values."""
    p_values = holm([float(part.tests["ks"].p_value or 1.0) for part in parts.values()])
    out = {}
    for (name, part), p in zip(parts.items(), p_values, strict=True):
        rows = scored.rows(names == name)
        tally = tally_rows(*target_problem(rows, target), rows.weights)
        verdict = make_verdict(tally, part.tests["ks"], target, p_value=float(p))
        out[name] = replace(part, verdict=verdict)
    return out
