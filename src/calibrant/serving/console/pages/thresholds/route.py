"""`/console/thresholds`: curve, targets, new versions and restored versions."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Annotated, Any, TypeVar
from urllib.parse import urlencode

from fastapi import APIRouter, Depends, Request
from starlette.responses import Response

from calibrant.bundle.versions.versions import Versions
from calibrant.errors import BundleError, InputError
from calibrant.formatting import sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.thresholds.changes import (
    ThresholdChange,
    restore_version,
    save_change,
)
from calibrant.serving.console.pages.thresholds.history import (
    History,
    trail_rows,
    tried_rows,
)
from calibrant.serving.console.pages.thresholds.rows import CachedRows
from calibrant.serving.console.pages.thresholds.rules import ThresholdChoice, list_choices
from calibrant.serving.console.pages.thresholds.targets import ThresholdTarget, read_target
from calibrant.serving.console.pages.thresholds.tried import (
    TargetLog,
    evaluate_target,
    read_target_log,
    record_target,
)
from calibrant.serving.console.pages.thresholds.view import (
    Selection,
    explorer_data,
    find_choice,
    load_rows,
    points_data,
    read_costs,
)
from calibrant.serving.console.shell.access import Visitor, page_pool_of, read_form, require_visitor
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.key_names import KeyNames
from calibrant.serving.console.shell.render import redirect_to, render_page
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.service import Service
from calibrant.thresholds.operating_point import OperatingPoint

router = APIRouter(prefix="/console", include_in_schema=False)

_HOME = "/console/thresholds"
_MAX_LENGTH = 500
_TRY_ROLE = "label"
"""Role for trying targets: each try spends some of what the rows can prove, for everyone."""

_CONFIRMATIONS = {
    "saved": ("The new threshold is saved and in use.", "The new threshold is saved"),
    "restored": ("The earlier version is restored and in use.", "The earlier version is restored"),
}
"""Confirmations: if the version is being served, and if it is not."""
_STALE = (
    "the bundle has changed since you loaded the page: reload it and check whether your change "
    "still makes sense; nothing was changed."
)

_BUSY = "another change is in progress: try again in a moment; nothing was changed."

Result = TypeVar("Result")


@dataclass(frozen=True)
class _TargetInput:
    """A target as typed, with its error message."""

    text: str = ""
    fault: str = ""


@router.get("/thresholds")
async def thresholds(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor())]
) -> Response:
    """Show the current threshold, the curve, tried targets and changes."""
    service, query = service_of(request), Form.from_query(request)
    data = await page_pool_of(request).run(
        service.settings.timeout, lambda: _gather(service, query)
    )
    return _page(request, visitor, data)


@router.post("/thresholds/target")
async def target(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor(_TRY_ROLE))]
) -> Response:
    """Record a try of a target, then redirect to its result."""
    service, form = service_of(request), await read_form(request, visitor)
    key = None if visitor.key is None else visitor.key.id

    def try_target() -> tuple[str | None, dict[str, Any]]:
        entered = _TargetInput(form.fields.get("hold", "")[: 2 * _MAX_LENGTH])
        try:
            return _try_target(service, form, key), {}
        except InputError as error:
            entered = _TargetInput(entered.text, sentence(str(error)))
        except Problem as problem:
            if problem.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            entered = _TargetInput(entered.text, sentence(problem.detail))
        return None, _gather(service, form, entered)

    url, data = await page_pool_of(request).run(service.settings.timeout, try_target)
    return _page(request, visitor, data) if url is None else redirect_to(url)


@router.post("/thresholds/save")
async def save_point(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor("admin"))]
) -> Response:
    """Write a new version of the bundle with a certified or a manual threshold."""
    service, form = service_of(request), await read_form(request, visitor)
    reason = form.text("reason", max_length=_MAX_LENGTH)

    def write() -> tuple[str, str]:
        served = _require_current(service, form)
        change = _read_change(service, served, form)
        return save_change(service, visitor, change, base=served, reason=reason), change.choice.code

    version, code = await _run_exclusively(request, write)
    return redirect_to(_page_url(rule=code, done="saved", version=version[:12]))


@router.post("/thresholds/restore")
async def restore_bundle(
    request: Request, visitor: Annotated[Visitor, Depends(require_visitor("admin"))]
) -> Response:
    """Restore an earlier version of the bundle."""
    service, form = service_of(request), await read_form(request, visitor)
    reason = form.text("reason", max_length=_MAX_LENGTH)
    version = form.text("version") or ""

    def write() -> str:
        served = _require_current(service, form)
        return restore_version(service, visitor, version, base=served, reason=reason)

    hash = await _run_exclusively(request, write)
    return redirect_to(_page_url(done="restored", version=hash[:12]))


@router.get("/thresholds/target")
@router.get("/thresholds/save")
@router.get("/thresholds/restore")
async def after_reload() -> Response:
    """Redirect visitors who load the URL of a form, as browsers do with old tabs."""
    return redirect_to(_HOME)


async def _run_exclusively(request: Request, change: Callable[[], Result]) -> Result:
    """Run a change in a thread without timeout, because half a change would be worse.

    Other changes wait here instead of occupying threads that other requests need.
    """
    state = request.app.state
    if not hasattr(state, "threshold_changes"):
        state.threshold_changes = asyncio.Lock()
    lock: asyncio.Lock = state.threshold_changes
    try:
        await asyncio.wait_for(lock.acquire(), service_of(request).settings.timeout)
    except TimeoutError:
        raise Problem.busy(_BUSY) from None
    try:
        return await asyncio.to_thread(change)
    finally:
        lock.release()


def _page(request: Request, visitor: Visitor, data: Mapping[str, Any]) -> Response:
    fault = data["entered"].fault or data["selection"].costs.fault
    return render_page(
        request,
        visitor,
        "thresholds.html.j2",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if fault else HTTPStatus.OK,
        may_save=visitor.may("admin"),
        may_try=visitor.may(_TRY_ROLE),
        **data,
    )


def _gather(service: Service, form: Form, entered: _TargetInput | None = None) -> dict[str, Any]:
    """Gather the data of the page."""
    _refresh_bundle(service, form.fields.get("version"))
    served, store = service.slot.current, service.store
    rows, no_rows = load_rows(served)
    selection = _read_selection(service, served, rows, form, with_tried=entered is None)
    names = KeyNames(store)
    history = History.read(service)  # before the trail, which depends on it
    trail = trail_rows(store, served.name, names, history)
    list_all = form.fields.get("versions") == "all"
    versions = history.rows(served.hash, list_all=list_all)
    return {
        "selection": selection,
        "choices": list_choices(served.bundle),
        "rows": rows,
        "no_rows": no_rows,
        "exploration": None if rows is None else explorer_data(selection, rows),
        "points": points_data(selection),
        "entered": entered
        or _TargetInput("" if selection.tried is None else selection.tried.target.text),
        "done": _confirmation(service, form, {each.id for each in history.versions}),
        **_gather_tries(service, rows),
        "versions": versions,
        "more_versions": len(history.versions) - len(versions),
        "versions_fault": history.fault,
        "trail": trail,
    }


def _gather_tries(service: Service, rows: CachedRows | None) -> dict[str, Any]:
    """Gather the tries on the rows, or the error that hides them."""
    log, fault, folder = TargetLog((), 0), "", ""
    if rows is not None:
        try:
            log = read_target_log(service, rows)
            folder = str(Versions(service.settings.bundle).versions_folder)
        except BundleError as error:
            fault = sentence(str(error))
    return {
        "tries": tried_rows(log.entries),
        "target_log": log,
        "target_log_fault": fault,
        "versions_folder": folder,
    }


def _read_selection(
    service: Service, served: Served, rows: CachedRows | None, form: Form, *, with_tried: bool
) -> Selection:
    costs, id = read_costs(form), form.fields.get("tried", "")
    if not (id and with_tried):
        return Selection(served, find_choice(served, form.text("rule")), costs)
    if rows is None:
        raise Problem(
            HTTPStatus.CONFLICT, "the bundle has no calibrate rows on which to try a target."
        )
    tried = evaluate_target(service, served, rows, id)
    return Selection(served, tried.choice, costs, tried)


def _refresh_bundle(service: Service, version: str | None) -> None:
    """Check for a version that was just saved, possibly by another process."""
    if version and version != service.slot.current.id:
        service.slot.look()


def _confirmation(service: Service, form: Form, known: Collection[str]) -> str | None:
    """Confirm a change and whether it is being served; None for unknown versions."""
    version, served = form.fields.get("version", ""), service.slot.current
    in_use, only_saved = _CONFIRMATIONS.get(form.fields.get("done", ""), (None, None))
    if version == served.id:
        return in_use
    if only_saved is None or version not in known:
        return None
    if service.slot.refused is None:
        return f"{only_saved} as version {version}; version {served.id} is being served."
    why = service.slot.refused.rstrip(".")
    return (
        f"{only_saved} as version {version}, but it is not being served: {why}. Version "
        f"{served.id} is still in use."
    )


def _try_target(service: Service, form: Form, key: str | None) -> str:
    """Record a target and evaluate it; return the URL of the result."""
    served = service.slot.current
    rows, why = load_rows(served)
    if rows is None:
        raise Problem(HTTPStatus.CONFLICT, f"{why[:1].lower()}{why[1:]}")
    if form.text("rows") != rows.calib.hash:
        raise Problem(HTTPStatus.CONFLICT, _STALE)
    choice = find_choice(served, form.text("rule"))
    target = _parse_target(form, choice)
    rows.labelled("raw").build_problem(choice.of, promised=True)  # refuses weights before recording
    id = _record_target(service, rows, target, key)
    evaluate_target(service, served, rows, id)  # caches the result for the page that shows it
    costs = read_costs(form)
    return _page_url(tried=id, fp=costs.fp, fn=costs.fn) + "#result"


def _record_target(
    service: Service, rows: CachedRows, target: ThresholdTarget, key: str | None
) -> str:
    try:
        return record_target(service, rows, target, key=key)
    except BundleError as error:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error


def _parse_target(form: Form, choice: ThresholdChoice) -> ThresholdTarget:
    text = form.text("hold", max_length=_MAX_LENGTH)
    if text is None:
        raise InputError("enter a target, such as precision>=0.85.")
    return read_target(text, of=choice.name, clears=choice.clears)


def _require_current(service: Service, form: Form) -> Served:
    """Return the bundle; refuse a form that was made for another version of it."""
    base = form.text("base")
    if base != service.slot.current.hash:
        service.slot.look()  # another process may have saved that version
    served = service.slot.current
    if base != served.hash:
        raise Problem(HTTPStatus.CONFLICT, _STALE)
    return served


def _read_change(service: Service, served: Served, form: Form) -> ThresholdChange:
    """Return the change that a form requests: a tried target or a manual threshold."""
    rows, why = load_rows(served)
    if rows is None:
        raise Problem(HTTPStatus.CONFLICT, f"{why[:1].lower()}{why[1:]}")
    id = form.text("tried")
    if id is not None:
        tried = evaluate_target(service, served, rows, id)
        if not isinstance(tried.result, OperatingPoint):
            raise Problem(
                HTTPStatus.CONFLICT, "no threshold holds that target; nothing was changed."
            )
        return ThresholdChange(tried.choice, tried.result, "raw", tried)
    return _read_manual_change(served, rows, form)


def _read_manual_change(served: Served, rows: CachedRows, form: Form) -> ThresholdChange:
    choice = find_choice(served, form.text("rule"))
    on = form.choice("on", ["raw", "calibrated"]) or "raw"
    unit = form.choice("unit", ["probability", "log-odds"]) or "probability"
    value = form.number("threshold")
    if value is None:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "threshold: enter a number.")
    if on == "calibrated" and served.bundle.calibration is None:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "on: the bundle has no calibrator.")
    labelled = rows.labelled("calibrated" if on == "calibrated" else "raw")
    set_as = {"prob": value} if unit == "probability" else {"logit": value}
    point = labelled.measure_threshold(choice.of, **set_as)
    return ThresholdChange(choice, point, "calibrated" if on == "calibrated" else "raw")


def _page_url(**fields: str) -> str:
    query = {name: value for name, value in fields.items() if value}
    return f"{_HOME}?{urlencode(query)}" if query else _HOME
