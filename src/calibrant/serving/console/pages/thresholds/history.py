"""What was tried and changed: the versions of a bundle, the trail of events, and who did it."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from calibrant.bundle.versions.versions import Version, Versions
from calibrant.errors import CalibrantError, InputError
from calibrant.formatting import sentence
from calibrant.reports.threshold.wording import class_words
from calibrant.serving.console.pages.thresholds.changes import FAILED, RESTORED, SAVED
from calibrant.serving.console.pages.thresholds.targets import AskedTarget
from calibrant.serving.console.pages.thresholds.trail import fates
from calibrant.serving.console.pages.thresholds.tried_file import Try
from calibrant.serving.console.shell.key_names import Names
from calibrant.serving.service import Service
from calibrant.store import Store

__all__ = ["History", "trail_rows", "tried_rows"]

_MOST = 50


@dataclass(frozen=True)
class History:
    """The versions of a bundle.

    Parameters
    ----------
    found : all of them, newest first
    fault : what is wrong where they cannot be read
    """

    found: Sequence[Version]
    fault: str = ""

    @classmethod
    def of(cls, service: Service) -> Self:
        """Read the versions of the bundle of a service."""
        try:
            found = Versions(service.settings.bundle).all()
        except (CalibrantError, OSError) as error:
            return cls((), sentence(str(error)))
        return cls(found, "" if found else "There is no bundle in the folder any more.")

    @property
    def holds(self) -> str | None:
        """The hash of the bundle in the folder."""
        return next((each.hash for each in self.found if each.current), None)

    def rows(self, served: str, *, every: bool) -> list[dict[str, Any]]:
        """Return the versions that the page lists, newest first.

        Those that somebody may want to go back to are always there: the version that serves, the
        one that was packed last, and the first of all.
        """
        packed = next((each.hash for each in self.found if each.change is None), None)
        always = {served, packed, *(each.hash for each in self.found[-1:])}
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
            for i, each in enumerate(self.found)
            if every or i < _MOST or each.hash in always
        ]


def trail_rows(store: Store, subject: str, names: Names, history: History) -> list[dict[str, Any]]:
    """Return the latest changes of a bundle, newest first; those that did not happen too."""
    found = store.events.latest(kinds=[SAVED, RESTORED, FAILED], subject=subject, limit=_MOST)
    was_there = {each.hash for each in history.found}
    now = datetime.now(UTC)
    doubts = fates(found, holds=history.holds, was_there=was_there, now=now)
    if doubts:  # a version that decided something was there too, even where it was not kept
        was_there |= {each.hash for each in store.bundles.all(manifests=False)}
        doubts = fates(found, holds=history.holds, was_there=was_there, now=now)
    return [
        {
            "at": each.at,
            "by": names.of(each.key),
            "what": _sentence(each.details.get("what") or each.kind.replace("_", " ")),
            "reason": _text(each.details.get("reason")),
            "before": (each.before or "")[:12],
            "after": (each.after or "")[:12],
            "mark": "Failed." if each.kind == FAILED else doubts.get(each.id, ""),
        }
        for each in found
    ]


def tried_rows(tried: Iterable[tuple[Try, int]]) -> list[dict[str, Any]]:
    """Return the targets that were tried on the rows, the newest first."""
    rows = []
    for each, place in list(tried)[::-1][:_MOST]:
        try:
            asked = AskedTarget.from_dict(each.target)
        except InputError:
            continue  # written by another version; it still counts
        about = class_words(asked.of)
        rows.append(
            {
                "id": each.id,
                "place": place,
                "at": each.at,
                "by": each.by,
                "about": f"{about}, rows that are cleared" if asked.clears else about,
                "text": asked.text,
            }
        )
    return rows


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _sentence(value: Any) -> str:
    return sentence(str(value))
