"""Targets that are tried one after the other on the same rows, and what each may spend.

Whoever tries until one is reached looks at the same rows many times. So that all promises that come
of it still hold together, each further target gets less of the allowed error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from calibrant.errors import InputError
from calibrant.thresholds.hold_text import parse_hold
from calibrant.thresholds.objective import as_targets
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.rates import Rate, Target, parse_target

__all__ = [
    "MOST_TARGETS",
    "AskedTarget",
    "places_of",
    "read_target",
    "share_of",
    "target_key",
    "together_after",
]

MOST_TARGETS = 1000
"""Different targets that may be tried on the same rows: after them hardly any error is left."""


@dataclass(frozen=True)
class AskedTarget:
    """What somebody wants the threshold of a class to keep.

    Parameters
    ----------
    of : the class, as text; None where predictions of any class are accepted
    clears : whether rows below the threshold are cleared, instead of those above acted on
    targets : what it must keep, all of them together
    """

    of: str | None
    clears: bool
    targets: tuple[Target, ...]

    @property
    def text(self) -> str:
        """The targets, as they would be typed.

        Examples
        --------
        >>> read_target("recall >= 0.30 and precision >= 0.85", of="defect").text
        'recall>=0.3 and precision>=0.85'
        """
        return " and ".join(str(target) for target in self.targets)

    def to_dict(self) -> dict[str, Any]:
        """Return what is written down of it."""
        return {"class": self.of, "clears": self.clears, "targets": list(map(str, self.targets))}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; raise `InputError` where that is not what it is."""
        try:
            targets = tuple(parse_target(text)[1] for text in saved["targets"])
            of, clears = saved["class"], bool(saved["clears"])
        except (KeyError, TypeError, ValueError):
            raise InputError("this is no target that was tried here: type it again.") from None
        return cls(None if of is None else str(of), clears, targets)


def read_target(text: str, *, of: str | None, clears: bool = False) -> AskedTarget:
    """Read what was typed for a class; what makes no sense is refused in one sentence.

    Examples
    --------
    >>> read_target("defect: precision>=0.85", of="defect").targets
    (Target('precision>=0.85'),)
    >>> read_target("accuracy>=0.9", of="defect")
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: accuracy is about predictions of any class, ...
    """
    named, targets = parse_hold(text)
    if named is not None and named != of:
        shown = "predictions of any class" if of is None else f"class {of!r}"
        raise InputError(
            f"the target is about {named!r}, but the page shows {shown}: choose {named!r} above "
            "first, or leave the class out."
        )
    as_targets(targets)  # none may contradict another
    for target in targets:
        _check_kind(target, of, clears)
    return AskedTarget(of, clears, targets)


def _check_kind(target: Target, of: str | None, clears: bool) -> None:
    """Refuse a target that says nothing about this kind of threshold."""
    rate = target.rate
    assert isinstance(rate, Rate)  # a cost is not parsed
    if of is not None and rate.of == "top-label":
        raise InputError(
            "accuracy is about predictions of any class, and this is the threshold of one: hold "
            "precision, recall or another rate."
        )
    if of is None and rate.of == "class":
        raise InputError(
            f"{rate.name} is about one class, and here predictions of any class are accepted: hold "
            "accuracy or coverage, or choose a class."
        )
    if clears and as_share_claim(target).among == "act":
        raise InputError(
            f"{rate.name} is about rows that are acted on, and this threshold clears rows: hold "
            "npv, or recall so that few positive rows are cleared."
        )


def places_of(tried: Iterable[Mapping[str, Any]]) -> list[int]:
    """Number different targets in the order in which they were tried first; repeats keep theirs.

    Examples
    --------
    >>> asked = [read_target(text, of="defect").to_dict()
    ...          for text in ("precision>=0.9", "precision>=0.8", "precision >= 0.90")]
    >>> places_of(asked)
    [1, 2, 1]
    """
    known: dict[str, int] = {}
    return [known.setdefault(target_key(each), len(known) + 1) for each in tried]


def target_key(saved: Mapping[str, Any]) -> str:
    """Return what is the same for two targets that are alike; the order of rates does not count."""
    targets = saved.get("targets")
    listed = sorted(map(str, targets)) if isinstance(targets, list) else targets
    return json.dumps([saved.get("class"), saved.get("clears"), listed], default=str)


def share_of(place: int, promises: int) -> float:
    r"""Return the share of the allowed error that a target may spend.

    .. math:: \frac{1}{P} \cdot \frac{6}{\pi^2 k^2}

    for the k-th different target, where P promises are to hold together. The shares of all k sum to
    1/P, so that however many are tried, one promise's part of the error pays for all of them.

    Examples
    --------
    >>> round(share_of(1, 1), 4), round(share_of(2, 1), 4), round(share_of(1, 2), 4)
    (0.6079, 0.152, 0.304)
    >>> round(sum(share_of(k, 1) for k in range(1, 100_000)), 4)
    1.0
    """
    return 6.0 / (math.pi**2 * place**2 * promises)


def together_after(
    before: float | None, confidence: float, *, promises: int, added: bool
) -> float | None:
    """Return the confidence of all promises of a bundle together, after a change.

    A promise that takes the place of another has its part of the error: that is strict where it was
    settled beforehand which one goes. One that is added brings its own, 1/P of what is allowed. A
    promise that is given up changes nothing: what remains holds at least as surely.

    Examples
    --------
    >>> together_after(0.95, 0.95, promises=2, added=False)
    0.95
    >>> round(together_after(0.95, 0.95, promises=2, added=True), 4)
    0.925
    >>> together_after(None, 0.95, promises=1, added=True)
    0.95
    """
    if promises == 0:
        return None
    risk = 0.0 if before is None else 1.0 - before
    if added:
        risk += (1.0 - confidence) / promises
    return max(0.0, round(1.0 - risk, 12))
