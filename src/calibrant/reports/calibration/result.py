"""Result of a calibration, evaluated on rows that the calibrator was not fitted on."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from calibrant.calibrators.choice.comparison import Choice
from calibrant.formatting import format_signed, number, signed_interval
from calibrant.metrics.catalogue import better_of
from calibrant.results import Comparison, Difference, Evaluation

FIGURES = ("nll", "brier", "ece_debiased", "ece_em", "ece_ew", "accuracy")
"""Metrics in the tables, in this order."""

State = Literal["better", "worse", "unclear", "same", "unknown"]

_ROUNDING = 1e-9
_TITLES = {"nll": "log loss", "brier": "Brier score"}


@dataclass(frozen=True)
class Judgement:
    """The probabilities before and after calibration, on the same rows."""

    before: Evaluation
    after: Evaluation
    difference: Comparison  # after minus before, row by row
    how: str  # why the evaluation is unbiased, as a sentence
    folds: int | None = None  # number of cross-fitting folds, or None if other rows were used

    def values(self, name: str) -> tuple[float | None, float | None]:
        """Return a metric before and after, from their difference if there is one."""
        difference = self.difference.differences.get(name)
        if difference is not None and difference.value is not None:
            return difference.a, difference.b
        return self.before.figures[name].value, self.after.figures[name].value

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: plain values, and beside them all metrics."""
        return {
            "before": _side(self.before),
            "after": _side(self.after),
            "differences": self.difference.to_dict()["differences"],
            "judged": {"n": self.before.n, "folds": self.folds, "how": self.how},
        }


@dataclass(frozen=True)
class CalibrationResult:
    """A fitted calibrator and its evaluation."""

    saved: Mapping[str, Any]  # the serialised calibrator
    requested: str  # the requested method; `auto` if it was chosen automatically
    n: int  # number of rows that it was fitted on
    score: str = "nll"  # 'nll' or 'brier', whichever gives the verdict
    judgement: Judgement | None = None  # before and after, or None if that could not be evaluated
    why_not: str | None = None  # why it could not be evaluated
    choice: Choice | None = None  # the compared methods, if the method was chosen
    notes: tuple[str, ...] = field(default=())  # sentences for the report

    @property
    def method(self) -> str:
        """Name of the method that was fitted."""
        return str(self.saved["method"])

    @property
    def learned(self) -> str:
        """The fitted parameters, if there are only a few: `temperature = 1.64`."""
        params = self.saved["params"]
        few = len(params) <= 3 and all(isinstance(v, int | float) for v in params.values())
        return ", ".join(f"{k} = {v:.4g}" for k, v in params.items()) if few else ""

    @property
    def deciding(self) -> Difference | None:
        """The difference that gives the verdict; Brier if the log loss is infinite."""
        if self.judgement is None:
            return None
        differences = self.judgement.difference.differences
        difference = differences[self.score]
        return difference if difference.value is not None else differences["brier"]

    @property
    def state(self) -> State:
        """Whether the probabilities are better, worse, not clearly either, the same, or unknown."""
        if self.method == "identity":
            return "same"
        if self.deciding is None:
            return "unknown"
        change = change_of(self.deciding)
        return "better" if change == "better" else "worse" if change == "worse" else "unclear"

    @property
    def verdict(self) -> str:
        """One plain sentence."""
        if self.state == "same":
            if self.requested == "auto":
                return (
                    "No method was clearly better than the model's own probabilities, so the file "
                    "holds the identity, which changes nothing."
                )
            return "The file holds the identity, which changes nothing."
        difference = self.deciding
        if difference is None or difference.interval is None:
            return f"{self.method} was fitted, but not judged: {self.why_not}"
        effect = {
            "better": "makes the probabilities better",
            "worse": "makes the probabilities worse",
            "unclear": "makes no clear difference",
        }[self.state]
        level = f"{100 * difference.interval.confidence:g} %"
        return (
            f"Calibration with {self.method} {effect}: {_TITLES[difference.name]} "
            f"{number(difference.a)} before, {number(difference.b)} after (difference "
            f"{format_signed(difference.value)}, {level} interval "
            f"{signed_interval(difference.interval)})."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        judged = {"before": None, "after": None, "differences": None, "judged": None}
        out: dict[str, Any] = {
            "schema": 1,
            "chosen": self.method,
            "asked": self.requested,
            "score": self.score,
            "n": self.n,
            "classes": list(self.saved["classes"]),
            "verdict": self.verdict,
            "state": self.state,
            "candidates": self._candidates(),
            **(judged if self.judgement is None else self.judgement.to_dict()),
            "calibrator": dict(self.saved),
        }
        if self.choice is not None:
            out["why_chosen"] = self.choice.why
        if self.why_not is not None:
            out["why_not_judged"] = self.why_not
        if self.notes:
            out["notes"] = list(self.notes)
        return out

    def _candidates(self) -> list[dict[str, Any]]:
        if self.choice is not None:
            rows: list[dict[str, Any]] = self.choice.to_dict()["candidates"]
            return rows
        if self.judgement is None:
            return [{"method": self.method}]
        sides = {"identity": self.judgement.before, self.method: self.judgement.after}
        return [{"method": name, **_values(side)} for name, side in sides.items()]


def change_of(difference: Difference | None) -> str:
    """Describe the direction of a change, if its interval excludes 0."""
    if difference is None or difference.value is None or difference.interval is None:
        return ""
    low, high = difference.interval.low, difference.interval.high
    if max(abs(low), abs(high)) < _ROUNDING:
        return "the same"
    if low <= 0 <= high:
        return "no clear difference"
    return "better" if (low > 0) == (better_of(difference.name) == "higher") else "worse"


def _side(evaluation: Evaluation) -> dict[str, Any]:
    whole = evaluation.to_dict()
    parts = {name: whole[name] for name in ("n", "target", "verdict", "verdict_detail", "metrics")}
    return {**_values(evaluation), **parts}


def _values(evaluation: Evaluation) -> dict[str, Any]:
    values = {name: figure.to_dict()["value"] for name, figure in evaluation.figures.items()}
    return {name: values[name] for name in FIGURES if name in values}
