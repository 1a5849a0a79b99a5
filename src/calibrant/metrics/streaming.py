"""Streaming evaluation: any number of rows in constant memory, mergeable in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.cores import usable_cores
from calibrant.errors import InputError
from calibrant.inputs import (
    FloatArray,
    IntArray,
    ScoredRows,
    Target,
    as_scored_rows,
    check_two_classes,
    resolve_single_target,
)
from calibrant.inputs.arrays import join_names
from calibrant.metrics.binning import mass_bins
from calibrant.metrics.calibration_figures import check_options
from calibrant.metrics.cells import CELL_LOG_ODDS, CELLS, ScoreCells, log_odds
from calibrant.metrics.evaluation import build_evaluation
from calibrant.metrics.problem import BLOCK, blocks, top_label
from calibrant.metrics.proper import row_brier, row_nll
from calibrant.metrics.ranking import aurc_influence
from calibrant.metrics.spiegelhalter import unavailable_spiegelhalter
from calibrant.metrics.summary import ClassView, Confusion, Moments, SufficientStatistics
from calibrant.metrics.tally import Tally
from calibrant.results import Evaluation, Figure


def add_error_bounds(
    figures: Mapping[str, Figure], summary: SufficientStatistics, target: str, n_bins: int
) -> dict[str, Figure]:
    """Attach an error bound to each metric that depends on the order of rows within cells."""
    tallies = [view.tally for view in summary.by_class()]
    head = tallies[1] if target == "positive" else summary.top
    bounds = {
        "ece_em": mass_bound(head, n_bins),
        "ece_em_top_label": mass_bound(summary.top, n_bins),
        "ece_debiased": debiased_bound(head, n_bins, figures["ece_debiased"].value or 0.0),
        "ks": running_bound(head),
        "ece_smooth": smooth_bound(head, figures["ece_smooth"].value or 1.0),
        "aurc": aurc_bound(summary.top),
    }
    per_class = [
        (mass_bound(t, n_bins), auroc_bound(t), auprc_bound(t), _has_both_events(t))
        for t in tallies
    ]
    bounds["ace"] = float(np.mean([row[0] for row in per_class]))
    ranked = [row for row in per_class if row[3]][-1 if len(summary.classes) == 2 else 0 :]
    if ranked:
        bounds["auroc"] = float(np.mean([row[1] for row in ranked]))
        bounds["auprc"] = float(np.mean([row[2] for row in ranked]))
    return {
        name: replace(figure, error_bound=bounds[name]) if name in bounds else figure
        for name, figure in figures.items()
    }


def mass_bound(tally: Tally, n_bins: int) -> float:
    """Bound for equal-mass errors: part of a cell split by a bin edge may be in either bin.

    That part has a residual of at most the cell's events or its non-events alone, and it is missing
    in one bin and added in the other.
    """
    cut = np.unique(_split_cells(tally, n_bins))
    return float(2.0 * np.maximum(*_one_sided_residuals(tally))[cut[cut >= 0]].sum() / tally.total)


def debiased_bound(tally: Tally, n_bins: int, value: float) -> float:
    """Bound for the debiased error: each bin may gain or lose part of the cells at its two edges.

    No bin contributes more than its mass to the squared error, because no gap exceeds 1.
    """
    cut = _split_cells(tally, n_bins)
    below = np.cumsum(tally.mass) - tally.mass
    bins = mass_bins(below, tally.total, n_bins)
    gap, share = (
        np.bincount(bins, part, n_bins) for part in (tally.residual, tally.mass / tally.total)
    )
    # An edge that splits no cell (-1) moves nothing: it indexes the appended 0.
    moved, mass = (
        _sum_adjacent_edges(np.append(part, 0.0)[cut] / tally.total)
        for part in (np.maximum(*_one_sided_residuals(tally)), tally.mass)
    )
    gap, safe = np.abs(gap), np.where(share > 0, share, 1.0)
    now, most = gap**2 / safe, share + mass
    left = np.maximum(share - mass, 1e-300)
    up = np.minimum((gap + moved) ** 2 / left, most) - now
    down = now - np.maximum(gap - moved, 0.0) ** 2 / np.where(most > 0, most, 1.0)
    chance = np.where(mass > 0, most / (4.0 * np.maximum(left * tally.n - 1.0, 1.0)), 0.0)
    change = float((np.maximum(up, down) + chance).sum())
    low = np.sqrt(max(0.0, value**2 - change))
    furthest = max(np.sqrt(value**2 + change) - value, value - low)
    return float(min(furthest, max(value, 1.0 - value)))  # the error is in [0, 1]


def _sum_adjacent_edges(at_edges: FloatArray) -> FloatArray:
    """Add the amount at each edge to the bin below and the bin above it."""
    return np.asarray(np.append(at_edges, 0.0) + np.append(0.0, at_edges))


def _split_cells(tally: Tally, n_bins: int) -> IntArray:
    """Return the mixed cell that each edge of equal-mass bins splits, or -1."""
    below = np.r_[0.0, np.cumsum(tally.mass)]
    goals = np.arange(1, n_bins) * below[-1] / n_bins
    cell = np.searchsorted(below, goals, side="left") - 1
    return np.where((below[cell + 1] > goals) & _is_mixed(tally)[cell], cell, -1)


def running_bound(tally: Tally) -> float:
    """Bound for KS: how far the running sum can deviate within a cell."""
    away = np.where(_is_mixed(tally), np.minimum(*_one_sided_residuals(tally)), 0.0)
    return float(away.max() / tally.total)


def smooth_bound(tally: Tally, sigma: float) -> float:
    r"""Bound for smooth ECE: each row is at most a cell's width from the score of its cell.

    Two Gaussian kernels a distance d apart differ by at most :math:`d\sqrt{2/\pi}/\sigma` in L1.
    """
    up, down = _one_sided_residuals(tally)
    width = tally.score * (1.0 - tally.score) * CELL_LOG_ODDS
    moved = np.where(_is_mixed(tally), (up + down) * width, 0.0).sum() / tally.total
    return float(moved * np.sqrt(2.0 / np.pi) / sigma)


def auroc_bound(tally: Tally) -> float:
    """Bound for AUROC: pairs within a cell count 1/2, and could count 0 or 1."""
    negatives, positives = tally.weight.sum(axis=0)
    if not _has_both_events(tally):
        return 0.0
    inside = (tally.weight[:, 0] * tally.weight[:, 1])[_is_mixed(tally)].sum()
    return float(inside / (2.0 * negatives * positives))


def auprc_bound(tally: Tally) -> float:
    """Bound for average precision, from the best and worst precision at each event.

    At best all events of a cell tie ahead of its non-events; at worst an event ranks directly after
    them, with no event of the cell before it.
    """
    if not _has_both_events(tally):
        return 0.0
    mixed = _is_mixed(tally)[::-1]
    hits, misses = tally.hits[::-1], tally.weight[:, 0][::-1]
    right = np.cumsum(hits) - hits  # strictly above each cell, from the top
    above = np.cumsum(hits + misses) - hits - misses
    best = (right + hits) / np.where(above + hits > 0, above + hits, 1.0)
    last = above + misses
    worst = np.where(last > 0, right / np.where(last > 0, last, 1), 1.0)
    return float((hits * (best - worst))[mixed].sum() / hits.sum())


def aurc_bound(tally: Tally) -> float:
    """Bound for AURC: errors last or first within every cell, by splitting each cell in two."""
    best, worst = (
        aurc_influence(_split_mixed_cells(tally, order))[0] for order in ((0, 1), (1, 0))
    )
    return worst - best


def _split_mixed_cells(tally: Tally, order: tuple[int, int]) -> Tally:
    """Split each mixed cell into its non-events and events, in ascending `order`."""
    keep = ~_is_mixed(tally)

    def split(part: FloatArray) -> FloatArray:
        out = np.zeros((2 * len(part), 2))
        out[0::2][keep] = part[keep]
        for offset, column in enumerate(order):
            out[offset::2, column][~keep] = part[~keep, column]
        return out

    count, weight, square = (split(part) for part in (tally.count, tally.weight, tally.square))
    filled = count.any(axis=1)
    return Tally(np.repeat(tally.score, 2)[filled], count[filled], weight[filled], square[filled])


def _one_sided_residuals(tally: Tally) -> tuple[FloatArray, FloatArray]:
    """Return the largest residual of a cell's events alone and of its non-events alone.

    Scores within a cell, and their complements, differ from its mean by less than 4 %.
    """
    up = tally.weight[:, 1] * np.minimum(1.04 * (1.0 - tally.score) + 2e-8, 1.0)
    return up, tally.weight[:, 0] * np.minimum(1.04 * tally.score + 2e-8, 1.0)


def _is_mixed(tally: Tally) -> NDArray[np.bool_]:
    return np.zeros(len(tally.score), dtype=bool) if tally.mixed is None else tally.mixed


def _has_both_events(tally: Tally) -> bool:
    negatives, positives = tally.weight.sum(axis=0)
    return bool(negatives > 0 and positives > 0)


_CLASS_CELLS = 1024  # per class of a multiclass stream, where there are K accumulators


class StreamingEvaluation:
    """Streaming version of `evaluate`: collects rows batch by batch in constant memory.

    Equal-width errors, accuracy, precision, recall, F1 and the confusion matrix are exact for any
    batching and any order of merging; NLL and Brier up to rounding. Equal-mass and ranking metrics
    come from cells and have an `error_bound`. Sweep errors are not available from a stream: their
    value is None with the reason in `why`.

    Parameters
    ----------
    classes : the K class names, or K
    target : "positive" or "top-label"; by default as in `evaluate`
    n_bins : number of bins of the binned errors
    confidence : nominal coverage of the intervals
    weighted : whether every batch has weights

    Examples
    --------
    >>> stream = StreamingEvaluation(2)
    >>> stream.update([0, 1, 1], [0.2, 0.7, 0.9]).update([0, 0], [0.1, 0.6]).n
    5
    >>> stream.compute()["accuracy"].value
    0.8
    """

    def __init__(
        self,
        classes: Sequence[Any] | int,
        *,
        target: Target | None = None,
        n_bins: int = 15,
        confidence: float = 0.95,
        weighted: bool = False,
    ) -> None:
        self.classes = tuple(range(classes)) if isinstance(classes, int) else tuple(classes)
        if len(self.classes) < 2:
            raise InputError(f"a stream needs at least two classes, got {len(self.classes)}.")
        self.target = resolve_single_target(target, len(self.classes))
        self.options = check_options(n_bins, confidence)
        self.weighted = weighted
        k = len(self.classes)
        self.top = ScoreCells(n_bins, weighted=weighted)
        fineness = CELLS if k == 2 else _CLASS_CELLS
        self.each = [ScoreCells(n_bins, fineness, weighted=weighted) for _ in range(k)]
        self.confusion = np.zeros((3, k, k))
        self.losses = np.zeros(
            (2, 5)
        )  # nll, brier: sums of w x, w^2 x, w^2 x^2, w^2; infinite rows

    @property
    def n(self) -> int:
        """Number of rows so far."""
        return int(self.top.count.sum())

    def update(self, labels: Any, probs: Any, weights: Any = None) -> StreamingEvaluation:
        """Add a batch; an invalid batch is refused as a whole and changes nothing."""
        if (weights is not None) != self.weighted:
            raise InputError(
                "all batches must have weights, or none: pass weighted=True or leave them out."
            )
        classes = None if self.classes == tuple(range(len(self.classes))) else self.classes
        scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
        if len(scored.classes) != len(self.classes):
            raise InputError(
                f"probs have {len(scored.classes)} classes, but this stream has "
                f"{len(self.classes)}."
            )
        if scored.classes != self.classes:  # named only by the columns of this batch
            raise InputError(
                f"the batch has the classes {join_names(scored.classes)}, but this stream has "
                f"{join_names(self.classes)}: create the stream with the class names."
            )
        for part in _map_shares(self._collect_rows, scored):
            self.merge(part)
        return self

    def merge(self, other: StreamingEvaluation) -> StreamingEvaluation:
        """Add the rows of another stream with the same classes and options."""
        same = (self.classes, self.target, self.options, self.weighted)
        if same != (other.classes, other.target, other.options, other.weighted):
            raise InputError(
                "streams can be merged only if they have the same classes, target and options."
            )
        self.top.merge(other.top)
        for cells, others in zip(self.each, other.each, strict=True):
            cells.merge(others)
        self.confusion += other.confusion
        self.losses += other.losses
        return self

    def compute(self, rng: int | np.random.Generator = 0) -> Evaluation:
        """Evaluate the rows so far; more batches may follow."""
        if self.n == 0:
            raise InputError("the stream is empty: at least one row is needed.")
        check_two_classes(self.confusion[0].sum(axis=1), self.classes)
        generator = np.random.default_rng(rng)
        summary = self._compute_statistics()
        evaluation = build_evaluation(
            summary,
            self.target,
            self.options,
            generator,
            brier_test=unavailable_spiegelhalter("a stream does not store every score"),
            sweeps=False,
        )
        figures = add_error_bounds(evaluation.figures, summary, self.target, self.options.n_bins)
        note = (
            "computed from a stream: equal-mass and ranking metrics come from cells in log-odds "
            "and have an error bound"
        )
        return replace(evaluation, figures=figures, notes=(*evaluation.notes, note))

    def to_dict(self) -> dict[str, Any]:
        """Return the state as JSON-ready values (format 1)."""
        return {
            "format": 1,
            "classes": list(self.classes),
            "target": self.target,
            "n_bins": self.options.n_bins,
            "confidence": self.options.confidence,
            "weighted": self.weighted,
            "top": self.top.to_dict(),
            "each": [cells.to_dict() for cells in self.each],
            "confusion": self.confusion.tolist(),
            "losses": self.losses.tolist(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> StreamingEvaluation:
        """Rebuild from `to_dict`."""
        if saved.get("format") != 1:
            raise InputError(
                f"this state has format {saved.get('format')!r}, but only format 1 is known: "
                "read it with the version of calibrant that wrote it, or a newer one."
            )
        out = cls(
            saved["classes"],
            target=saved["target"],
            n_bins=saved["n_bins"],
            confidence=saved["confidence"],
            weighted=saved["weighted"],
        )
        out.top = ScoreCells.from_dict(saved["top"])
        out.each = [ScoreCells.from_dict(cells) for cells in saved["each"]]
        out.confusion = np.asarray(saved["confusion"], dtype=np.float64)
        out.losses = np.asarray(saved["losses"], dtype=np.float64)
        return out

    def _collect_rows(self, scored: ScoredRows) -> StreamingEvaluation:
        """Return a new stream with the same options that holds these rows."""
        fresh = StreamingEvaluation(
            self.classes,
            target=self.target,
            n_bins=self.options.n_bins,
            confidence=self.options.confidence,
            weighted=self.weighted,
        )
        for rows in blocks(scored.n):
            part = scored.rows(rows)
            if part.probs.ndim == 1:
                fresh._add_positive(part)
            else:
                fresh._add_columns(part)
        return fresh

    def _add_positive(self, scored: ScoredRows) -> None:
        """Add rows of P(positive), with one pair of logarithms for all three problems."""
        scores = scored.probs.astype(np.float64, copy=False)
        rest, events = 1.0 - scores, scored.labels == 1
        with np.errstate(divide="ignore"):
            log_positive, log_negative = np.log(scores), np.log1p(-scores)
            logit = log_positive - log_negative
        predicted = scores > 0.5
        right = predicted == events
        self.top.update(np.maximum(scores, rest), right, np.abs(logit), scored.weights)
        self.each[0].update(rest, ~events, -logit, scored.weights)
        self.each[1].update(scores, events, logit, scored.weights)
        self._add_confusion(scored.labels, predicted.astype(np.int64), scored.weights)
        self._add_loss(0, -np.where(events, log_positive, log_negative), scored.weights)
        self._add_loss(1, np.square(scores - events), scored.weights)

    def _add_columns(self, scored: ScoredRows) -> None:
        """Add rows with a column for each class."""
        confidence, predicted = top_label(scored)
        wide = confidence.astype(np.float64, copy=False)
        self.top.update(wide, predicted == scored.labels, log_odds(wide), scored.weights)
        for k, cells in enumerate(self.each):
            column = scored.probs[:, k].astype(np.float64)
            cells.update(column, scored.labels == k, log_odds(column), scored.weights)
        self._add_confusion(scored.labels, predicted, scored.weights)
        self._add_loss(0, row_nll(scored), scored.weights)
        self._add_loss(1, row_brier(scored), scored.weights)

    def _add_confusion(self, labels: Any, predicted: Any, weights: FloatArray | None) -> None:
        k = len(self.classes)
        cell = labels * k + predicted
        powers = (None,) if weights is None else (None, weights, weights**2)
        for moment, power in enumerate(powers):
            self.confusion[moment] += np.bincount(cell, power, k * k).reshape(k, k)

    def _add_loss(self, which: int, values: FloatArray, weights: FloatArray | None) -> None:
        finite = np.isfinite(values)
        infinite = len(values) - int(finite.sum())
        if infinite:
            values = np.where(finite, values, 0.0)
        # Sums instead of dot products, which would start BLAS threads for every block.
        if weights is None:
            total, squares, n = values.sum(), np.square(values).sum(), float(len(values))
            self.losses[which] += (total, total, squares, n, infinite)
        else:
            squared = weights**2
            self.losses[which] += (
                (weights * values).sum(), (squared * values).sum(), (squared * values**2).sum(),
                squared.sum(), infinite,
            )  # fmt: skip

    def _compute_statistics(self) -> SufficientStatistics:
        top = self.top.tally()
        confusion = self.confusion if self.weighted else self.confusion[[0, 0, 0]]
        return SufficientStatistics(
            classes=self.classes,
            n=self.n,
            top=top,
            by_class=lambda: (ClassView(cells.tally()) for cells in self.each),
            confusion=Confusion(*confusion),
            nll=self._moments(0, top.total),
            brier=self._moments(1, top.total),
            weighted=self.weighted,
        )

    def _moments(self, which: int, total: float) -> Moments:
        total_loss, weighted_loss, squares, weight, infinite = self.losses[which]
        if infinite:
            return Moments(np.inf, np.inf, int(infinite))
        mean = total_loss / total
        spread = max(0.0, squares - 2 * mean * weighted_loss + mean**2 * weight)
        return Moments(mean, float(np.sqrt(spread * self.n / max(1, self.n - 1)) / total))


def _map_shares(work: Callable[[ScoredRows], Any], scored: ScoredRows) -> list[Any]:
    """Call `work` on one share of the rows per core; a small batch is one share."""
    shares = usable_cores() if scored.n >= 4 * BLOCK else 1
    bounds = np.linspace(0, scored.n, shares + 1).astype(int)
    parts = [scored.rows(slice(a, b)) for a, b in pairwise(bounds)]
    if shares == 1:
        return [work(part) for part in parts]
    with ThreadPoolExecutor(max_workers=shares) as pool:
        return list(pool.map(work, parts))
