"""One prediction in full, as its page shows it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any
from urllib.parse import quote, urlencode

from calibrant.errors import StoreError
from calibrant.serving.console.pages.predictions.filters import LIST
from calibrant.serving.console.pages.predictions.reasons import Why, why
from calibrant.serving.console.pages.predictions.wording import (
    cell,
    decision_words,
    score_words,
    turns,
    visible,
)
from calibrant.store import BundleRecord, Label, Outcome, Prediction, Store

__all__ = ["ClassRow", "InputView", "PredictionView", "ToldRow", "address_of", "view_of"]


_LONG, _LINES = 700, 15
"""Characters and lines of a text that fit its box at the width of a phone."""


@dataclass(frozen=True)
class InputView:
    """What came in.

    Parameters
    ----------
    kind : "text", "row", "logits", "hash" where nothing else was kept, or "other"
    text : of a text
    long : whether the text is so long that it has a scroll bar of its own
    cells : names and values of a row
    turning : characters that turn the direction of reading
    """

    kind: str
    text: str = ""
    long: bool = False
    cells: tuple[tuple[str, str], ...] = ()
    turning: tuple[str, ...] = ()


@dataclass(frozen=True)
class ClassRow:
    """One class of the bundle: its probability as a number and in words, and its logit."""

    name: str
    prob: float
    words: str
    logit: str
    chosen: bool


@dataclass(frozen=True)
class ToldRow:
    """A label or an outcome: what was told, when and by whom."""

    at: datetime
    name: str
    who: str
    source: str | None = None
    value: str | None = None
    text: str | None = None


@dataclass(frozen=True)
class PredictionView:
    """A prediction with all that belongs to it.

    Parameters
    ----------
    found, bundle : as they are on record
    input : what came in
    classes : most probable first
    decision : in words
    why : the reasons
    key : who asked
    labels, outcomes : what was told about it, oldest first
    turning : characters in its names that turn the direction of reading
    class_turning : the same of the names of the bundle's classes
    unit_address, request_address : of lists of what belongs together; None where there is no unit
    """

    found: Prediction
    bundle: BundleRecord
    input: InputView
    classes: tuple[ClassRow, ...]
    decision: str
    why: Why
    key: str
    labels: tuple[ToldRow, ...]
    outcomes: tuple[ToldRow, ...]
    turning: tuple[str, ...]
    class_turning: tuple[str, ...]
    unit_address: str | None
    request_address: str


def address_of(id: str) -> str:
    """Return the address of a prediction's page.

    Examples
    --------
    >>> address_of("0199d0f2")
    '/console/predictions/0199d0f2'
    """
    return f"{LIST}/{quote(id, safe='')}"


def view_of(store: Store, id: str) -> PredictionView | None:
    """Read a prediction and what belongs to it; None where there is none."""
    found = store.predictions.get(id) if id.isprintable() else None
    if found is None:
        return None
    bundle = store.bundles.get(found.bundle)
    if bundle is None:
        raise StoreError(f"the store has predictions of the bundle {found.bundle}, but not it.")
    labels, outcomes = store.outcomes.of(id)
    told = [found.key, *(each.key for each in labels), *(each.key for each in outcomes)]
    names = _names_of(store, told)
    unit = None if found.unit is None else f"{LIST}?{urlencode({'unit': found.unit})}"
    return PredictionView(
        found=found,
        bundle=bundle,
        input=_input(found.input, bundle.classes),
        classes=_classes(found, bundle),
        decision=decision_words(found.decision, found.acted_as),
        why=why(found, bundle),
        key=names[found.key],
        labels=tuple(_label(each, names) for each in labels),
        outcomes=tuple(_outcome(each, names) for each in outcomes),
        turning=tuple(turns("".join(each or "" for each in _names(found)))),
        class_turning=tuple(turns("".join(bundle.classes))),
        unit_address=unit,
        request_address=f"{LIST}?{urlencode({'search': found.request})}",
    )


def _names(found: Prediction) -> tuple[str | None, ...]:
    return found.unit, found.use_case, found.branch, found.request


def _input(given: dict[str, Any] | None, classes: Sequence[str]) -> InputView:
    if given is None:
        return InputView("hash")
    kind = next(iter(given)) if len(given) == 1 else "other"
    content = given.get(kind)
    if kind == "text" and isinstance(content, str):
        long = len(content) > _LONG or content.count("\n") > _LINES
        shown = visible(content)
        return InputView("text", text=shown, long=long, turning=tuple(turns(content)))
    if kind not in ("row", "logits"):
        kind, content = "other", given
    if isinstance(content, list):
        named = kind == "logits" and len(content) == len(classes)
        places = classes if named else [str(place) for place in range(len(content))]
        content = dict(zip(places, content, strict=True))
    if not isinstance(content, dict):
        content = given
    cells = tuple((visible(str(name)), cell(value)) for name, value in content.items())
    turning = turns("".join(name + value for name, value in cells))
    return InputView(kind, cells=cells, turning=tuple(turning))


def _classes(found: Prediction, bundle: BundleRecord) -> tuple[ClassRow, ...]:
    rows = zip(bundle.classes, found.probs, found.logits, strict=True)
    made = [
        ClassRow(visible(name), prob, score_words(prob), f"{logit:.3f}", name == found.label)
        for name, prob, logit in rows
    ]
    # A stable sort: of classes that are equally probable, the first is the one that was taken.
    return tuple(sorted(made, key=lambda row: -row.prob))


def _names_of(store: Store, ids: Iterable[str | None]) -> dict[str | None, str]:
    """Return who keys belong to; a key that was deleted from the store is called by its id."""
    names: dict[str | None, str] = {None: "someone without a key"}
    for id in ids:
        if id not in names:
            key = store.keys.get(id or "")
            name = f"key {id}" if key is None else visible(key.name)
            names[id] = name if key is None or key.revoked is None else f"{name} (revoked since)"
    return names


def _label(label: Label, names: dict[str | None, str]) -> ToldRow:
    source = None if label.source is None else visible(label.source)
    return ToldRow(label.at, visible(label.label), names[label.key], source=source)


def _outcome(outcome: Outcome, names: dict[str | None, str]) -> ToldRow:
    return ToldRow(
        outcome.at,
        visible(outcome.name),
        names[outcome.key],
        value=None if outcome.value is None else f"{outcome.value:.15g}",
        text=None if outcome.text is None else visible(outcome.text),
    )
