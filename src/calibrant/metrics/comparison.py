"""Paired comparison of two models on the same rows, with an interval for each difference."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import (
    FloatArray,
    ScoredRows,
    Target,
    as_scored_rows,
    check_two_classes,
    resolve_single_target,
)
from calibrant.metrics.binning import bin_index, mass_edges
from calibrant.metrics.catalogue import CATALOGUE, NAMES
from calibrant.metrics.debiased import rate_noise
from calibrant.metrics.influence_figures import ClassRanks, add_pseudocounts, macro_influences
from calibrant.metrics.problem import predictions, target_problem
from calibrant.metrics.proper import row_brier, row_nll
from calibrant.metrics.ranking import aurc_influence
from calibrant.metrics.summary import compute_statistics
from calibrant.metrics.tally import tally_with_index
from calibrant.results import Comparison, Difference, Interval
from calibrant.stats import mcnemar, wald_interval

_REPLICATES = 2000
_ORDER = ("nll", "brier", "ece_debiased", *NAMES)
"""Metrics to compare first, then all others in the order of the catalogue."""


def compare(
    labels: Any,
    probs_a: Any,
    probs_b: Any,
    *,
    classes: Sequence[Any] | None = None,
    target: Target | None = None,
    weights: Any = None,
    names: tuple[str, str] = ("A", "B"),
    n_bins: int = 15,
    confidence: float = 0.95,
    rng: int | np.random.Generator = 0,
) -> Comparison:
    """Compare model B with model A on the same rows; differences are B minus A.

    Each row is scored by both models, so shared noise cancels and differences are much more precise
    than two separate intervals. Calibration is compared only by the debiased error, because the
    upward bias of plain ECE differs between models. Accuracy also gets McNemar's exact test.
    P-values are not corrected for testing several metrics; decide beforehand which one counts (the
    verdict uses NLL).

    Parameters
    ----------
    labels : (n,) labels
    probs_a, probs_b : (n,) P(positive) or (n, K), of model A and model B
    classes, target, weights, n_bins, confidence, rng : as in `evaluate`
    names : names of the models

    Examples
    --------
    >>> from calibrant.testing import WORLDS
    >>> draw = WORLDS["binary"].draw(2000, 0)
    >>> result = compare(draw.labels, draw.probs, draw.posterior, names=("raw", "true"))
    >>> result["nll"].interval.high < 0
    True
    """
    a = as_scored_rows(labels, probs_a, weights=weights, classes=classes)
    b = as_scored_rows(labels, probs_b, weights=weights, classes=classes)
    if b.classes != a.classes:  # tables with named columns in different orders
        b = as_scored_rows(labels, probs_b, weights=weights, classes=a.classes)
    if a.n < 2:
        raise InputError("a comparison needs at least two rows.")
    resolved = resolve_single_target(target, len(a.classes))
    check_two_classes(np.bincount(a.labels), a.classes)
    by_name = {
        name: _smooth_difference(name, *pair, a, confidence)
        for name, pair in _paired(_row_influences(a), _row_influences(b)).items()
    }
    by_name["accuracy"] = _add_mcnemar(by_name["accuracy"], a, b)
    generator = np.random.default_rng(rng)
    by_name["ece_debiased"] = _calibration_difference(a, b, resolved, n_bins, confidence, generator)
    differences = {name: by_name[name] for name in _ORDER if name in by_name}
    return Comparison(a.n, names, resolved, differences, _verdict(differences, names), confidence)


Influences = dict[str, tuple[float, FloatArray, float]]
"""Value, influence of every row on it, and an extra term of its variance."""


def _row_influences(scored: ScoredRows) -> Influences:
    """Return the value of each smooth metric and the influence of every row on it."""
    out: Influences = {}
    for name, values in (("nll", row_nll(scored)), ("brier", row_brier(scored))):
        mean = float(np.average(values, weights=scored.weights))
        out[name] = mean, values - mean if math.isfinite(mean) else values, 0.0
    predicted = predictions(scored)
    right = predicted == scored.labels
    share = float(np.average(right, weights=scored.weights))
    out["accuracy"] = share, right - share, 0.0
    out.update(_macro_influences(scored, predicted))
    ranks = ClassRanks(len(scored.classes), scored.weights)
    for view in compute_statistics(scored).by_class():
        ranks.add(view)
    for name, mean_over in ranks.means.items():
        if mean_over.rows is not None:  # None if no class can be ranked
            out[name] = mean_over.result()[0], mean_over.rows / len(mean_over.values), 0.0
    scores, events = target_problem(scored, "top-label")
    tally, index = tally_with_index(scores, events, scored.weights)
    value, influence = aurc_influence(tally)
    out["aurc"] = value, influence[index, events.astype(np.int64)], 0.0
    return out


def _macro_influences(scored: ScoredRows, predicted: Any) -> Influences:
    """Return influences from counts with pseudocounts, which add to the variance."""
    confusion = compute_statistics(scored).confusion
    smoothed = add_pseudocounts(confusion)
    total = smoothed.weight.sum()
    scale = confusion.weight.sum() / total  # a row's share among all rows, pseudocounts included
    noise = {name: influence for name, _, influence in macro_influences(smoothed.weight)}
    more = (smoothed.square - confusion.square) / total**2
    return {
        name: (
            value,
            scale * noise[name][scored.labels, predicted],
            (more * noise[name] ** 2).sum(),
        )
        for name, value, _ in macro_influences(confusion.weight)
    }


def _paired(a: Influences, b: Influences) -> dict[str, tuple[Any, Any]]:
    return {name: (a[name], b[name]) for name in a if name in b}


def _smooth_difference(
    name: str,
    a: tuple[float, FloatArray, float],
    b: tuple[float, FloatArray, float],
    scored: ScoredRows,
    confidence: float,
) -> Difference:
    """Return the difference in a smooth metric, with an interval from the paired influences."""
    definition = CATALOGUE[name].definition
    if not (math.isfinite(a[0]) and math.isfinite(b[0])):
        why = "infinite: a model gave probability 0 to the label of a row"
        return Difference(name, a[0], b[0], None, definition, why=why)
    weights = scored.weights
    share = 1.0 / scored.n if weights is None else weights / weights.sum()
    square = float(((share * (b[1] - a[1])) ** 2).sum()) * scored.n / (scored.n - 1)
    # Models with equal predictions have no difference, pseudocounts or not.
    error = math.sqrt(square + a[2] + b[2]) if square > 0 else 0.0
    value = b[0] - a[0]
    interval = wald_interval(value, error, n=scored.n, confidence=confidence)
    p_value = math.erfc(abs(value) / error / math.sqrt(2)) if error > 0 else float(value == 0)
    return Difference(name, a[0], b[0], value, definition, interval, p_value)


def _add_mcnemar(accuracy: Difference, a: ScoredRows, b: ScoredRows) -> Difference:
    """Replace the p-value by that of McNemar's exact test if rows have no weights."""
    if a.weights is not None:
        return accuracy
    right_a, right_b = (predictions(s) == s.labels for s in (a, b))
    p_value = mcnemar(int((right_a & ~right_b).sum()), int((right_b & ~right_a).sum()))
    definition = f"{accuracy.definition}; p-value: McNemar, exact"
    return Difference(
        "accuracy", accuracy.a, accuracy.b, accuracy.value, definition, accuracy.interval, p_value
    )


