"""The manifest of a bundle: its schema, its checks, its seal."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calibrant.bundle.files import MANIFEST, is_plain_name, read_strictly, sha256_of
from calibrant.errors import BundleError, InputError

__all__ = ["FORMAT", "SCORERS", "as_json", "read_manifest", "sealed", "write_manifest"]

FORMAT = 3
"""Version of the folder; a newer one is refused, older ones load for ever."""

SCORERS = ("none", "torch")
"""Kinds of scorer: with `none`, scores come in; with `torch`, a network of the folder runs."""

_AGAIN = "pack it again, or get a fresh copy"
_WRITERS = "calibrant train (at its end) or calibrant pack"
_HASH = re.compile(r"[0-9a-f]{64}")
_Check = Callable[[Any], bool]


def _names(value: Any) -> bool:
    names = value if isinstance(value, list) else []
    plain = all(isinstance(n, str | int | float) for n in names)
    return plain and len({str(n) for n in names}) == len(names) >= 2


def _words(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) and v for v in value.values())


def _hashes(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(map(is_plain_name, value)) and all(
        isinstance(v, str) and _HASH.fullmatch(v) for v in value.values()
    )


def _points(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(point, dict) for point in value)


def _table(value: Any) -> bool:
    return isinstance(value, dict)


def _scorer(value: Any) -> bool:
    if not _table(value) or not isinstance(value.get("kind"), str):
        return False
    return value["kind"] != "torch" or all(isinstance(value.get(k), t) for k, t in _PARTS.items())


_PARTS: Mapping[str, type] = {
    "input": str, "columns": dict, "encoder": dict, "model": dict, "redact": bool
}  # fmt: skip
"""What a scorer of kind torch has, beside `log_shift`, which may be null."""

_SCHEMA: Mapping[str, tuple[_Check, str]] = {
    "format": (lambda v: isinstance(v, int), "a whole number"),
    "classes": (_names, "a list of at least two names, all different"),
    "scorer": (_scorer, "an object with a 'kind', and with all parts of a model where it has one"),
    "calibrator": (lambda v: v is None or _table(v), "an object or null"),
    "operating_points": (_points, "a list of objects"),
    "ood": (lambda v: v is None or _table(v), "an object or null"),
    "actions": (_words, "an object of names"),
    "metrics": (_table, "an object"),
    "provenance": (_table, "an object"),
    "files": (_hashes, "an object of file names and their hashes"),
    "sha256": (lambda v: isinstance(v, str), "a hash"),
}
"""Every key that a manifest has, what it must hold, and that in words."""

_SINCE = {"ood": 2}
"""Keys that came with a later format than 1."""

_READ_SINCE = {"image": 3, "subword": 3}
"""What a model reads, or the kind of its encoder, that came with a later format than 2."""


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return what JSON makes of `content`; refuse what JSON cannot hold, such as NaN."""
    try:
        made: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"a bundle can only hold what JSON can: {error}.") from None
    return made


def sealed(content: Mapping[str, Any]) -> dict[str, Any]:
    """Add the hash of all other keys; spaces and the order of keys do not count.

    It tells damage, not forgery: whoever can write the folder can write another hash.

    Examples
    --------
    >>> sealed({"format": 1})["sha256"][:16]
    '3f0a99256beeb89a'
    """
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {**rest, "sha256": hashlib.sha256(text.encode("ascii")).hexdigest()}


def write_manifest(content: Mapping[str, Any], folder: Path) -> None:
    """Write the manifest of a folder whose other files are there already."""
    text = json.dumps(sealed(content), allow_nan=False, ensure_ascii=False, indent=2)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read a folder's manifest and check it, and every file it lists, against their hashes."""
    found = _read(folder)
    _check_version(found, folder)
    _check_schema(found, folder)
    if sealed(found) != found:
        raise BundleError(f"{folder / MANIFEST} was changed after it was packed: {_AGAIN}.")
    kinds = SCORERS if found["format"] > 1 else SCORERS[:1]  # format 1 had no models
    if found["scorer"]["kind"] not in kinds:
        raise BundleError(
            f"the bundle {folder} has a scorer of kind {found['scorer']['kind']!r}, which this "
            "version of Calibrant cannot run: upgrade calibrant."
        )
    if found["scorer"]["kind"] == "torch":
        _check_read(found["scorer"], found["format"], folder / MANIFEST)
    for name, digest in found["files"].items():
        _check_file(folder, name, digest)
    return found


