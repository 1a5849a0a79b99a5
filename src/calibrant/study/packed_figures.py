"""Metrics of a study that are stored in the bundle's manifest, as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.thresholds import OperatingPoint

if TYPE_CHECKING:
    from calibrant.results import Evaluation
    from calibrant.study.result import CandidateResult, PointResult, StudyResult


_STORED_METRICS = ("accuracy", "nll", "ece_em")
"""Metrics stored for each candidate; the report has all of them."""


def packed_figures(result: StudyResult) -> dict[str, Any]:
    """Return the test metrics of the bundle, its operating points and all candidates.

    `candidates` has one entry per candidate: `name`, `loss`, `seed` and `way`, whether it was
    `chosen`, `refinement` (log loss of the choice rows after temperature scaling; for a single
    candidate, of the steer rows), `weights`, and the metrics of its raw probabilities on the test
    rows. `points` has one entry per requested promise, with its result on the test rows under
    `check`. `splits` has a "choice" entry; bundles of earlier versions lack it, as their candidate
    was chosen on the steer rows.
    """
    return {
        "n": result.calibrated.n,
        "source": result.splits["test"]["source"],
        "test": result.calibrated.to_dict()["metrics"],
        "verdict": result.calibrated.verdict.to_dict(),
        "splits": {name: part["rows"] for name, part in result.splits.items()},
        "candidates": [
            _candidate_record(candidate, chosen=i == result.chosen)
            for i, candidate in enumerate(result.candidates)
        ],
        "why": result.why,
        "points": [_point_record(point) for point in result.points],
    }


def _candidate_record(candidate: CandidateResult, *, chosen: bool) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "loss": candidate.loss,
        "seed": candidate.seed,
        "way": candidate.way,
        "chosen": chosen,
        "reference": candidate.reference,
        "failed": candidate.failed,
        "refinement": candidate.refinement,
        "weights": candidate.weights,
        "test": _metric_values(candidate.test),
    }


def _metric_values(evaluation: Evaluation | None) -> dict[str, float] | None:
    if evaluation is None:
        return None
    metrics = evaluation.to_dict()["metrics"]
    return {name: metrics[name]["value"] for name in _STORED_METRICS if name in metrics}


def _point_record(outcome: PointResult) -> dict[str, Any]:
    point = outcome.result if isinstance(outcome.result, OperatingPoint) else None
    return {
        "hold": outcome.hold,
        "class": outcome.result.of,
        "reached": point is not None,
        "threshold": None if point is None else point.threshold,
        "decides": outcome.decides,
        "why": None if point is not None else str(outcome.result),
        "check": None if outcome.check is None else outcome.check.to_dict(),
    }
