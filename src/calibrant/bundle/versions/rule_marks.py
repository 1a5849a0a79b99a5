"""Marks that tell whether a rule of two bundles acts on the very same rows."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from calibrant.bundle.points import BundlePoint, Rule
from calibrant.errors import CalibrantError

__all__ = ["rule_marks"]

_PARTS = ("classes", "scorer", "calibrator", "ood")
_WEIGHTS = ("model.safetensors", "tokenizer.json")

Place = tuple[int, int]
"""Position of an operating point, and of a rule among its rules."""


def rule_marks(manifest: Mapping[str, Any]) -> dict[Place, str]:
    """Return a mark of every rule that acts without being asked for.

    Two rules with the same mark act on the same rows: model, calibrator, out-of-scope rule, class
    and threshold are the same. What is promised of them is no part of it, and neither is any other
    point. Where the scores come from elsewhere, that model is not known, and taken as the same. A
    manifest that this version cannot read has no marks.

    Examples
    --------
    >>> rule_marks({"classes": ["no", "yes"], "operating_points": []})
    {}
    """
    try:
        points = [BundlePoint.from_dict(each) for each in manifest.get("operating_points", ())]
    except (CalibrantError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}
    files = manifest.get("files", {})
    parts = [manifest.get(name) for name in _PARTS] + [files.get(name) for name in _WEIGHTS]
    found, taken = {}, set[str | None]()
    for i, each in enumerate(points):
        if not taken & each.acts_on:
            acting = {j: rule for j, rule in enumerate(each.rules) if not rule.clears}
            for j, rule in acting.items():
                found[i, j] = _hash([parts, each.decides_on, _facts(rule)])
        taken |= each.acts_on
    return found


def _facts(rule: Rule) -> list[Any]:
    point = rule.point
    of = None if point.of is None else str(point.of)
    classes = [str(name) for name in point.classes]
    return [of, point.on, point.threshold, repr(point.logit), classes]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(_plain(value), sort_keys=True).encode()).hexdigest()


def _plain(value: Any) -> Any:
    """Return numbers as floats: a database may give a whole number back for one."""
    if isinstance(value, Mapping):
        return {key: _plain(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
