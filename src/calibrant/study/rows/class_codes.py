"""The classes of a study are those of its train rows; every row gets the code of its class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data import TargetCut
from calibrant.data.splits import Splits
from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.study.rows.rows import OUTSIDE
from calibrant.study.rows.source import Source
from calibrant.study.settings.config import StudyConfig

__all__ = ["absent_classes", "coded", "uncompared_classes", "whole_labels"]


def coded(
    logs: Source,
    golden: Source | None,
    outside: Mapping[str, NDArray[np.bool_]],
    splits: Splits,
    config: StudyConfig,
) -> tuple[tuple[Any, ...], dict[str, IntArray], dict[str, Any] | None]:
    """Return the classes of the train rows, every row's code, and what cut a continuous label."""
    values = {s.name: whole_labels(s.labels.to_pylist()) for s in (logs, golden) if s is not None}
    cut = None
    if config.cut:
        cut = _fitted_cut([values["logs"][i] for i in splits.train.ids], logs)
        values = {name: cut.transform(some).tolist() for name, some in values.items()}
    names = _names(values["logs"], splits.train.ids, outside["logs"], logs)
    place = {str(name): k for k, name in enumerate(names)}
    codes = {}
    for source in (logs, golden):
        if source is not None:
            found = [place.get(str(v), OUTSIDE - 1) for v in values[source.name]]
            codes[source.name] = _checked(
                np.array(found, dtype=np.int64), values[source.name], outside, source, names
            )
    return names, codes, None if cut is None else cut.to_dict()


def absent_classes(
    classes: Sequence[Any], codes: Mapping[str, IntArray], config: StudyConfig
) -> list[str]:
    """Say which classes the golden set has no row of."""
    if config.golden is None:
        return []
    lacking = [str(name) for k, name in enumerate(classes) if not (codes["golden"] == k).any()]
    if not lacking:
        return []
    return [f"The golden set has no row of {_shown(lacking)}: nothing on this page is about that."]


def uncompared_classes(classes: Sequence[Any], codes: IntArray, splits: Splits) -> list[str]:
    """Say which classes no choice row is of, where there are choice rows."""
    there = set(codes[splits.choice.ids].tolist())
    lacking = [str(name) for k, name in enumerate(classes) if k not in there]
    if not there or not lacking:
        return []
    return [f"No choice row is of {_shown(lacking)}: the candidates were not compared on that."]


def _shown(names: Sequence[str]) -> str:
    return ", ".join(f"'{name}'" for name in names[:5]) + (" ..." if len(names) > 5 else "")


def whole_labels(labels: Sequence[Any]) -> list[Any]:
    """Return labels with whole numbers as such: a missing label made floats of all of them.

    Examples
    --------
    >>> whole_labels([3.0, 2.5, "a"])
    [3, 2.5, 'a']
    """
    return [int(v) if isinstance(v, float) and v.is_integer() else v for v in labels]


def _fitted_cut(labels: Sequence[Any], logs: Source) -> TargetCut:
    if not all(isinstance(v, int | float) and not isinstance(v, bool) for v in labels):
        raise InputError(
            f"{logs.file}: {logs.label} is to be cut at its median, but it does not hold numbers: "
            "leave --cut out."
        )
    return TargetCut().fit(np.asarray(labels, dtype=np.float64))


def _names(
    labels: Sequence[Any], train: IntArray, outside: NDArray[np.bool_], logs: Source
) -> tuple[Any, ...]:
    """Return the classes of the train rows, sorted."""
    whole = {labels[i] for i in train if not outside[i]}
    if len(whole) < 2:
        only = next(iter(whole), None)
        raise InputError(
            f"{logs.file}: {logs.label} has one class only, {only!r}: {logs.unit}s of at least two "
            "classes are needed."
        )
    return tuple(sorted(whole))


def _checked(
    codes: IntArray,
    values: Sequence[Any],
    outside: Mapping[str, NDArray[np.bool_]],
    source: Source,
    names: Sequence[Any],
) -> IntArray:
    """Refuse labels that the train rows lack."""
    codes[outside[source.name]] = OUTSIDE
    unknown = np.flatnonzero(codes < OUTSIDE)
    if len(unknown):
        first = values[unknown[0]]
        units = "data rows" if source.unit == "row" else "images"
        rows = ", ".join(source.shown(unknown[:5]))
        listed = ", ".join(repr(name) for name in names[:8])
        what = (
            "the logs do not train on" if source.name == "golden" else f"no train {source.unit} has"
        )
        raise InputError(
            f"{source.file} has the label {first!r}, which {what} ({units} {rows}; the classes "
            f"are {listed}): correct it, add {source.unit}s of it to the logs, or name it with "
            "--out-of-scope."
        )
    return codes
