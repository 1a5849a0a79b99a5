"""Contract check for metrics, usable by third parties."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.testing.worlds import WORLDS, Draw

Metric = Callable[..., Any]
_ROWS = 300


def check_metric(
    metric: Metric, *, weights: bool = True, multiclass: bool = True, seed: int = 0
) -> None:
    """Check that a metric `(labels, probs, *, weights, classes)` follows the metric contract.

    It must return the same value for any order of rows, for lists and arrays, for float32 up to its
    precision, for class names instead of numbers, for (n, 2) instead of P(positive), and for a
    weight instead of a repetition; not modify its arguments; and refuse bad input with an
    `InputError`. It is not a proof that the metric is correct.

    Parameters
    ----------
    metric : the function to check
    weights : whether it supports weights
    multiclass : whether it supports more than two classes
    seed : seed of the test data

    Raises
    ------
    AssertionError
        naming the violated rule.

    Examples
    --------
    >>> from calibrant.metrics import brier
    >>> check_metric(brier)
    """
    names = ["binary", "tied"] + (["multiclass"] if multiclass else [])
    for name in names:
        draw = WORLDS[name].draw(_ROWS, seed)
        for rule, ours, theirs, tolerance in _equal_pairs(metric, draw, weights):
            if not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance):
                raise AssertionError(f"{rule} ({name}): {ours} became {theirs}")
    for rule, labels, probs in _bad_inputs():
        _must_refuse(metric, rule, labels, probs)


def _equal_pairs(
    metric: Metric, draw: Draw, weights: bool
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any], float]]:
    """Yield pairs of values that must be equal, with the rule and tolerance."""
    labels, probs = draw.labels, draw.probs
    k = 2 if probs.ndim == 1 else probs.shape[1]
    originals = labels.copy(), probs.copy()
    value = _as_numbers(metric(labels, probs))
    order = np.random.default_rng(0).permutation(len(labels))
    yield (
        "the order of rows must not matter",
        value,
        _as_numbers(metric(labels[order], probs[order])),
        1e-9,
    )
    from_lists = _as_numbers(metric(labels.tolist(), probs.tolist()))
    yield "lists must be accepted", value, from_lists, 1e-12
    names = [f"class {i}" for i in range(k)]
    from_names = _as_numbers(metric(np.array(names)[labels], probs, classes=names))
    yield "class names must be accepted", value, from_names, 1e-12
    narrow = probs.astype(np.float32)
    wide = narrow.astype(np.float64)
    yield (
        "sums must be computed in float64",
        _as_numbers(metric(labels, wide)),
        _as_numbers(metric(labels, narrow)),
        1e-6,
    )
    if probs.ndim == 1:
        pair = np.column_stack([1 - probs, probs])
        yield "(n, 2) must equal P(positive)", value, _as_numbers(metric(labels, pair)), 1e-9
    if weights:
        times = np.random.default_rng(1).integers(0, 4, len(labels))
        repeated = metric(np.repeat(labels, times), np.repeat(probs, times, axis=0))
        yield (
            "a weight must equal a repetition",
            _as_numbers(repeated),
            _as_numbers(metric(labels, probs, weights=times)),
            1e-9,
        )
    yield "labels must not be modified", originals[0], labels, 0.0
    yield "probs must not be modified", originals[1], probs, 0.0


def _bad_inputs() -> Iterator[tuple[str, Any, Any]]:
    yield "NaN must be refused", [0, 1], [0.5, np.nan]
    yield "infinity must be refused", [0, 1], [0.5, np.inf]
    yield "a negative probability must be refused", [0, 1], [0.5, -0.1]
    yield "a probability above 1 must be refused", [0, 1], [0.5, 1.1]
    yield "rows that do not sum to 1 must be refused", [0, 1], [[0.5, 0.6], [0.5, 0.5]]
    yield "lengths must agree", [0, 1, 1], [0.5, 0.6]
    yield "empty input must be refused", [], []
    yield "an unknown label must be refused", [0, 2], [0.5, 0.6]


def _must_refuse(metric: Metric, rule: str, labels: Any, probs: Any) -> None:
    try:
        result = metric(labels, probs)
    except InputError:
        return
    raise AssertionError(f"{rule}: got {result} instead of an InputError")


def _as_numbers(result: Any) -> NDArray[Any]:
    """Convert a float, an array or a test result to comparable numbers."""
    if hasattr(result, "statistic"):
        result = [result.statistic]
    out = np.asarray(result, dtype=np.float64)
    if np.isinf(out).any():  # an infinite log loss is valid; make it comparable
        out = np.where(np.isinf(out), 1e300, out)
    return np.nan_to_num(out, nan=-1.0)
