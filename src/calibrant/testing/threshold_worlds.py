"""Synthetic binary data for thresholds, with known rates at every threshold.

Ordinary worlds resemble real data. Least-favourable ones are built to break promises: their
precision stays just below the target over wide ranges, which exposes methods that certify too
easily. In ordinary worlds even an invalid method breaks few promises.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.testing.threshold_laws import (
    Atoms,
    Clouds,
    Law,
    On,
    Rng,
    Shares,
    Steps,
    Strata,
    ThresholdDraw,
    stepped_atoms,
)
from calibrant.thresholds.rates import Cost, Rate, rate_named

Kind = Literal["ordinary", "weighted", "least favourable"]

TARGET = 0.85
LEAST_FAVOURABLE: Kind = "least favourable"


@dataclass(frozen=True)
class ThresholdWorld:
    """A named distribution of labels and scores with known rates at every threshold.

    Parameters
    ----------
    name : its key in `THRESHOLD_WORLDS`
    description : one sentence
    law : distribution of labels and scores
    target : the precision target it is designed for
    kind : `least favourable` worlds are built to break promises, `weighted` ones are sampled
        with unequal probabilities
    """

    name: str
    description: str
    law: Law = field(repr=False)
    target: float = TARGET
    kind: Kind = "ordinary"

    @property
    def prevalence(self) -> float:
        """P(positive) in the population."""
        return self.law.prevalence

    def draw(self, n: int, rng: int | Rng) -> ThresholdDraw:
        """Draw n rows.

        Parameters
        ----------
        n : number of rows, at least 1
        rng : a seed, or a generator that is advanced

        Examples
        --------
        >>> draw = THRESHOLD_WORLDS["overlapping"].draw(50, 0)
        >>> draw.labels.shape, draw.probs.shape, draw.weights
        ((50,), (50,), None)
        """
        if n < 1:
            raise InputError(f"n must be at least 1, got {n}: draw one row or more.")
        return self.law.draw(n, np.random.default_rng(rng))

    def rescore(self, labels: NDArray[np.int64], rng: int | Rng) -> ThresholdDraw:
        """Draw new scores for the same labels, as from another model of the same quality.

        Parameters
        ----------
        labels : labels of rows drawn from this world
        rng : a seed, or a generator that is advanced
        """
        return self.law.draw_scores(labels, np.random.default_rng(rng))

    def truth(
        self, rate: Rate | Cost | str, threshold: float, *, on: On = "probs", top: bool = False
    ) -> float:
        r"""Return the population value of a rate when rows at or above a threshold are acted on.

        .. math:: P(event \mid given), \quad \text{acted on when } s \ge t

        s is the score of a row and t the threshold. The value is exact, not simulated.

        Parameters
        ----------
        rate : a rate or its name, or a cost
        threshold : t; rows with s >= t are acted on
        on : whether t is a probability or log-odds
        top : score rows by the confidence in the predicted class (as `accuracy` always does);
            `positive` then means that the prediction is correct

        Examples
        --------
        >>> world = THRESHOLD_WORLDS["constant_rate"]
        >>> round(world.truth("precision", 0.3), 4), round(world.truth("coverage", 0.3), 4)
        (0.849, 0.7)
        """
        rate = rate_named(rate) if isinstance(rate, str) else rate
        top = top or (isinstance(rate, Rate) and rate.of == "top-label")
        (pos, neg), (all_pos, all_neg) = self._acted_on(threshold, on, top)
        joint = {
            ("act", "positive"): pos,
            ("act", "negative"): neg,
            ("pass", "positive"): all_pos - pos,
            ("pass", "negative"): all_neg - neg,
        }
        if isinstance(rate, Cost):
            fp, fn, tp, tn = rate.matrix
            return tp * pos + fp * neg + fn * (all_pos - pos) + tn * (all_neg - neg)
        condition = {
            k: v for k, v in joint.items() if rate.condition in k or rate.condition == "all"
        }
        total = sum(condition.values())
        events = sum(v for k, v in condition.items() if rate.event in k)
        return events / total if total else math.nan

    def _acted_on(self, threshold: float, on: On, top: bool) -> tuple[Shares, Shares]:
        """Return the shares of positives and negatives that are acted on, and in all rows."""
        shares = self.law.shares_above
        if not top:
            return shares(threshold, on, flipped=False), (self.prevalence, 1.0 - self.prevalence)
        middle = 0.5 if on == "probs" else 0.0
        # Rows exactly in the middle are predicted negative; positive means strictly above.
        above = math.nextafter(middle, math.inf)
        (pos, false), (miss, neg) = (
            shares(max(threshold, lowest), on, flipped=flipped)
            for lowest, flipped in ((above, False), (middle, True))
        )
        (all_pos, _), (_, all_neg) = (
            shares(above, on, flipped=False),
            shares(middle, on, flipped=True),
        )
        correct = all_pos + all_neg
        return (pos + neg, miss + false), (correct, 1.0 - correct)


def constant_rate(target: float = TARGET, gap: float = 0.001) -> ThresholdWorld:
    """Return a world of uninformative scores with a label rate just below the target."""
    law = Steps((1.0,), (target - gap,))
    text = "Uninformative scores; the label rate is just below the target."
    return ThresholdWorld("constant_rate", text, law, target, LEAST_FAVOURABLE)


def hugging(
    target: float = TARGET, gap: float = 1e-4, lead: float = 0.1, cells: int = 0
) -> ThresholdWorld:
    """Return a world with precision above the target at first, then just below for most ranks."""
    # The second piece takes back the gain of the first, and slightly more.
    high = target + 0.6 * (1 - target)
    low = target - 0.6 * (1 - target) - 2 * gap
    steps = Steps((lead / 2, lead / 2, 0.7 - lead, 0.3), (high, low, target, target / 3))
    law: Law = stepped_atoms(steps, cells) if cells else steps
    name = "hugging_ties" if cells else "hugging"
    text = (
        f"Precision just below the target over most of the ranks{', with ties' if cells else ''}."
    )
    return ThresholdWorld(name, text, law, target, LEAST_FAVOURABLE)


def sawtooth(
    target: float = TARGET, teeth: int = 40, *, rising: bool = True, gap: float = 1e-4
) -> ThresholdWorld:
    """Return a world with alternating label rates 0 and 1; each tooth ends below the target."""
    share = target - gap
    tooth = [((1 - share) / teeth, 0.0), (share / teeth, 1.0)]
    pairs = (tooth if rising else tooth[::-1]) * teeth
    law = Steps(tuple(w for w, _ in pairs), tuple(r for _, r in pairs))
    name = "sawtooth" if rising else "sawtooth_crossing"
    where = "stays just below the target" if rising else "crosses the target in every tooth"
    text = f"Alternating label rates of 0 and 1: precision {where}."
    return ThresholdWorld(name, text, law, target, LEAST_FAVOURABLE)


def crossing(target: float = TARGET, swing: float = 0.3, gap: float = 1e-4) -> ThresholdWorld:
    """Return a world with precision above, then below the target in every doubling of ranks."""
    octaves = 12
    size = swing * min(target, 1 - target)
    widths, rates = [0.5**octaves], [target - gap]
    for k in range(octaves, 0, -1):
        width = 0.5**k  # the ranks from 0.5^k to 0.5^(k-1)
        widths += [width / 4, width / 2, width / 4]
        rates += [target + size - gap, target - size - gap, target + size - gap]
    law = Steps(tuple(widths), tuple(rates))
    text = "Precision above and then below the target in every doubling of the ranks."
    return ThresholdWorld("crossing", text, law, target, LEAST_FAVOURABLE)


def straddling(target: float = TARGET, *, kept_with_tie: bool = False) -> ThresholdWorld:
    """Return a world with a large tie that breaks the promise, or is needed to keep it."""
    step = 0.4 * (1 - target)
    # There are half as many rows above the tie as in it, so its rate outweighs theirs.
    above = target - step if kept_with_tie else target + step
    tie = target + 2 * step if kept_with_tie else target - 0.5 * step - 1e-4
    law = Atoms((0.95, 0.9, 0.6, 0.3), (0.1, 0.1, 0.4, 0.4), (above, above, tie, target / 4))
    name = "straddling_kept" if kept_with_tie else "straddling"
    order = "only with it" if kept_with_tie else "only without it"
    text = f"A tie of 40 % of the rows; the promise is kept {order}."
    return ThresholdWorld(name, text, law, target, LEAST_FAVOURABLE)


def torn(target: float = TARGET, least_recall: float = 0.9, gap: float = 1e-4) -> ThresholdWorld:
    """Return a world with a tie that recall needs and precision excludes: no threshold meets both.

    Without the tie recall is just below its target, with it precision is; the other target is
    easily met each time. Two tests at the full level each break up to twice as many promises.
    """
    half, pure = 0.5, (2 + target) / 3
    # Shares of positives above the tie, and with it.
    above, with_tie = half * (least_recall - gap), half * (1 + least_recall) / 2
    rows = above / pure, with_tie / (target - gap)
    shares = (rows[0], rows[1] - rows[0], 1 - rows[1])
    rates = (pure, (with_tie - above) / shares[1], (half - with_tie) / shares[2])
    text = "A tie that recall needs and precision excludes."
    law = Atoms((0.9, 0.6, 0.2), shares, rates)
    return ThresholdWorld("torn", text, law, target, LEAST_FAVOURABLE)


def _round_scores(law: Clouds, cells: int) -> Atoms:
    """Round probabilities to multiples of 1 / cells, with exact shares."""
    values, shares, rates = [], [], []
    above: Shares = (0.0, 0.0)
    for k in range(cells, -1, -1):
        edge = (k - 0.5) / cells
        now = law.shares_above(edge, "probs", flipped=False)
        pos, neg = now[0] - above[0], now[1] - above[1]
        values.append(k / cells)
        shares.append(pos + neg)
        rates.append(pos / (pos + neg))
        above = now
    return Atoms(tuple(values), tuple(shares), tuple(rates))


def _oversampled_strata(easy: float, hard: float) -> Strata:
    """Return strata of easy and hard rows; the easy ones are sampled nine times as often."""

    def part(rate: float) -> Steps:
        return Steps((0.2, 0.3, 0.5), (rate, rate - 0.01, 0.1))

    return Strata((0.5, 0.5), (0.9, 0.1), (part(easy), part(hard)))


_OVERLAP = Clouds(0.3, ((1.0, 1.5, 1.0),), slope=1.5, offset=-1.8)

_ORDINARY = (
    ThresholdWorld("separable", "30 % positive, hardly any overlap.",
                   Clouds(0.3, ((1.0, 6.0, 0.7),), ((1.0, 0.0, 0.7),), 2.0, -6.0)),
    ThresholdWorld("overlapping", "30 % positive, the classes overlap.", _OVERLAP),
    ThresholdWorld("rare", "One row in a hundred is positive.",
                   Clouds(0.01, ((1.0, 4.0, 1.0),), slope=3.0, offset=-11.0)),
    ThresholdWorld("very_rare", "One row in a thousand is positive.",
                   Clouds(0.001, ((1.0, 5.0, 1.0),), slope=3.0, offset=-15.0)),
    ThresholdWorld("bimodal", "Easy positives and hard ones.",
                   Clouds(0.2, ((0.6, 5.0, 1.0), (0.4, 0.5, 1.0)), slope=1.0, offset=-2.0)),
    ThresholdWorld("heavy_tailed", "Student's t with 2 degrees: the top is never pure.",
                   Clouds(0.15, ((1.0, 8.0, 1.0),), slope=0.25, offset=-1.2, degrees=2.0)),
    ThresholdWorld("ties", "Overlapping scores, rounded to 0.1.", _round_scores(_OVERLAP, 10)),
    ThresholdWorld("saturated", "Many float32 scores are exactly 1; log-odds distinguish them.",
                   Clouds(0.3, ((1.0, 1.8, 1.0),), slope=12.0, offset=-10.0, single=True)),
    ThresholdWorld("non_monotone", "The highest scores are poor and the next ones good.",
                   Steps((0.03, 0.22, 0.25, 0.5), (0.6, 0.97, 0.5, 0.05))),
    ThresholdWorld("weighted", "Easy rows are nine times as likely to be sampled as hard ones.",
                   _oversampled_strata(0.98, 0.8), kind="weighted"),
)  # fmt: skip

_HARD = (
    constant_rate(),
    hugging(),
    hugging(cells=20),
    sawtooth(),
    sawtooth(rising=False),
    crossing(),
    straddling(),
    straddling(kept_with_tie=True),
    torn(),
    ThresholdWorld("weighted_hugging", "Over-sampled easy rows; precision is below the target.",
                   _oversampled_strata(0.979, 0.72), kind="weighted"),
)  # fmt: skip

THRESHOLD_WORLDS: dict[str, ThresholdWorld] = {world.name: world for world in (*_ORDINARY, *_HARD)}
"""All threshold worlds by name, each with its own target."""
