"""Targets tried on the calibrate rows, their numbers and results."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from http import HTTPStatus

from calibrant.errors import BundleError, InputError, TargetUnreachable
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.thresholds.rows import CachedRows
from calibrant.serving.console.pages.thresholds.rules import (
    ThresholdChoice,
    certification_confidence,
    count_promises,
    find_current,
    joint_confidence,
    list_choices,
    replace_threshold,
)
from calibrant.serving.console.pages.thresholds.targets import (
    MAX_TARGETS,
    ThresholdTarget,
    error_share,
    joint_confidence_after,
    number_targets,
    target_key,
)
from calibrant.serving.console.pages.thresholds.tried_file import (
    TargetTry,
    append_tries,
    read_tries,
)
from calibrant.serving.console.shell.key_names import KeyNames
from calibrant.serving.http.problems import Problem
from calibrant.serving.service import Service
from calibrant.store import Store
from calibrant.thresholds.operating_point import OperatingPoint

TRIED = "target_tried"  # Kind of the event that records a tried target

_OTHER_ROWS = (
    "that target was tried on other calibrate rows than those of the current bundle: type it again "
    "to try it on these."
)


@dataclass(frozen=True)
class TriedTarget:
    """A target tried on the rows of the bundle being served, with its result."""

    id: str  # id of the try
    target: ThresholdTarget
    choice: ThresholdChoice  # its threshold
    number: int  # its number among the different targets tried on these rows
    promises: int  # number of promised thresholds that the bundle would have
    confidence: float  # confidence at which they are certified together on these rows
    result: OperatingPoint | TargetUnreachable  # the certified threshold, or why there is none
    joint: float | None  # joint confidence of all promises with it
    joint_before: float | None  # the same without it

    @property
    def share(self) -> float:
        """Share of the allowed error spent on it."""
        return error_share(self.number, self.promises)


@dataclass(frozen=True)
class TargetLog:
    """Tries on some rows, merged from the store and the file beside the bundle."""

    # oldest first, each with the number of its target; a repeated target keeps its number
    entries: Sequence[tuple[TargetTry, int]]
    unshared: int  # number of different targets that only the store has

    @property
    def targets(self) -> int:
        """Number of different targets."""
        return max((number for _, number in self.entries), default=0)


def read_target_log(service: Service, rows: CachedRows) -> TargetLog:
    """Read all tries on some rows; raise `BundleError` if the file cannot be read.

    Tries in the file come first, so that their numbers do not depend on the store.
    """
    shared = read_tries(service.settings.bundle, rows.calib.unordered_hash)
    known = {each.id for each in shared}
    unshared = [each for each in _read_store(service.store, rows) if each.id not in known]
    tries = [*shared, *unshared]
    numbers = number_targets(each.target for each in tries)
    entries = list(zip(tries, numbers, strict=True))
    shared_targets = max(numbers[: len(shared)], default=0)
    return TargetLog(entries, max(numbers, default=0) - shared_targets)


def _read_store(store: Store, rows: CachedRows) -> list[TargetTry]:
    """Return the tries in the store, oldest first."""
    names, calib = KeyNames(store), rows.calib
    # Older versions of Calibrant used the hash that depends on the order of the rows.
    events = [
        each
        for subject in (calib.hash, calib.unordered_hash)
        for each in store.events.latest(kinds=[TRIED], subject=subject, limit=None)[::-1]
    ]
    return [TargetTry(each.id, each.at, names.name_of(each.key), each.details) for each in events]


def record_target(
    service: Service, rows: CachedRows, target: ThresholdTarget, *, key: str | None
) -> str:
    """Record a try before its result is known, and return its id.

    A target already in this store keeps its try; one in the store or the file keeps its number. It
    is also written beside the bundle, if possible.
    """
    store, saved = service.store, target.to_dict()
    before = [each.target for each, _ in read_target_log(service, rows).entries]
    *_, number = number_targets([*before, saved])
    tries = _read_store(store, rows)
    ids = [each.id for each in tries if target_key(each.target) == target_key(saved)]
    if not ids:
        if number > MAX_TARGETS:
            raise InputError(
                f"{MAX_TARGETS:,} different targets have been tried on these rows, which leaves "
                "hardly any error for another one: label new rows, and train or pack again."
            )
        subject = rows.calib.unordered_hash
        event = store.events.add(TRIED, key=key, subject=subject, details=saved)
        ids, tries = [event.id], _read_store(store, rows)
    with suppress(BundleError):  # the page then says how many only the store has
        append_tries(service.settings.bundle, rows.calib.unordered_hash, tries)
    return ids[0]


def evaluate_target(service: Service, served: Served, rows: CachedRows, id: str) -> TriedTarget:
    """Return a tried target with its result; raise `Problem` for other rows or unknown ids."""
    try:
        log = read_target_log(service, rows)
    except BundleError as error:
        raise Problem(HTTPStatus.SERVICE_UNAVAILABLE, str(error)) from error
    for each, number in log.entries:
        if each.id == id:
            return _evaluate(served, rows, id, ThresholdTarget.from_dict(each.target), number)
    event = service.store.events.get(id) if id.isascii() and id.isprintable() else None
    if event is not None and event.kind == TRIED:
        raise Problem(HTTPStatus.CONFLICT, _OTHER_ROWS)
    raise Problem(
        HTTPStatus.NOT_FOUND,
        f"no target was tried under the id {id[:60]!r}: type it on the Thresholds page.",
    )


def _evaluate(
    served: Served, rows: CachedRows, id: str, target: ThresholdTarget, number: int
) -> TriedTarget:
    bundle = served.bundle
    choice = _find_choice(served, target)
    current = find_current(bundle, choice)
    added = current is None or not current.promised
    promises = count_promises(bundle.points) + added
    confidence = certification_confidence(bundle)
    result = rows.certify(
        choice, target, confidence=confidence, share=error_share(number, promises)
    )
    before = joint_confidence(bundle)
    after = joint_confidence_after(before, confidence, promises=promises, added=added)
    return TriedTarget(id, target, choice, number, promises, confidence, result, after, before)


def _find_choice(served: Served, target: ThresholdTarget) -> ThresholdChoice:
    for each in list_choices(served.bundle):
        if each.name == target.of and each.clears == target.clears:
            return each
    raise Problem(
        HTTPStatus.CONFLICT,
        "that target is for a threshold that the current bundle does not have: choose another one.",
    )


def unsavable_reason(served: Served, tried: TriedTarget) -> str | None:
    """Return why a result cannot become the bundle's threshold, or None if it can."""
    if isinstance(tried.result, TargetUnreachable):
        return "there is no threshold to save"
    try:
        replace_threshold(served.bundle, tried.choice, tried.result, "raw")
    except InputError as error:
        return str(error)
    return None