def _calibration_difference(
    a: ScoredRows,
    b: ScoredRows,
    target: Target,
    n_bins: int,
    confidence: float,
    rng: np.random.Generator,
) -> Difference:
    """Return the difference in debiased errors, by resampling rows jointly.

    Resampling biases the squared error of a replicate upwards once more; subtracting that known
    amount before the root keeps the replicates centred on the estimate.
    """
    models = [_BinnedModel(*target_problem(s, target), s.weights, n_bins) for s in (a, b)]
    cell = (models[0].bins * n_bins + models[1].bins) * 4
    cell += 2 * models[0].events + models[1].events
    used, cell = np.unique(cell, return_inverse=True)
    rows = np.bincount(cell, minlength=len(used)).astype(np.float64)
    for model in models:
        model.sum_cells(cell, len(used))
    observed = [model.squares(np.ones((1, len(used)))) for model in models]
    differences = []
    for size in _chunks(_REPLICATES, len(used)):
        times = rng.multinomial(a.n, rows / a.n, size=size) / rows
        roots = [
            _signed_root(model.squares(times)[0] - (plug_in - square))
            for model, (square, plug_in) in zip(models, observed, strict=True)
        ]
        differences.append(roots[1] - roots[0])
    tail = (1.0 - confidence) / 2
    low, high = np.quantile(np.concatenate(differences), [tail, 1 - tail])
    errors = [max(0.0, float(_signed_root(square)[0])) for square, _ in observed]
    value = errors[1] - errors[0]  # replicates below 0 are not clipped, so it may be beyond them
    method = "joint resampling of rows, bins held fixed"
    fill = {"n_bins": n_bins, "target": target}
    return Difference(
        "ece_debiased", errors[0], errors[1], value,
        CATALOGUE["ece_debiased"].definition.format(**fill),
        Interval(min(float(low), value), max(float(high), value), confidence, method),
    )  # fmt: skip


