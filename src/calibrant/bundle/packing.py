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
from typing import TYPE_CHECKING, Any

import numpy as np

from calibrant.bundle.bundle import Bundle
from calibrant.bundle.calib_rows import FILE, CalibRows
from calibrant.bundle.calibration import Calibration
from calibrant.bundle.card.card import card_of
from calibrant.bundle.files import MANIFEST, is_plain_name, sha256_of, whole_folder
from calibrant.bundle.loading import assembled, load_bundle
from calibrant.bundle.manifest import FORMAT, as_json, write_manifest
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scores import places_of
from calibrant.bundle.unseen_rows import check_unseen
from calibrant.calibrators import Calibrator
from calibrant.distribution import own_version
from calibrant.errors import InputError
from calibrant.ood import OodRule
from calibrant.thresholds import Band, OperatingPoint, OperatingPoints

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["CARD", "pack"]

CARD = "card.md"
"""The model card, for people."""

_PACKAGES = ("calibrant", "numpy", "scipy", "scikit-learn")
_MODEL_PACKAGES = ("torch", "safetensors", "tokenizers")
_TRANSFORMER_PACKAGES = ("transformers",)
_OWN = (CARD, FILE, "model.safetensors", "tokenizer.json")


def pack(  # noqa: PLR0913  # the parts of a bundle, each by its name
    folder: str | os.PathLike[str],
    *,
    scorer: Scorer | None = None,
    calibrator: Calibrator | Calibration | None = None,
    points: Sequence[BundlePoint | OperatingPoint | OperatingPoints | Band] = (),
    ood: OodRule | None = None,
    classes: Sequence[Any] | None = None,
    actions: Mapping[Any, str] | None = None,
    metrics: Mapping[str, Any] | None = None,
    provenance: Mapping[str, Any] | None = None,
    sources: Iterable[tuple[str, Path]] = (),
    files: Mapping[str, Path] | None = None,
    calib: CalibRows | None = None,
    card: Mapping[str, str] | None = None,
    force: bool = False,
    name: str = "folder",
) -> Bundle:
    """Write a bundle and return it, loaded. Without a scorer, logits come in where it is used.

    Parameters
    ----------
    folder : where to put it; must not be there yet, or be empty
    scorer : the model, `calibrant.models.scorer.Scorer.from_classifier(classifier)`, or None
    calibrator : a fitted calibrator of the model's scores, or None
    points : operating points and bands. Where there is a calibrator, say of each which scores it
        was chosen on: `BundlePoint(point, "raw")` or `BundlePoint(point, "calibrated")`
    ood : the rule that flags rows out of scope by the model's own logits, or None
    classes : names of the classes in the order of the model's logits; None to take them from the
        scorer, the calibrator or the first point
    actions : for classes the names of what is done when they are acted on
    metrics : figures to travel along, as JSON has them. The card shows those under "test":
        {"test": {NAME: {"value", "low", "high"}}, "n": rows}
    provenance : more about where it comes from, as JSON has it: "config", "seeds", and "splits",
        {NAME: {"source", "rows", "sha256"}}, which the card shows
    sources : role and path of files that this was made from; their hashes are kept
    files : more files to put into the folder, by their names there, such as a report
    calib : the calibrate rows, with which thresholds can be explored later; no inputs are in them
    card : sentences for the model card, by the title of their section
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
    names = _classes(_own_classes(scorer, classes), calibration, chosen)
    content = as_json(
        {
            "format": FORMAT,
            "classes": names,
            "scorer": {"kind": "none" if scorer is None else "torch"},
            "calibrator": None if calibration is None else calibration.to_dict(),
            "operating_points": [each.to_dict() for each in chosen],
            "ood": None if ood is None else ood.to_dict(),
            "actions": _actions(actions or {}, names),
            "metrics": metrics or {},
            "provenance": {**(provenance or {}), **provenance_of(sources, scorer)},
        }
    )
    if card:  # for the card of a later version
        content["provenance"]["card"] = dict(card)
    extra = _extra(calib, len(names))
    content["files"] = dict.fromkeys(extra, "")  # the card says what is there
    bundle = assembled(content, Path(folder), scorer)
    check_unseen(calibration, chosen, calib)
    _check_files(files or {})
    text = card_of(bundle, card or {})
    with whole_folder(folder, force=force, name=name) as draft:
        _write(content, scorer, text, files or {}, extra, draft)
        made = load_bundle(draft, device="cpu")  # what could not be loaded is not put there
        _check_same(scorer, made.scorer)
    return replace(made, path=Path(folder))


def provenance_of(
    sources: Iterable[tuple[str, Path]], scorer: Scorer | None = None
) -> dict[str, Any]:
    """Say when and by which packages something was made, and give the hashes of its sources.

    Only the names of the files are kept: where they lay is nobody's business.
    """
    packages = _PACKAGES if scorer is None else (*_PACKAGES, *_MODEL_PACKAGES)
    if scorer is not None and "transformer" in scorer.networks:
        packages = (*packages, *_TRANSFORMER_PACKAGES)
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: _version(name) for name in packages},
        "sources": [
            {"role": role, "name": path.name, "sha256": sha256_of(path)} for role, path in sources
        ],
    }


def _write(
    content: Mapping[str, Any],
    scorer: Scorer | None,
    card: str,
    files: Mapping[str, Path],
    extra: Mapping[str, bytes],
    draft: Path,
) -> None:
    """Fill a folder: model, card and further files, and last the manifest with their hashes."""
    parts = dict(content)
    if scorer is not None:
        parts["scorer"] = as_json(scorer.save(draft))
    (draft / CARD).write_text(card, encoding="utf-8", errors="backslashreplace")
    for name, source in files.items():
        shutil.copyfile(source, draft / name)
    for name, data in extra.items():
        (draft / name).write_bytes(data)
    hashes = {file.name: sha256_of(file) for file in sorted(draft.iterdir())}
    write_manifest({**parts, "files": hashes}, draft)


def _extra(calib: CalibRows | None, n_classes: int) -> dict[str, bytes]:
    """Return the file of the calibrate rows, where there are some."""
    if calib is None:
        return {}
    if not isinstance(calib, CalibRows):
        raise InputError(f"calib must be CalibRows, got {type(calib).__name__}.")
    calib.check_classes(n_classes)
    return {FILE: calib.to_bytes()}


def _check_same(given: Scorer | None, loaded: Scorer | None) -> None:
    """Refuse a network that its config does not tell whole: rebuilt, it gives other logits."""
    if given is None or loaded is None:
        return
    if not np.allclose(given.trial(), loaded.trial(), rtol=1e-2, atol=1e-2):  # also GPU and CPU
        raise InputError(
            f"the network {given.config['model']!r} gives other logits after it is built again "
            "from its config and weights: its config must hold every option."
        )


def _check_files(files: Mapping[str, Path]) -> None:
    """Refuse, before any work is done, files that cannot go along."""
    for name, source in files.items():
        if not is_plain_name(name) or name in _OWN:
            raise InputError(
                f"files has the name {name!r}: give plain names, other than {', '.join(_OWN)} and "
                f"{MANIFEST}."
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


def _own_classes(scorer: Scorer | None, classes: Sequence[Any] | None) -> list[Any] | None:
    """Return the classes that were given, or those that the model was fitted on."""
    known = None if scorer is None else scorer.classes
    if classes is None:
        return None if known is None else list(known)
    found = np.asarray(classes).tolist() if isinstance(classes, np.ndarray) else list(classes)
    if known is not None and found != list(known):
        raise InputError(f"classes must be those of the model in their order, {list(known)}.")
    return found


def _classes(
    own: list[Any] | None, calibration: Calibration | None, points: Sequence[BundlePoint]
) -> list[Any]:
    """Return the bundle's classes: its own, those of the calibrator, or of the first point."""
    if own is not None:
        classes, other = own, "the model"
    elif calibration is not None:
        classes, other = calibration.classes, "the calibrator"
    elif points:
        classes, other = list(points[0].classes), "the first point"
    else:
        raise InputError("there is nothing to pack: give a calibrator, operating points, or both.")
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
    if name == "calibrant":
        return own_version()
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
