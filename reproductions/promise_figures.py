"""Results of the return-reason paper: its columns, the true error, and broken promises."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from calibrant.errors import InputError, TargetUnreachable
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics import accuracy, ece, f1_macro, mce, nll, precision_macro, recall_macro
from calibrant.metrics import true_ce as true_calibration_error
from calibrant.study.promises import PromiseRequest, parse_promises
from calibrant.thresholds import OperatingPoint, check_transfer
from calibrant.thresholds.objective import resolve_objective
from calibrant.thresholds.selection import solve_problem
from reproductions.corpus import fresh_messages
from reproductions.figures import WAYS
from reproductions.fitting import Fitted
from reproductions.golden_sets import Population, golden_sets, question_of
from reproductions.parts import Part
from reproductions.reason_curves import (
    BINS,
    reliability_of,
    score_counts,
    threshold_curves,
)

__all__ = ["columns_of", "paper_columns", "promise", "true_ce"]

HOLD = ("precision>=0.85",)
"""What the paper tunes its threshold for."""

CONFIDENCE = 0.95

_PER_BIN = 1000
"""Rows in a bin of confidence: with fewer, chance adds to a true error."""


def paper_columns(fitted: Fitted) -> dict[str, Any]:
    """Return the columns of the paper's Tables 1 and 2, before and after temperature scaling.

    "golden" are the first test rows, as many as the calib part has, so that chance plays the part
    that it plays in the paper; "test" are all of them. "curves" are what the paper's figures draw,
    of all test rows: reliability diagrams, and for two classes how scores are
    spread and what precision and recall a threshold gives.

    Parameters
    ----------
    fitted : the run

    Returns
    -------
    {"golden": {"rows": n, "raw": columns, "temperature": columns}, "test": ..., "curves": {"raw":
    {"reliability", "scores", "thresholds"}, "temperature": ...}}; columns as `columns_of` returns
    them, curves as `reproductions.reason_curves` does
    """
    ways = {way: _calibrator(fitted, way) for way in ("raw", "temperature")}
    extras: dict[str, Any] = {}
    for name, n in (("golden", len(fitted.parts.calib)), ("test", len(fitted.parts.test))):
        labels, logits = fitted.parts.test.labels[:n], fitted.logits["test"][:n]
        columns = {
            way: columns_of(labels, _probs(calibrator, logits)) for way, calibrator in ways.items()
        }
        extras[name] = {"rows": len(labels), **columns}
    return {
        **extras,
        "curves": {way: _curves(fitted, calibrator) for way, calibrator in ways.items()},
    }


def _curves(fitted: Fitted, calibrator: Any) -> dict[str, Any]:
    labels, probs = fitted.parts.test.labels, _probs(calibrator, fitted.logits["test"])
    curves: dict[str, Any] = {"reliability": reliability_of(labels, probs)}
    if probs.shape[1] == 2:
        curves["scores"] = score_counts(probs[:, 1])
        curves["thresholds"] = threshold_curves(labels == 1, probs[:, 1])
    return curves


def columns_of(labels: IntArray, probs: FloatArray) -> dict[str, Any]:
    """Return the paper's columns, as fractions.

    Precision, recall and F1 are means over the classes, which the paper does not say but its
    figures show. The log loss is that of gamma 0 for every model. ECE and MCE have ten equally wide
    bins of the confidence in the predicted class; `mce_rows` is how many rows the worst bin has,
    for a few rows can make any MCE.

    Parameters
    ----------
    labels : (n,) classes as numbers
    probs : (n, K)

    Examples
    --------
    >>> probs = np.array([[0.9, 0.1], [0.8, 0.2], [0.3, 0.7], [0.6, 0.4]])
    >>> found = columns_of(np.array([0, 0, 1, 1]), probs)
    >>> found["accuracy"], round(found["ece"], 3), round(found["mce"], 3), found["mce_rows"]
    (0.75, 0.3, 0.6, 1)

    References
    ----------
    The return-reason paper, section 2.2 and Tables 1 and 2.
    """
    of: dict[str, Any] = {"classes": range(probs.shape[1])}
    binned: dict[str, Any] = {**of, "n_bins": BINS, "target": "top-label"}
    return {
        "accuracy": accuracy(labels, probs, **of),
        "precision": precision_macro(labels, probs, **of),
        "recall": recall_macro(labels, probs, **of),
        "f1": f1_macro(labels, probs, **of),
        "nll": nll(labels, probs, **of),
        "ece": ece(labels, probs, **binned),
        "mce": mce(labels, probs, **binned),
        "mce_rows": _rows_of_worst_bin(reliability_of(labels, probs)),
    }


def true_ce(fitted: Fitted) -> dict[str, Any]:
    """Return the true calibration error on fresh messages: raw, temperature, automatic choice.

    It needs no labels, so chance in labels has no part in it. Data sets whose posterior nobody
    knows have none: then the reason is given instead.

    Parameters
    ----------
    fitted : the run

    Returns
    -------
    {"rows": n, "raw": error, "temperature": error, "auto": error, "best_accuracy": of the posterior
    itself}, or {"why": reason}
    """
    rows, logits = _fresh(fitted)
    if rows.posterior is None:
        return {"why": "nobody knows the posterior of these rows"}
    bins = max(1, min(100, len(rows) // _PER_BIN))
    errors = {
        way: true_calibration_error(
            rows.posterior, _probs(_calibrator(fitted, way), logits), n_bins=bins
        )
        for way in ("raw", "temperature", "auto")
    }
    best = float(rows.posterior.max(axis=1).mean())
    return {"rows": len(rows), "bins": bins, **errors, "best_accuracy": best}


def promise(fitted: Fitted) -> dict[str, Any]:
    """Choose thresholds for 85 % precision on the calib rows, and say whether fresh rows kept it.

    Two ways: "certified", a promise with 95 % confidence, and "naive", the smallest threshold whose
    precision on the calib rows is 85 %, as the paper tunes its own. Both rank by the model's own
    logits, which the calib labels have not touched; of m promises each has 1/m of the allowed
    error. Fresh rows are further messages of the corpus, or the test rows of a data set that ends.
    Where messages can be drawn, "golden_sets" says how often either way holds.

    What is promised is another thing than calibration: a threshold can hold for a model whose
    probabilities are wrong.

    Parameters
    ----------
    fitted : the run; `hold` of its experiment's `reading` are promises like
        "item_defective: precision>=0.85", one target each

    Returns
    -------
    {"confidence", "calib", "fresh" (numbers of rows), "known" (whether the posterior is),
    "promises": [{"class", "hold", "certified": way, "naive": way, "golden_sets"}]}, where a way is
    {"reached": false, "why"} or {"reached": true, "threshold", "guarantee", "calib": {"precision",
    "recall"}, "fresh": {"precision": {"value", "low", "high", "n"}, "recall", "coverage", "truth",
    "verdict", "held"}}
    """
    classes = fitted.parts.classes
    requested = _promise_targets(fitted)
    rows, logits = _fresh(fitted)
    calib = fitted.parts.calib
    share = 1 / len(requested)
    promises = []
    for one in requested:
        ways = {
            name: _way(fitted, one, confidence, share, rows, logits)
            for name, confidence in (("certified", CONFIDENCE), ("naive", None))
        }
        sets = golden_sets(
            rows, logits, one, classes, size=len(calib), delta=share * (1 - CONFIDENCE)
        )
        promises.append({"class": one.of, "hold": one.hold, **ways, "golden_sets": sets})
    return {
        "confidence": CONFIDENCE,
        "calib": len(calib),
        "fresh": len(rows),
        "known": rows.posterior is not None,
        "promises": promises,
    }


def _promise_targets(fitted: Fitted) -> tuple[PromiseRequest, ...]:
    """Return the promises of an experiment: each about how often acting is right."""
    hold = tuple(fitted.experiment.reading.get("hold", ())) or HOLD
    requested = parse_promises(hold, fitted.parts.classes)
    for one in requested:
        if [target.rate.name for target in one.targets] not in (["precision"], ["accuracy"]):
            raise InputError(
                f"hold {one.hold!r} must be one target of precision or accuracy, such as "
                "'precision>=0.85'."
            )
    return requested


def _way(
    fitted: Fitted,
    requested: PromiseRequest,
    confidence: float | None,
    share: float,
    rows: Part,
    logits: FloatArray,
) -> dict[str, Any]:
    """Choose one threshold, and check it on fresh rows."""
    classes = fitted.parts.classes
    objective, sign = resolve_objective(
        requested.targets, None, None, one_class=requested.of is not None
    )
    question = question_of(
        fitted.parts.calib.labels,
        fitted.logits["calib"],
        requested,
        classes,
        promised=confidence is not None,
    )
    try:
        point = solve_problem(
            question, requested.targets, objective, sign, confidence=confidence, share=share
        )
    except TargetUnreachable as error:
        return {"reached": False, "why": str(error), "labels_needed": error.labels_needed}
    held = requested.targets[0].rate.name
    return {
        "reached": True,
        "threshold": point.threshold,
        "guarantee": point.guarantee,
        "calib": {held: point[held].value, objective.name: point[objective.name].value},
        "fresh": _checked(point, requested, rows, logits, classes),
    }


def _checked(
    point: OperatingPoint,
    requested: PromiseRequest,
    rows: Part,
    logits: FloatArray,
    classes: Sequence[str],
) -> dict[str, Any]:
    """Say what fresh rows make of a threshold.

    "held" follows the truth where the posterior is known, else what was counted; "verdict" is the
    test of the counts, which may be undecided.
    """
    transfer = check_transfer(point, np.asarray(classes)[rows.labels], logits=logits)
    check = transfer.checks[0]
    counted = {"value": check.value, "low": None, "high": None, "n": check.n}
    if check.interval is not None:
        counted |= {"low": check.interval.low, "high": check.interval.high}
    truth = Population.of(rows, logits, requested, classes)
    exact = truth.precision(point.logit) if rows.posterior is not None else None
    value = check.value if exact is None else exact
    return {
        check.target.rate.name: counted,
        "recall": truth.recall(point.logit),
        "coverage": truth.acted_on(point.logit) / len(rows),
        "truth": exact,
        "verdict": transfer.verdict,
        "held": None if value is None else check.target.met_by(value),
    }


@lru_cache(maxsize=1)
def _fresh(fitted: Fitted) -> tuple[Part, FloatArray]:
    """Return rows that chose nothing, and their logits; kept, for two extras ask for them."""
    parts = fitted.parts
    if fitted.experiment.data != "return_reasons":
        return parts.test, fitted.logits["test"]
    seen = {text for part in (parts.train, parts.steer, parts.calib) for text in part.inputs}
    rows = fresh_messages(fitted.experiment.reading, seen)
    return rows, fitted.model.predict_logits(rows.inputs)


def _calibrator(fitted: Fitted, way: str) -> Any:
    """Fit a calibrator on the calib rows."""
    classes = range(len(fitted.parts.classes))
    return WAYS[way]().fit(fitted.logits["calib"], fitted.parts.calib.labels, classes=classes)


def _probs(calibrator: Any, logits: FloatArray) -> FloatArray:
    return np.asarray(calibrator.predict_proba(logits), dtype=np.float64)


def _rows_of_worst_bin(bins: Mapping[str, Sequence[Any]]) -> int:
    """Return how many rows the bin of the MCE has."""
    filled = [each for each in zip(*bins.values(), strict=True) if each[0]]
    return int(max(filled, key=lambda each: abs(each[1] - each[2]))[0])
