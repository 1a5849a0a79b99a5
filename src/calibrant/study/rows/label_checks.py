"""Checks of the labels before the rows are divided."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.study.settings.config import StudyConfig

if TYPE_CHECKING:
    from calibrant.study.rows.source import StudySource


_COLUMN = "name another column with --label"
_OTHER = {"text": _COLUMN, "table": _COLUMN, "image": "give each class one name or number"}
"""Remedy for labels that are not classes."""

MIN_CALIBRATE_ROWS = 20
"""Calibrate rows needed to choose a calibrator automatically."""


def check_labels(source: StudySource, outside: NDArray[np.bool_], config: StudyConfig) -> None:
    """Raise `InputError` for labels that are numbers, row ids, or too rare for every split."""
    if config.cut:
        return
    labels = [v for v, off in zip(source.labels.to_pylist(), outside, strict=True) if not off]
    counts = Counter(labels)
    where = f"{source.file}: {source.label}"
    remedy = f"{_OTHER[config.kind]}."
    odd = next((v for v in counts if isinstance(v, float) and not v.is_integer()), None)
    if odd is not None:
        cut = "" if config.images else "add --cut to cut it into low and high at its median, or "
        raise InputError(
            f"{where} holds numbers that are not integers, such as {odd!r}: {cut}{remedy}"
        )
    if len(counts) > max(2, len(labels) // 2):
        raise InputError(
            f"{where} has {len(counts):,} different values in {len(labels):,} {source.unit}s, so "
            f"it identifies {source.unit}s rather than classes: {remedy}"
        )
    _check_rare(source, counts, config)


def _check_rare(source: StudySource, counts: Counter[Any], config: StudyConfig) -> None:
    logs = source.name == "logs"
    parts = 2 if not logs else 4 if config.golden is None else 3
    few = [name for name, n in counts.items() if n < parts]
    if not counts and logs:
        raise InputError(
            f"{source.file}: every {source.unit} has the out-of-scope label "
            f"{config.out_of_scope!r}: give {source.unit}s of at least two classes."
        )
    if len(counts) < 2 and logs:
        raise InputError(
            f"{source.file}: {source.label} has only one class, {next(iter(counts))!r}: "
            f"give {source.unit}s of at least two classes."
        )
    if few and logs:
        n = counts[few[0]]
        also = f" ({len(few) - 1:,} other classes are as rare)" if len(few) > 1 else ""
        raise InputError(
            f"{source.file}: the class {few[0]!r} has {n} {source.unit}{'' if n == 1 else 's'}, "
            f"but each of the {parts} splits needs one{also}: merge it with another class, drop "
            f"its {source.unit}s, or collect more of them."
        )


def check_sizes(calibrate: int, config: StudyConfig, repeats: int = 0) -> None:
    """Raise `InputError` before training if there are too few rows to choose a calibrator on."""
    if config.calibrator == "auto" and calibrate < MIN_CALIBRATE_ROWS:
        remedy = (
            "label more golden rows"
            if config.golden is not None
            else "hold more rows out, like --shares 4:1:5, or give more of them"
        )
        if repeats:
            remedy = f"{repeats:,} with the {config.kind} of another were left out; give --golden"
        raise InputError(
            f"only {calibrate} rows are left to calibrate on, but choosing a calibrator needs "
            f"{MIN_CALIBRATE_ROWS}: {remedy}, or choose a simple one with --calibrator temperature."
        )
