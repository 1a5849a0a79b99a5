"""Decision scores of stored predictions, computed again from their logits."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import groupby

from calibrant.bundle import Bundle
from calibrant.bundle.decision_scores import DecisionScore, rebuild_bundle, score_logits
from calibrant.errors import CalibrantError
from calibrant.store import BundleRecord, Prediction

_MOST = 32  # Rebuilt bundles kept

_UNREADABLE = (CalibrantError, ArithmeticError, LookupError, TypeError, ValueError)


class StoredScores:
    """Computes the decision scores of stored predictions by the bundle that made each.

    A score is a function of the stored logits and the recorded manifest, so it is not stored. It
    is None where no rule was applied, and where the record cannot be read.
    """

    def __init__(self, find: Callable[[str], BundleRecord | None]) -> None:
        self._find = find
        self._bundles: dict[str, Bundle | None] = {}

    def of(self, predictions: Sequence[Prediction]) -> list[DecisionScore | None]:
        """Return the decision score of each prediction."""
        return [
            score
            for (hash, point), group in groupby(predictions, lambda p: (p.bundle, p.asked_point))
            for score in self._score(hash, point, list(group))
        ]

    def _score(
        self, hash: str, point: int | None, predictions: list[Prediction]
    ) -> list[DecisionScore | None]:
        nothing: list[DecisionScore | None] = [None] * len(predictions)
        bundle = self._bundle(hash)
        if bundle is None:
            return nothing
        try:
            scores = score_logits(bundle, [each.logits for each in predictions], point)
        except _UNREADABLE:
            return nothing
        return [
            None if each.out_of_scope or each.decision is None else score
            for each, score in zip(predictions, scores, strict=True)
        ]

    def _bundle(self, hash: str) -> Bundle | None:
        if hash not in self._bundles:
            record = self._find(hash)
            if len(self._bundles) >= _MOST:
                self._bundles.clear()
            self._bundles[hash] = None if record is None else _rebuild(record)
        return self._bundles[hash]


def _rebuild(record: BundleRecord) -> Bundle | None:
    """Rebuild a recorded bundle, or return None if this version cannot read it."""
    try:
        return rebuild_bundle(record.manifest)
    except _UNREADABLE:
        return None
