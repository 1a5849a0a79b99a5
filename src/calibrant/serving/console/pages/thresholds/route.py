"""`/console/thresholds`: what every threshold would do, targets, new versions and the way back."""

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
from calibrant.serving.console.pages.thresholds.changes import Change, restore, save
from calibrant.serving.console.pages.thresholds.history import (
    History,
    trail_rows,
    tried_rows,
)
from calibrant.serving.console.pages.thresholds.rows import AskedRows
from calibrant.serving.console.pages.thresholds.rules import Choice, choices_of
from calibrant.serving.console.pages.thresholds.targets import AskedTarget, read_target
from calibrant.serving.console.pages.thresholds.tried import (
    AllTried,
    all_tried,
    record_target,
    tried_by_id,
)
from calibrant.serving.console.pages.thresholds.view import (
    Look,
    choice_named,
    explored,
    points_data,
    read_costs,
    rows_of,
)
from calibrant.serving.console.shell.access import Visitor, sent_form, visitor, workshop_of
from calibrant.serving.console.shell.forms import Form
from calibrant.serving.console.shell.key_names import Names
from calibrant.serving.console.shell.render import go_to, page
from calibrant.serving.http.problems import Problem
from calibrant.serving.routes.requests import service_of
from calibrant.serving.service import Service
from calibrant.thresholds.operating_point import OperatingPoint

__all__ = ["router"]

router = APIRouter(prefix="/console", include_in_schema=False)

_HOME = "/console/thresholds"
_LONGEST = 500
_TRIES = "label"
"""Who may try targets: each uses up some of what the rows can prove, for everybody."""

_DONE = {
    "saved": ("The new threshold is saved and serves now.", "The new threshold is saved"),
    "restored": ("The earlier version is back and serves now.", "The earlier version is back"),
}
"""What was done: where it serves, and where it does not."""
_STALE = (
    "the bundle was changed since you loaded the page: load it again and look whether your change "
    "still makes sense; nothing was changed."
)

_WAITED = "another change is being made: try again in a moment; nothing was changed."

Made = TypeVar("Made")


@dataclass(frozen=True)
class _Typed:
    """A target as it was typed, and what is wrong with it."""

    text: str = ""
    fault: str = ""


@router.get("/thresholds")
async def thresholds(request: Request, seen: Annotated[Visitor, Depends(visitor())]) -> Response:
    """Show a threshold, what every other one would do, and what was tried and changed."""
    service, query = service_of(request), Form.of_query(request)
    data = await workshop_of(request).do(service.settings.timeout, lambda: _shown(service, query))
    return _page(request, seen, data)


@router.post("/thresholds/target")
async def target(request: Request, seen: Annotated[Visitor, Depends(visitor(_TRIES))]) -> Response:
    """Write down that a target is tried, then lead to what comes of it."""
    service, form = service_of(request), await sent_form(request, seen)
    key = None if seen.key is None else seen.key.id

    def tried() -> tuple[str | None, dict[str, Any]]:
        typed = _Typed(form.fields.get("hold", "")[: 2 * _LONGEST])
        try:
            return _try_target(service, form, key), {}
        except InputError as error:
            typed = _Typed(typed.text, sentence(str(error)))
        except Problem as problem:
            if problem.status != HTTPStatus.UNPROCESSABLE_ENTITY:
                raise
            typed = _Typed(typed.text, sentence(problem.detail))
        return None, _shown(service, form, typed)

    address, data = await workshop_of(request).do(service.settings.timeout, tried)
    return _page(request, seen, data) if address is None else go_to(address)


@router.post("/thresholds/save")
async def save_point(
    request: Request, seen: Annotated[Visitor, Depends(visitor("admin"))]
) -> Response:
    """Write a new version of the bundle with a certified threshold, or one set by hand."""
    service, form = service_of(request), await sent_form(request, seen)
    reason = form.text("reason", most=_LONGEST)

    def saved() -> tuple[str, str]:
        served = _unchanged(service, form)
        change = _asked_change(service, served, form)
        return save(service, seen, change, base=served, reason=reason), change.choice.code

    made, code = await _in_turn(request, saved)
    return go_to(_address(rule=code, done="saved", version=made[:12]))


