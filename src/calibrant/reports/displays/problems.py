"""Binary problems of the displays: one class against the rest, or the predicted class."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.formatting import printable
from calibrant.inputs import ScoredRows, as_scored_rows, resolve_target
from calibrant.metrics.curves import ThresholdCurve, threshold_curve
from calibrant.metrics.problem import class_problem, tally_target
from calibrant.metrics.tally import Tally, tally_rows
from calibrant.results import Evaluation

PREDICTED = "the predicted class"


def class_title(name: Any) -> str:
    """Return the label of a class in a legend or title."""
    return f"class {printable(name)}"


def target_tally(scored: ScoredRows, target: str | None, of: Any) -> tuple[str, Tally]:
    """Return the title and tally of class `of`, or of the target if `of` is None."""
    if of is not None:
        return next(iter(class_tallies(scored, of).items()))
    what = resolve_target(target, len(scored.classes))
    title = class_title(scored.classes[1]) if what == "positive" else PREDICTED
    return title, tally_target(scored, what)


def class_tallies(scored: ScoredRows, of: Any = None, most: int = 1) -> dict[str, Tally]:
    """Return the tallies of class `of`; by default of the positive or the `most` largest ones."""
    rows = np.bincount(scored.labels, minlength=len(scored.classes))
    chosen = _choose_classes(scored.classes, rows.tolist(), of, most)
    return {
        class_title(scored.classes[k]): tally_rows(*class_problem(scored, k), scored.weights)
        for k in chosen
    }


def prediction_curves(
    labels: Any,
    probs: Any,
    *,
    classes: Sequence[Any] | None = None,
    target: str | None = None,
    weights: Any = None,
    of: Any = None,
    most: int = 1,
) -> dict[str, ThresholdCurve]:
    """Check the input and compute a curve for each class to draw, or for the predicted class."""
    scored = as_scored_rows(labels, probs, weights=weights, classes=classes)
    if of is None and resolve_target(target or "classwise", len(scored.classes)) == "top-label":
        tallies = {PREDICTED: tally_target(scored, "top-label")}
    else:
        tallies = class_tallies(scored, of, most)
    return {title: threshold_curve(tally) for title, tally in tallies.items()}


def evaluation_curves(
    evaluation: Evaluation, of: Any = None, most: int = 1
) -> dict[str, ThresholdCurve]:
    """Return the stored curves of an evaluation, for the same classes as `class_tallies`."""
    entries: Sequence[Mapping[str, Any]] = evaluation.curves.get("classes") or ()
    if not entries:
        raise InputError(
            "the evaluation has no threshold curves: use from_predictions with the rows instead."
        )
    names = tuple(entry["class"] for entry in entries)
    rows = {row["class"]: row["rows"] for row in evaluation.per_class}
    chosen = _choose_classes(names, [rows.get(name, 0) for name in names], of, most)
    return {class_title(names[k]): as_curve(entries[k]["curve"]) for k in chosen}


def as_curve(columns: Mapping[str, Sequence[float]]) -> ThresholdCurve:
    """Convert stored lists to a curve."""
    names = ("threshold", "precision", "recall", "flagged")
    return ThresholdCurve(*(np.asarray(columns[name], dtype=np.float64) for name in names))


def with_gaps(
    smooth: Mapping[str, Sequence[float]] | None,
) -> tuple[list[float], list[float]]:
    """Return the smooth curve with NaN between stretches, so that no line crosses a gap."""
    if not smooth or not len(smooth["score"]):
        return [], []
    score, rate = (np.asarray(smooth[k], dtype=np.float64) for k in ("score", "rate"))
    steps = np.diff(score)
    holes = np.flatnonzero(steps > 1.5 * steps.min(initial=np.inf)) + 1
    return np.insert(score, holes, np.nan).tolist(), np.insert(rate, holes, np.nan).tolist()


def _choose_classes(names: tuple[Any, ...], rows: list[int], of: Any, most: int) -> list[int]:
    """Return the positions of the classes to draw."""
    if of is not None:
        if of not in names:
            shown = ", ".join(repr(name) for name in names[:10])
            raise InputError(f"of must be one of the classes ({shown}), got {of!r}.")
        return [names.index(of)]
    if len(names) == 2:
        return [1]
    largest = sorted(range(len(names)), key=lambda k: -rows[k])[:most]
    return sorted(largest)
