"""Where a bundle comes from: sources, packages, splits, settings, changes, and its files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from calibrant.bundle import Bundle
from calibrant.formatting import sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.model.figures import entries_of, table_of
from calibrant.study.report.tables import config_rows, split_rows
from calibrant.study.report.wording import shown_name

__all__ = ["changes_of", "file_rows", "moment_of", "origin_data"]

_MOST = 300
"""Settings that are listed."""

_TOLD = ("at", "by", "reason", "what")
"""What of a change is told in words."""

_FILES = {
    "calib.npz": "scores and true classes of the calibrate rows, without inputs",
    "card.md": "the model card, below",
    "model.safetensors": "the weights of the network",
    "report.html": "the report of the study",
    "tokenizer.json": "the words or pieces that texts are read in",
}


def origin_data(bundle: Bundle) -> dict[str, Any]:
    """Gather when, with what and from which files and rows a bundle was made."""
    made = bundle.provenance
    packages = {**table_of(made, "packages")}
    if made.get("python"):
        packages["Python"] = made["python"]
    return {
        "created": moment_of(made.get("created")) or made.get("created"),
        "packages": [(str(name), _version(version)) for name, version in packages.items()],
        "sources": [
            {
                "role": str(each.get("role", "")).replace("_", " "),
                "name": shown_name(each.get("name", "")),
                "sha256": str(each.get("sha256", "")),
            }
            for each in entries_of(made, "sources")
        ],
        "splits": list(split_rows(_splits(made))),
        "config": list(islice(config_rows(table_of(made, "config")), _MOST)),
        "changes": changes_of(bundle),
    }


def changes_of(bundle: Bundle) -> list[dict[str, Any]]:
    """Return what the console changed since the study, the newest first.

    Each has `at`, a moment where it can be read, `what`, `by` and `reason` in words, and `facts`,
    all else that is on record.
    """
    return [_change(each) for each in reversed(entries_of(bundle.provenance, "changes"))]


def file_rows(served: Served) -> Iterator[dict[str, str]]:
    """Yield the files of a bundle with their hashes."""
    for name, digest in sorted(served.manifest["files"].items()):
        yield {"name": shown_name(name), "sha256": digest, "what": _FILES.get(name, "")}


def moment_of(value: Any) -> datetime | None:
    """Return a moment that was saved as text; None for all else.

    Examples
    --------
    >>> moment_of("2026-11-16T11:40:11+00:00").year, moment_of("yesterday")
    (2026, None)
    """
    try:
        found = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return found if found.tzinfo is not None else found.replace(tzinfo=UTC)


def _change(each: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in each.items() if name not in _TOLD}
    if each.get("at") and moment_of(each["at"]) is None:
        rest["at"] = each["at"]
    return {
        "at": moment_of(each.get("at")),
        "what": sentence(str(each.get("what") or "the operating points were changed")),
        "by": str(each.get("by") or ""),
        "reason": str(each.get("reason") or ""),
        "facts": [
            (name.replace("_", " "), value) for name, value in islice(config_rows(rest), _MOST)
        ],
    }


def _splits(made: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the splits that were packed; what has another shape is left out."""
    return {
        str(name): part
        for name, part in table_of(made, "splits").items()
        if isinstance(part, Mapping) and isinstance(part.get("rows"), int)
    }


def _version(value: Any) -> str:
    return "not installed" if value is None else str(value)
