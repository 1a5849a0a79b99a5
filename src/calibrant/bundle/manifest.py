"""Manifest of a bundle: schema, checks and hash."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from calibrant.bundle.files import MANIFEST, is_plain_name, read_strict_json, sha256_of
from calibrant.errors import BundleError, InputError

FORMAT = 4  # Format version; older formats load forever, newer ones raise `BundleError`

SCORERS = {"none": 1, "torch": 2, "boosting": 4, "linear": 4, "ensemble": 4}
"""Kinds of scorer, and the first format that has them: `none` takes scores, `torch` runs a network,
`boosting` trees, `linear` a linear layer, and `ensemble` averages several models. `onnx` is
reserved."""

_REMEDY = "pack it again, or restore a copy"
_COMMANDS = "calibrant train (at its end) or calibrant pack"
_HASH = re.compile(r"[0-9a-f]{64}")
_LEVELS = 30  # Ensembles within ensembles; the names of their files would be too long before
_Check = Callable[[Any], bool]


def _is_class_list(value: Any) -> bool:
    names = value if isinstance(value, list) else []
    plain = all(isinstance(n, str | int | float) for n in names)
    return plain and len({str(n) for n in names}) == len(names) >= 2


def _is_text_mapping(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(v, str) and v for v in value.values())


def _is_hash_mapping(value: Any) -> bool:
    if not isinstance(value, dict):
        return False
    return all(map(is_plain_name, value)) and all(
        isinstance(v, str) and _HASH.fullmatch(v) for v in value.values()
    )


def _is_object_list(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(point, dict) for point in value)


def _is_object(value: Any) -> bool:
    return isinstance(value, dict)


def _is_scorer(value: Any, levels: int = _LEVELS) -> bool:
    if not _is_object(value) or not isinstance(value.get("kind"), str):
        return False
    if value["kind"] == "ensemble":
        members = value.get("members")
        is_list = isinstance(members, list) and len(members) > 1 and levels > 0
        return is_list and all(_is_scorer(each, levels - 1) for each in members)
    if value["kind"] not in _MODELS:
        return True
    return all(isinstance(value.get(k), t) for k, t in _PARTS.items())


_MODELS = ("torch", "boosting", "linear")  # Kinds of scorer that run one model

_PARTS: Mapping[str, type] = {
    "input": str, "columns": dict, "encoder": dict, "model": dict, "redact": bool
}  # fmt: skip
"""Keys of a model, besides `log_shift`, which may be null."""

_SCHEMA: Mapping[str, tuple[_Check, str]] = {
    "format": (lambda v: isinstance(v, int), "a whole number"),
    "classes": (_is_class_list, "a list of at least two names, all different"),
    "scorer": (_is_scorer, "an object with a 'kind' and, for a model, all its parts"),
    "calibrator": (lambda v: v is None or _is_object(v), "an object or null"),
    "operating_points": (_is_object_list, "a list of objects"),
    "ood": (lambda v: v is None or _is_object(v), "an object or null"),
    "actions": (_is_text_mapping, "an object of names"),
    "metrics": (_is_object, "an object"),
    "provenance": (_is_object, "an object"),
    "files": (_is_hash_mapping, "an object of file names and their hashes"),
    "sha256": (lambda v: isinstance(v, str), "a hash"),
}
"""Keys of a manifest, with a check and its description."""

_KEY_SINCE = {"ood": 2}  # Keys introduced after format 1

_INPUT_SINCE = {"image": 3, "subword": 3, "ngrams": 4}
"""Inputs and encoder kinds introduced after format 2."""


def as_json(content: Mapping[str, Any]) -> dict[str, Any]:
    """Return `content` as parsed JSON; raise `InputError` if it is not valid JSON, such as NaN."""
    try:
        parsed: dict[str, Any] = json.loads(json.dumps(content, allow_nan=False))
    except (TypeError, ValueError) as error:
        raise InputError(f"a bundle can only contain JSON values: {error}.") from None
    return parsed


def seal_manifest(content: Mapping[str, Any]) -> dict[str, Any]:
    """Add the hash of all other keys, independent of white space and key order.

    It detects damage, not forgery: anyone who can write the folder can write another hash.
    """
    rest = {key: value for key, value in content.items() if key != "sha256"}
    text = json.dumps(rest, sort_keys=True, separators=(",", ":"), allow_nan=False)
    return {**rest, "sha256": hashlib.sha256(text.encode("ascii")).hexdigest()}


def write_manifest(content: Mapping[str, Any], folder: Path) -> None:
    """Write the manifest of a folder whose other files exist already."""
    text = json.dumps(seal_manifest(content), allow_nan=False, ensure_ascii=False, indent=2)
    (folder / MANIFEST).write_text(f"{text}\n", encoding="utf-8", errors="backslashreplace")


def read_manifest(folder: Path) -> dict[str, Any]:
    """Read the manifest of a folder, and check it and every listed file against their hashes."""
    manifest = _read_json(folder)
    _check_version(manifest, folder)
    _check_schema(manifest, folder)
    if seal_manifest(manifest) != manifest:
        raise BundleError(f"{folder / MANIFEST} was changed after it was packed: {_REMEDY}.")
    for scorer in list_models(manifest["scorer"]):
        if SCORERS.get(scorer["kind"], FORMAT + 1) > manifest["format"]:
            raise BundleError(
                f"the bundle {folder} has a scorer of kind {scorer['kind']!r}, which this "
                "version of Calibrant cannot run: upgrade calibrant."
            )
        if scorer["kind"] in _MODELS:
            _check_input(scorer, manifest["format"], folder / MANIFEST)
    for name, digest in manifest["files"].items():
        _check_file(folder, name, digest)
    return manifest


def list_models(scorer: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the scorer of a manifest and, for an ensemble, its members and theirs."""
    members = scorer["members"] if scorer["kind"] == "ensemble" else ()
    return [scorer, *(model for each in members for model in list_models(each))]


