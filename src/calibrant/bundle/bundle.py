"""A loaded bundle: logits in, decisions out."""

from __future__ import annotations

import html
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.bundle.calibration import Calibration
from calibrant.bundle.decisions import Decisions, Verdict, decided
from calibrant.bundle.files import MANIFEST
from calibrant.bundle.manifest import read_manifest
from calibrant.bundle.points import BundlePoint
from calibrant.bundle.scores import GivenScores, places_of
from calibrant.errors import BundleError, InputError
from calibrant.inputs import FloatArray

__all__ = ["Bundle", "load_bundle"]


@dataclass(frozen=True, eq=False)
class Bundle:
    """All that turns the scores of a model into decisions; `load_bundle` makes one.

    A row is acted on by an operating point where its score reaches the threshold; below a band it
    is cleared; otherwise the bundle abstains. The first point of each class has a say; where
    several act on a row, the one of the most probable class decides. Further points of a class are
    alternatives, taken by `decide(..., point=1)`.

    Parameters
    ----------
    path : the folder
    classes : names of the classes, in the order of the columns
    calibration : the calibrator, or None
    points : the operating points, in the order in which they were packed
    actions : for class names (as text) the names of what is done
    manifest : everything that `manifest.json` says
    """

    path: Path
    classes: tuple[Any, ...]
    calibration: Calibration | None
    points: tuple[BundlePoint, ...]
    actions: Mapping[str, str] = field(repr=False)
    manifest: Mapping[str, Any] = field(repr=False)

    @property
    def metrics(self) -> Mapping[str, Any]:
        """The figures that were packed."""
        found: Mapping[str, Any] = self.manifest["metrics"]
        return found

    @property
    def provenance(self) -> Mapping[str, Any]:
        """When, by which packages and from which files it was packed."""
        found: Mapping[str, Any] = self.manifest["provenance"]
        return found

    def predict_proba(
        self, inputs: Any = None, *, logits: Any = None, probs: Any = None
    ) -> FloatArray:
        """Return calibrated probabilities (n, K); without a calibrator those of the model.

        Parameters
        ----------
        inputs : what the model takes; in a bundle without a model, its logits
        logits : (n,) log-odds of the second of two classes, or (n, K)
        probs : the model's own probabilities instead, in the same shapes
        """
        return self._probabilities(self._given(inputs, logits, probs))

    def decide(
        self,
        inputs: Any = None,
        *,
        logits: Any = None,
        probs: Any = None,
        point: int | None = None,
    ) -> Decisions:
        """Decide for each row whether to act, on which class, or to leave it to a person.

        Parameters
        ----------
        inputs : what the model takes; in a bundle without a model, its logits
        logits, probs : as in `predict_proba`
        point : position of the one operating point that decides; by default the first of each class
        """
        deciding = self._deciding(point)
        given = self._given(inputs, logits, probs)
        log_probs = None
        if any(self.points[i].decides_on == "calibrated" for i in deciding):
            log_probs = self._log_probs(given)
        return decided(
            self.classes,
            self._probabilities(given, log_probs),
            self._verdicts(deciding, given, log_probs),
            actions=[self.actions.get(str(name)) for name in self.classes],
        )

    def is_alternative(self, point: int) -> bool:
        """Whether an earlier operating point acts on one of its classes already."""
        taken = {of for each in self.points[:point] for of in each.acts_on}
        return bool(taken & self.points[point].acts_on)

    def to_dict(self) -> dict[str, Any]:
        """Return the manifest."""
        return dict(self.manifest)

    def __str__(self) -> str:
        method = "no calibrator" if self.calibration is None else self.calibration.method
        lines = [f"Bundle of {len(self.classes)} classes, {method}."]
        for i, each in enumerate(self.points):
            lines += [f"{i}. On {each.decides_on} scores: {said}" for said in each.promises]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"

    def _given(self, inputs: Any, logits: Any, probs: Any) -> GivenScores:
        if inputs is not None:
            if logits is not None or probs is not None:
                raise InputError("give one of inputs, logits and probs, not several of them.")
            logits = inputs  # without a model, what comes in is what a model would have given
        return GivenScores.of(self.classes, logits=logits, probs=probs)

    def _log_probs(self, given: GivenScores) -> FloatArray | None:
        if self.calibration is None:
            return None
        if given.kind == "probs":
            given = GivenScores("logits", self.calibration.logits(given.array))
        return self.calibration.log_probs(given.matrix)

    def _probabilities(self, given: GivenScores, log_probs: FloatArray | None = None) -> FloatArray:
        """Return calibrated probabilities; the identity leaves those of the model as they are."""
        if self.calibration is None or (
            self.calibration.method == "identity" and given.kind == "probs"
        ):
            return given.probs
        found = self._log_probs(given) if log_probs is None else log_probs
        assert found is not None  # there is a calibrator
        return np.exp(found)

    def _verdicts(
        self, deciding: Sequence[int], given: GivenScores, log_probs: FloatArray | None
    ) -> list[Verdict]:
        found = []
        for i in deciding:
            each = self.points[i]
            said = each.verdicts(given, log_probs, self.classes)
            found += [
                Verdict(i, str(rule), acts, of, rule.clears)
                for rule, (acts, of) in zip(each.rules, said, strict=True)
            ]
        return found

    def _deciding(self, point: int | None) -> list[int]:
        """Return the positions of the points that have a say."""
        if not self.points:
            raise InputError(
                "this bundle has no operating point, so it gives probabilities only: pack one with "
                "calibrant pack --point."
            )
        if point is None:
            return [i for i in range(len(self.points)) if not self.is_alternative(i)]
        if point not in range(len(self.points)):
            raise InputError(
                f"point must be a position from 0 to {len(self.points) - 1}, got {point!r}."
            )
        return [int(point)]


def load_bundle(path: str | os.PathLike[str]) -> Bundle:
    """Load a bundle: check the schema and the hash of every file, then put its parts together.

    No code of the folder is run and nothing is unpickled. A folder that is damaged, lacks a file or
    has a newer format raises `BundleError`.

    Parameters
    ----------
    path : a folder that `calibrant pack` or `calibrant.bundle.pack` wrote

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
    found = read_manifest(folder)
    try:
        return assembled(found, folder)
    except InputError as error:
        raise BundleError(f"{folder / MANIFEST}: {error}") from None
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        raise BundleError(
            f"{folder / MANIFEST} is damaged ({type(error).__name__}): pack it again."
        ) from error


def assembled(found: Mapping[str, Any], folder: Path) -> Bundle:
    """Put a bundle together from a checked manifest; raise InputError where parts do not fit."""
    classes = tuple(found["classes"])
    calibration = None
    if found["calibrator"] is not None:
        calibration = Calibration.from_dict(found["calibrator"])
        if calibration.classes != list(classes):
            raise InputError("the classes of the calibrator are not those of the bundle.")
    points = tuple(BundlePoint.from_dict(each) for each in found["operating_points"])
    for each in points:
        places_of(each.classes, classes, called=("a point", "the bundle"))
        if each.decides_on == "calibrated" and calibration is None:
            raise InputError("a point decides on calibrated scores, but there is no calibrator.")
    unknown = set(found["actions"]) - {str(name) for name in classes}
    if unknown:
        raise InputError(f"there is an action for '{min(unknown)}', which is not a class.")
    return Bundle(folder, classes, calibration, points, found["actions"], found)
