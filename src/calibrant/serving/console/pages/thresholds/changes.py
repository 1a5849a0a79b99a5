"""Changes of a bundle's thresholds: a new version each time, and an event before it."""

from __future__ import annotations

import contextlib
import re
from collections.abc import Callable
from dataclasses import dataclass
from http import HTTPStatus
from typing import Any

from calibrant.bundle.points import DecidesOn
from calibrant.bundle.versions.kept_versions import seal_of
from calibrant.bundle.versions.versions import Versions
from calibrant.errors import CalibrantError, InputError, StoreError, VersionConflict
from calibrant.reports.threshold.wording import class_words, threshold_words
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.thresholds.rules import (
    Choice,
    confidence_of,
    current_of,
    points_after,
    positions_told,
    promised,
    together_of,
)
from calibrant.serving.console.pages.thresholds.targets import together_after
from calibrant.serving.console.pages.thresholds.tried import Tried
from calibrant.serving.console.shell.access import Visitor
from calibrant.serving.http.problems import Problem
from calibrant.serving.service import Service
from calibrant.thresholds.operating_point import OperatingPoint

__all__ = ["FAILED", "RESTORED", "SAVED", "Change", "restore", "save"]

SAVED, RESTORED, FAILED = "point_saved", "version_restored", "change_failed"
"""Kinds of events: what was done to a bundle, or failed after it was announced."""

_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class Change:
    """A threshold that takes the place of another one, or is new.

    Parameters
    ----------
    choice : the threshold
    point : what it becomes
    decides_on : the scores that it looks at
    tried : the target that it keeps; None where it was set by hand
    """

    choice: Choice
    point: OperatingPoint
    decides_on: DecidesOn = "raw"
    tried: Tried | None = None

    def words(self, served: Served) -> str:
        """Say what changes, as the history tells it."""
        about = class_words(self.choice.of)
        if self.choice.clears:
            about = f"rows of {about} that are cleared"
        current = current_of(served.bundle, self.choice)
        new = threshold_words(self.point.threshold, self.point.logit)
        if current is None:
            moved = f"the threshold for {about} is new, {new}"
        else:
            old = threshold_words(current.rule.point.threshold, current.rule.point.logit)
            moved = f"the threshold for {about} went from {old} to {new}"
        if self.tried is None:
            moved += "; it was set by hand and carries no promise"
        else:
            moved += f", which keeps {self.tried.asked.text}"
        positions = positions_told(served.bundle, self.choice, self.decides_on)
        return (
            f"{moved}; for requests that ask for a point by number, {positions}"
            if positions
            else moved
        )

    @property
    def details(self) -> dict[str, Any]:
        """What is written down beside the words."""
        found: dict[str, Any] = {
            "class": self.choice.name,
            "clears": self.choice.clears,
            "threshold": self.point.threshold,
        }
        if self.tried is not None:
            found |= {
                "target": self.tried.asked.text,
                "tried": self.tried.id,
                "number_of_target": self.tried.place,
                "share_of_error": self.tried.share,
            }
        return found


def save(
    service: Service, seen: Visitor, change: Change, *, base: Served, reason: str | None
) -> str:
    """Write a new version with a changed threshold and serve it; return its hash."""
    try:
        points = points_after(base.bundle, change.choice, change.point, change.decides_on)
    except InputError as error:
        raise Problem(HTTPStatus.CONFLICT, f"{_ended(error)}; nothing was changed.") from None
    told = {"what": change.words(base), "by": seen.name, "reason": reason, **change.details}
    together = _together(base, change, promised(points))
    provenance = {} if together is None else {"confidence_together": together}

    def make(begin: Callable[[str], None]) -> str:
        return Versions(service.settings.bundle).save_points(
            points, base=base.hash, change=told, begin=begin, provenance=provenance
        )

    return _changed(service, seen, SAVED, told, base, make)


def restore(
    service: Service, seen: Visitor, version: str, *, base: Served, reason: str | None
) -> str:
    """Put an earlier version of the bundle back and serve it; return its hash."""
    versions = Versions(service.settings.bundle)
    known = {each.hash for each in versions.all()} if _HASH.fullmatch(version) else set()
    if version not in known:
        raise Problem(
            HTTPStatus.NOT_FOUND,
            f"there is no version {version[:12]!r} of this bundle: choose one from the list of "
            "versions; nothing was changed.",
        )
    if version == base.hash:
        raise Problem(HTTPStatus.CONFLICT, "that version serves already; nothing was changed.")
    told = {"what": f"version {version[:12]} was put back", "by": seen.name, "reason": reason}

    def make(begin: Callable[[str], None]) -> str:
        return versions.restore(version, base=base.hash, begin=begin)

    return _changed(service, seen, RESTORED, told, base, make)


def _together(base: Served, change: Change, promises: int) -> float | None:
    """Return the confidence of all promises together after a change."""
    bundle = base.bundle
    current = current_of(bundle, change.choice)
    had = current is not None and current.promised
    added = change.tried is not None and not had
    confidence = confidence_of(bundle)
    return together_after(together_of(bundle), confidence, promises=promises, added=added)


def _changed(
    service: Service,
    seen: Visitor,
    kind: str,
    told: dict[str, Any],
    base: Served,
    make: Callable[[Callable[[str], None]], str],
) -> str:
    """Make a version; announce it right before it takes its place, and tell where that failed."""
    key = None if seen.key is None else seen.key.id
    announced: list[str] = []

    def begin(made: str) -> None:
        service.store.events.add(
            kind, key=key, subject=base.name, details=told, before=base.hash, after=made
        )
        announced.append(made)

    try:
        made = make(begin)
    except Exception as error:
        if not announced or seal_of(service.settings.bundle) != announced[0]:
            _note_failure(service, key, base, announced, told | {"why": str(error)})
            raise _refused(error) from error
        made = announced[0]  # it stands; what failed came after
    with contextlib.suppress(CalibrantError):  # the page then says why the old one goes on
        service.reload()
    return made


def _note_failure(
    service: Service, key: str | None, base: Served, announced: list[str], told: dict[str, Any]
) -> None:
    """Write down that a change that was announced did not happen."""
    if not announced:
        return
    details = told | {"what": f"this did not happen: {told['what']}"}
    with contextlib.suppress(StoreError):  # the trail then tells one change too many
        service.store.events.add(
            FAILED, key=key, subject=base.name, details=details, before=base.hash,
            after=announced[0],
        )  # fmt: skip


def _refused(error: Exception) -> Exception:
    """Return why a change failed, as the visitor is told it."""
    if isinstance(error, StoreError) or not isinstance(error, CalibrantError):
        return error
    status = HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, VersionConflict):
        status = HTTPStatus.CONFLICT
    elif isinstance(error, InputError):
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    return Problem(status, f"{_ended(error)}; nothing was changed.")


def _ended(error: Exception) -> str:
    return str(error).rstrip(".")
