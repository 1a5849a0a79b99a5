"""Shell commands that send a first prediction to the service."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from typing import Any

from calibrant.data.encoders.input_columns import format_names
from calibrant.serving.bundle_slot import Served

__all__ = ["SendCommands", "send_commands"]

_MAX_VALUES = 12
"""Largest number of values in a command; more would be unreadable."""


@dataclass(frozen=True)
class SendCommands:
    """Shell commands.

    Parameters
    ----------
    single : command that sends one input; None if it would be too long
    file : command that sends the rows of a file
    reads : columns that the file must have, as a sentence
    """

    single: str | None
    file: str
    reads: str


def send_commands(served: Served, address: str, *, needs_key: bool) -> SendCommands:
    """Return commands that send predictions to a service."""
    address = address.rstrip("/")
    example = _example(served)
    key = " -H 'Authorization: Bearer KEY'" if needs_key else ""
    body = json.dumps({"inputs": [example]}, ensure_ascii=False)
    single = (
        f"curl {shlex.quote(f'{address}/v1/predict')}{key} -H 'Content-Type: application/json' "
        f"-d {shlex.quote(body)}"
    )
    return SendCommands(
        single if _values(example) <= _MAX_VALUES else None,
        f"calibrant predict {shlex.quote(address)} FILE{' --key KEY' if needs_key else ''}",
        f"FILE is a csv, parquet or jsonl file with the columns {_columns(served)}.",
    )


def _columns(served: Served) -> str:
    names = served.bundle.columns.names
    return format_names(names) if len(names) > 1 else f"{names[0]!r}"


def _example(served: Served) -> dict[str, Any]:
    """Return an example input for the bundle."""
    if served.reads == "text":
        return {"text": "the zip broke on the first day"}
    if served.reads == "logits":
        return {"logits": [float(k == 0) for k in range(len(served.classes))]}
    columns = served.bundle.columns
    numbers: dict[str, Any] = dict.fromkeys(columns.numbers, 0)
    return {"row": numbers | dict.fromkeys(columns.texts, "")}


def _values(example: dict[str, Any]) -> int:
    (value,) = example.values()
    return 1 if isinstance(value, str) else len(value)
