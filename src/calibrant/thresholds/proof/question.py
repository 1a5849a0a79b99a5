"""Threshold problems: ranked labelled rows, and the class whose threshold is chosen."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import log_odds_of, probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import as_weights
from calibrant.thresholds.proof.largest_weight import (
    LargestWeight,
    check_largest_weight,
    resolve_largest_weight,
)
from calibrant.thresholds.proof.ranked import RankedRows, rank_rows
from calibrant.thresholds.rates import Cost, Rate
from calibrant.thresholds.scores import On, labelled_scores, predict_classes, row_scores

_ULPS = 8  # Numbers further apart than this keep their order under rounding errors


def number_between(low: float, high: float, kind: type[np.floating[Any]] = np.float64) -> float:
    """Return a number with few digits well inside a gap: above `low` and at most `high`.

    Every number in the gap decides the same about these rows, and all of them are certified
    together. A number near an end could change sides when a score is rounded or copied by hand; if
    the gap is too narrow for another number, `high` is returned.
    """
    if not np.isfinite(low):
        return high
    middle, quarter = low + (high - low) / 2, (high - low) / 4
    for digits in range(1, 18):
        candidate = float(f"{middle:.{digits}g}")
        if abs(candidate - middle) <= quarter and low < kind(candidate) <= high and low < candidate:
            return candidate
    return high


def clear_of_rounding(
    low: float, threshold: float, high: float, kind: type[np.floating[Any]] = np.float64
) -> bool:
    """Return whether a threshold is far enough from both scores to be safe from rounding."""
    size = max(abs(threshold), float(np.finfo(kind).tiny))
    step = _ULPS * float(np.spacing(kind(size)))
    return low == -np.inf or low + step < threshold < high - step


class Threshold(NamedTuple):
    """A threshold as a probability and as log-odds, and whether both give the same decisions."""

    prob: float
    logit: float
    both_kinds: bool


@dataclass(frozen=True)
class ThresholdProblem:
    """Labelled rows by descending score, and the class that the scores belong to."""

    rows: RankedRows
    on: On  # whether the scores are probabilities or log-odds
    of: Any  # the class that is acted on; None if predictions of any class are accepted
    classes: tuple[Any, ...]  # names of all classes
    largest: LargestWeight | None = None  # largest possible weight of a row; None without weights

    @property
    def notes(self) -> tuple[str, ...]:
        """Notes for the user about the rows."""
        note = None if self.largest is None else self.largest.note
        return () if note is None else (note,)

    @property
    def top_label(self) -> bool:
        """Whether the scores are confidences in the predicted class."""
        return self.of is None

    def threshold_at(self, position: int) -> Threshold:
        """Return the threshold that acts on exactly the first `position` rows."""
        if position >= self.rows.last:  # all eligible rows are acted on
            return Threshold(0.0, -math.inf, True)
        own, other = self._gaps(position)
        kind = self.rows.score.dtype.type
        return self._threshold(position, number_between(*own, kind), number_between(*other))

    def fixed_threshold(self, prob: float) -> Threshold:
        """Return a threshold fixed beforehand as a probability."""
        pair = prob, float(log_odds_of(np.array(prob)))
        own, other = pair if self.on == "probs" else pair[::-1]
        return self._threshold(self.position_of(prob), own, other)

    def fixed_logit(self, logit: float) -> Threshold:
        """Return a threshold fixed beforehand as log-odds."""
        pair = float(probs_from_logits(np.array([logit]))[0]), logit
        own, other = pair if self.on == "probs" else pair[::-1]
        return self._threshold(self.count_reaching(own), own, other)

    def _threshold(self, position: int, own: float, other: float) -> Threshold:
        kind = self.rows.score.dtype.type
        (low, high), (other_low, other_high) = self._gaps(position)
        both = clear_of_rounding(low, own, high, kind) and clear_of_rounding(
            other_low, other, other_high
        )
        return Threshold(*((own, other) if self.on == "probs" else (other, own)), both)

    def _gaps(self, position: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the scores on both sides of a position, on their own scale and on the other."""
        own = np.array(self.rows.gap_at(position), dtype=np.float64)
        other = log_odds_of(np.clip(own, 0, 1)) if self.on == "probs" else probs_from_logits(own)
        return (float(own[0]), float(own[1])), (float(other[0]), float(other[1]))

    def position_of(self, threshold: float) -> int:
        """Return how many rows reach a probability."""
        return self.count_reaching(
            float(log_odds_of(np.array(threshold))) if self.on == "logits" else threshold
        )

    def count_reaching(self, least: float) -> int:
        """Return how many rows reach a score, on the scale of the scores."""
        return int(np.searchsorted(-self.rows.score, -least, side="right"))


