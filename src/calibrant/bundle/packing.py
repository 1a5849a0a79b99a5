"""Packing of bundles: consistency checks and an atomic write."""

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
from calibrant.bundle.calibration import BundleCalibration
from calibrant.bundle.card.card import card_of
from calibrant.bundle.files import MANIFEST, is_plain_name, sha256_of, write_folder_atomically
from calibrant.bundle.loading import assemble_bundle, load_bundle
from calibrant.bundle.manifest import FORMAT, as_json, read_manifest, write_manifest
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scores import class_positions
from calibrant.calibrators import Calibrator
from calibrant.calibrators.base.rows import CalibrationRows
from calibrant.distribution import own_version
from calibrant.errors import InputError, SplitMisuse
from calibrant.inputs import FloatArray
from calibrant.ood import OodRule
from calibrant.thresholds import Band, LabelUse, OperatingPoint, OperatingPoints

if TYPE_CHECKING:
    from calibrant.data.row_scorer import RowScorer

_SAME = 1e-9


def check_unseen(
    calibration: BundleCalibration | None, points: Sequence[BundlePoint], calib: CalibRows | None
) -> None:
    """Raise `SplitMisuse` for a promise certified on rows that the calibrator was fitted on.

    A point does not record its rows. It is taken to be chosen on the calibrate rows if their number
    and its coverage and precision on them match.
    """
    if calibration is None or calib is None or not _has_seen(calibration, calib):
        return
    seen = LabelUse(calibrator=calibration.calibrator)
    log_probs = calibration.log_probs(calib.logits)
    for position, each in enumerate(points):
        for rule in each.rules if each.decides_on == "calibrated" else ():
            point = rule.point
            reason = seen.why_no_promise(top_label=point.of is None, n_classes=len(point.classes))
            if reason is None or point.guarantee is None:
                continue
            if _chosen_on(point, calib, log_probs, calibration.classes):
                raise SplitMisuse(
                    f"point {position} has an invalid promise: it was certified on the "
                    f"calibrate rows, but {reason}; or choose it with "
                    "label_use=LabelUse(calibrator=...), which gives no promise."
                )


def _has_seen(calibration: BundleCalibration, calib: CalibRows) -> bool:
    known = calib.codes >= 0  # rows of no class are not used for fitting
    names = tuple(calibration.classes)
    rows = CalibrationRows(calib.logits[known], calib.codes[known], None, names)
    return calibration.calibrator.has_seen_rows(rows)


def _chosen_on(
    point: OperatingPoint, calib: CalibRows, log_probs: FloatArray, classes: Sequence[object]
) -> bool:
    """Return whether a point has the same rates on these rows as recorded."""
    if point.n != len(calib):
        return False
    places = class_positions(point.classes, classes, owners=("a point", "the calibrator"))
    acts = point.act(logits=log_probs[:, places])
    any_class = point.of is None
    acted_as = log_probs.argmax(axis=1) if any_class else [*map(str, classes)].index(str(point.of))
    weights = np.ones(len(calib)) if calib.weights is None else calib.weights
    acted, right = (float(weights @ rows) for rows in (acts, acts & (calib.codes == acted_as)))
    rates = {"coverage": acted / float(weights.sum())}
    rates["accuracy" if any_class else "precision"] = right / max(acted, 1.0)
    recorded = {name: point.rates[name].value for name in rates if name in point.rates}
    return all(
        (value := recorded.get(name)) is not None and abs(value - value_here) < _SAME
        for name, value_here in rates.items()
    )


CARD = "card.md"  # Name of the model card file
_PACKAGES = ("calibrant", "numpy", "scipy", "scikit-learn")
_RESERVED = (CARD, FILE, "model.safetensors", "tokenizer.json", "ngrams.json", "model.txt")


