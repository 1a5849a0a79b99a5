"""Marks that identify rules acting on the same rows in different bundles."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from typing import Any

from calibrant.bundle.points import BundlePoint, Rule
from calibrant.errors import CalibrantError

_PARTS = ("classes", "scorer", "calibrator", "ood")
_WEIGHTS = ("model.safetensors", "tokenizer.json")

RulePosition = tuple[int, int]  # Position of an operating point, and of one of its rules


def rule_marks(manifest: Mapping[str, Any]) -> dict[RulePosition, str]:
    """Return a mark for every active rule that acts on rows.

    Two rules with the same mark act on the same rows: model, calibrator, out-of-scope rule, class
    and threshold are equal. Promises and other points are ignored. In a bundle without a model, the
    model is unknown and assumed to be the same. A manifest that this version cannot read has no
    marks.
    """
    try:
        points = [BundlePoint.from_dict(each) for each in manifest.get("operating_points", ())]
    except (CalibrantError, ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return {}
    files = manifest.get("files", {})
    parts = [manifest.get(name) for name in _PARTS] + [files.get(name) for name in _WEIGHTS]
    marks, acted_on = {}, set[str | None]()
    for i, each in enumerate(points):
        if not acted_on & each.acts_on:
            acting = {j: rule for j, rule in enumerate(each.rules) if not rule.clears}
            for j, rule in acting.items():
                marks[i, j] = _hash([parts, each.decides_on, _facts(rule)])
        acted_on |= each.acts_on
    return marks


def _facts(rule: Rule) -> list[Any]:
    point = rule.point
    of = None if point.of is None else str(point.of)
    classes = [str(name) for name in point.classes]
    return [of, point.on, point.threshold, repr(point.logit), classes]


def _hash(value: Any) -> str:
    return hashlib.sha256(json.dumps(_as_floats(value), sort_keys=True).encode()).hexdigest()


def _as_floats(value: Any) -> Any:
    """Convert numbers to floats, because a database may return integers for them."""
    if isinstance(value, Mapping):
        return {key: _as_floats(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [_as_floats(part) for part in value]
    if isinstance(value, int) and not isinstance(value, bool):
        return float(value)
    return value
