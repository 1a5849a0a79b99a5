"""`/console`: the Overview page and its live data."""

from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Request
from starlette.responses import JSONResponse, Response

from calibrant.data.encoders.category_column import CategoryColumn
from calibrant.data.encoders.input_columns import format_names
from calibrant.data.encoders.table_encoder import is_plain
from calibrant.data.encoders.table_features import EncodedColumn
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.overview.shift import has_profile
from calibrant.serving.console.pages.overview.traffic import WINDOWS, Window
from calibrant.serving.console.pages.overview.view import (
    MAX_AUDITED,
    build_overview,
    load_profile,
    read_counts,
    read_live,
)
from calibrant.serving.console.shell.access import Visitor, page_pool_of, require_visitor
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.render import render_page
from calibrant.serving.routes.requests import service_of
from calibrant.serving.store_calls import within
from calibrant.store import Store

_MAX_VALUES = 12  # Largest number of values in a command; more would be unreadable


@dataclass(frozen=True)
class SendCommands:
    """Shell commands."""

    single: str | None  # command that sends one input; None if it would be too long
    file: str  # command that sends the rows of a file
    reads: str  # columns that the file must have, as a sentence


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
    scorer = served.bundle.scorer
    assert scorer is not None  # it reads tables
    columns = scorer.encoder.columns_  # type: ignore[union-attr]
    return {"row": {column.name: _example_value(column) for column in columns}}


def _example_value(column: EncodedColumn) -> Any:
    if isinstance(column, CategoryColumn):
        return ""
    return 0 if is_plain(column) else column.format.example


def _values(example: dict[str, Any]) -> int:
    (value,) = example.values()
    return 1 if isinstance(value, str) else len(value)


router = APIRouter(prefix="/console", include_in_schema=False)


@router.get("")
async def overview_page(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor())]
) -> Response:
    """Show promises, traffic, and how inputs compare with the calibrate rows."""
    service, form = service_of(request), Form.from_query(request)
    name = form.choice("window", WINDOWS) or next(iter(WINDOWS))
    this_version = form.choice("bundle", ["current", "all"]) != "all"
    served = service.slot.current
    timeout = service.settings.timeout
    if not has_profile(served.bundle):  # slow the first time: it scores the calibrate rows
        await page_pool_of(request).run(timeout, lambda: load_profile(served.bundle))
    data = await within(
        timeout, lambda: _gather(service.store, served, name, this_version=this_version)
    )
    commands = send_commands(served, str(request.base_url), needs_key=service.settings.keys_needed)
    return render_page(
        request, visitor, "overview.html.j2", this_version=this_version, windows=WINDOWS,
        send=commands, max_audited=MAX_AUDITED, **data,
    )  # fmt: skip


@router.get("/live")
async def live(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor())]
) -> Response:
    """Return current traffic and the hash of the bundle being served."""
    service = service_of(request)
    now = datetime.now(UTC)
    traffic = await within(service.settings.timeout, lambda: read_live(service.store, now))
    return JSONResponse({**traffic.to_dict(), "bundle": service.slot.current.hash})


def _gather(store: Store, served: Served, name: str, *, this_version: bool) -> dict[str, Any]:
    """Gather the data of the page."""
    window = Window.from_name(name, datetime.now(UTC))
    profile, why = load_profile(served.bundle)
    if not this_version:
        why = "The calibrate rows belong to the version being served: select it to compare."
    counts = read_counts(store, window, served.bundle if this_version else None)
    return {
        "shown": build_overview(counts, served.bundle, window, profile, this_version=this_version),
        "live": read_live(store, window.now),
        "why_not": why,
    }
