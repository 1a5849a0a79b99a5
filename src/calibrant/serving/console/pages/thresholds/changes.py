"""Changes of a bundle's thresholds: each writes an event, then a new version."""

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
    ThresholdChoice,
    certification_confidence,
    count_promises,
    describe_positions,
    find_current,
    joint_confidence,
    replace_threshold,
)
from calibrant.serving.console.pages.thresholds.targets import joint_confidence_after
from calibrant.serving.console.pages.thresholds.tried import TriedTarget
from calibrant.serving.console.shell.access import Visitor
from calibrant.serving.http.problems import Problem
from calibrant.serving.service import Service
from calibrant.thresholds.operating_point import OperatingPoint

SAVED, RESTORED, FAILED = "point_saved", "version_restored", "change_failed"
"""Kinds of events: what was done to a bundle, or failed after it was announced."""

_HASH = re.compile("[0-9a-f]{64}")


@dataclass(frozen=True)
class ThresholdChange:
    """A new or changed threshold."""

    choice: ThresholdChoice  # the threshold to change
    point: OperatingPoint  # its new operating point
    decides_on: DecidesOn = "raw"  # scores that it compares
    tried: TriedTarget | None = None  # target that it holds; None if set by hand

    def describe(self, served: Served) -> str:
        """Describe the change for the history."""
        about = class_words(self.choice.of)
        if self.choice.clears:
            about = f"cleared rows of {about}"
        current = find_current(served.bundle, self.choice)
        new = threshold_words(self.point.threshold, self.point.logit)
        if current is None:
            words = f"the threshold for {about} is new: a decision score of {new}"
        else:
            old = threshold_words(current.rule.point.threshold, current.rule.point.logit)
            words = f"the threshold for {about} changed from a decision score of {old} to {new}"
        if self.tried is None:
            words += "; it was set by hand and carries no promise"
        else:
            words += f", which holds {self.tried.target.text}"
        positions = describe_positions(served.bundle, self.choice, self.decides_on)
        return (
            f"{words}; for requests that name a point by number, {positions}"
            if positions
            else words
        )

    @property
    def details(self) -> dict[str, Any]:
        """Machine-readable details of the change."""
        details: dict[str, Any] = {
            "class": self.choice.name,
            "clears": self.choice.clears,
            "threshold": self.point.threshold,
        }
        if self.tried is not None:
            details |= {
                "target": self.tried.target.text,
                "tried": self.tried.id,
                "number_of_target": self.tried.number,
                "share_of_error": self.tried.share,
            }
        return details


def save_change(
    service: Service, visitor: Visitor, change: ThresholdChange, *, base: Served, reason: str | None
) -> str:
    """Write a new version with a changed threshold and serve it; return its hash."""
    try:
        points = replace_threshold(base.bundle, change.choice, change.point, change.decides_on)
    except InputError as error:
        raise Problem(
            HTTPStatus.CONFLICT, f"{_strip_period(error)}; nothing was changed."
        ) from None
    details = {
        "what": change.describe(base),
        "by": visitor.name,
        "reason": reason,
        **change.details,
    }
    together = _joint_confidence(base, change, count_promises(points))
    provenance = {} if together is None else {"confidence_together": together}

    def write(begin: Callable[[str], None]) -> str:
        return Versions(service.settings.bundle).save_points(
            points, base=base.hash, change=details, begin=begin, provenance=provenance
        )

    return _apply_change(service, visitor, SAVED, details, base, write)


def restore_version(
    service: Service, visitor: Visitor, version: str, *, base: Served, reason: str | None
) -> str:
    """Restore an earlier version of the bundle and serve it; return its hash."""
    versions = Versions(service.settings.bundle)
    known = {each.hash for each in versions.all()} if _HASH.fullmatch(version) else set()
    if version not in known:
        raise Problem(
            HTTPStatus.NOT_FOUND,
            f"this bundle has no version {version[:12]!r}: select one from the list of versions; "
            "nothing was changed.",
        )
    if version == base.hash:
        raise Problem(
            HTTPStatus.CONFLICT, "that version is already being served; nothing was changed."
        )
    details = {"what": f"version {version[:12]} was restored", "by": visitor.name, "reason": reason}

    def write(begin: Callable[[str], None]) -> str:
        return versions.restore(version, base=base.hash, begin=begin)

    return _apply_change(service, visitor, RESTORED, details, base, write)


def _joint_confidence(base: Served, change: ThresholdChange, promises: int) -> float | None:
    """Return the joint confidence of all promises after a change."""
    bundle = base.bundle
    current = find_current(bundle, change.choice)
    had_promise = current is not None and current.promised
    added = change.tried is not None and not had_promise
    confidence = certification_confidence(bundle)
    return joint_confidence_after(
        joint_confidence(bundle), confidence, promises=promises, added=added
    )


def _apply_change(
    service: Service,
    visitor: Visitor,
    kind: str,
    details: dict[str, Any],
    base: Served,
    write: Callable[[Callable[[str], None]], str],
) -> str:
    """Write a version; record an event right before it is swapped in, and another on failure."""
    key = None if visitor.key is None else visitor.key.id
    announced: list[str] = []

    def begin(hash: str) -> None:
        service.store.events.add(
            kind, key=key, subject=base.name, details=details, before=base.hash, after=hash
        )
        announced.append(hash)

    try:
        hash = write(begin)
    except Exception as error:
        if not announced or seal_of(service.settings.bundle) != announced[0]:
            _note_failure(service, key, base, announced, details | {"why": str(error)})
            raise _to_problem(error) from error
        hash = announced[0]  # it is in place; only a later step failed
    with contextlib.suppress(CalibrantError):  # the page then says why the old one is still served
        service.reload()
    return hash


def _note_failure(
    service: Service, key: str | None, base: Served, announced: list[str], details: dict[str, Any]
) -> None:
    """Record that an announced change did not happen."""
    if not announced:
        return
    failure = details | {"what": f"this did not happen: {details['what']}"}
    with contextlib.suppress(StoreError):  # the trail then lists one change too many
        service.store.events.add(
            FAILED, key=key, subject=base.name, details=failure, before=base.hash,
            after=announced[0],
        )  # fmt: skip


def _to_problem(error: Exception) -> Exception:
    """Convert a failure to the problem shown to the visitor."""
    if isinstance(error, StoreError) or not isinstance(error, CalibrantError):
        return error
    status = HTTPStatus.SERVICE_UNAVAILABLE
    if isinstance(error, VersionConflict):
        status = HTTPStatus.CONFLICT
    elif isinstance(error, InputError):
        status = HTTPStatus.UNPROCESSABLE_ENTITY
    return Problem(status, f"{_strip_period(error)}; nothing was changed.")


def _strip_period(error: Exception) -> str:
    return str(error).rstrip(".")
