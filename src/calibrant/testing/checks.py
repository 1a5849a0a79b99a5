"""Public contracts: what every metric must do, as checks that a third party can run too."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.testing.worlds import WORLDS, Draw

__all__ = ["check_metric"]

Metric = Callable[..., Any]
_ROWS = 300


def check_metric(
    metric: Metric, *, weights: bool = True, multiclass: bool = True, seed: int = 0
) -> None:
    """Check that a metric `(labels, probs, *, weights, classes)` keeps the house contract.

    It must give the same figure for any order of rows, for lists and arrays, for float32 up to
    its precision, for class names instead of numbers, for (n, 2) instead of P(positive), and for
    a weight instead of a repetition; leave its arguments alone; and refuse bad input with an
    `InputError`.

    Parameters
    ----------
    metric : the function to check
    weights : whether it takes weights
    multiclass : whether it takes more than two classes
    seed : of the rows it is tried on

    Raises
    ------
    AssertionError
        naming the rule that is broken.

    Examples
    --------
    >>> from calibrant.metrics import brier
    >>> check_metric(brier)
    """
    names = ["binary", "tied"] + (["multiclass"] if multiclass else [])
    for name in names:
        draw = WORLDS[name].draw(_ROWS, seed)
        for rule, ours, theirs, tolerance in _same(metric, draw, weights):
            if not np.allclose(ours, theirs, rtol=tolerance, atol=tolerance):
                raise AssertionError(f"{rule} ({name}): {ours} became {theirs}")
    for rule, labels, probs in _bad_inputs():
        _must_refuse(metric, rule, labels, probs)


def _same(
    metric: Metric, draw: Draw, weights: bool
) -> Iterator[tuple[str, NDArray[Any], NDArray[Any], float]]:
    """Yield pairs that must be equal, with the rule that says so."""
    labels, probs = draw.labels, draw.probs
    k = 2 if probs.ndim == 1 else probs.shape[1]
    kept = labels.copy(), probs.copy()
    figure = _value(metric(labels, probs))
    order = np.random.default_rng(0).permutation(len(labels))
    yield (
        "the order of rows must not matter",
        figure,
        _value(metric(labels[order], probs[order])),
        1e-9,
    )
    yield "lists must be taken", figure, _value(metric(labels.tolist(), probs.tolist())), 1e-12
    names = [f"class {i}" for i in range(k)]
    named = np.array(names)[labels]
    yield "names must be taken", figure, _value(metric(named, probs, classes=names)), 1e-12
    narrow = probs.astype(np.float32)
    wide = narrow.astype(np.float64)
    yield (
        "sums must be taken in float64",
        _value(metric(labels, wide)),
        _value(metric(labels, narrow)),
        1e-6,
    )
    if probs.ndim == 1:
        pair = np.column_stack([1 - probs, probs])
        yield "(n, 2) must equal P(positive)", figure, _value(metric(labels, pair)), 1e-9
    if weights:
        times = np.random.default_rng(1).integers(0, 4, len(labels))
        repeated = metric(np.repeat(labels, times), np.repeat(probs, times, axis=0))
        yield (
            "a weight must equal a repetition",
            _value(repeated),
            _value(metric(labels, probs, weights=times)),
            1e-9,
        )
    yield "labels must be left alone", kept[0], labels, 0.0
    yield "probs must be left alone", kept[1], probs, 0.0


def _bad_inputs() -> Iterator[tuple[str, Any, Any]]:
    yield "NaN must be refused", [0, 1], [0.5, np.nan]
    yield "infinity must be refused", [0, 1], [0.5, np.inf]
    yield "a negative probability must be refused", [0, 1], [0.5, -0.1]
    yield "a probability above 1 must be refused", [0, 1], [0.5, 1.1]
    yield "rows that do not sum to 1 must be refused", [0, 1], [[0.5, 0.6], [0.5, 0.5]]
    yield "lengths must agree", [0, 1, 1], [0.5, 0.6]
    yield "no rows must be refused", [], []
    yield "an unknown label must be refused", [0, 2], [0.5, 0.6]


def _must_refuse(metric: Metric, rule: str, labels: Any, probs: Any) -> None:
    try:
        found = metric(labels, probs)
    except InputError:
        return
    raise AssertionError(f"{rule}: got {found} instead of an InputError")


def _value(found: Any) -> NDArray[Any]:
    """Turn a float, an array or a test result into numbers that can be compared."""
    if hasattr(found, "statistic"):
        found = [found.statistic]
    out = np.asarray(found, dtype=np.float64)
    if np.isinf(out).any():  # an infinite log loss is right; make it comparable
        out = np.where(np.isinf(out), 1e300, out)
    return np.nan_to_num(out, nan=-1.0)
