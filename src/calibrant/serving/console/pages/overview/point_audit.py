"""What labels say about a point: of all labelled rows it would act on, how many are right.

A promise is about every row that its point would act on, also where another point decided or a
request asked for another one. So the stored logits of labelled predictions are judged again, and
not what was done with them.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from calibrant.bundle import Bundle
from calibrant.bundle.scope import flag_rows
from calibrant.bundle.scores import ModelScores
from calibrant.bundle.versions.rule_marks import RulePosition, rule_marks
from calibrant.inputs import FloatArray, IntArray
from calibrant.serving.console.pages.overview.limits import limits_of
from calibrant.stats import share_log_evidence
from calibrant.store import AuditState, LabelledRow, Store

__all__ = ["PointAudit", "point_audits"]


@dataclass(frozen=True)
class PointAudit:
    """Labelled rows that one rule would act on.

    Parameters
    ----------
    rows, right : how many, and of how many the label is the class they are acted on as
    prob : sum of the calibrated probabilities of being right
    lacking : labelled predictions that were stored without the logits of all classes
    broken : whether, after any of the labels, they showed that the rule's promise is not kept
    since : when a version with this rule, model and calibrator was first loaded; None where it
        has made no prediction yet
    """

    rows: int = 0
    right: int = 0
    prob: float = 0.0
    lacking: int = 0
    broken: bool = False
    since: datetime | None = None

    @property
    def share(self) -> float | None:
        """Share of the rows that is right."""
        return self.right / self.rows if self.rows else None

    @property
    def expected(self) -> float | None:
        """Mean calibrated probability of the rows to be right."""
        return min(1.0, self.prob / self.rows) if self.rows else None


_OTHER, _NONE = -2, -3
"""Positions of a label that is no class, and of none at all; a cleared row is taken as -1."""

Sums = tuple[int, int, float, int, bool]
"""`rows`, `right`, `prob`, `lacking` and `broken` of an audit."""


@dataclass(frozen=True)
class _Kept:
    """What was counted when the store had certain labels."""

    url: str
    state: AuditState
    sums: Mapping[RulePosition, Sums]


_KEPT: WeakKeyDictionary[Bundle, _Kept] = WeakKeyDictionary()

_MARKS: dict[tuple[str, str], frozenset[str]] = {}
"""For the address of a store and the hash of a bundle: a hash stands for one manifest."""


def point_audits(store: Store, bundle: Bundle) -> dict[RulePosition, PointAudit]:
    """Count, for each rule that decides without being asked for, what labels say about it.

    Versions of the bundle count in which that rule, the model and the calibrator are the same,
    whatever other points they have. The counts are kept as long as the bundle is, and labels that
    came in since are added to them.
    """
    now = store.audits.state()  # before the versions: none of its labels is about an unknown one
    versions = store.bundles.all(manifests=False)
    alike = {
        place: {each.hash: each.at for each in versions if mark in _marks(store, each.hash)}
        for place, mark in rule_marks(bundle.manifest).items()
    }
    sums = _counted(store, bundle, alike, now)
    return {
        place: PointAudit(*sums[place], since=min(of.values(), default=None))
        for place, of in alike.items()
    }


def _counted(
    store: Store, bundle: Bundle, versions: Mapping[RulePosition, Collection[str]], now: AuditState
) -> Mapping[RulePosition, Sums]:
    """Count anew, or add what came since; what is kept stands for the labels of its state."""
    kept = _KEPT.get(bundle)
    after, sums = None, dict.fromkeys(versions, (0, 0, 0.0, 0, False))
    if kept is not None and kept.url == store.url:
        if kept.state == now:
            return kept.sums
        if store.audits.only_newer(kept.state, now):
            after, sums = kept.state.latest, dict(kept.sums)
    count = _Count(bundle, versions, sums)
    hashes = {hash for of in versions.values() for hash in of}
    if hashes and now.labels:
        for piece in store.audits.labelled(hashes, after=after, until=now.latest):
            count.add(piece)
    _KEPT[bundle] = _Kept(store.url, now, count.sums)
    return count.sums


def _marks(store: Store, hash: str) -> frozenset[str]:
    """Return the marks of all rules of a bundle that has served."""
    key = store.url, hash
    if key not in _MARKS:
        found = store.bundles.get(hash)
        _MARKS[key] = frozenset(() if found is None else rule_marks(found.manifest).values())
    return _MARKS[key]


class _Count:
    """Counts of labelled rows for each rule.

    Parameters
    ----------
    bundle : judges the rows
    versions : for each rule the hashes of the versions whose rows count
    sums : what is counted already
    """

    def __init__(
        self,
        bundle: Bundle,
        versions: Mapping[RulePosition, Collection[str]],
        sums: dict[RulePosition, Sums],
    ) -> None:
        self._bundle, self._versions, self.sums = bundle, versions, sums
        self._limits = limits_of(bundle)
        self._codes: dict[str | None, int] = {str(n): k for k, n in enumerate(bundle.classes)}

    def add(self, piece: Sequence[LabelledRow]) -> None:
        """Judge rows and count them; where one had a label before, only its label changes."""
        size = len(self._codes)
        for row in (row for row in piece if len(row.logits) != size and row.before is None):
            self._lacks(row)
        fit = [row for row in piece if len(row.logits) == size]
        if not fit:
            return
        said, probs = _judged(self._bundle, [row.logits for row in fit])
        codes, before = self._coded(fit)
        new = before == _NONE
        for place, hashes in self._versions.items():
            acts, of = said[place]
            mine = acts & np.array([row.bundle in hashes for row in fit])
            first = np.flatnonzero(mine & new)
            rows, right, prob, lacking, broken = self.sums[place]
            told = of[first] == codes[first]
            again = mine & ~new
            broken = broken or self._shows_breach(place, rows, right, told)
            right += int(told.sum()) + int((again & (of == codes)).sum())
            right -= int((again & (of == before)).sum())
            prob += float(probs[first, of[first]].sum())
            self.sums[place] = rows + len(first), right, prob, lacking, broken

    def _shows_breach(
        self, place: RulePosition, rows: int, right: int, told: NDArray[np.bool_]
    ) -> bool:
        """Say whether new labels, one after the other, show that the promise is not kept."""
        if place not in self._limits or not len(told):
            return False
        limit = self._limits[place]
        n, hits = rows + np.arange(1.0, len(told) + 1), right + np.cumsum(told, dtype=np.float64)
        evidence = share_log_evidence(hits, n, np.array(limit.least))
        shown = (evidence >= -math.log(1 - limit.confidence)) & (hits < limit.least * n)
        return bool(shown.any())

    def _lacks(self, row: LabelledRow) -> None:
        for place, hashes in self._versions.items():
            if row.bundle in hashes:
                rows, right, prob, lacking, broken = self.sums[place]
                self.sums[place] = rows, right, prob, lacking + 1, broken

    def _coded(self, rows: Sequence[LabelledRow]) -> tuple[IntArray, IntArray]:
        """Return the positions of the labels, and of those that counted before."""
        known = {None: _NONE, **self._codes}
        codes = [known.get(row.label, _OTHER) for row in rows]
        return np.array(codes), np.array([known.get(row.before, _OTHER) for row in rows])


def _judged(
    bundle: Bundle, logits: Sequence[Sequence[float]]
) -> tuple[dict[RulePosition, tuple[NDArray[np.bool_], IntArray]], FloatArray]:
    """Say of each rule which rows it would act on and as which class, and give probabilities.

    A row out of scope is left to a person, so no rule acts on it.
    """
    given = ModelScores.from_input(bundle.classes, logits=np.array(logits, dtype=np.float64))
    outside = flag_rows(bundle.ood, given, with_model=bundle.scorer is not None)
    calibration = bundle.calibration
    log_probs = None if calibration is None else calibration.log_probs(given.matrix)
    inside = np.ones(len(given.array), dtype=bool) if outside is None else ~outside
    found = {
        (i, j): (acts & inside, of)
        for i, each in enumerate(bundle.points)
        for j, (acts, of) in enumerate(each.apply_rules(given, log_probs, bundle.classes))
    }
    return found, given.probs if log_probs is None else np.exp(log_probs)
