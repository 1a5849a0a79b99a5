"""Out-of-scope rule: a score and its threshold."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray, as_logits
from calibrant.ood.scores import SCORES

FORMAT = 1  # Version of the JSON that `to_dict` writes; older versions load, newer ones are refused

_MIN_ROWS = 20  # Fewest rows predicted as a class from which its quantile is estimated


@dataclass(frozen=True)
class OodRule:
    r"""Flag a row as out of scope if its score is greater than a threshold.

    .. math:: t = \min \{ s_i : \#\{j : s_j > s_i\} \le (1 - q)\, n \}, \qquad
              \text{flag } x \iff s(x) > t

    s are the scores of the n rows the rule was fitted on, q the quantile: at most a share 1 - q of
    those rows is flagged. Fit it on rows the network was not trained on, because train rows score
    lower. Of new rows of the same kind a share of about 1 - q is flagged: without ties, (m + 1) /
    (n + 1) on average, m the number of fitted rows above t.

    It does not identify every row out of scope: rows in scope are flagged at rate 1 - q, and rows
    out of scope that score like the train rows pass. `separation` measures how many.

    Parameters
    ----------
    score : name of the score: `energy`, `entropy`, `max_logit` or `unreadable`
    threshold : t
    quantile : q
    n : number of rows it was fitted on
    by_class : thresholds by predicted class, instead of t; None for a single threshold. A single
        threshold mostly flags rare classes, for which a network is less confident: on fraud data
        it flagged 37 % of the rows predicted as fraud and 6 % of all rows
    equal : whether to flag rows whose logits are all equal, whatever their score; a `Scorer`
        returns equal logits for a row it cannot score

    Examples
    --------
    >>> rule = OodRule.fit([[4.0, 0.0], [0.0, 5.0], [3.0, 0.0], [2.0, 0.0]], score="max_logit",
    ...     quantile=0.75)
    >>> print(rule)
    out of scope: max_logit above -3, the 75 % quantile of 4 rows.
    >>> rule.flags([[2.5, 0.0], [0.0, 9.0]])
    array([ True, False])
    >>> OodRule("energy", 9.0, 0.95, 1000, equal=True).flags([[0.0, 0.0], [0.1, 0.0]])
    array([ True, False])
    """

    score: str
    threshold: float
    quantile: float
    n: int
    by_class: tuple[float, ...] | None = None
    equal: bool = False

    def __post_init__(self) -> None:
        _check_score(self.score)
        _check_quantile(self.quantile)
        if not _is_number(self.threshold):
            raise InputError(f"threshold must be a finite number, got {self.threshold!r}.")
        if isinstance(self.n, bool) or not isinstance(self.n, int) or self.n < 1:
            raise InputError(f"n must be a whole number of at least 1, got {self.n!r}.")
        if self.by_class is not None and not all(map(_is_number, self.by_class)):
            raise InputError(f"by_class must be finite numbers, got {self.by_class!r}.")
        if not isinstance(self.equal, bool):
            raise InputError(f"equal must be True or False, got {self.equal!r}.")

    @classmethod
    def fit(
        cls,
        logits: Any,
        *,
        score: str = "energy",
        quantile: float = 0.95,
        by_class: bool = False,
        equal: bool = False,
    ) -> Self:
        """Set the threshold from rows in scope.

        Parameters
        ----------
        logits : (n, K) logits of rows in scope, or (n,) log-odds of the second of two classes
        score : name of the score
        quantile : share of these rows that the rule passes
        by_class : whether that share holds among the rows predicted as each class. A class
            predicted for fewer than 20 rows flags none of them
        equal : whether to flag rows whose logits are all equal, in addition to that share
        """
        _check_score(score)
        _check_quantile(quantile)
        scores = SCORES[score](logits)
        threshold = upper_quantile(scores, quantile)
        class_thresholds = (
            _class_thresholds(scores, logits, threshold, quantile) if by_class else None
        )
        return cls(score, threshold, float(quantile), len(scores), class_thresholds, equal)

    @classmethod
    def unreadable(cls, n: int) -> Self:
        """Return the rule that flags rows which the model cannot read, whatever its logits.

        Parameters
        ----------
        n : rows in scope that it was tried on
        """
        return cls("unreadable", 0.5, 0.95, n, None, True)

    def scores(self, logits: Any) -> FloatArray:
        """Return the score (n,) of each row; higher is less like the train rows."""
        return SCORES[self.score](logits)

    def flags(self, logits: Any) -> NDArray[np.bool_]:
        """Return whether each row (n,) is out of scope."""
        flagged = np.asarray(self.scores(logits) > self.limits(logits))
        return flagged | self.cannot_judge(logits)

    def limits(self, logits: Any) -> FloatArray:
        """Return the threshold (n,) that applies to each row."""
        predicted, k = _predict_classes(logits)
        if self.by_class is None:
            return np.full(len(predicted), self.threshold)
        if k != len(self.by_class):
            raise InputError(
                f"the out-of-scope rule has {len(self.by_class)} classes, but the logits have "
                f"{k}: pass one column for each class."
            )
        return np.asarray(self.by_class)[predicted]

    def cannot_judge(self, logits: Any) -> NDArray[np.bool_]:
        """Return whether each row (n,) is flagged because its logits are all equal."""
        array = as_logits(logits)
        if not self.equal:
            return np.zeros(len(array), dtype=np.bool_)
        equal = array == 0.0 if array.ndim == 1 else np.ptp(array, axis=1) == 0.0
        return np.asarray(equal)

    def to_dict(self) -> dict[str, Any]:
        """Return JSON values; keys may be added, never renamed."""
        saved = {"format": FORMAT, **asdict(self)}
        saved["by_class"] = None if self.by_class is None else list(self.by_class)
        return saved

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Self:
        """Load a rule from `to_dict`; refuse a damaged or newer one."""
        if not isinstance(saved, Mapping) or "format" not in saved:
            raise InputError("this is not a saved out-of-scope rule: the key 'format' is missing.")
        if isinstance(saved["format"], bool) or saved["format"] != FORMAT:
            raise InputError(
                f"the out-of-scope rule has format {saved['format']!r}, but this version reads "
                f"{FORMAT}: upgrade calibrant, or fit the rule again."
            )
        missing = [name for name in ("score", "threshold", "quantile", "n") if name not in saved]
        if missing:
            raise InputError(
                f"the saved out-of-scope rule is damaged: {missing[0]} is missing: fit it again."
            )
        class_thresholds = saved.get("by_class")
        try:
            return cls(
                saved["score"], saved["threshold"], saved["quantile"], saved["n"],
                None if class_thresholds is None else tuple(class_thresholds),
                saved.get("equal", False),
            )  # fmt: skip
        except (InputError, TypeError) as error:
            reason = str(error).rstrip(".")
            raise InputError(
                f"the saved out-of-scope rule is damaged: {reason}: fit it again."
            ) from None

    def __str__(self) -> str:
        if self.score == "unreadable":
            return "out of scope: what the model cannot read (all logits equal)."
        quantile = f"the {self.quantile * 100:.6g} % quantile of {self.n:,} rows"
        if self.equal:
            quantile += ", or all logits equal"
        if self.by_class is None:
            return f"out of scope: {self.score} above {self.threshold:.6g}, {quantile}."
        low, high = min(self.by_class), max(self.by_class)
        return (
            f"out of scope: {self.score} above {low:.6g} to {high:.6g}, by the predicted class, "
            f"{quantile}."
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def _class_thresholds(
    scores: FloatArray, logits: Any, threshold: float, quantile: float
) -> tuple[float, ...]:
    predicted, k = _predict_classes(logits)
    thresholds = []
    for label in range(k):
        class_scores = scores[predicted == label]
        if len(class_scores) >= _MIN_ROWS:
            thresholds.append(upper_quantile(class_scores, quantile))
        else:  # too few rows to estimate a quantile: pass all of them
            thresholds.append(float(max(threshold, class_scores.max(initial=threshold))))
    return tuple(thresholds)


def _predict_classes(logits: Any) -> tuple[IntArray, int]:
    """Return the index of each row's most probable class, and the number of classes."""
    array = as_logits(logits)
    if array.ndim == 1:
        return np.asarray(array > 0).astype(np.int64), 2
    return np.asarray(array.argmax(axis=1)), array.shape[1]


def upper_quantile(scores: FloatArray, quantile: float) -> float:
    """Return the smallest of `scores` exceeded by at most a share `1 - quantile` of them."""
    above = math.floor((1.0 - quantile) * len(scores) + 1e-9)  # 0.1 * 10 is 1 row, not 0.99...
    index = len(scores) - 1 - above
    return float(np.partition(scores, index)[index])


def _check_score(score: Any) -> None:
    if not isinstance(score, str) or score not in SCORES:
        raise InputError(f"score must be one of {', '.join(sorted(SCORES))}, got {score!r}.")


def _check_quantile(quantile: Any) -> None:
    if not _is_number(quantile) or not 0 < quantile < 1:
        raise InputError(f"quantile must lie between 0 and 1, got {quantile!r}: 0.95 is usual.")


def _is_number(value: Any) -> bool:
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return plain and math.isfinite(value)
