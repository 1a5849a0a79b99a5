"""What acting did: expected of every acted decision, audited where labels came in.

This is about what was done in the name of a class. A promise is about every row that its point
would act on, see `overview_promises`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from calibrant.bundle import Bundle
from calibrant.results import Interval
from calibrant.stats import robbins
from calibrant.store import ActedCount, AuditedCount

__all__ = ["CALIBRATED", "CONFIDENCE", "Acted", "acted_of", "added", "believed"]

CONFIDENCE = 0.95
"""Of all verdicts on promises together; and of all intervals of what was acted on together."""

CALIBRATED = "calibration still holds"
"""What expected figures rest on, where the bundle has a calibrator."""


@dataclass(frozen=True)
class Acted:
    """Decisions to act on one class, or on all of them together.

    Parameters
    ----------
    name : the class they were acted on as; None for all together
    n, share : how many, and as a share of all predictions
    expected : mean calibrated probability of being right; None where there are no decisions
    audited, right : how many have a label, and of how many it is the class acted on
    interval : of the share that is right, at any time; None without labels
    """

    name: str | None
    n: int
    share: float
    expected: float | None
    audited: int
    right: int
    interval: Interval | None

    @property
    def precision(self) -> float | None:
        """Share of the labelled decisions that is right."""
        return self.right / self.audited if self.audited else None


def acted_of(
    acted: Sequence[ActedCount], audited: Sequence[AuditedCount], total: int
) -> tuple[Acted, ...]:
    """Put what is expected of each class beside what labels say; the most frequent class first.

    Where there are several classes, their intervals and that of `added` hold together with 95 %
    confidence.

    Examples
    --------
    >>> (found,) = acted_of([ActedCount("bad", 4, 3.6)], [AuditedCount("bad", 10, 9)], total=8)
    >>> found.expected, found.share
    (0.9, 0.5)
    >>> found.precision, round(found.interval.low, 3), round(found.interval.high, 3)
    (0.9, 0.494, 0.999)
    """
    told = {each.acted_as: each for each in audited if each.n > 0}
    made = {each.acted_as: each for each in acted if each.n > 0}
    names = sorted({*made, *told}, key=lambda name: (-made[name].n if name in made else 0, name))
    found = []
    for name in names:
        n, prob = (made[name].n, made[name].prob) if name in made else (0, 0.0)
        count, right = (told[name].n, told[name].right) if name in told else (0, 0)
        found.append(_acted(name, n, prob, total, count, right, _level(len(names))))
    return tuple(found)


def added(acted: Sequence[Acted], total: int) -> Acted:
    """Return all acted decisions together, whatever their class.

    Examples
    --------
    >>> both = acted_of([ActedCount("a", 3, 2.7), ActedCount("b", 1, 0.5)], [], total=8)
    >>> added(both, 8).expected, added(both, 8).n
    (0.8, 4)
    """
    prob = sum(each.expected * each.n for each in acted if each.expected is not None)
    audited, right = (sum(getattr(each, name) for each in acted) for name in ("audited", "right"))
    return _acted(
        None, sum(each.n for each in acted), prob, total, audited, right, _level(len(acted))
    )


def _acted(
    name: str | None, n: int, prob: float, total: int, audited: int, right: int, level: float
) -> Acted:
    span = robbins(right, audited, confidence=1 - level) if audited else None
    share, expected = n / total if total else 0.0, min(1.0, prob / n) if n else None
    return Acted(name, n, share, expected, audited, right, span)


def _level(classes: int) -> float:
    """Return the error of each interval: of every class and, beside several, of all together."""
    return (1 - CONFIDENCE) / (classes + 1 if classes > 1 else 1)


def believed(bundle: Bundle) -> str:
    """Say what must be true for the expected figures of a bundle to be."""
    made = bundle.calibration
    own = made is None or made.method == "identity"
    return "the model's own probabilities hold" if own else CALIBRATED