@router.post("/thresholds/restore")
async def go_back(
    request: Request, seen: Annotated[Visitor, Depends(visitor("admin"))]
) -> Response:
    """Put an earlier version of the bundle back."""
    service, form = service_of(request), await sent_form(request, seen)
    reason = form.text("reason", most=_LONGEST)
    version = form.text("version") or ""

    def restored() -> str:
        served = _unchanged(service, form)
        return restore(service, seen, version, base=served, reason=reason)

    made = await _in_turn(request, restored)
    return go_to(_address(done="restored", version=made[:12]))


@router.get("/thresholds/target")
@router.get("/thresholds/save")
@router.get("/thresholds/restore")
async def after_reload() -> Response:
    """Lead whoever loads the address of a form, as browsers do with old tabs, to the page."""
    return go_to(_HOME)


async def _in_turn(request: Request, change: Callable[[], Made]) -> Made:
    """Make a change in a thread, however long it takes: half a change would be worse.

    Other changes wait for it here and not in threads of their own, which others need.
    """
    state = request.app.state
    if not hasattr(state, "threshold_changes"):
        state.threshold_changes = asyncio.Lock()
    turn: asyncio.Lock = state.threshold_changes
    try:
        await asyncio.wait_for(turn.acquire(), service_of(request).settings.timeout)
    except TimeoutError:
        raise Problem.busy(_WAITED) from None
    try:
        return await asyncio.to_thread(change)
    finally:
        turn.release()


def _page(request: Request, seen: Visitor, data: Mapping[str, Any]) -> Response:
    wrong = data["typed"].fault or data["look"].costs.fault
    return page(
        request,
        seen,
        "thresholds.html.j2",
        status=HTTPStatus.UNPROCESSABLE_ENTITY if wrong else HTTPStatus.OK,
        may_save=seen.may("admin"),
        may_try=seen.may(_TRIES),
        **data,
    )


def _shown(service: Service, form: Form, typed: _Typed | None = None) -> dict[str, Any]:
    """Gather all that the page shows."""
    _catch_up(service, form.fields.get("version"))
    served, store = service.slot.current, service.store
    rows, no_rows = rows_of(served)
    look = _look(service, served, rows, form, with_tried=typed is None)
    names = Names(store)
    history = History.of(service)  # before the trail, which tells what became of it
    trail = trail_rows(store, served.name, names, history)
    every = form.fields.get("versions") == "all"
    versions = history.rows(served.hash, every=every)
    return {
        "look": look,
        "choices": choices_of(served.bundle),
        "rows": rows,
        "no_rows": no_rows,
        "explored": None if rows is None else explored(look, rows),
        "points": points_data(look),
        "typed": typed or _Typed("" if look.tried is None else look.tried.asked.text),
        "done": _done(service, form, {each.id for each in history.found}),
        **_tried_before(service, rows),
        "versions": versions,
        "more_versions": len(history.found) - len(versions),
        "versions_fault": history.fault,
        "trail": trail,
    }


def _tried_before(service: Service, rows: AskedRows | None) -> dict[str, Any]:
    """Gather what was tried on the rows, and what is wrong where nobody can tell."""
    tried, fault, place = AllTried((), 0), "", ""
    if rows is not None:
        try:
            tried = all_tried(service, rows)
            place = str(Versions(service.settings.bundle).versions_folder)
        except BundleError as error:
            fault = sentence(str(error))
    return {
        "tried_before": tried_rows(tried.found),
        "tried": tried,
        "tried_fault": fault,
        "versions_place": place,
    }


def _look(
    service: Service, served: Served, rows: AskedRows | None, form: Form, *, with_tried: bool
) -> Look:
    costs, id = read_costs(form), form.fields.get("tried", "")
    if not (id and with_tried):
        return Look(served, choice_named(served, form.text("rule")), costs)
    if rows is None:
        raise Problem(HTTPStatus.CONFLICT, "the bundle has no calibrate rows to try a target on.")
    tried = tried_by_id(service, served, rows, id)
    return Look(served, tried.choice, costs, tried)


