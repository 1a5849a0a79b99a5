"""Objectives by the names of the losses: `focal:gamma=3`, `ce:weight=balanced`."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from calibrant.boosting.adafocal import AdaFocalObjective
from calibrant.boosting.focal import (
    BalancedSoftmaxObjective,
    CrossEntropyObjective,
    FLSDObjective,
    FocalObjective,
    InverseFocalObjective,
    LogitAdjustmentObjective,
)
from calibrant.boosting.label_smoothing import LabelSmoothingObjective
from calibrant.boosting.objective import Objective
from calibrant.errors import InputError
from calibrant.fitting import class_weights
from calibrant.fitting.loss_text import parse_options, refuse_unknown, split_terms
from calibrant.inputs import FloatArray

_OBJECTIVES: dict[str, type[Objective]] = {
    objective.name: objective
    for objective in (
        CrossEntropyObjective,
        FocalObjective,
        FLSDObjective,
        InverseFocalObjective,
        AdaFocalObjective,
        LabelSmoothingObjective,
        LogitAdjustmentObjective,
        BalancedSoftmaxObjective,
    )
}
_WEIGHTS: dict[str, Callable[[FloatArray], FloatArray]] = {
    "balanced": class_weights.balanced,
    "class_balanced": class_weights.class_balanced,
}
_COUNTS = "class_counts"


def objectives() -> tuple[str, ...]:
    """Return the names of the losses that boosting can minimise.

    Examples
    --------
    >>> "focal" in objectives(), "brier" in objectives()
    (True, False)
    """
    return tuple(_OBJECTIVES)


def check_objective(loss: Any) -> None:
    """Refuse a loss without an objective, and unknown options, before any rows are read."""
    with warnings.catch_warnings():  # given once, by the objective that is used
        warnings.simplefilter("ignore")
        _make(loss, np.ones(2))


def make_objective(loss: Any, class_counts: FloatArray) -> Objective:
    """Return the objective of a loss by its name.

    Parameters
    ----------
    loss : text such as "focal:gamma=3", with the options of the loss
    class_counts : (K,) train rows of each class

    Examples
    --------
    >>> make_objective("ce:weight=balanced", np.array([90.0, 10.0])).weight.round(3)
    array([0.556, 5.   ])
    """
    objective = _make(loss, class_counts)
    if objective.weight is not None and len(objective.weight) != len(class_counts):
        raise InputError(
            f"weight of the loss {loss!r} must hold one number for each of the "
            f"{len(class_counts)} classes, got {len(objective.weight)}."
        )
    return objective


def _make(loss: Any, class_counts: FloatArray) -> Objective:
    text = _read_term(loss)
    name, _, rest = (part.strip() for part in text.partition(":"))
    if name not in _OBJECTIVES:
        raise _no_objective(text)
    objective, options = _OBJECTIVES[name], parse_options(rest, text)
    accepted = refuse_unknown(options, objective, name)
    if isinstance(options.get("weight"), str):
        options["weight"] = _make_weights(options["weight"], name, class_counts)
    if _COUNTS in accepted:
        options.setdefault(_COUNTS, class_counts)
    return objective(**options)


def _read_term(loss: Any) -> str:
    """Return the text of a single loss."""
    if not isinstance(loss, str):
        raise InputError(
            f"the loss of boosted trees must be a name like 'focal:gamma=3', got {loss!r:.200}: "
            f"choose one of {', '.join(_OBJECTIVES)}."
        )
    terms = split_terms(loss)
    if len(terms) > 1 or terms[0][0] != 1.0:
        raise _no_objective(loss)
    return terms[0][1]


def _no_objective(text: str) -> InputError:
    return InputError(
        f"the loss {text!r} has no objective for boosted trees: choose one of "
        f"{', '.join(_OBJECTIVES)}."
    )


def _make_weights(kind: str, name: str, class_counts: FloatArray) -> FloatArray:
    if kind not in _WEIGHTS:
        raise InputError(
            f"weight of the loss {name!r} must be 'balanced', 'class_balanced' or one number per "
            f"class like [1,4], got {kind!r}."
        )
    return _WEIGHTS[kind](class_counts)
