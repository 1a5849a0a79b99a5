"""Binned expected and maximum calibration error."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray, ScoredRows, Target, as_scored_rows, resolve_target
from calibrant.metrics.binning import Scheme, bin_index, check_bins, mass_edges, width_edges
from calibrant.metrics.problem import class_problem, map_blocks, target_problem


def ece(
    labels: Any,
    probs: Any,
    *,
    n_bins: int = 15,
    scheme: Scheme = "width",
    norm: float = 1,
    target: Target | None = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Expected calibration error: mean distance of event rates from scores over bins.

    .. math:: \mathrm{ECE} = \sum_b \frac{n_b}{N}\,|\bar y_b - \bar s_b|

    with :math:`n_b` the rows (or weight) in bin b of N, :math:`\bar y_b` the share of events and
    :math:`\bar s_b` the mean score there; `norm=2` is the root of the weighted mean of squares,
    `norm=inf` the largest gap (MCE). A bin contains its lower edge, the last also 1; tied scores
    are in the same equal-mass bin.

    It is not 0 for a perfectly calibrated model: sampling noise alone gives the floor that
    `calibrant.evaluate` reports with it. It is not a proper score.

    Parameters
    ----------
    labels : (n,) labels
    probs : (n,) P(positive) or (n, K)
    n_bins : number of bins M
    scheme : "width" for equal-width bins, "mass" for equal-mass bins
    norm : 1, 2 or inf
    target : "positive" (default for two classes), "top-label" (default for more), "classwise"
    weights : inverse inclusion probabilities
    classes : class names in column order, if labels are names

    Examples
    --------
    Two bins with half of the rows each: |0.5 - 0.35| and |1 - 0.8|.

    >>> round(ece([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9], n_bins=2), 4)
    0.175

    References
    ----------
    Naeini, Cooper & Hauskrecht (2015), AAAI; Guo et al. (2017), ICML, section 2.
    """
    check_bins(n_bins, scheme, norm)
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    resolved = resolve_target(target, len(scored.classes))
    if resolved == "classwise":
        return classwise_error(scored, n_bins, scheme, norm)
    return _binned_error(scored, lambda rows: target_problem(rows, resolved), n_bins, scheme, norm)


