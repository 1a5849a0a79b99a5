"""Loading of bundles."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from calibrant.bundle.bundle import Bundle
from calibrant.bundle.calibration import BundleCalibration
from calibrant.bundle.files import MANIFEST, manifest_identity
from calibrant.bundle.manifest import list_models, read_manifest
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scorers import list_files, load_scorer
from calibrant.bundle.scores import class_positions
from calibrant.data.row_scorer import RowScorer
from calibrant.errors import BundleError, InputError, MissingExtra
from calibrant.ood import OodRule

_TRIES = 5  # Attempts to load a folder that is replaced while it is read

_LOAD_ERRORS = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def load_bundle(path: str | os.PathLike[str], *, device: str = "auto") -> Bundle:
    """Load a bundle after checking the schema and the hash of every file.

    No code in the folder is executed and nothing is unpickled. A damaged or incomplete folder, or a
    newer format, raises `BundleError`. The model is loaded eagerly, so that errors surface here;
    only bundles with a network require torch.

    Parameters
    ----------
    path : a folder written by `calibrant train`, `calibrant pack` or `calibrant.bundle.pack`
    device : device of the model: "cpu", "cuda", "cuda:1", or "auto" for a GPU if available

    Examples
    --------
    >>> import tempfile
    >>> from calibrant import load_bundle
    >>> from calibrant.bundle import pack
    >>> from calibrant.calibrators import TemperatureScaling
    >>> fitted = TemperatureScaling().fit([-2.0, -1.0, 1.0, 2.0, 3.0], [0, 1, 0, 1, 1])
    >>> folder = Path(tempfile.mkdtemp()) / "bundle"
    >>> _ = pack(folder, calibrator=fitted)
    >>> load_bundle(folder).predict_proba([0.0])
    array([[0.5, 0.5]])
    """
    folder = Path(path)
    for _ in range(_TRIES):
        before = manifest_identity(folder)
        try:
            bundle = _load_folder(folder, device)
        except BundleError:
            if manifest_identity(folder) == before:
                raise
            continue  # replaced by another version meanwhile
        if manifest_identity(folder) == before:
            return bundle
    raise BundleError(f"the bundle {folder} keeps changing while it is read: try again later.")


def _load_folder(folder: Path, device: str) -> Bundle:
    manifest = read_manifest(folder)
    scorer = None
    if manifest["scorer"]["kind"] != "none":
        scorer = _load_scorer(manifest, folder, device)
    with _as_bundle_error(folder / MANIFEST):
        return assemble_bundle(manifest, folder, scorer)


def assemble_bundle(manifest: Mapping[str, Any], folder: Path, scorer: RowScorer | None) -> Bundle:
    """Build a bundle from a checked manifest; raise `InputError` if its parts do not match."""
    classes = tuple(manifest["classes"])
    calibration = None
    if manifest["calibrator"] is not None:
        calibration = BundleCalibration.from_dict(manifest["calibrator"])
        if calibration.classes != list(classes):
            raise InputError("the classes of the calibrator differ from those of the bundle.")
    if scorer is not None and scorer.n_classes != len(classes):
        raise InputError(
            f"the model gives {scorer.n_classes} logits, but there are {len(classes)} classes."
        )
    points = tuple(BundlePoint.from_dict(each) for each in manifest["operating_points"])
    for each in points:
        class_positions(each.classes, classes, owners=("a point", "the bundle"))
        if each.decides_on == "calibrated" and calibration is None:
            raise InputError("a point decides on calibrated scores, but there is no calibrator.")
    unknown = set(manifest["actions"]) - {str(name) for name in classes}
    if unknown:
        raise InputError(f"there is an action for '{min(unknown)}', which is not a class.")
    rule = _ood_rule(manifest.get("ood"))  # absent in format 1
    return Bundle(folder, classes, calibration, points, manifest["actions"], manifest, scorer, rule)


def _ood_rule(saved: Mapping[str, Any] | None) -> OodRule | None:
    return None if saved is None else OodRule.from_dict(saved)


def _load_scorer(manifest: Mapping[str, Any], folder: Path, device: str) -> RowScorer:
    """Load the model; torch is only imported for bundles with a network."""
    spec = manifest["scorer"]
    if "torch" in {each["kind"] for each in list_models(spec)}:
        _check_device(device)
    with _as_bundle_error(folder):
        for name in list_files(spec):
            if name not in manifest["files"]:  # so it was not checked
                raise InputError(f"the manifest does not list {name!r}: pack it again.")
        return load_scorer(spec, folder, classes=manifest["classes"], device=device)


def _check_device(device: str) -> None:
    """Raise an error for an invalid device, which is not an error of the bundle."""
    try:
        from calibrant.models.saved_parts import device_named
    except ImportError:
        raise MissingExtra("a bundle with a network", "torch") from None
    device_named(device)


@contextmanager
def _as_bundle_error(where: Path) -> Iterator[None]:
    """Convert errors to `BundleError`."""
    try:
        yield
    except InputError as error:
        raise BundleError(f"{where}: {error}") from None
    except MissingExtra:
        raise
    except _LOAD_ERRORS as error:
        raise BundleError(f"{where} is damaged ({type(error).__name__}): pack it again.") from error
