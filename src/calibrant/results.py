"""Frozen result classes; every metric carries its definition."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Interval:
    """Confidence interval for the population value."""

    low: float
    high: float
    confidence: float = 0.95
    method: str = ""


@dataclass(frozen=True)
class Floor:
    """The value that a perfectly calibrated model with the same scores gets at this n."""

    mean: float
    q95: float


@dataclass(frozen=True)
class Figure:
    """One metric: its value, interval, floor and definition.

    `value` is None if the metric is not available; `why` then gives the reason.
    """

    name: str
    value: float | None
    definition: str
    interval: Interval | None = None
    floor: Floor | None = None
    error_bound: float | None = None
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape."""
        out: dict[str, Any] = {
            "value": _json_number(self.value),
            "low": None if self.interval is None else _json_number(self.interval.low),
            "high": None if self.interval is None else _json_number(self.interval.high),
            "floor": None
            if self.floor is None
            else {"mean": self.floor.mean, "q95": self.floor.q95},
            "definition": self.definition,
        }
        if self.interval is not None:
            out["interval_method"] = self.interval.method
        if self.error_bound is not None:
            out["error_bound"] = self.error_bound
        if self.why is not None:
            out["why"] = self.why
        return out

    def __str__(self) -> str:
        if self.value is None:
            return f"{self.name}: not available ({self.why})"
        text = f"{self.name}: {self.value:.4f}"
        if self.interval is not None:
            text += f" [{self.interval.low:.4f}, {self.interval.high:.4f}]"
        if self.floor is not None:
            text += f", a calibrated model gets {self.floor.mean:.4f} (up to {self.floor.q95:.4f})"
        return text


@dataclass(frozen=True)
class Bins:
    """Reliability table with one row per non-empty bin."""

    target: str
    scheme: str
    low: NDArray[np.float64]
    high: NDArray[np.float64]
    count: NDArray[np.int64]
    weight: NDArray[np.float64]
    score: NDArray[np.float64]
    rate: NDArray[np.float64]
    band_low: NDArray[np.float64] | None = None
    band_high: NDArray[np.float64] | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the table as lists."""
        out: dict[str, Any] = {"target": self.target, "scheme": self.scheme}
        for name in ("low", "high", "count", "weight", "score", "rate", "band_low", "band_high"):
            column = getattr(self, name)
            if column is not None:
                out[name] = column.tolist()
        return out


@dataclass(frozen=True)
class CalibrationTest:
    """Result of a test of the hypothesis that the scores are calibrated."""

    name: str
    statistic: float | None
    p_value: float | None
    definition: str
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        out = {
            "statistic": _json_number(self.statistic),
            "p_value": _json_number(self.p_value),
            "definition": self.definition,
        }
        return out if self.why is None else {**out, "why": self.why}


@dataclass(frozen=True)
class Verdict:
    """Headline in words, from the one pre-declared test."""

    text: str
    miscalibrated: bool | None
    p_value: float | None
    mean_score: float
    event_rate: float

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as JSON values."""
        return {
            "text": self.text,
            "miscalibrated": self.miscalibrated,
            "p_value": self.p_value,
            "mean_score": self.mean_score,
            "event_rate": self.event_rate,
        }


