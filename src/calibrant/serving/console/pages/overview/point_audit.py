"""Audit of operating points: of all labelled rows a point would act on, how many are right.

A promise is about every row that its point would act on, including rows that another point decided
or whose request named another point. The stored logits of labelled predictions are therefore
judged again by the points, instead of counting the decisions made.
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
from calibrant.serving.console.pages.overview.limits import promise_limits
from calibrant.stats import share_log_evidence
from calibrant.store import AuditState, LabelledRow, Store


@dataclass(frozen=True)
class PointAudit:
    """Labelled rows that one rule would act on."""

    rows: int = 0
    right: int = 0  # rows whose label is the class acted on
    prob: float = 0.0  # sum of the calibrated probabilities of being right
    without_logits: int = 0  # labelled predictions stored without the logits of all classes
    # whether the labels showed, after any one of them, that the promise is broken
    broken: bool = False
    # when a version with this rule, model and calibrator was first loaded; None if it has made no
    # prediction yet
    since: datetime | None = None

    @property
    def share(self) -> float | None:
        """Share of the rows that are right."""
        return self.right / self.rows if self.rows else None

    @property
    def expected(self) -> float | None:
        """Mean calibrated probability of the rows being right."""
        return min(1.0, self.prob / self.rows) if self.rows else None


_OTHER, _NONE = -2, -3
"""Codes of a label outside the classes, and of no label; a cleared row has code -1."""

Sums = tuple[int, int, float, int, bool]
"""`rows`, `right`, `prob`, `without_logits` and `broken` of an audit."""


@dataclass(frozen=True)
class _CachedSums:
    """Sums of an audit at a given state of the labels."""

    url: str
    state: AuditState
    sums: Mapping[RulePosition, Sums]


_CACHE: WeakKeyDictionary[Bundle, _CachedSums] = WeakKeyDictionary()

_MARKS: dict[tuple[str, str], frozenset[str]] = {}
"""Rule marks by store URL and bundle hash; a hash identifies one manifest."""


def audit_points(store: Store, bundle: Bundle) -> dict[RulePosition, PointAudit]:
    """Audit each rule that decides by default on all labels about it.

    Versions of the bundle count if the rule, the model and the calibrator are the same, whatever
    their other points. Sums are cached with the bundle and updated with newer labels.
    """
    state = store.audits.state()  # read before the versions, so that every label's version is known
    versions = store.bundles.all(manifests=False)
    same_rule = {
        place: {each.hash: each.at for each in versions if mark in _marks(store, each.hash)}
        for place, mark in rule_marks(bundle.manifest).items()
    }
    sums = _update_sums(store, bundle, same_rule, state)
    return {
        place: PointAudit(*sums[place], since=min(loaded.values(), default=None))
        for place, loaded in same_rule.items()
    }


def _update_sums(
    store: Store,
    bundle: Bundle,
    versions: Mapping[RulePosition, Collection[str]],
    state: AuditState,
) -> Mapping[RulePosition, Sums]:
    """Return the cached sums updated with newer labels, or count from scratch."""
    cached = _CACHE.get(bundle)
    after, sums = None, dict.fromkeys(versions, (0, 0, 0.0, 0, False))
    if cached is not None and cached.url == store.url:
        if cached.state == state:
            return cached.sums
        if store.audits.only_newer(cached.state, state):
            after, sums = cached.state.latest, dict(cached.sums)
    counter = _Counter(bundle, versions, sums)
    hashes = {hash for of in versions.values() for hash in of}
    if hashes and state.labels:
        for batch in store.audits.labelled(hashes, after=after, until=state.latest):
            counter.add(batch)
    _CACHE[bundle] = _CachedSums(store.url, state, counter.sums)
    return counter.sums


def _marks(store: Store, hash: str) -> frozenset[str]:
    """Return the marks of all rules of a bundle that has been served."""
    key = store.url, hash
    if key not in _MARKS:
        record = store.bundles.get(hash)
        _MARKS[key] = frozenset(() if record is None else rule_marks(record.manifest).values())
    return _MARKS[key]


class _Counter:
    """Count labelled rows per rule; `versions` are hashes of those whose rows count."""

    def __init__(
        self,
        bundle: Bundle,
        versions: Mapping[RulePosition, Collection[str]],
        sums: dict[RulePosition, Sums],
    ) -> None:
        self._bundle, self._versions, self.sums = bundle, versions, sums
        self._limits = promise_limits(bundle)
        self._codes: dict[str | None, int] = {str(n): k for k, n in enumerate(bundle.classes)}

    def add(self, batch: Sequence[LabelledRow]) -> None:
        """Judge and count a batch; for a row labelled before, only its label changes."""
        size = len(self._codes)
        for row in (row for row in batch if len(row.logits) != size and row.before is None):
            self._count_without_logits(row)
        complete = [row for row in batch if len(row.logits) == size]
        if not complete:
            return
        verdicts, probs = _judge_rows(self._bundle, [row.logits for row in complete])
        codes, before = self._encode_labels(complete)
        new = before == _NONE
        for place, hashes in self._versions.items():
            acts, of = verdicts[place]
            acted = acts & np.array([row.bundle in hashes for row in complete])
            added = np.flatnonzero(acted & new)
            rows, right, prob, without_logits, broken = self.sums[place]
            is_right = of[added] == codes[added]
            relabelled = acted & ~new
            broken = broken or self._shows_breach(place, rows, right, is_right)
            right += int(is_right.sum()) + int((relabelled & (of == codes)).sum())
            right -= int((relabelled & (of == before)).sum())
            prob += float(probs[added, of[added]].sum())
            self.sums[place] = rows + len(added), right, prob, without_logits, broken

    def _shows_breach(
        self, place: RulePosition, rows: int, right: int, is_right: NDArray[np.bool_]
    ) -> bool:
        """Whether the new labels, one by one, show that the promise is broken."""
        if place not in self._limits or not len(is_right):
            return False
        limit = self._limits[place]
        n, hits = (
            rows + np.arange(1.0, len(is_right) + 1),
            right + np.cumsum(is_right, dtype=np.float64),
        )
        evidence = share_log_evidence(hits, n, np.array(limit.least))
        shown = (evidence >= -math.log(1 - limit.confidence)) & (hits < limit.least * n)
        return bool(shown.any())

    def _count_without_logits(self, row: LabelledRow) -> None:
        for place, hashes in self._versions.items():
            if row.bundle in hashes:
                rows, right, prob, without_logits, broken = self.sums[place]
                self.sums[place] = rows, right, prob, without_logits + 1, broken

    def _encode_labels(self, rows: Sequence[LabelledRow]) -> tuple[IntArray, IntArray]:
        """Return the codes of the current labels and of those counted before."""
        known = {None: _NONE, **self._codes}
        codes = [known.get(row.label, _OTHER) for row in rows]
        return np.array(codes), np.array([known.get(row.before, _OTHER) for row in rows])


def _judge_rows(
    bundle: Bundle, logits: Sequence[Sequence[float]]
) -> tuple[dict[RulePosition, tuple[NDArray[np.bool_], IntArray]], FloatArray]:
    """Return which rows each rule would act on, as which class, and the probabilities.

    Out-of-scope rows are left to a person, so no rule acts on them.
    """
    scores = ModelScores.from_input(bundle.classes, logits=np.array(logits, dtype=np.float64))
    outside = flag_rows(bundle.ood, scores, with_model=bundle.scorer is not None)
    calibration = bundle.calibration
    log_probs = None if calibration is None else calibration.log_probs(scores.matrix)
    inside = np.ones(len(scores.array), dtype=bool) if outside is None else ~outside
    verdicts = {
        (i, j): (outcome.acts & inside, outcome.of)
        for i, each in enumerate(bundle.points)
        for j, outcome in enumerate(each.apply_rules(scores, log_probs, bundle.classes))
    }
    return verdicts, scores.probs if log_probs is None else np.exp(log_probs)