def _catch_up(service: Service, version: str | None) -> None:
    """Look for the version that was just saved: another process may have answered then."""
    if version and version != service.slot.current.id:
        service.slot.look()


def _done(service: Service, form: Form, known: Collection[str]) -> str | None:
    """Say what was done, and whether it serves; nothing of a version that is not there."""
    version, served = form.fields.get("version", ""), service.slot.current
    serves, only_saved = _DONE.get(form.fields.get("done", ""), (None, None))
    if version == served.id:
        return serves
    if only_saved is None or version not in known:
        return None
    if service.slot.refused is None:
        return f"{only_saved} as version {version}; version {served.id} serves now."
    why = service.slot.refused.rstrip(".")
    return (
        f"{only_saved} as version {version}, but it does not serve yet, for {why}. Version "
        f"{served.id} goes on."
    )


def _try_target(service: Service, form: Form, key: str | None) -> str:
    """Record a target and compute what comes of it; return the address that shows it."""
    served = service.slot.current
    rows, why = rows_of(served)
    if rows is None:
        raise Problem(HTTPStatus.CONFLICT, f"{why[:1].lower()}{why[1:]}")
    if form.text("rows") != rows.calib.hash:
        raise Problem(HTTPStatus.CONFLICT, _STALE)
    choice = choice_named(served, form.text("rule"))
    asked = _asked(form, choice)
    rows.labelled("raw").question(choice.of, promised=True)  # refuses weights before all else
    id = _recorded(service, rows, asked, key)
    tried_by_id(service, served, rows, id)  # the page that shows it is quick then
    costs = read_costs(form)
    return _address(tried=id, fp=costs.fp, fn=costs.fn) + "#result"


def _recorded(service: Service, rows: AskedRows, asked: AskedTarget, key: str | None) -> str:
    try:
        return record_target(service, rows, asked, key=key)
    except BundleError as error:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error


def _asked(form: Form, choice: Choice) -> AskedTarget:
    text = form.text("hold", most=_LONGEST)
    if text is None:
        raise InputError("type a target, like precision>=0.85.")
    return read_target(text, of=choice.name, clears=choice.clears)


def _unchanged(service: Service, form: Form) -> Served:
    """Return the bundle; refuse a form that was made for another version of it."""
    base = form.text("base")
    if base != service.slot.current.hash:
        service.slot.look()  # another process may have saved what the form is about
    served = service.slot.current
    if base != served.hash:
        raise Problem(HTTPStatus.CONFLICT, _STALE)
    return served


def _asked_change(service: Service, served: Served, form: Form) -> Change:
    """Return the change that a form asks for: of a target that was tried, or by hand."""
    rows, why = rows_of(served)
    if rows is None:
        raise Problem(HTTPStatus.CONFLICT, f"{why[:1].lower()}{why[1:]}")
    id = form.text("tried")
    if id is not None:
        tried = tried_by_id(service, served, rows, id)
        if not isinstance(tried.result, OperatingPoint):
            raise Problem(
                HTTPStatus.CONFLICT, "no threshold keeps that target; nothing was changed."
            )
        return Change(tried.choice, tried.result, "raw", tried)
    return _by_hand(served, rows, form)


def _by_hand(served: Served, rows: AskedRows, form: Form) -> Change:
    choice = choice_named(served, form.text("rule"))
    on = form.choice("on", ["raw", "calibrated"]) or "raw"
    unit = form.choice("unit", ["probability", "log-odds"]) or "probability"
    value = form.number("threshold")
    if value is None:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "threshold: type a number.")
    if on == "calibrated" and served.bundle.calibration is None:
        raise Problem(HTTPStatus.UNPROCESSABLE_ENTITY, "on: the bundle has no calibrator.")
    labelled = rows.labelled("calibrated" if on == "calibrated" else "raw")
    set_as = {"prob": value} if unit == "probability" else {"logit": value}
    point = labelled.set_by_hand(choice.of, **set_as)
    return Change(choice, point, "calibrated" if on == "calibrated" else "raw")


def _address(**fields: str) -> str:
    given = {name: value for name, value in fields.items() if value}
    return f"{_HOME}?{urlencode(given)}" if given else _HOME
