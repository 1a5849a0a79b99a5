r"""The published calibration-error variants, as their code computes them.

They exist to compare with papers; none of them is a switch of `calibrant.metrics`. Most share

.. math:: e = \sum_b \frac{|B_b|}{N} \, |acc_b - conf_b|

N is the number of rows, :math:`c_i` the confidence of row i, :math:`y_i` 1 if row i is correct
and 0 if not, M the number of bins asked for, :math:`B_b` the rows of bin b, and
:math:`acc_b, conf_b` the means of :math:`y_i, c_i` over :math:`B_b`. :math:`x_0 \le x_1 \le ...`
are the sorted confidences. The variants differ in :math:`B_b`; a row that is in no bin still
counts in N. Everything is computed in float64, whatever the precision of the reference.

All take `correct` (n values 0 or 1: is the prediction right, or for P(positive) the label itself),
`confidences` (n numbers in [0, 1]) and, but for `sweep`, `bins` (M).

References
----------
.. [1] Guo et al., On calibration of modern neural networks, ICML 2017, section 2.
.. [2] Mukhoti et al., Calibrating deep neural networks using focal loss, NeurIPS 2020.
.. [3] Ghosh et al., AdaFocal: calibration-aware adaptive focal loss, NeurIPS 2022.
.. [4] Kumar, Liang and Ma, Verified uncertainty calibration, NeurIPS 2019.
.. [5] Roelofs et al., Mitigating bias in calibration error estimation, AISTATS 2022.
.. [6] Zhang, Kailkhura and Han, Mix-n-Match, ICML 2020.
.. [7] Hebbalaguppe et al., A stitch in time saves nine (MDCA), CVPR 2022, released code.
"""

from __future__ import annotations

from itertools import pairwise
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import as_scored_rows

__all__ = [
    "classwise_fc",
    "debiased_l1",
    "debiased_l2",
    "ece_em_first_above",
    "ece_em_interpolated",
    "ece_em_library",
    "ece_em_midpoint",
    "ece_em_rank_split",
    "ece_hidden_last_bin",
    "ece_left_closed",
    "ece_right_closed",
    "sweep",
]

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]
Means = tuple[FloatArray, FloatArray, FloatArray]  # rows, accuracy and confidence of each bin
Scheme = Literal["width", "mass"]
Seed = int | np.random.Generator


