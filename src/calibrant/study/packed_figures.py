"""The figures of a study that its bundle carries in the manifest: small, and plain JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from calibrant.thresholds import OperatingPoint

if TYPE_CHECKING:
    from calibrant.results import Evaluation
    from calibrant.study.result import CandidateResult, PointResult, StudyResult

__all__ = ["packed_figures"]

_SHOWN = ("accuracy", "nll", "ece_em")
"""What of a candidate is kept; all else stands in the report."""


def packed_figures(result: StudyResult) -> dict[str, Any]:
    """Return what the test rows say of the bundle, of its points, and of every candidate.

    `candidates` has one entry for each: `name`, `loss`, `seed` and `way`, whether it was `chosen`,
    `refinement` (log loss of the choice rows after temperature scaling, which chose; of a single
    candidate that of the steer rows), `weights`, and the figures of its own probabilities on the
    test rows. `points` has one entry for each promise that was asked for: what the test rows, which
    chose nothing, say about it under `check`. `splits` tells by "choice" which rows chose: bundles
    of earlier versions lack it, and their steer rows chose.
    """
    return {
        "n": result.calibrated.n,
        "source": result.splits["test"]["source"],
        "test": result.calibrated.to_dict()["metrics"],
        "verdict": result.calibrated.verdict.to_dict(),
        "splits": {name: part["rows"] for name, part in result.splits.items()},
        "candidates": [
            _candidate(each, chosen=i == result.chosen) for i, each in enumerate(result.candidates)
        ],
        "why": result.why,
        "points": [_point(each) for each in result.points],
    }


def _candidate(each: CandidateResult, *, chosen: bool) -> dict[str, Any]:
    return {
        "name": each.name,
        "loss": each.loss,
        "seed": each.seed,
        "way": each.way,
        "chosen": chosen,
        "reference": each.reference,
        "failed": each.failed,
        "refinement": each.refinement,
        "weights": each.weights,
        "test": _values(each.test),
    }


def _values(found: Evaluation | None) -> dict[str, float] | None:
    if found is None:
        return None
    metrics = found.to_dict()["metrics"]
    return {name: metrics[name]["value"] for name in _SHOWN if name in metrics}


def _point(each: PointResult) -> dict[str, Any]:
    point = each.result if isinstance(each.result, OperatingPoint) else None
    return {
        "hold": each.hold,
        "class": each.result.of,
        "reached": point is not None,
        "threshold": None if point is None else point.threshold,
        "decides": each.decides,
        "why": None if point is not None else str(each.result),
        "check": None if each.check is None else each.check.to_dict(),
    }