def _read_json(folder: Path) -> dict[str, Any]:
    if not folder.exists():
        versions = folder.with_name(f"{folder.name}.versions") if folder.name else folder
        if any(versions.glob(f"*/{MANIFEST}")):
            raise BundleError(
                f"the bundle {folder} does not exist, but {versions} has versions of it: copy the "
                "one you want back."
            )
        raise BundleError(
            f"the bundle {folder} does not exist: give a folder written by {_COMMANDS}."
        )
    if not (folder / MANIFEST).is_file():
        inner = folder / "bundle"
        is_study = (inner / MANIFEST).is_file()
        remedy = f"use {inner}" if is_study else f"give a folder written by {_COMMANDS}"
        raise BundleError(f"{folder} is not a bundle (it has no {MANIFEST}): {remedy}.")
    try:
        parsed = read_strict_json(folder / MANIFEST)
    except OSError as error:
        raise BundleError(f"{folder / MANIFEST} cannot be read: {error.strerror}.") from None
    except (ValueError, RecursionError):
        raise BundleError(f"{folder / MANIFEST} is damaged (not valid JSON): {_REMEDY}.") from None
    if not isinstance(parsed, dict) or "format" not in parsed:
        raise BundleError(
            f"{folder / MANIFEST} is damaged: the key 'format' is missing: {_REMEDY}."
        )
    return parsed


def _check_version(manifest: Mapping[str, Any], folder: Path) -> None:
    version = manifest["format"]
    if isinstance(version, bool) or not isinstance(version, int) or version < 1:
        raise BundleError(
            f"{folder / MANIFEST} is damaged: its format is {json.dumps(version)[:40]}: {_REMEDY}."
        )
    if version > FORMAT:
        raise BundleError(
            f"the bundle {folder} has format {version}, but this version of Calibrant reads "
            f"formats up to {FORMAT}: upgrade calibrant."
        )


def _check_schema(manifest: Mapping[str, Any], folder: Path) -> None:
    where = folder / MANIFEST
    schema = {k: v for k, v in _SCHEMA.items() if _KEY_SINCE.get(k, 1) <= manifest["format"]}
    missing = [key for key in schema if key not in manifest]
    if missing:
        raise BundleError(f"{where} is damaged: the key '{missing[0]}' is missing: {_REMEDY}.")
    extra = sorted(set(manifest) - set(schema))
    if extra:
        raise BundleError(
            f"{where} has the key '{extra[0]}', which format {manifest['format']} does not have: "
            f"{_REMEDY}, or upgrade calibrant."
        )
    for key, (is_valid, words) in schema.items():
        if not is_valid(manifest[key]):
            raise BundleError(f"{where} is damaged: '{key}' must be {words}: {_REMEDY}.")


def _check_input(scorer: Mapping[str, Any], version: int, where: Path) -> None:
    """Reject a model that the format version does not support."""
    for kind in (scorer["input"], scorer["encoder"].get("kind")):
        if isinstance(kind, str) and _INPUT_SINCE.get(kind, 1) > version:
            raise BundleError(
                f"{where} is damaged: its model reads {kind!r}, which format {version} does not "
                f"have: {_REMEDY}."
            )
    if scorer["input"] == "image" and not isinstance(scorer.get("resize"), bool):
        raise BundleError(
            f"{where} is damaged: it does not say whether images are resized: {_REMEDY}."
        )


def _check_file(folder: Path, name: str, digest: str) -> None:
    path = folder / name
    if not path.is_file():
        raise BundleError(f"the bundle {folder} lacks its file '{name}': {_REMEDY}.")
    try:
        same = sha256_of(path) == digest
    except OSError as error:
        raise BundleError(f"{path} cannot be read: {error.strerror}.") from None
    if not same:
        raise BundleError(f"{path} was changed after it was packed: {_REMEDY}.")