class _BinnedModel:
    """Rows of one model in equal-mass bins."""

    def __init__(self, scores: Any, events: Any, weights: FloatArray | None, n_bins: int) -> None:
        wide = scores.astype(np.float64, copy=False)
        order = np.argsort(wide)
        mass = np.ones(len(wide)) if weights is None else weights
        self.bins = bin_index(wide, mass_edges(wide[order], mass[order], n_bins))
        self.events = events.astype(np.int64)
        square = mass**2
        self.columns = (mass, mass * events, mass * (events - wide), square, square * events)

    def sum_cells(self, cell: Any, n_cells: int) -> None:
        """Sum the rows of each cell, all of one bin, and sort the cells by bin."""
        cell_bins = np.zeros(n_cells, dtype=np.int64)
        cell_bins[cell] = self.bins
        self.order = np.argsort(cell_bins, kind="stable")
        self.starts = np.flatnonzero(np.diff(cell_bins[self.order], prepend=-1))
        self.sums = [np.bincount(cell, column, n_cells)[self.order] for column in self.columns]

    def squares(self, times: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Return debiased and plain squared error with each cell repeated `times` (R, C)."""
        ordered = times[:, self.order]
        mass, hits, gap, square, event_square = (
            np.add.reduceat(ordered * part, self.starts, axis=1) for part in self.sums
        )
        safe = np.where(mass > 0, mass, 1.0)
        total = mass.sum(axis=1, keepdims=True)
        rate = hits / safe
        effective = mass**2 / np.where(square > 0, square, 1.0)
        noise = rate_noise(safe, rate, square, event_square)
        chance = np.where(effective > 1, noise * effective / np.maximum(effective - 1, 1e-9), 0.0)
        plain = (gap**2 / safe / total).sum(axis=1)
        return plain - (mass / total * chance).sum(axis=1), plain


def _chunks(replicates: int, cells: int) -> Iterator[int]:
    """Yield chunk sizes of replicates that need about ten megabytes each."""
    size = max(1, min(replicates, 1_000_000 // cells))
    for start in range(0, replicates, size):
        yield min(size, replicates - start)


def _signed_root(values: FloatArray) -> FloatArray:
    return np.asarray(np.sign(values) * np.sqrt(np.abs(values)))


def _verdict(differences: dict[str, Difference], names: tuple[str, str]) -> str:
    """Return which model is better by log loss (or Brier score if that is infinite)."""
    name = "nll" if differences["nll"].value is not None else "brier"
    title, decisive = {"nll": "log loss", "brier": "Brier score"}[name], differences[name]
    assert decisive.interval is not None  # Brier is always finite
    assert decisive.value is not None
    low, high = decisive.interval.low, decisive.interval.high
    span = f"difference {decisive.value:+.4f}, interval {low:+.4f} to {high:+.4f}"
    if low <= 0 <= high:
        return f"no difference in {title} detectable between {names[0]} and {names[1]}: {span}"
    better, worse = (names[1], names[0]) if high < 0 else (names[0], names[1])
    return f"the {title} of {better} is lower than that of {worse}: {span}"