def _read(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        kept = folder.with_name(f"{folder.name}.versions") if folder.name else folder
        if any(kept.glob(f"*/{MANIFEST}")):
            raise BundleError(
                f"the bundle {folder} does not exist, but versions of it are in {kept}: copy the "
                "one that you want back to its place."
            )
        raise BundleError(
            f"the bundle {folder} does not exist: name a folder that {_WRITERS} wrote."
        )
    if not (folder / MANIFEST).is_file():
        inner = folder / "bundle"
        is_study = (inner / MANIFEST).is_file()
        remedy = f"name {inner}" if is_study else f"name a folder that {_WRITERS} wrote"
        raise BundleError(f"{folder} is not a bundle, for it has no {MANIFEST}: {remedy}.")
    try:
        found = read_strictly(folder / MANIFEST)
    except OSError as error:
        raise BundleError(f"{folder / MANIFEST} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise BundleError(
            f"{folder / MANIFEST} is damaged, for it is not JSON: {_AGAIN}."
        ) from None
    if not isinstance(found, dict) or "format" not in found:
        raise BundleError(f"{folder / MANIFEST} is damaged: it has no key 'format': {_AGAIN}.")
    return found


def _check_version(found: Mapping[str, Any], folder: Path) -> None:
    version = found["format"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BundleError(
            f"{folder / MANIFEST} is damaged: its format is {json.dumps(version)[:40]}: {_AGAIN}."
        )
    if version > FORMAT:
        raise BundleError(
            f"the bundle {folder} has format {version}, but this version of Calibrant reads "
            f"formats up to {FORMAT}: upgrade calibrant."
        )


def _check_schema(found: Mapping[str, Any], folder: Path) -> None:
    where = folder / MANIFEST
    schema = {k: v for k, v in _SCHEMA.items() if _SINCE.get(k, 1) <= found["format"]}
    lacking = [key for key in schema if key not in found]
    if lacking:
        raise BundleError(f"{where} is damaged: it has no key '{lacking[0]}': {_AGAIN}.")
    extra = sorted(set(found) - set(schema))
    if extra:
        raise BundleError(
            f"{where} has the key '{extra[0]}', which format {found['format']} does not know: "
            f"{_AGAIN}, or upgrade calibrant."
        )
    for key, (holds, words) in schema.items():
        if not holds(found[key]):
            raise BundleError(f"{where} is damaged: '{key}' must be {words}: {_AGAIN}.")


def _check_read(scorer: Mapping[str, Any], version: int, where: Path) -> None:
    """Refuse a model that its format has not."""
    for read in (scorer["input"], scorer["encoder"].get("kind")):
        if isinstance(read, str) and _READ_SINCE.get(read, 1) > version:
            raise BundleError(
                f"{where} is damaged: its model reads {read!r}, which format {version} does not "
                f"know: {_AGAIN}."
            )
    if scorer["input"] == "image" and not isinstance(scorer.get("resize"), bool):
        raise BundleError(
            f"{where} is damaged: it does not say whether images are resized: {_AGAIN}."
        )


def _check_file(folder: Path, name: str, digest: str) -> None:
    path = folder / name
    if not path.is_file():
        raise BundleError(f"the bundle {folder} lacks its file '{name}': {_AGAIN}.")
    try:
        same = sha256_of(path) == digest
    except OSError as error:
        raise BundleError(f"{path} cannot be read: {error.strerror}.") from None
    if not same:
        raise BundleError(f"{path} was changed after it was packed: {_AGAIN}.")
