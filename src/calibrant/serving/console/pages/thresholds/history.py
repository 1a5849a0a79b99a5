"""Versions of a bundle, the audit trail of its changes, and tried targets."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

from calibrant.bundle.versions.versions import Version, Versions
from calibrant.errors import CalibrantError, InputError
from calibrant.formatting import sentence
from calibrant.reports.threshold.wording import class_words
from calibrant.serving.console.pages.thresholds.changes import FAILED, RESTORED, SAVED
from calibrant.serving.console.pages.thresholds.targets import ThresholdTarget
from calibrant.serving.console.pages.thresholds.tried_file import TargetTry
from calibrant.serving.console.shell.key_names import KeyNames
from calibrant.serving.service import Service
from calibrant.store import Event, Store

UNDONE = "This did not happen: the service stopped before the folder was changed."
DOUBTFUL = "It is unknown whether this happened: the folder contained another version afterwards."
UNDER_WAY = "In progress."  # Remarks in front of such an event in the trail
_GRACE = timedelta(seconds=30)
"""Time allowed between an event and its change; clocks of two machines may differ."""


def find_doubtful(
    events: Sequence[Event],
    *,
    current_hash: str | None,
    known_hashes: Collection[str],
    now: datetime,
) -> Mapping[str, str]:
    """Return remarks on announced changes that are not known to have happened, by event id.

    A change happened if the next one starts from its result, or the folder contains that, or it is
    known to have existed. A change that failed while the service was running has a failure event.
    """
    remarks: dict[str, str] = {}
    failures: Counter[tuple[str | None, str | None]] = Counter()
    following: Event | None = None
    for each in events:
        change = (each.before, each.after)
        if each.kind == FAILED:
            failures[change] += 1
            continue
        if each.kind not in (SAVED, RESTORED):
            continue
        if failures[change]:
            failures[change] -= 1  # that event reports it
        elif remark := _find_remark(each, following, current_hash, known_hashes, now):
            remarks[each.id] = remark
        following = each
    return remarks


def _find_remark(
    event: Event,
    following: Event | None,
    current_hash: str | None,
    known_hashes: Collection[str],
    now: datetime,
) -> str:
    # A restored version existed before, so its existence proves nothing.
    if event.kind == SAVED and event.after in {current_hash, *known_hashes}:
        return ""
    then = current_hash if following is None else following.before
    if then in (None, event.after):
        return ""
    if following is None and now - event.at < _GRACE:
        return UNDER_WAY
    return UNDONE if then == event.before else DOUBTFUL


_MAX_ROWS = 50


@dataclass(frozen=True)
class History:
    """Versions of a bundle."""

    versions: Sequence[Version]  # all of them, newest first
    fault: str = ""  # error message if they cannot be read

    @classmethod
    def read(cls, service: Service) -> Self:
        """Read the versions of the bundle of a service."""
        try:
            versions = Versions(service.settings.bundle).all()
        except (CalibrantError, OSError) as error:
            return cls((), sentence(str(error)))
        return cls(versions, "" if versions else "The folder no longer contains a bundle.")

    @property
    def current_hash(self) -> str | None:
        """Hash of the bundle in the folder."""
        return next((each.hash for each in self.versions if each.current), None)

    def rows(self, served: str, *, list_all: bool) -> list[dict[str, Any]]:
        """Return the listed versions, newest first.

        Likely restore targets are always included: the version being served, the last one packed,
        and the first of all.
        """
        packed = next((each.hash for each in self.versions if each.change is None), None)
        pinned = {served, packed, *(each.hash for each in self.versions[-1:])}
        return [
            {
                "hash": each.hash,
                "id": each.id,
                "at": each.created,
                "current": each.hash == served,
                "what": _sentence((each.change or {}).get("what") or "packed"),
                "by": _text((each.change or {}).get("by")),
                "reason": _text((each.change or {}).get("reason")),
            }
            for i, each in enumerate(self.versions)
            if list_all or i < _MAX_ROWS or each.hash in pinned
        ]


def trail_rows(
    store: Store, subject: str, names: KeyNames, history: History
) -> list[dict[str, Any]]:
    """Return the latest changes of a bundle, newest first, including failed ones."""
    events = store.events.latest(kinds=[SAVED, RESTORED, FAILED], subject=subject, limit=_MAX_ROWS)
    known_hashes = {each.hash for each in history.versions}
    now = datetime.now(UTC)
    doubts = find_doubtful(
        events, current_hash=history.current_hash, known_hashes=known_hashes, now=now
    )
    if doubts:  # a version that made predictions existed too, even if it was not kept
        known_hashes |= {each.hash for each in store.bundles.all(manifests=False)}
        doubts = find_doubtful(
            events, current_hash=history.current_hash, known_hashes=known_hashes, now=now
        )
    return [
        {
            "at": each.at,
            "by": names.name_of(each.key),
            "what": _sentence(each.details.get("what") or each.kind.replace("_", " ")),
            "reason": _text(each.details.get("reason")),
            "before": (each.before or "")[:12],
            "after": (each.after or "")[:12],
            "mark": "Failed." if each.kind == FAILED else doubts.get(each.id, ""),
        }
        for each in events
    ]


def tried_rows(tried: Iterable[tuple[TargetTry, int]]) -> list[dict[str, Any]]:
    """Return the targets tried on the rows, newest first."""
    rows = []
    for each, number in list(tried)[::-1][:_MAX_ROWS]:
        try:
            target = ThresholdTarget.from_dict(each.target)
        except InputError:
            continue  # written by another version of Calibrant; it still counts
        about = class_words(target.of)
        rows.append(
            {
                "id": each.id,
                "number": number,
                "at": each.at,
                "by": each.by,
                "about": f"{about}, cleared rows" if target.clears else about,
                "text": target.text,
            }
        )
    return rows


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _sentence(value: Any) -> str:
    return sentence(str(value))