def build_problem(
    labels: Any,
    probs: Any,
    logits: Any,
    rates: Iterable[Rate | Cost],
    *,
    weights: Any = None,
    largest_weight: float | None = None,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    rng: int | np.random.Generator = 0,
    needs_both: bool = True,
    promised: bool = False,
    withheld: NDArray[np.bool_] | None = None,
    outside: NDArray[np.bool_] | None = None,
) -> ThresholdProblem:
    """Check the input and rank the rows for the class that the rates apply to.

    With `needs_both`, rows with and without the class that is acted on are required. With
    `promised`, the weights must support a promise. Rows that are `withheld` are never acted on,
    whatever their score, and count as passed over. Rows `outside` belong to no class, whatever
    their label: acting on them is an error.
    """
    array, on, codes, names = labelled_scores(labels, probs, logits, classes)
    if len(codes) != len(array):
        raise InputError(
            f"labels and {on} must have the same length, got {len(codes)} and {len(array)}."
        )
    of = _resolve_class(list(rates), names, positive)
    scores = row_scores(array, on=on, of=of, classes=names)
    event = codes == predict_classes(array, on) if of is None else codes == names.index(of)
    if outside is not None:
        event = event & ~outside
    if withheld is not None:
        scores = np.where(withheld, -np.inf, scores)
    heavy = as_weights(weights, len(codes))
    check_largest_weight(largest_weight, heavy)
    if heavy is not None and not heavy.all():  # a row of weight 0 does not count
        counts = heavy > 0
        scores, event, heavy = scores[counts], event[counts], heavy[counts]
    largest = resolve_largest_weight(heavy, largest_weight)
    if largest is not None and largest.from_sample and largest.uniform:
        heavy = None
    rows = rank_rows(scores, event, heavy, largest_weight=largest_weight, rng=rng)
    if promised:
        _check_design(rows)
    if needs_both and of is not None:
        _check_labels(rows, of)
    return ThresholdProblem(rows, on, of, names, largest)


def _resolve_class(rates: list[Rate | Cost], names: tuple[Any, ...], positive: Any) -> Any:
    """Return the class that the rates apply to; None for the predicted class."""
    kinds = {"class" if isinstance(rate, Cost) else rate.of for rate in rates} - {"any"}
    if kinds == {"class", "top-label"}:
        raise InputError(
            "accuracy applies to predictions of any class, the other rates to one class: hold them "
            "in two separate calls."
        )
    if kinds == {"top-label"} or (not kinds and positive is None and len(names) > 2):
        if positive is not None:
            raise InputError("accuracy applies to predictions of any class: leave positive out.")
        return None
    if positive is None and len(names) > 2:
        raise InputError(
            f"there are {len(names)} classes: name the one to act on with positive=..., use "
            "select_each for all of them, or hold accuracy to accept predictions of any class."
        )
    if positive is not None and positive not in names:
        raise InputError(f"positive is {positive!r}, which is not among the classes {names}.")
    return names[1] if positive is None else names[names.index(positive)]


def _check_labels(rows: RankedRows, of: Any) -> None:
    if rows.positives in (0, rows.n):
        who = "no row has" if rows.positives == 0 else "all rows have"
        raise InputError(
            f"{who} the label {of!r}, so no threshold can be chosen for it: give rows with and "
            "without it."
        )


def _check_design(rows: RankedRows) -> None:
    """Raise `InputError` unless the weights can be inverse inclusion probabilities."""
    weights = rows.weight
    if weights is None:
        return
    least, most = float(weights.min()), float(weights.max())
    if least < 1:
        raise InputError(
            f"weights must be inverse inclusion probabilities, so at least 1, got {least:.6g}: if "
            "they are known only up to a factor, divide them by the smallest one."
        )
    if most > 0.1 * float(weights.sum()) and len(weights) > 10:
        raise InputError(
            f"one row carries {most / weights.sum():.0%} of all weight, too much for any promise: "
            "raise the smallest inclusion probability, or label more rows like it."
        )
