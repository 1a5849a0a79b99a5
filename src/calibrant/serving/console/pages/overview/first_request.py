"""How to send a first prediction: lines for a shell that work with the bundle that serves."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from calibrant.data.encoders.input_columns import format_names
from calibrant.serving.bundle_slot import Served

__all__ = ["Sending", "sending"]

_MOST = 12
"""Values that a line of a shell may have; beyond that it would be unreadable."""


@dataclass(frozen=True)
class Sending:
    """Lines for a shell.

    Parameters
    ----------
    one : sends one input; None where its line would be too long
    file : sends the rows of a file
    reads : what the file must have, as a sentence
    """

    one: str | None
    file: str
    reads: str


def sending(served: Served, address: str, *, needs_key: bool) -> Sending:
    """Return how to send predictions to a service."""
    address = address.rstrip("/")
    example = _example(served)
    key = " -H 'Authorization: Bearer KEY'" if needs_key else ""
    body = json.dumps({"inputs": [example]}, ensure_ascii=False)
    one = (
        f"curl {shlex.quote(f'{address}/v1/predict')}{key} -H 'Content-Type: application/json' "
        f"-d {shlex.quote(body)}"
    )
    return Sending(
        one if _values(example) <= _MOST else None,
        f"calibrant predict {shlex.quote(address)} FILE{' --key KEY' if needs_key else ''}",
        f"FILE is a csv, parquet or jsonl file with the columns {_columns(served)}.",
    )


def _columns(served: Served) -> str:
    names = served.bundle.columns.names
    return format_names(names) if len(names) > 1 else f"{names[0]!r}"


def _example(served: Served) -> dict[str, Any]:
    """Return an input of the kind that the bundle reads."""
    if served.reads == "text":
        return {"text": "the zip broke on the first day"}
    if served.reads == "logits":
        return {"logits": [float(k == 0) for k in range(len(served.classes))]}
    columns = served.bundle.columns
    numbers: dict[str, Any] = dict.fromkeys(columns.numbers, 0)
    return {"row": numbers | dict.fromkeys(columns.texts, "")}


def _values(example: dict[str, Any]) -> int:
    (given,) = example.values()
    return 1 if isinstance(given, str) else len(given)