def mce(
    labels: Any,
    probs: Any,
    *,
    n_bins: int = 15,
    scheme: Scheme = "width",
    target: Target | None = None,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Maximum calibration error: the largest gap of any non-empty bin, :math:`\max_b |gap_b|`.

    A single row in a bin can determine it; read it together with the bin counts.

    Examples
    --------
    >>> round(mce([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9], n_bins=2), 4)
    0.2
    """
    return ece(
        labels, probs, n_bins=n_bins, scheme=scheme, norm=np.inf, target=target, weights=weights,
        classes=classes,
    )  # fmt: skip


def ece_classwise(
    labels: Any,
    probs: Any,
    *,
    n_bins: int = 15,
    scheme: Scheme = "width",
    norm: float = 1,
    weights: Any = None,
    classes: Sequence[Any] | None = None,
) -> float:
    r"""Class-wise ECE: mean over all classes of the ECE of the class probability.

    .. math:: \frac{1}{K}\sum_k \mathrm{ECE}\big(1[y=k],\, p_k\big)

    It shrinks as K grows (most probabilities are near 0); some papers report the sum instead.

    Examples
    --------
    >>> round(ece_classwise([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9], n_bins=2), 4)
    0.175
    """
    return ece(
        labels, probs, n_bins=n_bins, scheme=scheme, norm=norm, target="classwise",
        weights=weights, classes=classes,
    )  # fmt: skip


def sce(labels: Any, probs: Any, *, n_bins: int = 15, **options: Any) -> float:
    """Static calibration error (Nixon et al. 2019): class-wise ECE with equal-width bins.

    Examples
    --------
    >>> round(sce([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9], n_bins=2), 4)
    0.175
    """
    return ece_classwise(labels, probs, n_bins=n_bins, scheme="width", **options)


def ace(labels: Any, probs: Any, *, n_bins: int = 15, **options: Any) -> float:
    """Adaptive calibration error (Nixon et al. 2019): class-wise ECE with equal-mass bins.

    Examples
    --------
    >>> round(ace([0, 1, 1, 1], [0.3, 0.4, 0.7, 0.9], n_bins=2), 4)
    0.175
    """
    return ece_classwise(labels, probs, n_bins=n_bins, scheme="mass", **options)


Problem = Callable[[ScoredRows], tuple[NDArray[np.floating[Any]], NDArray[np.bool_]]]


def _binned_error(
    scored: ScoredRows, to_problem: Problem, n_bins: int, scheme: Scheme, norm: float
) -> float:
    """Compute the binned error of the binary problem `to_problem(rows)`, block by block.

    Equal-width bins need no sorting and a single pass over the rows.
    """
    if scheme == "width":
        edges = width_edges(n_bins)
    else:
        scores, events = to_problem(scored)
        edges = _row_mass_edges(scores, scored.weights, n_bins)
    size = len(edges) - 1

    def work(rows: slice) -> FloatArray:
        part = to_problem(scored.rows(rows)) if scheme == "width" else (scores[rows], events[rows])
        index = bin_index(part[0], edges)
        gap = part[1].astype(np.float64)
        gap -= part[0]
        mass = None if scored.weights is None else scored.weights[rows]
        if mass is not None:
            gap *= mass
        return np.stack([np.bincount(index, gap, size), np.bincount(index, mass, size)])

    parts = map_blocks(work, scored.n, costly=scored.probs.size > 1 << 18)
    gap, mass = np.sum(parts, axis=0)
    return float(_error_size(gap, mass, norm))


def classwise_error(scored: ScoredRows, n_bins: int, scheme: Scheme, norm: float) -> float:
    """Return the mean over classes of the binned error."""
    if scheme == "width" and scored.probs.ndim == 2:
        return float(_error_size(*_classwise_sums(scored, n_bins), norm).mean())
    errors = [
        _binned_error(scored, partial(class_problem, k=k), n_bins, scheme, norm)
        for k in range(len(scored.classes))
    ]
    return float(np.mean(errors))


def _classwise_sums(scored: ScoredRows, n_bins: int) -> tuple[FloatArray, FloatArray]:
    """Sum residuals and weights by class and equal-width bin, (K, M) each, in one pass."""
    k = len(scored.classes)
    edges = width_edges(n_bins)

    def work(rows: slice) -> FloatArray:
        probs, labels = scored.probs[rows], scored.labels[rows]
        index = bin_index(probs.ravel(), edges).reshape(probs.shape)
        index += n_bins * np.arange(k)
        mass = None if scored.weights is None else scored.weights[rows]
        repeated = None if mass is None else np.repeat(mass, k)
        scores = probs.ravel() if repeated is None else probs.ravel() * repeated
        events = np.bincount(index[np.arange(len(labels)), labels], mass, k * n_bins)
        flat = index.ravel()
        return np.stack(
            [
                events - np.bincount(flat, scores, k * n_bins),
                np.bincount(flat, repeated, k * n_bins),
            ]
        )

    parts = map_blocks(work, scored.n, costly=scored.probs.size > 1 << 20)
    gap, mass = np.sum(parts, axis=0).reshape(2, k, n_bins)
    return gap, mass


def _error_size(gap: FloatArray, mass: FloatArray, norm: float) -> FloatArray:
    """Return the error from the residuals and weights of bins (last axis)."""
    total = mass.sum(axis=-1, keepdims=True)
    share, gap = mass / total, np.abs(gap) / total
    if norm == 1:
        return np.asarray(gap.sum(axis=-1))
    ratio = gap / np.where(share > 0, share, 1.0)
    return np.asarray(np.sqrt((gap * ratio).sum(axis=-1)) if norm == 2 else ratio.max(axis=-1))


def _row_mass_edges(
    scores: NDArray[np.floating[Any]], weights: FloatArray | None, n_bins: int
) -> FloatArray:
    if weights is None:
        return mass_edges(np.sort(scores), None, n_bins)
    order = np.argsort(scores)
    return mass_edges(scores[order], weights[order], n_bins)
