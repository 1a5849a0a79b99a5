"""Calibrate rows of the bundle being served, with cached curves and certificates."""

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
from calibrant.serving.console.pages.thresholds.rules import ThresholdChoice, count_candidates
from calibrant.serving.console.pages.thresholds.targets import ThresholdTarget
from calibrant.thresholds.curve import OperatingCurve, compute_curve
from calibrant.thresholds.labelled_rows import LabelledRows
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.largest_weight import name_weight_setting
from calibrant.thresholds.proof.question import ThresholdProblem
from calibrant.thresholds.proof.seen_labels import LabelUse

Value = TypeVar("Value")

STEPS = 1000  # Largest number of thresholds drawn


class LruCaches:
    """Least-recently-used caches, one of each size per kind of value."""

    def __init__(self, sizes: dict[str, int]) -> None:
        self._sizes = sizes
        self._caches: dict[str, OrderedDict[Hashable, Any]] = {
            kind: OrderedDict() for kind in sizes
        }
        self._lock = threading.Lock()

    def get(self, kind: str, key: Hashable, compute: Callable[[], Value]) -> Value:
        """Return the cached value of a key, computing it if needed."""
        cache = self._caches[kind]
        with self._lock:
            if key in cache:
                cache.move_to_end(key)
                return cast("Value", cache[key])
        value = compute()  # two threads may both compute it, which beats waiting for each other
        with self._lock:
            cache[key] = value
            while len(cache) > self._sizes[kind]:
                cache.popitem(last=False)
        return value


_CACHES = LruCaches({"rows": 2, "problem": 6, "curve": 24, "result": 64})


class CachedRows:
    """Calibrate rows of a bundle, with cached results."""

    def __init__(self, served: Served, calib: CalibRows) -> None:
        self._served, self.calib = served, calib

    def labelled(self, decides_on: DecidesOn) -> LabelledRows:
        """Return the rows with the scores that a point compares; out-of-scope rows are withheld."""

        def compute() -> LabelledRows:
            bundle, scores = self._served.bundle, self.calib.logits
            inputs = ModelScores("logits", scores)
            withheld = flag_rows(bundle.ood, inputs, with_model=bundle.scorer is not None)
            if decides_on == "calibrated" and bundle.calibration is not None:
                scores = bundle.calibration.log_probs(scores)
            codes, weights = self.calib.codes, self.calib.weights
            largest = self.calib.largest_weight
            return LabelledRows(scores, codes, bundle.classes, weights, withheld, largest)

        return _CACHES.get("rows", (self._served.hash, decides_on), compute)

    def build_problem(self, choice: ThresholdChoice, decides_on: DecidesOn) -> ThresholdProblem:
        """Return the rows sorted by the scores of a class."""
        key = (self._served.hash, choice.position, decides_on)
        return _CACHES.get(
            "problem", key, lambda: self.labelled(decides_on).build_problem(choice.of)
        )

    def curve(
        self,
        choice: ThresholdChoice,
        result: OperatingPoint | TargetUnreachable,
        decides_on: DecidesOn,
    ) -> OperatingCurve:
        """Return the operating curve; the threshold of a given point is exact."""
        confidence = result.confidence or 0.95
        keep = (result.logit,) if isinstance(result, OperatingPoint) else ()
        key = (self._served.hash, choice.position, decides_on, confidence, keep)
        return _CACHES.get(
            "curve",
            key,
            lambda: compute_curve(
                self.build_problem(choice, decides_on),
                confidence=confidence,
                points=STEPS,
                keep=keep,
            ),
        )

    def certify(
        self, choice: ThresholdChoice, target: ThresholdTarget, *, confidence: float, share: float
    ) -> OperatingPoint | TargetUnreachable:
        """Return the threshold certified to hold a target, or why there is none.

        It is one of the model's own scores, which no label of these rows has influenced.
        """
        key = (self._served.hash, choice.code, target.text, confidence, share)

        def compute() -> OperatingPoint | TargetUnreachable:
            result = self.labelled("raw").select_point(
                choice.of,
                target.targets,
                confidence=confidence,
                share=share,
                clears=choice.clears,
                label_use=LabelUse(candidates=count_candidates(self._served.bundle)),
            )
            # The page has no setting for the largest weight: only the rows may define it.
            return (
                name_weight_setting(result, None) if isinstance(result, OperatingPoint) else result
            )

        return _CACHES.get("result", key, compute)