def pack(  # noqa: PLR0913  # one argument per part of a bundle
    folder: str | os.PathLike[str],
    *,
    scorer: RowScorer | None = None,
    calibrator: Calibrator | BundleCalibration | None = None,
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
    """Write a bundle and return it loaded. Without a scorer, the bundle takes logits.

    Parameters
    ----------
    folder : the folder to create; must not exist, or be empty
    scorer : the model, `calibrant.models.scorer.Scorer.from_classifier(classifier)`, or None
    calibrator : a fitted calibrator of the model's scores, or None
    points : operating points and bands. With a calibrator, give for each the scores it was chosen
        on: `BundlePoint(point, "raw")` or `BundlePoint(point, "calibrated")`
    ood : the out-of-scope rule on the uncalibrated logits, or None
    classes : class names in the order of the logits; None takes them from the scorer, the
        calibrator or the first point
    actions : action names by class
    metrics : metrics to include, as JSON values. The card shows those under "test":
        {"test": {NAME: {"value", "low", "high"}}, "n": rows}
    provenance : additional provenance, as JSON values: "config", "seeds", and "splits",
        {NAME: {"source", "rows", "sha256"}}, which the card shows
    sources : role and path of source files, whose hashes are stored
    files : additional files, such as a report, by their name in the folder
    calib : the calibrate rows, for exploring thresholds later; they contain no inputs
    card : text for the model card, by section title
    force : replace an existing bundle
    name : name of the folder argument in messages

    Examples
    --------
    >>> import tempfile
    >>> from calibrant.calibrators import TemperatureScaling
    >>> fitted = TemperatureScaling().fit([-2.0, -1.0, 1.0, 2.0, 3.0], [0, 1, 0, 1, 1])
    >>> folder = Path(tempfile.mkdtemp()) / "bundle"
    >>> bundle = pack(folder, calibrator=fitted, actions={1: "refund"})
    >>> print(bundle)
    Bundle of 2 classes, temperature.
    >>> sorted(file.name for file in bundle.path.iterdir())
    ['card.md', 'manifest.json']
    """
    calibration = _as_calibration(calibrator)
    chosen = [_as_bundle_point(each, calibration) for each in points]
    names = _resolve_classes(_model_classes(scorer, classes), calibration, chosen)
    content = as_json(
        {
            "format": FORMAT,
            "classes": names,
            "scorer": {"kind": "none" if scorer is None else "torch"},
            "calibrator": None if calibration is None else calibration.to_dict(),
            "operating_points": [each.to_dict() for each in chosen],
            "ood": None if ood is None else ood.to_dict(),
            "actions": _check_actions(actions or {}, names),
            "metrics": metrics or {},
            "provenance": {**(provenance or {}), **provenance_of(sources, scorer)},
        }
    )
    if card:  # for the card of a later version
        content["provenance"]["card"] = dict(card)
    extra = _calib_file(calib, len(names))
    content["files"] = dict.fromkeys(extra, "")  # the card lists them
    bundle = assemble_bundle(content, Path(folder), scorer)
    check_unseen(calibration, chosen, calib)
    _check_files(files or {})
    text = card_of(bundle, card or {})
    with write_folder_atomically(folder, force=force, name=name) as draft:
        _write_files(content, scorer, text, files or {}, extra, draft)
        loaded = load_bundle(draft, device="cpu")  # never write a bundle that does not load
        _check_reloaded(scorer, loaded.scorer)
    return replace(loaded, path=Path(folder))


def add_files(folder: Path, files: Mapping[str, Path]) -> None:
    """Add files, such as a report, to a bundle that is not in use yet.

    The files are copied one by one, so a process that loads the bundle meanwhile may fail.
    """
    _check_files(files)
    content = read_manifest(folder)
    for name, source in files.items():
        shutil.copyfile(source, folder / name)
    hashes = {name: sha256_of(folder / name) for name in files}
    write_manifest(
        {**content, "files": dict(sorted({**content["files"], **hashes}.items()))}, folder
    )


def provenance_of(
    sources: Iterable[tuple[str, Path]], scorer: RowScorer | None = None
) -> dict[str, Any]:
    """Return the time, package versions and hashes of source files.

    Only file names are stored, not their paths.
    """
    packages = _PACKAGES if scorer is None else (*_PACKAGES, *scorer.packages)
    return {
        "created": datetime.now(UTC).isoformat(timespec="seconds"),
        "python": platform.python_version(),
        "packages": {name: _package_version(name) for name in packages},
        "sources": [
            {"role": role, "name": path.name, "sha256": sha256_of(path)} for role, path in sources
        ],
    }


def _write_files(
    content: Mapping[str, Any],
    scorer: RowScorer | None,
    card: str,
    files: Mapping[str, Path],
    extra: Mapping[str, bytes],
    draft: Path,
) -> None:
    """Write the model, card and other files, and finally the manifest with their hashes."""
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


def _calib_file(calib: CalibRows | None, n_classes: int) -> dict[str, bytes]:
    """Return the file of the calibrate rows, if there are any."""
    if calib is None:
        return {}
    if not isinstance(calib, CalibRows):
        raise InputError(f"calib must be CalibRows, got {type(calib).__name__}.")
    calib.check_classes(n_classes)
    return {FILE: calib.to_bytes()}


def _check_reloaded(original: RowScorer | None, loaded: RowScorer | None) -> None:
    """Raise `InputError` if a network rebuilt from its config gives other logits."""
    if original is None or loaded is None:
        return
    if not np.allclose(original.trial(), loaded.trial(), rtol=1e-2, atol=1e-2):  # also GPU and CPU
        raise InputError(
            f"the network {original.config['model']!r} gives different logits when rebuilt "
            "from its config and weights: its config must contain every option."
        )


def _check_files(files: Mapping[str, Path]) -> None:
    """Check the additional files up front."""
    for name, source in files.items():
        if not is_plain_name(name) or name in _RESERVED:
            raise InputError(
                f"files has the name {name!r}: use plain file names other than "
                f"{', '.join(_RESERVED)} and {MANIFEST}."
            )
        if not source.is_file():
            raise InputError(
                f"files has {source}, which is not an existing file: correct the path."
            )


def _as_calibration(calibrator: Calibrator | BundleCalibration | None) -> BundleCalibration | None:
    if calibrator is None or isinstance(calibrator, BundleCalibration):
        return calibrator
    if not isinstance(calibrator, Calibrator):
        raise InputError(f"calibrator must be a fitted calibrator, got {calibrator!r}.")
    fitted: Calibrator = calibrator.chosen_ if hasattr(calibrator, "chosen_") else calibrator
    return BundleCalibration.from_dict(fitted.to_dict())


def _as_bundle_point(
    each: BundlePoint | OperatingPoint | OperatingPoints | Band,
    calibration: BundleCalibration | None,
) -> BundlePoint:
    if isinstance(each, BundlePoint):
        return each
    if calibration is not None:
        raise InputError(
            "points must state the scores they were chosen on: use BundlePoint(point, 'raw') or "
            "BundlePoint(point, 'calibrated')."
        )
    return BundlePoint(each, "raw")


def _model_classes(scorer: RowScorer | None, classes: Sequence[Any] | None) -> list[Any] | None:
    """Return the given classes, or those of the model."""
    known = None if scorer is None else scorer.classes
    if classes is None:
        return None if known is None else list(known)
    names = np.asarray(classes).tolist() if isinstance(classes, np.ndarray) else list(classes)
    if known is not None and names != list(known):
        raise InputError(f"classes must be those of the model, in the same order: {list(known)}.")
    return names


def _resolve_classes(
    model_classes: list[Any] | None,
    calibration: BundleCalibration | None,
    points: Sequence[BundlePoint],
) -> list[Any]:
    """Return the classes of the model, of the calibrator, or of the first point."""
    if model_classes is not None:
        classes, other = model_classes, "the model"
    elif calibration is not None:
        classes, other = calibration.classes, "the calibrator"
    elif points:
        classes, other = list(points[0].classes), "the first point"
    else:
        raise InputError("nothing to pack: give a calibrator, operating points, or both.")
    for each in points:
        class_positions(each.classes, classes, owners=("a point", other))
    return classes


def _check_actions(actions: Mapping[Any, str], classes: Sequence[Any]) -> dict[str, str]:
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


def _package_version(name: str) -> str | None:
    if name == "calibrant":
        return own_version()
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return None
