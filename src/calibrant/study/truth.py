"""A study judged by a world whose posterior is known: true figures instead of estimates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import probs_from_logits
from calibrant.inputs import FloatArray, IntArray
from calibrant.metrics import true_ce
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.promises import check_point
from calibrant.study.result import KnownTruth, StudyResult
from calibrant.study.rows.rows import OUTSIDE, StudyRows
from calibrant.thresholds import OperatingPoint

if TYPE_CHECKING:
    from calibrant.bundle import Bundle

__all__ = ["Fresh", "judged_by_truth"]

EACH = 40_000
"""Fresh rows that true errors are computed on; promises are checked on all of them."""

_PER_BIN = 1000
"""Rows in a bin of confidence: with fewer, chance adds to a true error."""


class Fresh(Protocol):
    """Fresh rows of a world whose posterior is known, such as `return_reasons.Messages`."""

    @property
    def texts(self) -> list[str]:
        """The rows."""

    @property
    def labels(self) -> NDArray[Any]:
        """Their labels, drawn from the posterior."""

    @property
    def posterior(self) -> FloatArray:
        """P(class | row), (n, K); anything for rows of no class."""

    @property
    def in_scope(self) -> NDArray[np.bool_]:
        """Which rows belong to a class."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """Names behind the columns of the posterior."""


def judged_by_truth(
    result: StudyResult,
    rows: StudyRows,
    bundle: Bundle,
    trained: Sequence[TrainedCandidate | str],
    fresh: Fresh,
) -> StudyResult:
    """Add what fresh rows say: true calibration errors, and whether each promise was kept."""
    order = [list(fresh.classes).index(name) for name in rows.classes]
    posterior = fresh.posterior[:, order]
    place = {str(name): k for k, name in enumerate(rows.classes)}
    codes = np.array([place.get(str(label), OUTSIDE) for label in fresh.labels], dtype=np.int64)
    logits = bundle.predict_logits(fresh.texts)
    inside = fresh.in_scope
    probs = bundle.predict_proba(logits=logits)
    predicted = probs[inside].argmax(axis=1)
    some = np.flatnonzero(inside)[:EACH]
    truth = KnownTruth(
        rows=len(codes),
        bayes_accuracy=float(posterior[inside].max(axis=1).mean()),
        true_ce=_of_each(result, trained, fresh, posterior, some),
        calibrated=_error(posterior[some], probs[some]),
        each=len(some),
        accuracy=float(posterior[inside][np.arange(len(predicted)), predicted].mean()),
    )
    points = tuple(
        replace(each, fresh=check_point(each.result, rows, codes, logits, bundle.ood))
        if isinstance(each.result, OperatingPoint)
        else each
        for each in result.points
    )
    return replace(result, truth=truth, points=points)


def _of_each(
    result: StudyResult,
    trained: Sequence[TrainedCandidate | str],
    fresh: Fresh,
    posterior: FloatArray,
    some: IntArray,
) -> dict[str, dict[str, float]]:
    texts = [fresh.texts[i] for i in some]
    found = {}
    for candidate, each in zip(trained, result.candidates, strict=False):
        if isinstance(candidate, str) or each.temperature is None:
            continue
        logits = candidate.scorer().predict_logits(texts)
        found[each.name] = {
            "own": _error(posterior[some], probs_from_logits(logits)),
            "scaled": _error(posterior[some], probs_from_logits(logits / each.temperature)),
        }
    return found


def _error(posterior: FloatArray, probs: FloatArray) -> float:
    return true_ce(posterior, probs, n_bins=max(1, min(100, len(probs) // _PER_BIN)))
