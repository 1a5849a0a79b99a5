"""What was tried and changed: the versions of a bundle, the trail of events, and who did it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from calibrant.bundle.versions import Versions
from calibrant.errors import CalibrantError, InputError
from calibrant.reports.threshold_words import class_words
from calibrant.reports.words import sentence
from calibrant.serving.console.targets import AskedTarget
from calibrant.serving.console.thresholds_changes import FAILED, RESTORED, SAVED
from calibrant.serving.service import Service
from calibrant.store import Event, Store

__all__ = ["Names", "trail_rows", "tried_rows", "version_rows"]

_MOST = 50
_LOCAL = "local visitor"


class Names:
    """Names of keys by their ids; each is looked up once.

    Parameters
    ----------
    store : that knows the keys
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._known: dict[str | None, str] = {None: _LOCAL}

    def of(self, key: str | None) -> str:
        """Return the name of a key, of one that was revoked too."""
        if key not in self._known:
            found = self._store.keys.get(key or "")
            self._known[key] = "a key that is gone" if found is None else found.name
        return self._known[key]


def version_rows(service: Service) -> tuple[list[dict[str, Any]], str]:
    """Return every version, newest first, and what is wrong where they cannot be read."""
    try:
        found = Versions(service.settings.bundle).all()
    except (CalibrantError, OSError) as error:
        return [], sentence(str(error))
    rows = [
        {
            "hash": each.hash,
            "id": each.id,
            "at": each.created,
            "current": each.hash == service.slot.current.hash,
            "what": _sentence((each.change or {}).get("what") or "packed"),
            "by": _text((each.change or {}).get("by")),
            "reason": _text((each.change or {}).get("reason")),
        }
        for each in found[:_MOST]
    ]
    return rows, "" if found else "There is no bundle in the folder any more."


def trail_rows(store: Store, subject: str, names: Names) -> list[dict[str, Any]]:
    """Return the latest changes of a bundle, newest first; failed ones too."""
    found = store.events.latest(kinds=[SAVED, RESTORED, FAILED], subject=subject, limit=_MOST)
    return [
        {
            "at": each.at,
            "by": names.of(each.key),
            "what": _sentence(each.details.get("what") or each.kind.replace("_", " ")),
            "reason": _text(each.details.get("reason")),
            "before": (each.before or "")[:12],
            "after": (each.after or "")[:12],
            "failed": each.kind == FAILED,
        }
        for each in found
    ]


def tried_rows(tried: Iterable[tuple[Event, int]], names: Names) -> list[dict[str, Any]]:
    """Return the targets that were tried on the rows, the newest first."""
    rows = []
    for event, place in list(tried)[::-1][:_MOST]:
        try:
            asked = AskedTarget.from_dict(event.details)
        except InputError:
            continue  # written by another version; it still counts
        about = class_words(asked.of)
        rows.append(
            {
                "id": event.id,
                "place": place,
                "at": event.at,
                "by": names.of(event.key),
                "about": f"{about}, rows that are cleared" if asked.clears else about,
                "text": asked.text,
            }
        )
    return rows


def _text(value: Any) -> str:
    return "" if value is None else str(value)


def _sentence(value: Any) -> str:
    return sentence(str(value))
