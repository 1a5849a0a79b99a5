"""Provenance of a bundle: sources, packages, splits, settings, changes and files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from itertools import islice
from typing import Any

from calibrant.bundle import Bundle
from calibrant.formatting import sentence
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.model.figures import get_mapping, get_mappings
from calibrant.study.report.tables import config_rows, split_rows
from calibrant.study.report.wording import shown_name

__all__ = ["file_rows", "list_changes", "origin_data", "parse_moment"]

_MAX_SETTINGS = 300
"""Largest number of settings listed."""

_WORDED_KEYS = ("at", "by", "reason", "what")
"""Keys of a change that are shown in sentences."""

_FILES = {
    "calib.npz": "scores and true classes of the calibrate rows, without inputs",
    "card.md": "the model card, shown above",
    "model.safetensors": "the network's weights",
    "report.html": "the report of the study",
    "tokenizer.json": "the vocabulary of the tokenizer",
}


def origin_data(bundle: Bundle) -> dict[str, Any]:
    """Gather when, with what and from which files and rows a bundle was made."""
    provenance = bundle.provenance
    packages = {**get_mapping(provenance, "packages")}
    if provenance.get("python"):
        packages["Python"] = provenance["python"]
    return {
        "created": parse_moment(provenance.get("created")) or provenance.get("created"),
        "packages": [(str(name), _version(version)) for name, version in packages.items()],
        "sources": [
            {
                "role": str(each.get("role", "")).replace("_", " "),
                "name": shown_name(each.get("name", "")),
                "sha256": str(each.get("sha256", "")),
            }
            for each in get_mappings(provenance, "sources")
        ],
        "splits": list(split_rows(_splits(provenance))),
        "config": list(islice(config_rows(get_mapping(provenance, "config")), _MAX_SETTINGS)),
        "changes": list_changes(bundle),
    }


def list_changes(bundle: Bundle) -> list[dict[str, Any]]:
    """Return the changes made in the console since the study, newest first.

    Each has `at` (None if unreadable), `what`, `by` and `reason` as text, and `facts`, everything
    else on record.
    """
    return [_change(each) for each in reversed(get_mappings(bundle.provenance, "changes"))]


def file_rows(served: Served) -> Iterator[dict[str, str]]:
    """Yield the files of a bundle with their hashes."""
    for name, digest in sorted(served.manifest["files"].items()):
        yield {"name": shown_name(name), "sha256": digest, "what": _FILES.get(name, "")}


def parse_moment(value: Any) -> datetime | None:
    """Return a time saved as ISO text, or None for anything else.

    Examples
    --------
    >>> parse_moment("2026-11-16T11:40:11+00:00").year, parse_moment("yesterday")
    (2026, None)
    """
    try:
        moment = datetime.fromisoformat(value)
    except (TypeError, ValueError):
        return None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _change(each: Mapping[str, Any]) -> dict[str, Any]:
    rest = {name: value for name, value in each.items() if name not in _WORDED_KEYS}
    if each.get("at") and parse_moment(each["at"]) is None:
        rest["at"] = each["at"]
    return {
        "at": parse_moment(each.get("at")),
        "what": sentence(str(each.get("what") or "the operating points were changed")),
        "by": str(each.get("by") or ""),
        "reason": str(each.get("reason") or ""),
        "facts": [
            (name.replace("_", " "), value)
            for name, value in islice(config_rows(rest), _MAX_SETTINGS)
        ],
    }


def _splits(provenance: Mapping[str, Any]) -> dict[str, Mapping[str, Any]]:
    """Return the splits on record; entries of another shape are skipped."""
    return {
        str(name): part
        for name, part in get_mapping(provenance, "splits").items()
        if isinstance(part, Mapping) and isinstance(part.get("rows"), int)
    }


def _version(value: Any) -> str:
    return "not installed" if value is None else str(value)
