"""True calibration errors of a study, from rows with a known posterior."""

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


MAX_ROWS = 40_000
"""Maximum number of rows for true calibration errors; promises are checked on all rows."""

_ROWS_PER_BIN = 1000
"""Rows per confidence bin; with fewer, sampling noise inflates the true error."""


class FreshRows(Protocol):
    """FreshRows rows with a known posterior, such as `return_reasons.Messages`."""

    @property
    def texts(self) -> list[str]:
        """The rows."""

    @property
    def labels(self) -> NDArray[Any]:
        """Their labels, drawn from the posterior."""

    @property
    def posterior(self) -> FloatArray:
        """P(class | row), (n, K); arbitrary for out-of-scope rows."""

    @property
    def in_scope(self) -> NDArray[np.bool_]:
        """Mask of the rows that belong to a class."""

    @property
    def classes(self) -> tuple[Any, ...]:
        """Class names of the columns of the posterior."""


def judge_by_truth(
    result: StudyResult,
    rows: StudyRows,
    bundle: Bundle,
    trained: Sequence[TrainedCandidate | str],
    fresh: FreshRows,
) -> StudyResult:
    """Add true calibration errors, and whether each promise held, on fresh rows."""
    order = [list(fresh.classes).index(name) for name in rows.classes]
    posterior = fresh.posterior[:, order]
    code_of = {str(name): k for k, name in enumerate(rows.classes)}
    codes = np.array([code_of.get(str(label), OUTSIDE) for label in fresh.labels], dtype=np.int64)
    logits = bundle.predict_logits(fresh.texts)
    inside = fresh.in_scope
    probs = bundle.predict_proba(logits=logits)
    predicted = probs[inside].argmax(axis=1)
    sample = np.flatnonzero(inside)[:MAX_ROWS]
    truth = KnownTruth(
        rows=len(codes),
        bayes_accuracy=float(posterior[inside].max(axis=1).mean()),
        true_ce=_candidate_errors(result, trained, fresh, posterior, sample),
        calibrated=_true_error(posterior[sample], probs[sample]),
        each=len(sample),
        accuracy=float(posterior[inside][np.arange(len(predicted)), predicted].mean()),
    )
    points = tuple(
        replace(point, fresh=check_point(point.result, rows, codes, logits, bundle.ood))
        if isinstance(point.result, OperatingPoint)
        else point
        for point in result.points
    )
    return replace(result, truth=truth, points=points)


def _candidate_errors(
    result: StudyResult,
    trained: Sequence[TrainedCandidate | str],
    fresh: FreshRows,
    posterior: FloatArray,
    sample: IntArray,
) -> dict[str, dict[str, float]]:
    texts = [fresh.texts[i] for i in sample]
    errors = {}
    for candidate, scored in zip(trained, result.candidates, strict=False):
        if isinstance(candidate, str) or scored.temperature is None:
            continue
        logits = candidate.scorer().predict_logits(texts)
        scaled = probs_from_logits(logits / scored.temperature)
        errors[scored.name] = {
            "own": _true_error(posterior[sample], probs_from_logits(logits)),
            "scaled": _true_error(posterior[sample], scaled),
        }
    return errors


def _true_error(posterior: FloatArray, probs: FloatArray) -> float:
    return true_ce(posterior, probs, n_bins=max(1, min(100, len(probs) // _ROWS_PER_BIN)))
