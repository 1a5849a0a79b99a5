"""Loading a bundle: checks first, then its parts are put together."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from calibrant.bundle.bundle import Bundle
from calibrant.bundle.calibration import Calibration
from calibrant.bundle.files import MANIFEST, manifest_identity
from calibrant.bundle.manifest import read_manifest
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scores import places_of
from calibrant.errors import BundleError, InputError, MissingExtra
from calibrant.ood import OodRule

if TYPE_CHECKING:
    from calibrant.models.scorer import Scorer

__all__ = ["assembled", "load_bundle"]

_TRIES = 5
"""How often a folder is read anew that was replaced meanwhile."""

_DAMAGE = (ArithmeticError, AttributeError, LookupError, RuntimeError, TypeError, ValueError)


def load_bundle(path: str | os.PathLike[str], *, device: str = "auto") -> Bundle:
    """Load a bundle: check the schema and the hash of every file, then put its parts together.

    No code of the folder is run and nothing is unpickled. A folder that is damaged, lacks a file or
    has a newer format raises `BundleError`. A model is made ready at once, so that what is wrong
    with it shows here; only a bundle with a model needs torch.

    Parameters
    ----------
    path : a folder that `calibrant train`, `calibrant pack` or `calibrant.bundle.pack` wrote
    device : where a model runs: "cpu", "cuda", "cuda:1", or "auto" for a GPU where there is one

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
            found = _loaded(folder, device)
        except BundleError:
            if manifest_identity(folder) == before:
                raise
            continue  # another version took its place while it was read
        if manifest_identity(folder) == before:
            return found
    raise BundleError(f"the bundle {folder} keeps changing while it is read: try again later.")


def _loaded(folder: Path, device: str) -> Bundle:
    found = read_manifest(folder)
    scorer = None
    if found["scorer"]["kind"] != "none":
        scorer = _scorer(found, folder, device)
    with _told(folder / MANIFEST):
        return assembled(found, folder, scorer)


def assembled(found: Mapping[str, Any], folder: Path, scorer: Scorer | None) -> Bundle:
    """Put a bundle together from a checked manifest; raise InputError where parts do not fit."""
    classes = tuple(found["classes"])
    calibration = None
    if found["calibrator"] is not None:
        calibration = Calibration.from_dict(found["calibrator"])
        if calibration.classes != list(classes):
            raise InputError("the classes of the calibrator are not those of the bundle.")
    if scorer is not None and scorer.n_classes != len(classes):
        raise InputError(
            f"the model gives {scorer.n_classes} logits, but there are {len(classes)} classes."
        )
    points = tuple(BundlePoint.from_dict(each) for each in found["operating_points"])
    for each in points:
        places_of(each.classes, classes, called=("a point", "the bundle"))
        if each.decides_on == "calibrated" and calibration is None:
            raise InputError("a point decides on calibrated scores, but there is no calibrator.")
    unknown = set(found["actions"]) - {str(name) for name in classes}
    if unknown:
        raise InputError(f"there is an action for '{min(unknown)}', which is not a class.")
    rule = _rule(found.get("ood"))  # format 1 has none
    return Bundle(folder, classes, calibration, points, found["actions"], found, scorer, rule)


def _rule(saved: Mapping[str, Any] | None) -> OodRule | None:
    return None if saved is None else OodRule.from_dict(saved)


def _scorer(found: Mapping[str, Any], folder: Path, device: str) -> Scorer:
    """Return the running model; torch is imported for a bundle that has one, and for no other."""
    try:
        from calibrant.models.saved_parts import TOKENIZER, WEIGHTS, device_named
        from calibrant.models.scorer import Scorer
    except ImportError:
        raise MissingExtra("a bundle with a model", "torch") from None
    device_named(device)  # where it is wrong, that is not the bundle's fault
    with _told(folder):
        for name in (WEIGHTS, TOKENIZER) if found["scorer"]["input"] == "text" else (WEIGHTS,):
            if name not in found["files"]:  # it was not checked then
                raise InputError(f"the manifest does not list {name!r}: pack it again.")
        return Scorer.load(found["scorer"], folder, classes=found["classes"], device=device)


@contextmanager
def _told(where: Path) -> Iterator[None]:
    """Turn what goes wrong inside into a sentence about the bundle."""
    try:
        yield
    except InputError as error:
        raise BundleError(f"{where}: {error}") from None
    except _DAMAGE as error:
        raise BundleError(f"{where} is damaged ({type(error).__name__}): pack it again.") from error
