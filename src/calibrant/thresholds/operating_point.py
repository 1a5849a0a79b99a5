"""Operating points: a threshold, its promise, and the rates measured there."""

from __future__ import annotations

import html
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.convert import probs_from_logits
from calibrant.errors import InputError
from calibrant.inputs import FloatArray
from calibrant.thresholds.rates import Cost, RateValue, Target
from calibrant.thresholds.saved_point import FORMAT, parse_saved_point
from calibrant.thresholds.scores import On, Scores, as_scores, row_scores

_TRIVIAL_RATES = ("recall", "fpr", "specificity", "coverage", "abstention")
"""Rates that are 0 or 1 whenever every row is acted on."""


@dataclass(frozen=True)
class OperatingPoint:
    """A threshold chosen to keep a promise.

    A row is acted on when its probability is at least `threshold`, or its log-odds are at least
    `logit`: the same rule, unless probabilities have rounded to 1 (see `both_kinds`).

    `guarantee` is the promise as a sentence, or None; `why` then gives the reason.

    Parameters
    ----------
    threshold : a probability
    logit : the same threshold as log-odds
    on : the scores it was chosen on, `probs` or `logits`
    of : the class that is acted on; None if predictions of any class are accepted
    classes : names of all classes, in the order of the columns
    hold : the targets held
    objective : what was optimised, like "maximise recall"
    confidence : of the promise; None if nothing is promised
    guarantee, why : the promise in words, or why there is none
    rates : every rate at this threshold, by name
    n, positives : labelled rows used, and how many of them were positive (or predicted correctly)
    method : how the promise was proved
    weighted : whether rows had weights
    candidates : number of models among which the scores were chosen on the same rows
    cost : costs of decisions, if a cost was held or minimised
    baseline : for a cost: the threshold of the calibrated rule, and the cost there
    both_kinds : whether probabilities and logits give the same decisions; they do unless the
        scores on both sides of the threshold differ in their last digits only
    condition : what the promise assumes besides exchangeable rows, like "no row could weigh more
        than 20, the largest seen"; None if it assumes nothing else, or if there is no promise
    notes : further notes
    """

    threshold: float
    logit: float
    on: On
    of: Any
    classes: tuple[Any, ...]
    hold: tuple[Target, ...]
    objective: str
    confidence: float | None
    guarantee: str | None
    why: str | None
    rates: Mapping[str, RateValue]
    n: int
    positives: int
    method: str
    weighted: bool = False
    candidates: int = 1
    cost: Cost | None = None
    baseline: Mapping[str, float] | None = None
    both_kinds: bool = True
    condition: str | None = None
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> RateValue:
        return self.rates[name]

    @property
    def works_on_probs(self) -> bool:
        """Whether probabilities are precise enough to apply the threshold."""
        return self.on == "probs" or self.both_kinds

    @property
    def scale(self) -> Literal["probability", "log-odds"]:
        """Scale of decision scores and their threshold: log-odds only where probabilities round."""
        return "probability" if self.works_on_probs else "log-odds"

    @property
    def decision_threshold(self) -> float:
        """The threshold on `scale`: a row is acted on if its decision score reaches it."""
        return self.threshold if self.works_on_probs else self.logit

    def settles(self, name: str) -> bool:
        """Whether a rate is fixed by the rule itself, so that there is nothing to estimate.

        A point that acts on every row misses none. This does not fix rates among the rows acted
        on, such as precision, nor any rate when rows are withheld.

        Parameters
        ----------
        name : of the rate

        Examples
        --------
        >>> from calibrant.thresholds import coverage, precision, select
        >>> labels, probs = [0] * 50 + [1] * 50, np.linspace(0, 1, 100)
        >>> point = select(labels, probs, hold=precision >= 0.2, maximise=coverage)
        >>> point.threshold, point.settles("recall"), point.settles("precision")
        (0.0, True, False)
        """
        share = self.rates.get("coverage")
        acts_on_all = share is not None and share.value is not None and share.value >= 1.0 - 1e-12
        return acts_on_all and self.logit == -math.inf and name in _TRIVIAL_RATES

    def act(self, probs: Any = None, *, logits: Any = None) -> NDArray[np.bool_]:
        """Return for each row whether it is acted on (or its predicted class accepted).

        Parameters
        ----------
        probs : (n,) P(second class) or (n, K), of the model the point was chosen for
        logits : the same as logits; both give the same decisions unless `both_kinds` is False

        Examples
        --------
        >>> from calibrant.thresholds import precision, recall, select
        >>> labels, probs = [0] * 50 + [1] * 50, np.linspace(0, 1, 100)
        >>> point = select(labels, probs, hold=precision >= 0.8, maximise=recall)
        >>> point.act([0.2, 0.9])
        array([False,  True])
        """
        return self._reaches(*self._row_scores(probs, logits))

    def decision_scores(self, probs: Any = None, *, logits: Any = None) -> FloatArray:
        r"""Return the decision score of each row: the number that is compared with the threshold.

        .. math:: s \geq t \iff \text{the row is acted on}

        s is the probability of class `of` by the scores that the point was chosen on, or of the
        predicted class if `of` is None; t is `decision_threshold`; both are on `scale`. It is not
        a calibrated probability, unless the point was chosen on those. Where rounding puts the
        probability of a row on the other side of t than its logit, s stays on the logit's side.

        Parameters
        ----------
        probs, logits : as for `act`

        Examples
        --------
        >>> from calibrant.thresholds import precision, select
        >>> labels, probs = [0] * 50 + [1] * 50, np.linspace(0, 1, 100)
        >>> point = select(labels, probs, hold=precision >= 0.8)
        >>> point.decision_scores([0.2, 0.9]) >= point.decision_threshold
        array([False,  True])
        """
        scores, on = self._row_scores(probs, logits)
        acts, limit = self._reaches(scores, on), np.float64(self.decision_threshold)
        shown = np.asarray(scores, dtype=np.float64)
        if on == "logits" and self.works_on_probs:
            shown = probs_from_logits(shown)
        below = np.nextafter(limit, -np.inf)
        return np.where(acts, np.maximum(shown, limit), np.minimum(shown, below))

    def _reaches(self, scores: Scores, on: On) -> NDArray[np.bool_]:
        # float64, so that the threshold is not rounded to float32 for float32 scores.
        return np.asarray(scores >= np.float64(self.logit if on == "logits" else self.threshold))

    def _row_scores(self, probs: Any, logits: Any) -> tuple[Scores, On]:
        array, on, _ = as_scores(probs, logits, self.classes)
        if on != self.on and not self.both_kinds:
            raise InputError(
                f"the threshold was chosen on {self.on} and lies between almost equal scores, "
                f"which {on} may round to the other side: give {self.on}."
            )
        if on == "logits" and self.on == "probs":
            array, on = probs_from_logits(array.astype(np.float64)), "probs"
        return row_scores(array, on=on, of=self.of, classes=self.classes), on

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        return {
            "format": FORMAT,
            "reached": True,
            "class": self.of,
            "classes": list(self.classes),
            "threshold": self.threshold,
            "logit": self.logit if math.isfinite(self.logit) else None,
            "on": self.on,
            "confidence": self.confidence,
            "interval_confidence": self._interval_confidence,
            "hold": [str(target) for target in self.hold],
            "costs": None if self.cost is None else list(self.cost.matrix),
            "objective": self.objective,
            "guarantee": self.guarantee,
            "why": self.why,
            "rates": {name: value.to_dict() for name, value in self.rates.items()},
            "n": self.n,
            "positives": self.positives,
            "method": self.method,
            "weighted": self.weighted,
            "candidates": self.candidates,
            "baseline": None if self.baseline is None else dict(self.baseline),
            "both_kinds": self.both_kinds,
            "condition": self.condition,
            "notes": list(self.notes),
        }

    @property
    def _interval_confidence(self) -> float | None:
        spans = (rate.interval for rate in self.rates.values() if rate.interval is not None)
        return next((span.confidence for span in spans), None)

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> OperatingPoint:
        """Rebuild a point from `to_dict`, or raise `InputError` if it is damaged or too new.

        Examples
        --------
        >>> from calibrant.thresholds import precision, select
        >>> point = select([0] * 50 + [1] * 50, np.linspace(0, 1, 100), hold=precision >= 0.8)
        >>> OperatingPoint.from_dict(point.to_dict()) == point
        True
        """
        return cls(**parse_saved_point(saved))

    def __str__(self) -> str:
        promise = self.guarantee or f"No promise: {self.why}."
        lines = [f"{promise} Threshold {self.threshold!r}."]
        for name, rate in self.rates.items():
            if rate.value is None or rate.interval is None:
                continue
            ends = f"[{rate.interval.low:.4f}, {rate.interval.high:.4f}]"
            if self.settles(name):
                ends = "by definition"
            lines.append(f"{name}: {rate.value:.4f} {ends} (n={rate.n:,.0f})")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"
