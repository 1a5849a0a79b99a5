"""Evaluation of a classifier: metrics with intervals, floors and definitions, and a verdict."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from calibrant.inputs import (
    FloatArray,
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
from calibrant.metrics.curves import class_curve, plotted_classes, reliability_bins, smooth_curve
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
from calibrant.metrics.summary import Confusion, SufficientStatistics, compute_statistics
from calibrant.metrics.tally import Tally, tally_rows
from calibrant.results import CalibrationTest, Evaluation, Figure, Verdict
from calibrant.stats import clopper_pearson, holm, wilson

LEVEL = 0.05
_FEW_ROWS, _FEW_EVENTS = 30, 5
_LEAST_VARIANCE = 1e-12  # Variance assumed for scores of exactly 0 or 1: small, but positive


def make_verdict(
    tally: Tally, test: CalibrationTest, target: str, *, p_value: float | None = None
) -> Verdict:
    """Put the result of a calibration test into words; `p_value` overrides that of the test."""
    p = test.p_value if p_value is None else p_value
    assert p is not None  # the Monte Carlo test always has one
    scores, rate = tally.mean_score, tally.event_rate
    if p >= LEVEL and _too_few(tally):
        text = f"too little data to judge calibration: {_describe_data(tally, target)}"
        return Verdict(text, None, p, scores, rate)
    if p >= LEVEL:
        text = (
            f"no miscalibration detectable at n={tally.n:,} (p = {p:.2f}); a constant error of "
            f"about {_format_points(_detectable_error(tally))} would probably have been found"
        )
        return Verdict(text, False, p, scores, rate)
    bound = f"p < {0.001:g}" if p < 0.001 else f"p = {p:.3f}"
    return Verdict(f"{_describe(tally, target)} ({bound}, n={tally.n:,})", True, p, scores, rate)


def _describe(tally: Tally, target: str) -> str:
    """Describe the kind of error: a shift on average, over- or under-confidence, or local."""
    gap = tally.mean_score - tally.event_rate
    average = gap / _standard_error(tally)
    slope = _slope_z(tally)
    typical = _format_points(float(np.abs(_residual_halves(tally)).sum()))
    if target == "top-label" and abs(average) > 1.96:
        word = "over-confident" if gap > 0 else "under-confident"
        return (
            f"{word} by about {_format_points(abs(gap))}: mean confidence {tally.mean_score:.1%}, "
            f"accuracy {tally.event_rate:.1%}"
        )
    if abs(average) > 1.96 and abs(average) >= abs(slope):
        word = "too high" if gap > 0 else "too low"
        return (
            f"probabilities {word} by about {_format_points(abs(gap))} on average: mean "
            f"{tally.mean_score:.1%}, event rate {tally.event_rate:.1%}"
        )
    if slope < -1.96:
        return f"over-confident by about {typical}: high probabilities too high, low ones too low"
    if slope > 1.96:
        return f"under-confident by about {typical}: high probabilities too low, low ones too high"
    return "miscalibrated in places, though about right on average: see the reliability diagram"


def _slope_z(tally: Tally) -> float:
    """Return the slope of events against scores in standard errors: + too steep, - too flat."""
    centred = tally.score - tally.mean_score
    spread = np.sqrt((tally.spread * _variance(tally) * centred**2).sum())
    if len(tally.score) == 1 or spread == 0:
        return 0.0  # ignore rounding errors of (score - mean score)
    return float((tally.residual * tally.total) @ centred / spread)


def _too_few(tally: Tally) -> bool:
    """Return whether there are too few rows, events or non-events to detect an error.

    Scores of exactly 0 and 1 need no minimum, because a single wrong row refutes them.
    """
    certain = bool(((tally.score == 0) | (tally.score == 1)).all())
    rare = not certain and tally.count.sum(axis=0).min() < _FEW_EVENTS
    return tally.n < _FEW_ROWS or rare


def _detectable_error(tally: Tally) -> float:
    """Return the constant error that the test detects with about 90 % power.

    It is at least 3 / n, an error rate that n rows show with 95 % probability.
    """
    rows = tally.total**2 / float(tally.spread.sum())
    return max(3.1 * _standard_error(tally), 3.0 / rows)


def _residual_halves(tally: Tally) -> FloatArray:
    """Return the residuals below and above the mean score."""
    below = tally.score < tally.mean_score
    return np.array([tally.residual[below].sum(), tally.residual[~below].sum()])


def _variance(tally: Tally) -> FloatArray:
    return np.maximum(tally.score * (1.0 - tally.score), _LEAST_VARIANCE)


def _standard_error(tally: Tally) -> float:
    """Return the standard error of (mean score - event rate) under calibration."""
    spread = float((tally.spread * _variance(tally)).sum())
    return float(np.sqrt(spread)) / tally.total


def _format_points(value: float) -> str:
    shown = 100 * value
    digits = 1 if shown >= 0.95 else 2
    return f"{shown:.{digits}f} percentage points"


def _describe_data(tally: Tally, target: str) -> str:
    event = "positive" if target == "positive" else "correct"
    rows = "1 row" if tally.n == 1 else f"{tally.n:,} rows"
    return f"{rows}, {round(tally.count[:, 1].sum()):,} of them {event}"


def class_row(
    summary: SufficientStatistics, k: int, tally: Tally, confidence: float
) -> dict[str, Any]:
    """Return the table row of class k: counts, precision and recall with intervals, F1, score."""
    weight = summary.confusion.weight
    either = float(weight[:, k].sum() + weight[k].sum())  # cheaper than F1 of the whole matrix
    return {
        "class": summary.classes[k],
        "rows": round(float(tally.count[:, 1].sum())),
        "predicted": round(float(summary.confusion.count[:, k].sum())),
        "precision": _rate(summary.confusion, k, 0, confidence),
        "recall": _rate(summary.confusion, k, 1, confidence),
        "f1": float(2 * weight[k, k]) / either if either else None,
        "mean_score": tally.mean_score,
        "event_rate": tally.event_rate,
    }


def _rate(confusion: Confusion, k: int, axis: int, confidence: float) -> dict[str, Any]:
    """Return the precision (axis 0) or recall (axis 1) of class k with its interval."""
    rows, weight, square = (
        part[:, k] if axis == 0 else part[k]
        for part in (confusion.count, confusion.weight, confusion.square)
    )
    n = float(rows.sum())
    if weight.sum() == 0:
        return {"value": None, "low": None, "high": None, "n": 0}
    value = float(weight[k] / weight.sum())
    if np.array_equal(rows, weight):
        interval = clopper_pearson(rows[k], n, confidence=confidence)
    else:  # Kish's effective number of rows
        effective = float(weight.sum() ** 2 / square.sum())
        interval = wilson(value * effective, effective, confidence=confidence)
    return {"value": value, "low": interval.low, "high": interval.high, "n": round(n)}


@dataclass(frozen=True)
class ClassResults:
    """Results over all classes; `last` is the tally of the last one, the positive class of two."""

    errors: dict[str, Estimate]
    ranks: ClassRanks
    table: tuple[dict[str, Any], ...]
    curves: list[dict[str, Any]]
    last: Tally


def evaluate_classes(
    summary: SufficientStatistics, options: Options, rng: np.random.Generator
) -> ClassResults:
    """Evaluate each class once, since its tally is costly and is needed by five metrics."""
    errors = {
        "ece_classwise": MeanError("width", options, rng),
        "ace": MeanError("mass", options, rng),
    }
    ranks = ClassRanks(len(summary.classes), summary.row_weights)
    plotted = plotted_classes(summary)
    table, curves = [], []
    for k, view in enumerate(summary.by_class()):
        for error in errors.values():
            error.add(view.tally)
        auroc, auprc = ranks.add(view)
        row = class_row(summary, k, view.tally, options.confidence)
        ece = errors["ece_classwise"].values[-1]
        table.append({**row, "auroc": auroc, "auprc": auprc, "ece_ew": ece})
        if k in plotted:
            curves.append(class_curve(summary.classes[k], view.tally, len(plotted)))
    return ClassResults(
        {name: error.estimate() for name, error in errors.items()},
        ranks,
        tuple(table),
        curves,
        view.tally,
    )


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
