"""The question that is put to labelled rows: whose threshold, on which scores."""

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
from calibrant.thresholds.proof.gap import clear_of_rounding, number_between
from calibrant.thresholds.proof.largest_weight import LargestWeight, check_largest, largest_of
from calibrant.thresholds.proof.ranked import Ranked, rank_rows
from calibrant.thresholds.rates import Cost, Rate
from calibrant.thresholds.scores import On, labelled_scores, predicted, row_scores

__all__ = ["Question", "Threshold", "put_question"]


class Threshold(NamedTuple):
    """A threshold as a probability and as log-odds, and whether both decide alike."""

    prob: float
    logit: float
    both_kinds: bool


@dataclass(frozen=True)
class Question:
    """Labelled rows by falling score, and what the scores are about.

    Parameters
    ----------
    rows : the rows
    on : whether the scores are probabilities or log-odds
    of : the class that is acted on; None: predictions of any class are accepted
    classes : names of all classes
    largest : the most that a row could weigh; None where none has a weight
    """

    rows: Ranked
    on: On
    of: Any
    classes: tuple[Any, ...]
    largest: LargestWeight | None = None

    @property
    def notes(self) -> tuple[str, ...]:
        """What a user should know of the rows."""
        note = None if self.largest is None else self.largest.note
        return () if note is None else (note,)

    @property
    def top_label(self) -> bool:
        """Whether the scores are confidences in the predicted class."""
        return self.of is None

    def threshold_at(self, position: int) -> Threshold:
        """Return the threshold that acts on exactly the first `position` rows."""
        if position >= self.rows.last:  # all rows that may be acted on are
            return Threshold(0.0, -math.inf, True)
        own, other = self._gaps(position)
        kind = self.rows.score.dtype.type
        return self._threshold(position, number_between(*own, kind), number_between(*other))

    def fixed_threshold(self, prob: float) -> Threshold:
        """Return a threshold that was fixed beforehand."""
        pair = prob, float(log_odds_of(np.array(prob)))
        own, other = pair if self.on == "probs" else pair[::-1]
        return self._threshold(self.position_of(prob), own, other)

    def fixed_logit(self, logit: float) -> Threshold:
        """Return a threshold that was fixed beforehand as log-odds."""
        pair = float(probs_from_logits(np.array([logit]))[0]), logit
        own, other = pair if self.on == "probs" else pair[::-1]
        return self._threshold(self.reaching(own), own, other)

    def _threshold(self, position: int, own: float, other: float) -> Threshold:
        kind = self.rows.score.dtype.type
        (low, high), (other_low, other_high) = self._gaps(position)
        both = clear_of_rounding(low, own, high, kind) and clear_of_rounding(
            other_low, other, other_high
        )
        return Threshold(*((own, other) if self.on == "probs" else (other, own)), both)

    def _gaps(self, position: int) -> tuple[tuple[float, float], tuple[float, float]]:
        """Return the scores on both sides of a position, in their own kind and in the other."""
        own = np.array(self.rows.gap_at(position), dtype=np.float64)
        other = log_odds_of(np.clip(own, 0, 1)) if self.on == "probs" else probs_from_logits(own)
        return (float(own[0]), float(own[1])), (float(other[0]), float(other[1]))

    def position_of(self, threshold: float) -> int:
        """Return how many rows reach a probability."""
        return self.reaching(
            float(log_odds_of(np.array(threshold))) if self.on == "logits" else threshold
        )

    def reaching(self, least: float) -> int:
        """Return how many rows reach a score, on the scale of the scores."""
        return int(np.searchsorted(-self.rows.score, -least, side="right"))


def put_question(
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
) -> Question:
    """Check the input and sort the rows for the question that the rates ask.

    With `needs_both`, rows with and without the class that is acted on must be there. With
    `promised`, weights must be such that a promise can rest on them. Rows that are `withheld` are
    never acted on, whatever their score, and count as passed over. Rows `outside` belong to no
    class, whatever label stands in their place: acting on them is wrong.
    """
    array, on, codes, names = labelled_scores(labels, probs, logits, classes)
    if len(codes) != len(array):
        raise InputError(
            f"labels and {on} must have the same length, got {len(codes)} and {len(array)}."
        )
    of = _asked_for(list(rates), names, positive)
    scores = row_scores(array, on=on, of=of, classes=names)
    event = codes == predicted(array, on) if of is None else codes == names.index(of)
    if outside is not None:
        event = event & ~outside
    if withheld is not None:
        scores = np.where(withheld, -np.inf, scores)
    heavy = as_weights(weights, len(codes))
    check_largest(largest_weight, heavy)
    if heavy is not None and not heavy.all():  # a row of weight 0 is a row that is not there
        there = heavy > 0
        scores, event, heavy = scores[there], event[there], heavy[there]
    largest = largest_of(heavy, largest_weight)
    if largest is not None and largest.seen and largest.alike:
        heavy = None
    rows = rank_rows(scores, event, heavy, largest_weight=largest_weight, rng=rng)
    if promised:
        _check_design(rows)
    if needs_both and of is not None:
        _check_labels(rows, of)
    return Question(rows, on, of, names, largest)


def _asked_for(rates: list[Rate | Cost], names: tuple[Any, ...], positive: Any) -> Any:
    """Return the class that the rates are about; None for the predicted class."""
    kinds = {"class" if isinstance(rate, Cost) else rate.of for rate in rates} - {"any"}
    if kinds == {"class", "top-label"}:
        raise InputError(
            "accuracy judges accepted predictions of any class, the other rates judge one class: "
            "ask for them in two calls."
        )
    if kinds == {"top-label"} or (not kinds and positive is None and len(names) > 2):
        if positive is not None:
            raise InputError("accuracy is about predictions of any class: leave positive out.")
        return None
    if positive is None and len(names) > 2:
        raise InputError(
            f"there are {len(names)} classes: say which one is acted on with positive=..., take "
            "select_each for all of them, or hold accuracy to accept predictions of any class."
        )
    if positive is not None and positive not in names:
        raise InputError(f"positive is {positive!r}, which is not among the classes {names}.")
    return names[1] if positive is None else names[names.index(positive)]


def _check_labels(rows: Ranked, of: Any) -> None:
    if rows.positives in (0, rows.n):
        found = "none of the rows has" if rows.positives == 0 else "all rows have"
        raise InputError(
            f"{found} the label {of!r}, so nothing can be said about a threshold for it: rows with "
            "and without it are needed."
        )


def _check_design(rows: Ranked) -> None:
    """Refuse weights that cannot be inverse inclusion probabilities, or that one row dominates."""
    weights = rows.weight
    if weights is None:
        return
    least, most = float(weights.min()), float(weights.max())
    if least < 1:
        raise InputError(
            f"weights must be inverse inclusion probabilities, so none can be below 1, got "
            f"{least:.6g}: if they are known up to a factor only, divide them by the smallest one."
        )
    if most > 0.1 * float(weights.sum()) and len(weights) > 10:
        raise InputError(
            f"one row carries {most / weights.sum():.0%} of all weight, too much for any promise: "
            "limit how rarely a row may be picked, or label more of such rows."
        )
