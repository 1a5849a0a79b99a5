"""Labels and outcomes entered by people: validated as in the API, recorded once."""

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

OTHER = "other"  # Choice for a class that the bundle does not have

_ONCE = re.compile(r"[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}")
_RELOAD = "reload the page of the prediction; nothing was recorded."
_TOP = "form"  # Key of errors that belong to no field


@dataclass(frozen=True)
class OutcomeForm:
    """Form with a label or an outcome of a prediction."""

    kind: str  # "label" or "outcome"
    typed: Mapping[str, str] = field(default_factory=dict)  # typed text by field
    once: str = ""  # id of the form, which is recorded at most once
    content: Mapping[str, Any] = field(default_factory=dict)  # fields of an `OutcomeBody`
    errors: Mapping[str, str] = field(default_factory=dict)  # error message by field


def read_outcome_form(
    fields: Mapping[str, str], prediction: str, classes: Sequence[str]
) -> OutcomeForm:
    """Parse a form; errors are returned by field."""
    kind, once = fields.get("kind", ""), fields.get("once", "")
    if kind not in ("label", "outcome") or not _ONCE.fullmatch(once):
        raise Problem(HTTPStatus.BAD_REQUEST, f"the form cannot be read: {_RELOAD}")
    # Browsers send line ends as CRLF.
    typed = {name: text.replace("\r\n", "\n") for name, text in fields.items()}
    parse = _parse_label if kind == "label" else _parse_outcome
    content, errors = parse(typed, classes)
    content = {"prediction": prediction, **content}
    if not errors:
        errors = _validate(content, typed)
    return OutcomeForm(kind, typed, once, content, errors)


def record_outcome_form(store: Store, form: OutcomeForm, key: str | None) -> Recorded:
    """Record a form; a repeated submission is recorded once."""
    at, content = datetime.now(UTC), form.content
    request = f"{key or ''}:console:{form.once}"
    labels, outcomes = [], []
    if form.kind == "label":
        labels.append(
            Label(request, at, content["prediction"], content["label"], content.get("source"), key)
        )
    else:
        outcomes.append(
            Outcome(request, at, content["prediction"], content["outcome"], content.get("value"),
                    content.get("text"), key)
        )  # fmt: skip
    hashed = store.keyed_hash(to_json(dict(content)))
    other = [request] if form.typed.get("label") == OTHER else []
    return store.outcomes.add(outcomes, labels, request=request, hash=hashed, other=other)


def _parse_label(
    typed: Mapping[str, str], classes: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    content: dict[str, Any] = {}
    if source := typed.get("source", "").strip():
        content["source"] = source
    chosen = typed.get("label", "")
    if chosen == OTHER:
        other = typed.get("other", "").strip()
        if not other:
            return content, {"other": "Enter the name of the class."}
        return {**content, "label": other}, {}
    if not (chosen.isascii() and chosen.isdecimal() and int(chosen) < len(classes)):
        return content, {"label": "Choose the true class."}
    return {**content, "label": classes[int(chosen)]}, {}


def _parse_outcome(
    typed: Mapping[str, str], classes: Sequence[str]
) -> tuple[dict[str, Any], dict[str, str]]:
    content: dict[str, Any] = {}
    errors = {}
    if name := typed.get("outcome", "").strip():
        content["outcome"] = name
    else:
        errors["outcome"] = "Enter a name for the outcome, such as refunded."
    if number := typed.get("value", "").strip():
        try:
            content["value"] = float(number)
        except ValueError:
            errors["value"] = "Enter a number with a decimal point, such as 12.5."
    if typed.get("text", "").strip():
        content["text"] = typed["text"]
    return content, errors


def _validate(content: Mapping[str, Any], typed: Mapping[str, str]) -> dict[str, str]:
    """Return the errors that the API would report, by field of the form."""
    try:
        OutcomesBody.model_validate({"outcomes": [dict(content)]})
    except ValidationError as error:
        errors = {}
        for each in validation_problem(error).errors:
            name = each["where"].removeprefix("outcomes[0].")
            place = OTHER if name == "label" and typed.get("label") == OTHER else name
            message = each["message"]
            known = place in ("label", OTHER, "source", "outcome", "value", "text")
            errors[place if known else _TOP] = f"{message[:1].upper()}{message[1:]}."
        return errors
    return {}