@dataclass(frozen=True)
class Evaluation:
    """Result of `calibrant.evaluate`: metrics, tests, bins and tables, to print, store or plot."""

    n: int
    classes: tuple[Any, ...]
    target: str
    figures: Mapping[str, Figure]
    verdict: Verdict
    tests: Mapping[str, CalibrationTest]
    bins: Mapping[str, Bins]
    per_class: tuple[Mapping[str, Any], ...]
    confusion: NDArray[np.float64]
    decomposition: Mapping[str, Mapping[str, float | None]]
    confidence: float = 0.95
    weighted: bool = False
    groups: Mapping[str, Evaluation] = field(default_factory=dict)
    curves: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Figure:
        return self.figures[name]

    def with_groups(self, groups: Mapping[str, Evaluation]) -> Evaluation:
        """Return a copy with an evaluation for each group."""
        return replace(self, groups=groups)

    def with_classes(self, classes: tuple[Any, ...], notes: tuple[str, ...] = ()) -> Evaluation:
        """Return a copy with these class names and additional notes.

        Metrics are computed on class indices, which is faster for millions of rows.
        """
        rename = dict(zip(self.classes, classes, strict=True))
        curves = dict(self.curves)
        if "classes" in curves:
            curves["classes"] = _rename_classes(curves["classes"], rename)
        return replace(
            self,
            classes=tuple(classes),
            per_class=tuple(_rename_classes(self.per_class, rename)),
            curves=curves,
            groups={name: part.with_classes(classes) for name, part in self.groups.items()},
            notes=(*self.notes, *notes),
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape (schema 1): keys may be added, never renamed."""
        out: dict[str, Any] = {
            "schema": 1,
            "n": self.n,
            "classes": [_json_name(c) for c in self.classes],
            "target": self.target,
            "confidence": self.confidence,
            "weighted": self.weighted,
            "metrics": {name: figure.to_dict() for name, figure in self.figures.items()},
            "verdict": self.verdict.text,
            "verdict_detail": self.verdict.to_dict(),
            "tests": {name: test.to_dict() for name, test in self.tests.items()},
            "decomposition": {k: dict(v) for k, v in self.decomposition.items()},
            "bins": {name: bins.to_dict() for name, bins in self.bins.items()},
            "per_class": [dict(row) for row in self.per_class],
            "confusion": self.confusion.tolist(),
        }
        if self.groups:
            out["groups"] = {name: _group_dict(g) for name, g in self.groups.items()}
        if self.notes:
            out["notes"] = list(self.notes)
        return out

    def __str__(self) -> str:
        lines = [self.verdict.text, ""]
        lines += [str(figure) for figure in self.figures.values()]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        rows = "".join(
            f"<tr><td>{html.escape(f.name)}</td><td>{_format_value(f.value)}</td>"
            f"<td>{_format_interval(f.interval)}</td></tr>"
            for f in self.figures.values()
        )
        return (
            f"<p><b>{html.escape(self.verdict.text)}</b></p><table><tr><th>metric</th>"
            f"<th>value</th><th>{self.confidence:.0%} interval</th></tr>{rows}</table>"
        )


@dataclass(frozen=True)
class Difference:
    """Difference in one metric, model B minus model A, on the same rows."""

    name: str
    a: float | None
    b: float | None
    value: float | None
    definition: str
    interval: Interval | None = None
    p_value: float | None = None
    why: str | None = None

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape."""
        out = {
            "a": _json_number(self.a),
            "b": _json_number(self.b),
            "difference": _json_number(self.value),
            "low": None if self.interval is None else _json_number(self.interval.low),
            "high": None if self.interval is None else _json_number(self.interval.high),
            "p_value": _json_number(self.p_value),
            "definition": self.definition,
        }
        return out if self.why is None else {**out, "why": self.why}


@dataclass(frozen=True)
class Comparison:
    """Paired comparison of two models on the same rows."""

    n: int
    names: tuple[str, str]
    target: str
    differences: Mapping[str, Difference]
    verdict: str
    confidence: float = 0.95

    def __getitem__(self, name: str) -> Difference:
        return self.differences[name]

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape."""
        return {
            "schema": 1,
            "n": self.n,
            "models": list(self.names),
            "target": self.target,
            "confidence": self.confidence,
            "differences": {k: d.to_dict() for k, d in self.differences.items()},
            "verdict": self.verdict,
        }

    def __str__(self) -> str:
        lines = [self.verdict]
        for d in self.differences.values():
            if d.value is None:
                lines.append(f"{d.name}: not available ({d.why})")
                continue
            span = d.interval
            ends = "" if span is None else f" [{span.low:+.4f}, {span.high:+.4f}]"
            lines.append(f"{d.name}: {d.value:+.4f}{ends}")
        return "\n".join(lines)


def _rename_classes(
    table: Iterable[Mapping[str, Any]], names: Mapping[Any, Any]
) -> list[dict[str, Any]]:
    return [{**row, "class": names[row["class"]]} for row in table]


def _group_dict(evaluation: Evaluation) -> dict[str, Any]:
    """Return the metrics and verdict of a group, without bins and tables."""
    return {
        "n": evaluation.n,
        "verdict": evaluation.verdict.text,
        "verdict_detail": evaluation.verdict.to_dict(),
        "metrics": {name: figure.to_dict() for name, figure in evaluation.figures.items()},
    }


def _json_number(value: float | None) -> float | None:
    """Convert NaN and infinity to None, since JSON has neither (`why` gives the reason)."""
    return None if value is None or not math.isfinite(value) else float(value)


def _json_name(name: Any) -> Any:
    return name if isinstance(name, str | int | float | bool) else str(name)


def _format_value(value: float | None) -> str:
    return "–" if value is None else f"{value:.4f}"


def _format_interval(interval: Interval | None) -> str:
    return "" if interval is None else f"{interval.low:.4f} – {interval.high:.4f}"
