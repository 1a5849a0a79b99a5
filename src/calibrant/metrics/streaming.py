"""Streaming evaluation: any number of rows in constant memory, mergeable in any order."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np

from calibrant.cores import usable_cores
from calibrant.errors import InputError
from calibrant.inputs import (
    FloatArray,
    ScoredRows,
    Target,
    as_scored_rows,
    check_two_classes,
    resolve_single_target,
)
from calibrant.inputs.arrays import join_names
from calibrant.metrics.bounds import add_error_bounds
from calibrant.metrics.calibration_figures import check_options
from calibrant.metrics.cells import CELLS, ScoreCells, log_odds
from calibrant.metrics.evaluation import build_evaluation
from calibrant.metrics.problem import BLOCK, blocks, top_label
from calibrant.metrics.proper import row_brier, row_nll
from calibrant.metrics.spiegelhalter import unavailable_spiegelhalter
from calibrant.metrics.summary import ClassView, Confusion, Moments, SufficientStatistics
from calibrant.results import Evaluation

__all__ = ["StreamingEvaluation"]

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
