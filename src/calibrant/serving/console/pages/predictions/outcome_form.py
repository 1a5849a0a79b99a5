"""Labels and outcomes that people enter: checked as the API checks them, written once."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from http import HTTPStatus
from typing import Any

from pydantic import ValidationError
from pydantic_core import to_json

from calibrant.client.messages import OutcomesBody
from calibrant.serving.http.problems import Problem, validation_problem
from calibrant.store import Label, Outcome, Recorded, Store

__all__ = ["OTHER", "Telling", "read_telling", "record_telling"]

OTHER = "other"
"""The choice for a class that the bundle does not have."""

_ONCE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_AGAIN = "load the page of the prediction again; nothing was recorded."
_TOP = "form"
"""The place of an error that belongs to no field."""


@dataclass(frozen=True)
class Telling:
    """What was filled in about a prediction.

    Parameters
    ----------
    kind : "label" or "outcome"
    typed : what was typed into each field
    once : id of this filling in of the form, which is recorded once
    content : as `OutcomeBody` has it
    errors : for names of fields, a sentence
    """

    kind: str
    typed: Mapping[str, str] = field(default_factory=dict)
    once: str = ""
    content: Mapping[str, Any] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)


def read_telling(fields: Mapping[str, str], prediction: str, classes: Sequence[str]) -> Telling:
    """Read a form that was sent; the errors of what cannot be recorded stand beside its fields.

    Examples
    --------
    >>> once = "0199d0f2-7a3c-7c1e-9a51-3f2f6c1b8e77"
    >>> told = read_telling({"kind": "label", "label": "1", "once": once}, "p1", ["no", "yes"])
    >>> dict(told.content)
    {'prediction': 'p1', 'label': 'yes'}
    >>> told = read_telling({"kind": "label", "once": once}, "p1", ["no", "yes"])
    >>> told.errors
    {'label': 'Choose the true class.'}
    """
    kind, once = fields.get("kind", ""), fields.get("once", "")
    if kind not in ("label", "outcome") or not _ONCE.fullmatch(once):
        raise Problem(HTTPStatus.BAD_REQUEST, f"the form cannot be read: {_AGAIN}")
    # Browsers send line ends as two characters, which were typed as one.
    typed = {name: text.replace("\r\n", "\n") for name, text in fields.items()}
    read = _label if kind == "label" else _outcome
    content, errors = read(typed, classes)
    content = {"prediction": prediction, **content}
    if not errors:
        errors = _refused(content, typed)
    return Telling(kind, typed, once, content, errors)


def record_telling(store: Store, told: Telling, key: str | None) -> Recorded:
    """Write what was told; sent twice, it is written once."""
    at, about = datetime.now(UTC), told.content
    request = f"{key or ''}:console:{told.once}"
    labels, outcomes = [], []
    if told.kind == "label":
        labels.append(
            Label(request, at, about["prediction"], about["label"], about.get("source"), key)
        )
    else:
        outcomes.append(
            Outcome(request, at, about["prediction"], about["outcome"], about.get("value"),
                    about.get("text"), key)
        )  # fmt: skip
    hashed = store.keyed_hash(to_json(dict(about)))
    other = [request] if told.typed.get("label") == OTHER else []
    return store.outcomes.add(outcomes, labels, request=request, hash=hashed, other=other)


def _label(
    typed: Mapping[str, str], classes: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    content: dict[str, Any] = {}
    if source := typed.get("source", "").strip():
        content["source"] = source
    chosen = typed.get("label", "")
    if chosen == OTHER:
        other = typed.get("other", "").strip()
        if not other:
            return content, {"other": "Write the name of the class."}
        return {**content, "label": other}, {}
    if not (chosen.isascii() and chosen.isdecimal() and int(chosen) < len(classes)):
        return content, {"label": "Choose the true class."}
    return {**content, "label": classes[int(chosen)]}, {}


def _outcome(
    typed: Mapping[str, str], classes: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    content: dict[str, Any] = {}
    errors = {}
    if name := typed.get("outcome", "").strip():
        content["outcome"] = name
    else:
        errors["outcome"] = "Give what happened a name, such as refunded."
    if number := typed.get("value", "").strip():
        try:
            content["value"] = float(number)
        except ValueError:
            errors["value"] = "Write a number, with a point before decimals, such as 12.5."
    if typed.get("text", "").strip():
        content["text"] = typed["text"]
    return content, errors


def _refused(content: Mapping[str, Any], typed: Mapping[str, str]) -> dict[str, str]:
    """Return what the API would say against it, by the fields of the form."""
    try:
        OutcomesBody.model_validate({"outcomes": [dict(content)]})
    except ValidationError as error:
        found = {}
        for each in validation_problem(error).errors:
            name = each["where"].removeprefix("outcomes[0].")
            place = OTHER if name == "label" and typed.get("label") == OTHER else name
            said = each["message"]
            known = place in ("label", OTHER, "source", "outcome", "value", "text")
            found[place if known else _TOP] = f"{said[:1].upper()}{said[1:]}."
        return found
    return {}
