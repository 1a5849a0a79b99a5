"""Expected and audited precision of decisions to act.

These figures are about decisions made for a class. A promise is about every row that its point
would act on, see `overview_promises`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.bundle import Bundle
from calibrant.results import Interval
from calibrant.stats import robbins
from calibrant.store import ActedCount, AuditedCount

CONFIDENCE = 0.95
"""Joint confidence of all verdicts on promises, and of all intervals of acted decisions."""

CALIBRATED = "calibration still holds"
"""Assumption behind expected figures if the bundle has a calibrator."""


@dataclass(frozen=True)
class ActedSummary:
    """Decisions to act for one class, or for all classes together."""

    name: str | None  # class acted on; None for all classes together
    n: int
    share: float  # of all predictions
    expected: float | None  # mean calibrated probability of being right; None without decisions
    audited: int  # number of labelled decisions
    right: int  # of the labelled ones
    # anytime-valid interval of the share that is right; None without labels
    interval: Interval | None

    @property
    def precision(self) -> float | None:
        """Share of the labelled decisions that are right."""
        return self.right / self.audited if self.audited else None


def summarise_acted(
    acted: Sequence[ActedCount], audited: Sequence[AuditedCount], total: int
) -> tuple[ActedSummary, ...]:
    """Combine expected and audited precision per class, most frequent class first.

    With several classes, their intervals and that of `combine_acted` hold together with 95 %
    confidence.
    """
    labelled = {each.acted_as: each for each in audited if each.n > 0}
    decisions = {each.acted_as: each for each in acted if each.n > 0}
    names = sorted(
        {*decisions, *labelled},
        key=lambda name: (-decisions[name].n if name in decisions else 0, name),
    )
    summaries = []
    for name in names:
        n, prob = (decisions[name].n, decisions[name].prob) if name in decisions else (0, 0.0)
        count, right = (labelled[name].n, labelled[name].right) if name in labelled else (0, 0)
        summaries.append(_summarise(name, n, prob, total, count, right, _error_level(len(names))))
    return tuple(summaries)


def combine_acted(acted: Sequence[ActedSummary], total: int) -> ActedSummary:
    """Return the summary of all acted decisions, whatever their class."""
    prob = sum(each.expected * each.n for each in acted if each.expected is not None)
    audited, right = (sum(getattr(each, name) for each in acted) for name in ("audited", "right"))
    return _summarise(
        None, sum(each.n for each in acted), prob, total, audited, right, _error_level(len(acted))
    )


def _summarise(
    name: str | None, n: int, prob: float, total: int, audited: int, right: int, level: float
) -> ActedSummary:
    interval = robbins(right, audited, confidence=1 - level) if audited else None
    share, expected = n / total if total else 0.0, min(1.0, prob / n) if n else None
    return ActedSummary(name, n, share, expected, audited, right, interval)


def _error_level(classes: int) -> float:
    """Return the error of each interval: one per class plus, for several, the overall one."""
    return (1 - CONFIDENCE) / (classes + 1 if classes > 1 else 1)


def describe_assumption(bundle: Bundle) -> str:
    """Describe the assumption behind the expected figures of a bundle."""
    calibration = bundle.calibration
    uncalibrated = calibration is None or calibration.method == "identity"
    return "the model's own probabilities hold" if uncalibrated else CALIBRATED
