"""Write a bundle: its parts are checked against each other, and the folder comes whole or not."""

from __future__ import annotations

import os
import platform
import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from importlib import metadata
from pathlib import Path
from typing import Any

from calibrant.bundle.bundle import Bundle, assembled, load_bundle
from calibrant.bundle.calibration import Calibration
from calibrant.bundle.card import card_of
from calibrant.bundle.files import MANIFEST, is_plain_name, sha256_of, whole_folder
from calibrant.bundle.manifest import FORMAT, as_json, write_manifest
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scores import places_of
from calibrant.calibrators import Calibrator
from calibrant.errors import InputError
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints

__all__ = ["CARD", "pack"]

CARD = "card.md"
"""The model card, for people."""

_PACKAGES = ("calibrant", "numpy", "scipy", "scikit-learn")


def pack(
    folder: str | os.PathLike[str],
    *,
    calibrator: Calibrator | Calibration | None = None,
    points: Sequence[BundlePoint | OperatingPoint | OperatingPoints | Band] = (),
    actions: Mapping[Any, str] | None = None,
    metrics: Mapping[str, Any] | None = None,
    sources: Iterable[tuple[str, Path]] = (),
    files: Mapping[str, Path] | None = None,
    force: bool = False,
    name: str = "folder",
) -> Bundle:
    """Write a bundle without a model (logits in, decisions out) and return it, loaded.

    Parameters
    ----------
    folder : where to put it; must not be there yet, or be empty
    calibrator : a fitted calibrator of the model's scores, or None
    points : operating points and bands. Where there is a calibrator, say of each which scores it
        was chosen on: `BundlePoint(point, "raw")` or `BundlePoint(point, "calibrated")`
    actions : for classes the names of what is done when they are acted on
    metrics : figures to travel along, as JSON has them
    sources : role and path of files that this was made from; their hashes are kept
    files : more files to put into the folder, by their names there, such as a report
    force : replace a bundle that stands there
    name : what errors call the folder

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.calibrators import TemperatureScaling
    >>> fitted = TemperatureScaling().fit([-2.0, -1.0, 1.0, 2.0, 3.0], [0, 1, 0, 1, 1])
    >>> made = pack(Path(tempfile.mkdtemp()) / "bundle", calibrator=fitted, actions={1: "refund"})
    >>> print(made)
    Bundle of 2 classes, temperature.
    >>> sorted(file.name for file in made.path.iterdir())
    ['card.md', 'manifest.json']
    """
    calibration = _calibration(calibrator)
    chosen = [_point(each, calibration) for each in points]
    classes = _classes(calibration, chosen)
    content = as_json(
        {
            "format": FORMAT,
            "classes": classes,
            "scorer": {"kind": "none"},
            "calibrator": None if calibration is None else calibration.to_dict(),
            "operating_points": [each.to_dict() for each in chosen],
            "actions": _actions(actions or {}, classes),
            "metrics": metrics or {},
            "provenance": provenance_of(sources),
        }
    )
    bundle = assembled(content, Path(folder))
    _check_files(files or {})
    with whole_folder(folder, force=force, name=name) as draft:
        _write(bundle, content, files or {}, draft)
        made = load_bundle(draft)  # what could not be loaded is not put there
    return replace(made, path=Path(folder))


def provenance_of(sources: Iterable[tuple[str, Path]]) -> dict[str, Any]:
    """Say when and by which packages something was made, and give the hashes of its sources.

    Only the names of the files are kept: where they lay is nobody's business.
    """
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in _PACKAGES},
        "sources": [
            {"role": role, "name": path.name, "sha256": sha256_of(path)} for role, path in sources
        ],
    }


def _write(
    bundle: Bundle, content: Mapping[str, Any], files: Mapping[str, Path], draft: Path
) -> None:
    """Fill a folder: the card, further files, and last the manifest with their hashes."""
    card = card_of(bundle)
    (draft / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")
    for name, source in files.items():
        shutil.copyfile(source, draft / name)
    hashes = {name: sha256_of(draft / name) for name in sorted([CARD, *files])}
    write_manifest({**content, "files": hashes}, draft)


def _check_files(files: Mapping[str, Path]) -> None:
    """Refuse, before any work is done, files that cannot go along."""
    for name, source in files.items():
        if not is_plain_name(name) or name == CARD:
            raise InputError(
                f"files has the name {name!r}: give plain names, other than {CARD} and {MANIFEST}."
            )
        if not source.is_file():
            raise InputError(f"files has {source}, which is not a file: name one that is there.")


def _calibration(calibrator: Calibrator | Calibration | None) -> Calibration | None:
    if calibrator is None or isinstance(calibrator, Calibration):
        return calibrator
    if not isinstance(calibrator, Calibrator):
        raise InputError(f"calibrator must be a fitted calibrator, got {calibrator!r}.")
    fitted: Calibrator = calibrator.chosen_ if hasattr(calibrator, "chosen_") else calibrator
    return Calibration.from_dict(fitted.to_dict())


def _point(
    each: BundlePoint | OperatingPoint | OperatingPoints | Band, calibration: Calibration | None
) -> BundlePoint:
    if isinstance(each, BundlePoint):
        return each
    if calibration is not None:
        raise InputError(
            "points do not say which scores they were chosen on: give BundlePoint(point, 'raw') or "
            "BundlePoint(point, 'calibrated')."
        )
    return BundlePoint(each, "raw")


def _classes(calibration: Calibration | None, points: Sequence[BundlePoint]) -> list[Any]:
    """Return the bundle's classes: those of the calibrator, or of the first point."""
    if calibration is None and not points:
        raise InputError("there is nothing to pack: give a calibrator, operating points, or both.")
    classes = calibration.classes if calibration else list(points[0].classes)
    other = "the first point" if calibration is None else "the calibrator"
    for each in points:
        places_of(each.classes, classes, called=("a point", other))
    return classes


def _actions(actions: Mapping[Any, str], classes: Sequence[Any]) -> dict[str, str]:
    known = [str(name) for name in classes]
    for of, action in actions.items():
        if str(of) not in known:
            raise InputError(
                f"there is an action for {str(of)!r}, which is not among the classes "
                f"{', '.join(map(repr, known[:8]))}: name one of them."
            )
        if not isinstance(action, str) or not action.strip():
            raise InputError(f"the action of {str(of)!r} must be a name, got {action!r}.")
    return {str(of): action for of, action in actions.items()}


def _version(name: str) -> str | None:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
