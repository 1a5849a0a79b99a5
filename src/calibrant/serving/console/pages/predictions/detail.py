"""Data of the page of one prediction."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from calibrant.errors import StoreError
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.predictions.contributions import PartsView, view_stored_parts
from calibrant.serving.console.pages.predictions.filters import LIST
from calibrant.serving.console.pages.predictions.reasons import DecisionExplanation, explain
from calibrant.serving.console.pages.predictions.wording import (
    decision_words,
    direction_marks,
    format_cell,
    make_visible,
    score_words,
)
from calibrant.store import BundleRecord, Label, Outcome, Prediction, Store

_LONG, _LINES = 700, 15  # Characters and lines of a text that fit its box at phone width


@dataclass(frozen=True)
class InputView:
    """Input of a prediction."""

    kind: str  # "text", "row", "logits", "hash" if only that was stored, or "other"
    text: str = ""
    long: bool = False  # whether the text needs its own scroll bar
    cells: tuple[tuple[str, str], ...] = ()  # names and values of a row
    direction_marks: tuple[str, ...] = ()  # characters that change the reading direction


@dataclass(frozen=True)
class ClassRow:
    """One class of the bundle: its probability as a number and in words, and its logit."""

    name: str
    prob: float
    words: str
    logit: str
    chosen: bool


@dataclass(frozen=True)
class FeedbackRow:
    """A recorded label or outcome: value, time and author."""

    at: datetime
    name: str
    who: str
    source: str | None = None
    value: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class PredictionView:
    """A prediction with everything related to it."""

    prediction: Prediction  # records in the store
    bundle: BundleRecord
    input: InputView
    parts: PartsView | None  # None for a bundle without a model
    classes: tuple[ClassRow, ...]  # most probable first
    calibrated: bool  # whether its probabilities are those of a calibrator
    other_scale: bool  # whether its decision scores are other numbers than its probabilities
    decision: str  # in words
    why: DecisionExplanation
    key: str  # name of the requester's key
    labels: tuple[FeedbackRow, ...]  # oldest first
    outcomes: tuple[FeedbackRow, ...]  # oldest first
    direction_marks: tuple[str, ...]  # characters in its names that change the reading direction
    class_direction_marks: tuple[str, ...]  # the same for the names of the bundle's classes
    unit_url: str | None  # None without a unit
    request_url: str


def prediction_url(id: str) -> str:
    """Return the URL of a prediction's page."""
    return f"{LIST}/{quote(id, safe='')}"


def load_view(store: Store, id: str, served: Served, *, max_text: int) -> PredictionView | None:
    """Load a prediction and everything related to it, or None if it does not exist.

    The served bundle explains the input, if it made the prediction.
    """
    prediction = store.predictions.get(id) if id.isprintable() else None
    if prediction is None:
        return None
    bundle = store.bundles.get(prediction.bundle)
    if bundle is None:
        raise StoreError(
            f"the store has predictions of bundle {prediction.bundle}, but not its record."
        )
    labels, outcomes = store.outcomes.of(id)
    keys = [prediction.key, *(each.key for each in labels), *(each.key for each in outcomes)]
    names = _load_key_names(store, keys)
    why = explain(prediction, bundle)
    unit = None if prediction.unit is None else f"{LIST}?{urlencode({'unit': prediction.unit})}"
    return PredictionView(
        prediction=prediction,
        bundle=bundle,
        input=_input(prediction.input, bundle.classes),
        parts=view_stored_parts(prediction, bundle, served, max_text),
        classes=_classes(prediction, bundle),
        calibrated=bundle.manifest.get("calibrator") is not None,
        other_scale=not all(rule.same_scale for rule in why.rules),
        decision=decision_words(prediction.decision, prediction.acted_as),
        why=why,
        key=names[prediction.key],
        labels=tuple(_label_row(each, names) for each in labels),
        outcomes=tuple(_outcome_row(each, names) for each in outcomes),
        direction_marks=tuple(
            direction_marks("".join(each or "" for each in _user_names(prediction)))
        ),
        class_direction_marks=tuple(direction_marks("".join(bundle.classes))),
        unit_url=unit,
        request_url=f"{LIST}?{urlencode({'search': prediction.request})}",
    )


def _user_names(prediction: Prediction) -> tuple[str | None, ...]:
    return prediction.unit, prediction.use_case, prediction.branch, prediction.request


def _input(input: dict[str, Any] | None, classes: Sequence[str]) -> InputView:
    if input is None:
        return InputView("hash")
    kind = next(iter(input)) if len(input) == 1 else "other"
    content = input.get(kind)
    if kind == "text" and isinstance(content, str):
        long = len(content) > _LONG or content.count("\n") > _LINES
        shown = make_visible(content)
        return InputView(
            "text", text=shown, long=long, direction_marks=tuple(direction_marks(content))
        )
    if kind not in ("row", "logits"):
        kind, content = "other", input
    if isinstance(content, list):
        named = kind == "logits" and len(content) == len(classes)
        places = classes if named else [str(place) for place in range(len(content))]
        content = dict(zip(places, content, strict=True))
    if not isinstance(content, dict):
        content = input
    cells = tuple((make_visible(str(name)), format_cell(value)) for name, value in content.items())
    marks = direction_marks("".join(name + value for name, value in cells))
    return InputView(kind, cells=cells, direction_marks=tuple(marks))


def _classes(prediction: Prediction, bundle: BundleRecord) -> tuple[ClassRow, ...]:
    rows = zip(bundle.classes, prediction.probs, prediction.logits, strict=True)
    ranked = [
        ClassRow(
            make_visible(name), prob, score_words(prob), f"{logit:.3f}", name == prediction.label
        )
        for name, prob, logit in rows
    ]
    # Stable sort: among equally probable classes, the first is the predicted one.
    return tuple(sorted(ranked, key=lambda row: -row.prob))


def _load_key_names(store: Store, ids: Iterable[str | None]) -> dict[str | None, str]:
    """Return the names of keys; a key deleted from the store is named by its id."""
    names: dict[str | None, str] = {None: "a visitor without a key"}
    for id in ids:
        if id not in names:
            key = store.keys.get(id or "")
            name = f"key {id}" if key is None else make_visible(key.name)
            names[id] = name if key is None or key.revoked is None else f"{name} (revoked)"
    return names


def _label_row(label: Label, names: dict[str | None, str]) -> FeedbackRow:
    source = None if label.source is None else make_visible(label.source)
    return FeedbackRow(label.at, make_visible(label.label), names[label.key], source=source)


def _outcome_row(outcome: Outcome, names: dict[str | None, str]) -> FeedbackRow:
    return FeedbackRow(
        outcome.at,
        make_visible(outcome.name),
        names[outcome.key],
        value=None if outcome.value is None else f"{outcome.value:.15g}",
        text=None if outcome.text is None else make_visible(outcome.text),
    )
