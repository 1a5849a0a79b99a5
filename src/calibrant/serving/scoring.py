"""From the inputs of several requests to what is decided about each: one call of the model."""

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
from calibrant.serving.request_inputs import joined

__all__ = ["Asked", "ScoredRow", "score"]


@dataclass(frozen=True, slots=True, eq=False)
class Asked:
    """A request that was checked and waits for its answer.

    Parameters
    ----------
    served : the bundle it was checked against, which will decide
    rows : its inputs, as `checked_inputs` gives them
    inputs : its inputs as they came, for the record
    body : the body as it came, which tells a retried request from another one
    request : id of the request
    since : when it came, on the clock of `time.perf_counter`
    unit, use_case, branch, point : see `PredictBody`
    key : id of the key that it came with
    """

    served: Served
    rows: Sequence[Any]
    inputs: Sequence[Input]
    body: bytes
    request: str
    since: float
    unit: str | None = None
    use_case: str | None = None
    branch: str | None = None
    point: int | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class ScoredRow:
    """What the bundle says about one input.

    Parameters
    ----------
    logits, probs : in the order of the bundle's classes
    label : the most probable class
    decision, acted_as, action, operating_point, out_of_scope : see `PredictedRow`
    """

    logits: list[float]
    probs: list[float]
    label: str
    decision: str | None = None
    acted_as: str | None = None
    action: str | None = None
    operating_point: int | None = None
    out_of_scope: bool | None = None


def score(batch: Sequence[Asked]) -> list[tuple[Asked, list[ScoredRow]]]:
    """Score the inputs of a batch together and deal the rows out to their requests.

    Requests of different bundles, around a swap, or with different operating points go one after
    the other.
    """
    found = []
    for (_, point), group in groupby(batch, key=lambda each: (id(each.served), each.point)):
        asked = list(group)
        served = asked[0].served
        inputs = joined((row for each in asked for row in each.rows), served)
        logits = served.bundle.predict_logits(inputs)
        rows = _decided(served.bundle, logits, point)
        found += [(each, [next(rows) for _ in each.rows]) for each in asked]
    return found


def _decided(bundle: Bundle, logits: FloatArray, point: int | None) -> Iterator[ScoredRow]:
    if not bundle.points:
        return _probable(bundle, logits)
    made = bundle.decide(logits=logits, point=point)
    return (
        ScoredRow(
            own,
            probs,
            str(label),
            "out_of_scope" if outside else decision,
            None if acted_as is None else str(acted_as),
            action,
            entry if entry >= 0 else None,
            outside if made.scope_checked else None,
        )
        for own, probs, label, decision, acted_as, action, entry, outside in zip(
            logits.tolist(),
            made.probabilities.tolist(),
            made.label.tolist(),
            made.decision.tolist(),
            made.acted_as.tolist(),
            made.action.tolist(),
            made.operating_point.tolist(),
            made.out_of_scope.tolist(),
            strict=True,
        )
    )


def _probable(bundle: Bundle, logits: FloatArray) -> Iterator[ScoredRow]:
    """Return the rows of a bundle without an operating point: probabilities, no decision."""
    probs = bundle.predict_proba(logits=logits)
    given = ModelScores.from_input(bundle.classes, logits=logits)
    outside = flag_rows(bundle.ood, given, with_model=bundle.scorer is not None)
    flags = [None] * len(probs) if outside is None else np.asarray(outside).tolist()
    return (
        ScoredRow(own, row, str(bundle.classes[int(np.argmax(row))]), out_of_scope=flag)
        for own, row, flag in zip(logits.tolist(), probs.tolist(), flags, strict=True)
    )
