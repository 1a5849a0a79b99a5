"""The calibrate rows of the bundle that serves: sorted, measured and asked, and remembered."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Any, TypeVar, cast

from calibrant.bundle.calib_rows import CalibRows
from calibrant.bundle.points import DecidesOn
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.errors import TargetUnreachable
from calibrant.serving.bundle_slot import Served
from calibrant.serving.console.pages.thresholds.rules import Choice, candidates_of
from calibrant.serving.console.pages.thresholds.targets import AskedTarget
from calibrant.thresholds.curve import OperatingCurve, curve_of
from calibrant.thresholds.labelled_rows import LabelledRows
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.largest_weight import naming
from calibrant.thresholds.proof.question import Question
from calibrant.thresholds.proof.seen_labels import Seen

__all__ = ["AskedRows", "Remembered"]

Found = TypeVar("Found")

STEPS = 1000
"""Thresholds that the page draws at most."""


class Remembered:
    """Keeps what takes long to compute, the last few of each kind.

    Parameters
    ----------
    most : how many of each kind

    Examples
    --------
    >>> kept = Remembered({"square": 2})
    >>> [kept.get("square", n, lambda n=n: n * n) for n in (3, 4, 3, 5)]
    [9, 16, 9, 25]
    >>> kept.get("square", 4, lambda: "made again"), kept.get("square", 5, lambda: "made again")
    ('made again', 25)
    """

    def __init__(self, most: dict[str, int]) -> None:
        self._most = most
        self._kept: dict[str, OrderedDict[Hashable, Any]] = {kind: OrderedDict() for kind in most}
        self._lock = threading.Lock()

    def get(self, kind: str, key: Hashable, make: Callable[[], Found]) -> Found:
        """Return what is kept under a key; make it where it is not there."""
        kept = self._kept[kind]
        with self._lock:
            if key in kept:
                kept.move_to_end(key)
                return cast("Found", kept[key])
        made = make()  # two threads may both make it, which is better than waiting for each other
        with self._lock:
            kept[key] = made
            while len(kept) > self._most[kind]:
                kept.popitem(last=False)
        return made


_REMEMBERED = Remembered({"rows": 2, "question": 6, "curve": 24, "result": 64})


class AskedRows:
    """The calibrate rows of a bundle, as the page asks them.

    Parameters
    ----------
    served : the bundle
    calib : its calibrate rows
    """

    def __init__(self, served: Served, calib: CalibRows) -> None:
        self._served, self.calib = served, calib

    def labelled(self, decides_on: DecidesOn) -> LabelledRows:
        """Return the rows with the scores that a point looks at; flagged ones are withheld."""

        def made() -> LabelledRows:
            bundle, own = self._served.bundle, self.calib.logits
            given = ModelScores("logits", own)
            withheld = flag_rows(bundle.ood, given, with_model=bundle.scorer is not None)
            if decides_on == "calibrated" and bundle.calibration is not None:
                own = bundle.calibration.log_probs(own)
            codes, weights = self.calib.codes, self.calib.weights
            largest = self.calib.largest_weight
            return LabelledRows(own, codes, bundle.classes, weights, withheld, largest)

        return _REMEMBERED.get("rows", (self._served.hash, decides_on), made)

    def question(self, choice: Choice, decides_on: DecidesOn) -> Question:
        """Return the rows in the order of the scores of a class."""
        key = (self._served.hash, choice.place, decides_on)
        return _REMEMBERED.get(
            "question", key, lambda: self.labelled(decides_on).question(choice.of)
        )

    def curve(
        self, choice: Choice, result: OperatingPoint | TargetUnreachable, decides_on: DecidesOn
    ) -> OperatingCurve:
        """Return what every threshold would do; that of a point is told exactly."""
        confidence = result.confidence or 0.95
        keep = (result.logit,) if isinstance(result, OperatingPoint) else ()
        key = (self._served.hash, choice.place, decides_on, confidence, keep)
        return _REMEMBERED.get(
            "curve",
            key,
            lambda: curve_of(
                self.question(choice, decides_on), confidence=confidence, points=STEPS, keep=keep
            ),
        )

    def certified(
        self, choice: Choice, asked: AskedTarget, *, confidence: float, share: float
    ) -> OperatingPoint | TargetUnreachable:
        """Return the threshold that keeps what was asked, or why there is none.

        It is one of the model's own scores, which no label of these rows has shaped.
        """
        key = (self._served.hash, choice.code, asked.text, confidence, share)

        def made() -> OperatingPoint | TargetUnreachable:
            found = self.labelled("raw").certified(
                choice.of,
                asked.targets,
                confidence=confidence,
                share=share,
                clears=choice.clears,
                seen=Seen(candidates=candidates_of(self._served.bundle)),
            )
            # The page has no setting of the largest weight: the rows know it, or nobody does.
            return naming(found, None) if isinstance(found, OperatingPoint) else found

        return _REMEMBERED.get("result", key, made)