def ece_right_closed(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Equal-width error with bins (l, u]: a confidence of exactly 0 is in no bin [1]_ [2]_.

    B_b = {i : (b-1)/M < c_i <= b/M}, b = 1..M. Not a partition of [0, 1]: 0 is lost.

    >>> round(ece_right_closed([1, 0, 1, 1, 1, 0], [0.5, 0.5, 0.6, 0.8, 0.95, 1.0], bins=10), 4)
    0.2583
    """
    y, c = _checked(correct, confidences, bins)
    return _error(_index(np.linspace(0, 1, bins + 1), c, closed="right"), y, c, bins)


def ece_left_closed(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Equal-width error with bins [l, u): a confidence of exactly 1 is in no bin [3]_.

    B_b = {i : (b-1)/M <= c_i < b/M}, b = 1..M. Not for saturated models: rows at 1.0 vanish.
    The paper's text also shifts the bins by one, i/M to (i+1)/M; that slip is not kept.

    >>> round(ece_left_closed([1, 0, 1, 1, 1, 0], [0.5, 0.5, 0.6, 0.8, 0.95, 1.0], bins=10), 4)
    0.1083
    """
    y, c = _checked(correct, confidences, bins)
    return _error(_index(np.linspace(0, 1, bins + 1), c, closed="left"), y, c, bins)


def ece_hidden_last_bin(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Equal-width error with bins [l, u) and one bin more, {1.0}, as torchmetrics computes it.

    B_b as in `ece_left_closed` for b = 1..M, and B_{M+1} = {i : c_i = 1}. Not M bins: M + 1, so
    errors of opposite sign at 0.95 and at 1.0 no longer cancel.

    >>> round(ece_hidden_last_bin([1, 0, 1, 1, 1, 0], [0.5, 0.5, 0.6, 0.8, 0.95, 1.0], bins=10), 4)
    0.275
    """
    y, c = _checked(correct, confidences, bins)
    return _error(_index(np.linspace(0, 1, bins + 1), c, closed="left"), y, c, bins + 1)


def ece_em_interpolated(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Equal-mass error with interpolated edges that lose the smallest confidence [2]_ [3]_.

    Edges u_b = x interpolated at position b N / M (at most N - 1), b = 0..M;
    B_b = {i : u_{b-1} < c_i <= u_b}. Not every row is in a bin: the minimum and its ties drop out.

    >>> ece_em_interpolated([1, 0, 0], [0.9, 0.9, 0.9], bins=3)  # a gap of 0.567, all dropped
    0.0
    """
    y, c = _checked(correct, confidences, bins)
    places = np.linspace(0, len(c), bins + 1)
    edges = np.interp(places, np.arange(len(c)), np.sort(c))
    return _error(_index(edges, c, closed="right"), y, c, bins)


def ece_em_library(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Equal-mass error of the metrics library that ships with the MDCA code [7]_.

    Edges u_b = x_{b floor(N/M)} for b = 0..M-1 and u_M = 1; B_b = {i : u_{b-1} < c_i <= u_b}.
    Not every row is in a bin: the minimum drops out; the last bin takes the remainder.

    >>> ece_em_library([1, 0, 0], [0.9, 0.9, 0.9], bins=3)
    0.0
    """
    y, c = _checked(correct, confidences, bins)
    edges = np.append(np.sort(c)[np.arange(bins) * (len(c) // bins)], 1.0)
    return _error(_index(edges, c, closed="right"), y, c, bins)


def ece_em_rank_split(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Equal-mass error by rank alone, so equal confidences can fall into different bins [5]_.

    B_b = {i : floor(rank_i M / N) = b}, b = 0..M-1, rank_i from 0. Not a function of the
    confidences: the order of tied rows matters. The reference sorts unstably; here ties keep
    their order, so that a result can be repeated.

    >>> round(ece_em_rank_split([1, 0, 0], [0.9, 0.9, 0.9], bins=3), 3)  # the gap is 0.567
    0.633
    """
    y, c = _checked(correct, confidences, bins)
    return _error(_swept(c, np.argsort(c, kind="stable"), bins, "mass"), y, c, bins)


def ece_em_midpoint(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Equal-mass error with edges halfway between neighbouring parts, ties together [4]_.

    The x are cut into min(M, N) parts whose sizes differ by at most one; u_b is the mean of the
    last x of part b and the first of the next, equal edges merged, the last edge 1;
    B_b = {i : u_{b-1} < c_i <= u_b}. Not always M bins.

    >>> round(ece_em_midpoint([1, 0, 0], [0.9, 0.9, 0.9], bins=3), 3)
    0.567
    """
    y, c = _checked(correct, confidences, bins)
    index, m = _midpoint(c, bins)
    return _error(index, y, c, m)


def ece_em_first_above(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Equal-mass error whose upper edges are the first confidence of the next part [6]_.

    Edges 0, u_b = x_{b floor(N/M)} for b = 1..M-1, and 1; B_b = {i : u_{b-1} < c_i <= u_b}.
    Not equal masses: the first bin has one row more, the last takes the remainder.

    >>> round(ece_em_first_above([1, 0, 0], [0.9, 0.9, 0.9], bins=3), 3)
    0.567
    """
    y, c = _checked(correct, confidences, bins)
    c = np.maximum(c, 1e-256)  # the reference clips there, which puts 0 into the first bin
    inner = np.sort(c)[np.minimum(np.arange(1, bins) * (len(c) // bins), len(c) - 1)]
    return _error(_index(np.array([0.0, *inner, 1.0]), c, closed="right"), y, c, bins)


def debiased_l2(correct: Any, confidences: Any, *, bins: int = 15) -> float:
    """Root-mean-square error minus the variance that label noise adds, bins by midpoint [4]_.

    e^2 = max(0, sum_b |B_b|/N [(conf_b - acc_b)^2 - acc_b (1 - acc_b) / (|B_b| - 1)]); a bin of
    fewer than two rows adds 0. Not the switch to one bin per value that the reference makes
    silently when there are fewer than N/4 distinct confidences.

    >>> round(debiased_l2([1, 1, 1, 0], [0.5, 0.5, 0.5, 0.5], bins=1), 4)  # 1/16 - 1/16
    0.0
    """
    y, c = _checked(correct, confidences, bins)
    n, acc, conf = _means(*_midpoint(c, bins), y, c)
    noise = acc * (1.0 - acc) / np.maximum(n - 1, 1)
    terms = np.where(n < 2, 0.0, (conf - acc) ** 2 - noise)
    return float(np.sqrt(max(0.0, float(n @ terms) / len(c))))


def debiased_l1(
    correct: Any, confidences: Any, *, rng: Seed, bins: int = 15, resamples: int = 1000
) -> float:
    """Twice the plug-in error minus its mean under resampled bin accuracies [4]_.

    e = 2 e_0 - mean_r sum_b |B_b|/N |a_br - conf_b| with e_0 the value of `ece_em_midpoint` and
    a_br ~ Normal(acc_b, acc_b (1 - acc_b) / |B_b|), r = 1..resamples. Not bounded by 0 from below.
    `rng` is a seed or a generator (the reference cannot be seeded).

    >>> round(debiased_l1([1, 1], [0.9, 0.7], rng=0, bins=1), 4)  # no noise at accuracy 1
    0.2
    """
    y, c = _checked(correct, confidences, bins)
    n, acc, conf = _means(*_midpoint(c, bins), y, c)
    if n.min() < 2:
        raise InputError(
            f"debiased_l1 needs two rows in each bin, got a bin with {int(n.min())}: "
            "use fewer bins or more rows."
        )
    spread = np.sqrt(acc * (1.0 - acc) / n)
    drawn = np.random.default_rng(rng).normal(acc, spread, size=(resamples, len(n)))
    plugin = float(n @ np.abs(acc - conf)) / len(c)
    return 2.0 * plugin - float((np.abs(drawn - conf) @ n).mean()) / len(c)


def sweep(correct: Any, confidences: Any, *, scheme: Scheme = "mass", norm: int = 2) -> float:
    """Error with as many bins as keep the bin accuracies in ascending order [5]_.

    e = (sum_b |B_b|/N |acc_b - conf_b|^norm)^(1/norm) with the largest M in 1..N-1 such that
    acc_1 <= acc_2 <= ... over the non-empty bins holds for every count from 2 to M. `scheme` is
    'mass' (bins by rank) or 'width' (bin floor(c M), 1.0 in the last). Not an ECE at the default:
    norm 2 is a root mean square; and not the largest such count: ascending order often returns.

    >>> round(sweep([0, 1, 0, 1], [0.2, 0.4, 0.6, 0.8]), 4)  # two bins, gaps 0.2 and 0.2
    0.2
    """
    y, c = _checked(correct, confidences, 1)
    if scheme not in ("mass", "width"):
        raise InputError(f"scheme must be 'mass' or 'width', got {scheme!r}.")
    order = np.argsort(c, kind="stable")
    count = _sweep_count(y, c, order, scheme)
    return _error(_swept(c, order, count, scheme), y, c, count, norm)


def classwise_fc(labels: Any, probs: Any, *, bins: int = 15) -> float:
    """Mean over classes of the right-closed error of p_k against 1[y = k] [2]_.

    e = 1/K sum_k ece_right_closed(1[y = k], p_k) with K = max label + 1. Not the mean over all
    columns when the last classes have no row. `labels` are n whole numbers, `probs` is (n, K').

    >>> p = [[0.6, 0.3, 0.1], [0.2, 0.7, 0.1]]  # the third column is never looked at
    >>> round(classwise_fc([0, 1], p, bins=2), 4)
    0.3
    """
    scored = as_scored_rows(labels, probs)
    classes = range(int(scored.labels.max()) + 1)
    y, p = scored.labels, scored.matrix
    return float(np.mean([ece_right_closed(y == k, p[:, k], bins=bins) for k in classes]))


def _checked(correct: Any, confidences: Any, bins: int) -> tuple[FloatArray, FloatArray]:
    scored = as_scored_rows(correct, confidences)
    if scored.probs.ndim != 1:
        raise InputError(f"confidences must have shape (n,), got {scored.probs.shape}.")
    if bins < 1:
        raise InputError(f"bins must be at least 1, got {bins}.")
    return scored.labels.astype(np.float64), scored.probs.astype(np.float64)


def _index(edges: FloatArray, c: FloatArray, *, closed: Literal["right", "left"]) -> IntArray:
    # With repeated edges both searches skip the empty bins between them.
    side: Literal["left", "right"] = "left" if closed == "right" else "right"
    return np.searchsorted(edges, c, side=side) - 1


def _midpoint(c: FloatArray, bins: int) -> tuple[IntArray, int]:
    parts = np.array_split(np.sort(c), min(bins, len(c)))
    halves = [(a[-1] + b[0]) / 2.0 for a, b in pairwise(parts)]
    edges = np.unique([*halves, 1.0])
    return np.searchsorted(edges, c, side="left"), len(edges)


def _sweep_count(y: FloatArray, c: FloatArray, order: IntArray, scheme: Scheme) -> int:
    for count in range(2, len(c)):
        n, acc, _ = _means(_swept(c, order, count, scheme), count, y, c)
        if np.any(np.diff(acc[n > 0]) < 0):
            return count - 1
    return max(1, len(c) - 1)


def _swept(c: FloatArray, order: IntArray, bins: int, scheme: Scheme) -> IntArray:
    if scheme == "width":
        return np.minimum(bins - 1, np.floor(c * bins)).astype(np.int64)
    index = np.empty(len(c), dtype=np.int64)
    # Floats in the reference's order of operations: whole-number division moves some rows.
    index[order] = np.minimum(bins - 1, np.floor(np.arange(len(c)) / len(c) * bins))
    return index


def _means(index: IntArray, m: int, y: FloatArray, c: FloatArray) -> Means:
    # A row whose index is outside 0..m-1 is in no bin.
    inside = (index >= 0) & (index < m)
    index = index[inside]
    n = np.bincount(index, minlength=m).astype(np.float64)
    size = np.maximum(n, 1.0)
    acc = np.bincount(index, weights=y[inside], minlength=m) / size
    conf = np.bincount(index, weights=c[inside], minlength=m) / size
    return n, acc, conf


def _error(index: IntArray, y: FloatArray, c: FloatArray, m: int, norm: int = 1) -> float:
    n, acc, conf = _means(index, m, y, c)
    return float((float(n @ np.abs(acc - conf) ** norm) / len(c)) ** (1.0 / norm))
