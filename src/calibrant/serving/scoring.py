"""Score the inputs of several requests with one model call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np

from calibrant.bundle import Bundle
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.client.messages import Input
from calibrant.inputs import FloatArray
from calibrant.serving.bundle_slot import Served
from calibrant.serving.request_inputs import collate


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRequest:
    """A validated request to score."""

    served: Served  # the bundle it was validated against, which decides
    rows: Sequence[Any]  # its inputs, as returned by `check_inputs`
    inputs: Sequence[Input]  # its inputs as sent, for the store
    body: bytes  # its raw body, to recognise a retry
    request: str  # id of the request
    since: float  # arrival time on the clock of `time.perf_counter`
    # unit, use_case, branch, point: see `PredictBody`
    unit: str | None = None
    use_case: str | None = None
    branch: str | None = None
    point: int | None = None
    key: str | None = None  # id of the API key


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """Scores and decision for one input."""

    logits: list[float]  # in the order of the bundle's classes
    probs: list[float]
    label: str  # the most probable class
    # the others: see `PredictedRow`
    decision: str | None = None
    acted_as: str | None = None
    action: str | None = None
    operating_point: int | None = None
    out_of_scope: bool | None = None


def score(batch: Sequence[ScoreRequest]) -> list[tuple[ScoreRequest, list[ScoredRow]]]:
    """Score the inputs of a batch together and return the rows of each request.

    Requests with different bundles (during a swap) or operating points are scored separately.
    """
    results = []
    for (_, point), group in groupby(batch, key=lambda each: (id(each.served), each.point)):
        requests = list(group)
        served = requests[0].served
        inputs = collate((row for each in requests for row in each.rows), served)
        logits = served.bundle.predict_logits(inputs)
        rows = _decide_rows(served.bundle, logits, point)
        results += [(each, [next(rows) for _ in each.rows]) for each in requests]
    return results


def _decide_rows(bundle: Bundle, logits: FloatArray, point: int | None) -> Iterator[ScoredRow]:
    if not bundle.points:
        return _predict_rows(bundle, logits)
    decisions = bundle.decide(logits=logits, point=point)
    return (
        ScoredRow(
            row_logits,
            probs,
            str(label),
            "out_of_scope" if outside else decision,
            None if acted_as is None else str(acted_as),
            action,
            entry if entry >= 0 else None,
            outside if decisions.scope_checked else None,
        )
        for row_logits, probs, label, decision, acted_as, action, entry, outside in zip(
            logits.tolist(),
            decisions.probabilities.tolist(),
            decisions.label.tolist(),
            decisions.decision.tolist(),
            decisions.acted_as.tolist(),
            decisions.action.tolist(),
            decisions.operating_point.tolist(),
            decisions.out_of_scope.tolist(),
            strict=True,
        )
    )


def _predict_rows(bundle: Bundle, logits: FloatArray) -> Iterator[ScoredRow]:
    """Return the rows of a bundle without operating points: probabilities, no decision."""
    probs = bundle.predict_proba(logits=logits)
    scores = ModelScores.from_input(bundle.classes, logits=logits)
    outside = flag_rows(bundle.ood, scores, with_model=bundle.scorer is not None)
    flags = [None] * len(probs) if outside is None else np.asarray(outside).tolist()
    return (
        ScoredRow(row_logits, row, str(bundle.classes[int(np.argmax(row))]), out_of_scope=flag)
        for row_logits, row, flag in zip(logits.tolist(), probs.tolist(), flags, strict=True)
    )
