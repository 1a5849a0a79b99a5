"""Two-sided operating points: act above, clear below, refer the rows between to a person."""

from __future__ import annotations

import html
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import IntArray
from calibrant.thresholds.chosen import ChosenCandidate
from calibrant.thresholds.labels_needed.unreachable import build_unreachable_error
from calibrant.thresholds.operating_point import OperatingPoint
from calibrant.thresholds.proof.candidates import Candidates, candidates_at_ends
from calibrant.thresholds.proof.certify import as_share_claim
from calibrant.thresholds.proof.keeping import screen_candidates
from calibrant.thresholds.proof.largest_weight import condition_clause
from calibrant.thresholds.proof.question import ThresholdProblem, build_problem
from calibrant.thresholds.proof.seen_labels import NO_LABEL_USE, LabelUse
from calibrant.thresholds.rates import EMPIRICAL, Cost, Target, check_confidence
from calibrant.thresholds.saved_point import FORMAT


@dataclass(frozen=True)
class Band:
    """Act at or above `upper`, clear below `lower`, and let a person decide between them.

    Parameters
    ----------
    upper : the point whose rows are acted on, with the promise about them
    lower : the point below which rows are cleared, with the promise about those
    confidence : of both promises together; None where nothing is promised
    automated : share of the labelled rows that need no person
    """

    upper: OperatingPoint
    lower: OperatingPoint
    confidence: float | None
    automated: float

    @property
    def guarantee(self) -> str | None:
        """Both promises as a sentence, or None."""
        if self.upper.guarantee is None or self.lower.guarantee is None:
            return None
        above, below = (p.hold[0].words for p in (self.upper, self.lower))
        many = self.upper.candidates
        among = f", chosen among {many} models" if many > 1 else ""
        return (
            f"Above the band {above}, and below it {below}, both together with "
            f"{(self.confidence or 0) * 100:.6g} % confidence{among}, on new rows drawn like these "
            f"{self.upper.n:,}{condition_clause(self.upper.condition)}."
        )

    @property
    def why(self) -> str | None:
        """Why there is no promise, or None."""
        return self.upper.why or self.lower.why

    def decide(self, probs: Any = None, *, logits: Any = None) -> NDArray[np.str_]:
        """Return `act`, `person` or `clear` for each row."""
        act = self.upper.act(probs, logits=logits)
        keep = self.lower.act(probs, logits=logits)
        return np.where(act, "act", np.where(keep, "person", "clear"))

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        return {
            "format": FORMAT,
            "reached": True,
            "confidence": self.confidence,
            "guarantee": self.guarantee,
            "why": self.why,
            "automated": self.automated,
            "upper": self.upper.to_dict(),
            "lower": self.lower.to_dict(),
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Band:
        """Rebuild from `to_dict`."""
        try:
            upper, lower = (OperatingPoint.from_dict(saved[side]) for side in ("upper", "lower"))
            return cls(upper, lower, saved["confidence"], float(saved["automated"]))
        except (KeyError, TypeError, ValueError) as error:
            if isinstance(error, InputError):
                raise
            raise InputError(f"the saved band is damaged: {error}.") from None

    def __str__(self) -> str:
        return "\n".join(
            [
                self.guarantee or f"No promise: {self.why}.",
                f"Act at {self.upper.threshold!r} and above, clear below "
                f"{self.lower.threshold!r}: {self.automated:.1%} of the rows need no person.",
            ]
        )

    def _repr_html_(self) -> str:
        return f"<pre>{html.escape(str(self))}</pre>"


def select_band(
    labels: Any,
    probs: Any = None,
    *,
    act: Target,
    clear: Target,
    confidence: float | None = 0.95,
    weights: Any = None,
    largest_weight: float | None = None,
    logits: Any = None,
    classes: Sequence[Any] | None = None,
    positive: Any = None,
    label_use: LabelUse = NO_LABEL_USE,
    rng: int | np.random.Generator = 0,
) -> Band:
    """Choose two thresholds that each keep a promise.

    Each side gets half of the allowed error. Among the certified pairs, the one that leaves the
    fewest rows to a person is chosen; ties go to the pair with the most correct decisions.

    Parameters
    ----------
    act : target for the rows acted on, like `precision >= 0.9`
    clear : target for the rows cleared, like `npv >= 0.99`
    labels, probs, confidence, weights, largest_weight : as in `select`
    logits, classes, positive, label_use, rng : as in `select`

    Examples
    --------
    >>> from calibrant.testing import THRESHOLD_WORLDS
    >>> from calibrant.thresholds import npv, precision
    >>> draw = THRESHOLD_WORLDS["overlapping"].draw(5000, 0)
    >>> band = select_band(draw.labels, draw.probs, act=precision >= 0.8, clear=npv >= 0.95)
    >>> print(band)
    Above the band precision is at least 80 %, and below it negative predictive value is at least
    95 %, both together with 95 % confidence, on new rows drawn like these 5,000.
    Act at 0.70577 and above, clear below 0.091: 40.4% of the rows need no person.
    """
    if confidence is not None:
        check_confidence(confidence, hint=EMPIRICAL)
    for target, side, like in ((act, "act", "precision >= 0.9"), (clear, "pass", "npv >= 0.99")):
        known = isinstance(target, Target) and not isinstance(target.rate, Cost)
        if not known or as_share_claim(target).among != side:
            raise InputError(f"{target} does not apply to the rows on that side: give {like}.")
    problem = build_problem(
        labels, probs, logits, [act.rate, clear.rate], weights=weights,
        largest_weight=largest_weight, classes=classes,
        positive=positive, rng=rng, promised=confidence is not None,
    )  # fmt: skip
    delta = None if confidence is None else (1 - confidence) / 2 / label_use.candidates
    candidates = candidates_at_ends(problem)
    upper, lower = _find_widest(problem, *(
        _find_positions(problem, candidates, target, confidence, delta) for target in (act, clear)
    ))  # fmt: skip
    points = [
        ChosenCandidate(problem, candidates, index, (target,), objective, None).to_point(
            confidence=confidence, delta=delta, label_use=label_use
        )
        for index, target, objective in (
            (upper, act, "maximise coverage"),
            (lower, clear, "minimise coverage"),
        )
    ]
    above, below = points
    between = (below["coverage"].value or 0.0) - (above["coverage"].value or 0.0)
    return Band(above, below, above.confidence, 1 - between)


def _find_positions(
    problem: ThresholdProblem,
    candidates: Candidates,
    target: Target,
    confidence: float | None,
    delta: float | None,
) -> IntArray:
    """Return the indices of the candidates at which one side keeps its target."""
    holds = screen_candidates(problem.rows, candidates, (target,), delta)
    if not holds.any():
        raise build_unreachable_error(
            problem, candidates, (target,), confidence=confidence, delta=delta
        )
    return np.flatnonzero(holds)


def _find_widest(
    problem: ThresholdProblem, acting: IntArray, clearing: IntArray
) -> tuple[int, int]:
    """Return the pair of indices, the first not after the second, that decides the most rows."""
    ends, hits, n = problem.rows.ends, problem.rows.hits, problem.rows.n
    before = np.searchsorted(acting, clearing, side="right") - 1
    possible = before >= 0
    if not possible.any():  # every certified `act` lies below every certified `clear`
        raise InputError(
            "rows to act on and rows to clear overlap for every certified pair: use a stricter "
            "target on one side."
        )
    uppers, lowers = acting[before[possible]], clearing[possible]
    decided = ends[uppers] + (n - ends[lowers])
    cleared = n - ends[lowers]
    right = hits[ends[uppers] - 1] + cleared - (problem.rows.positives - hits[ends[lowers] - 1])
    best = np.lexsort((right, decided))[-1]
    return int(uppers[best]), int(lowers[best])
