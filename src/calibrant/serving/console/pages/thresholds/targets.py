"""Targets tried on the same rows, and the share of the error each may spend.

Trying targets until one is reached reuses the same rows. Each further target gets a smaller share
of the allowed error, so that all resulting promises still hold together.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from calibrant.errors import InputError
from calibrant.thresholds.objective import as_targets
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.rates import Rate, Target, parse_hold, parse_target

MAX_TARGETS = 1000
"""Largest number of different targets per set of rows; hardly any error is left after that."""


@dataclass(frozen=True)
class ThresholdTarget:
    """Target for the threshold of a class."""

    of: str | None  # class name; None if predictions of any class are accepted
    clears: bool  # whether rows below the threshold are cleared, instead of acting on those above
    targets: tuple[Target, ...]  # targets to hold, all at once

    @property
    def text(self) -> str:
        """The targets as they would be typed."""
        return " and ".join(str(target) for target in self.targets)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values."""
        return {"class": self.of, "clears": self.clears, "targets": list(map(str, self.targets))}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Rebuild from `to_dict`; raise `InputError` for anything else."""
        try:
            targets = tuple(parse_target(text)[1] for text in saved["targets"])
            of, clears = saved["class"], bool(saved["clears"])
        except (KeyError, TypeError, ValueError):
            raise InputError("this is not a target recorded here: type it again.") from None
        return cls(None if of is None else str(of), clears, targets)


def read_target(text: str, *, of: str | None, clears: bool = False) -> ThresholdTarget:
    """Parse a typed target; raise `InputError` if it does not fit the threshold."""
    name, targets = parse_hold(text)
    if name is not None and name != of:
        shown = "predictions of any class" if of is None else f"class {of!r}"
        raise InputError(
            f"the target is for {name!r}, but the page shows {shown}: select {name!r} above "
            "first, or omit the class."
        )
    as_targets(targets)  # refuses contradictory targets
    for target in targets:
        _check_kind(target, of, clears)
    return ThresholdTarget(of, clears, targets)


def _check_kind(target: Target, of: str | None, clears: bool) -> None:
    """Refuse a target that does not apply to this kind of threshold."""
    rate = target.rate
    assert isinstance(rate, Rate)  # a cost is not parsed
    if of is not None and rate.of == "top-label":
        raise InputError(
            "accuracy is about predictions of any class, and this threshold is for one class: hold "
            "precision, recall or another rate."
        )
    if of is None and rate.of == "class":
        raise InputError(
            f"{rate.name} is about one class, but this threshold accepts predictions of any class: "
            "hold accuracy or coverage, or select a class."
        )
    if clears and as_share_claim(target).among == "act":
        raise InputError(
            f"{rate.name} is about rows that are acted on, but this threshold clears rows: hold "
            "npv, or recall so that few positive rows are cleared."
        )


def number_targets(tried: Iterable[Mapping[str, Any]]) -> list[int]:
    """Number different targets in the order first tried; repeats keep their number."""
    numbers: dict[str, int] = {}
    return [numbers.setdefault(target_key(target), len(numbers) + 1) for target in tried]


def target_key(saved: Mapping[str, Any]) -> str:
    """Return a key equal for equivalent targets; the order of rates does not matter."""
    targets = saved.get("targets")
    listed = sorted(map(str, targets)) if isinstance(targets, list) else targets
    return json.dumps([saved.get("class"), saved.get("clears"), listed], default=str)


def error_share(number: int, promises: int) -> float:
    r"""Return the share of the allowed error that a target may spend.

    .. math:: \frac{1}{P} \cdot \frac{6}{\pi^2 k^2}

    for the k-th different target, where P promises are to hold together. The shares over all k sum
    to 1/P, so that any number of tries costs no more than one promise's part of the error.
    """
    return 6.0 / (math.pi**2 * number**2 * promises)


def joint_confidence_after(
    before: float | None, confidence: float, *, promises: int, added: bool
) -> float | None:
    """Return the joint confidence of all promises of a bundle after a change.

    A promise that replaces another takes over its part of the error, which is exact if it was fixed
    in advance which one is replaced. An added promise brings its own part, 1/P of the allowed
    error. Dropping a promise changes nothing: the remaining ones hold at least as surely.
    """
    if promises == 0:
        return None
    risk = 0.0 if before is None else 1.0 - before
    if added:
        risk += (1.0 - confidence) / promises
    return max(0.0, round(1.0 - risk, 12))
