"""Order of the methods compared with the paper's, where its gaps exceed noise."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, Literal

from calibrant.formatting import format_count
from reproductions.seed_figures import PRINTED, MethodSummary, SeedFigure
from reproductions.summary_words import figure_words

__all__ = ["Ordering", "Pair", "order_sentences", "orderings_of"]

Outcome = Literal["same order", "opposite order", "within noise"]

_KEYS: dict[Outcome, str] = {
    "same order": "same_order",
    "opposite order": "opposite_order",
    "within noise": "not_told_apart",
}
"""Names of the counts in the output of `--json`, which programs may read."""

_NOISE = 0.002
"""Gap of two ECE_EM that chance alone can make at 10,000 rows: 0.2 points."""

_ROWS = 10_000
_SURE = 2.0
_MOST = 3  # pairs that a sentence names


@dataclass(frozen=True)
class Pair:
    """Two methods, in the paper and here; the first has the smaller figure in the paper.

    Parameters
    ----------
    first, second : labels of the methods
    paper : the paper's gap, second less first, as a fraction
    noise : the gap that chance in the paper's test rows can make
    ours : our gap of the means over seeds, second less first
    error : its standard error over seeds; None where a method has one seed
    outcome : of ours beside the paper's order
    """

    first: str
    second: str
    paper: float
    noise: float
    ours: float
    error: float | None
    outcome: Outcome

    @property
    def outside(self) -> bool:
        """Return whether the paper's gap is more than noise."""
        return self.paper > self.noise

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {**asdict(self), "outside": self.outside}


@dataclass(frozen=True)
class Ordering:
    """All pairs of methods by one figure.

    Parameters
    ----------
    figure, way : which of ours: `ece_em` or `ece_ew`; "raw" or "temperature"
    pairs : of methods that both have
    rows : test rows of the paper
    claim : whether ours are on the paper's schedule; only then an order is claimed
    """

    figure: str
    way: str
    pairs: tuple[Pair, ...]
    rows: int
    claim: bool = True

    @property
    def outside(self) -> tuple[Pair, ...]:
        """Return the pairs that the paper orders by more than noise."""
        return tuple(each for each in self.pairs if each.outside)

    def counted(self) -> dict[Outcome, int]:
        """Return how many of these pairs had each outcome."""
        outcomes = [each.outcome for each in self.outside]
        names: tuple[Outcome, ...] = ("same order", "opposite order", "within noise")
        return {name: outcomes.count(name) for name in names}

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "figure": self.figure,
            "way": self.way,
            "rows": self.rows,
            "claim": self.claim,
            "outside": len(self.outside),
            **{_KEYS[name]: n for name, n in self.counted().items()},
            "sentence": str(self),
            "pairs": [each.to_dict() for each in self.pairs],
        }

    def __str__(self) -> str:
        title = figure_words(self.figure, self.way)
        if len(self.pairs) == 1:
            sentence = _of_one(self.pairs[0], self.rows)
            return f"{title}: {sentence}{_ends(self.way, claim=self.claim)}."
        total = format_count(len(self.pairs), "pair")
        if not self.outside:
            return f"{title}: the paper has no gap beyond noise in {total} of methods."
        same = self.counted()["same order"]
        unlike = _named(self.outside, "opposite order", "in the opposite order")
        unclear = _named(self.outside, "within noise", "within noise")
        return (
            f"{title}: the paper has a gap beyond noise ({_noise_words(self.outside)} at "
            f"{self.rows:,} rows) in {len(self.outside)} of {total} of methods; of these ours have "
            f"{same or 'none'} in the same order, {unlike}, {unclear}"
            f"{_ends(self.way, claim=self.claim)}."
        )


def _of_one(pair: Pair, rows: int) -> str:
    """Say of the only two methods which has the smaller figure, in the paper and here."""
    if not pair.outside:
        return f"the paper's gap between {pair.first} and {pair.second} is within noise"
    here = {
        "same order": "and here too",
        "opposite order": f"but here {pair.second} has less",
        "within noise": "but here the gap is within noise",
    }
    return (
        f"{pair.first} has less than {pair.second} in the paper, beyond noise "
        f"({_noise_words([pair])} at {rows:,} rows), {here[pair.outcome]}"
    )


def order_sentences(orderings: Sequence[Ordering]) -> list[str]:
    """Say how ours are ordered beside the paper's: pair by pair only where an order is claimed."""
    if all(each.claim for each in orderings):
        return [str(each) for each in orderings]
    parts = [_in_short(each) for each in orderings if each.outside]
    if not parts:
        return []
    return [
        "No order of methods is claimed, since ours are not trained as the paper's were. Of the "
        f"paper's gaps beyond noise, ours go {'; '.join(parts)}."
    ]


def _in_short(ordering: Ordering) -> str:
    counts = ordering.counted()
    return (
        f"the same way in {counts['same order']} and the other way in {counts['opposite order']} "
        f"of {len(ordering.outside)} ({figure_words(ordering.figure, ordering.way)})"
    )


def _ends(way: str, *, claim: bool) -> str:
    disclaimer = "" if claim else "; they are not trained as the paper's: no claim about the order"
    # The metric that a temperature is tuned by moves figures by more than most gaps.
    tuned = "; papers tune it by ECE, ours by log loss" if way == "temperature" else ""
    return tuned + disclaimer


def orderings_of(
    methods: Sequence[MethodSummary], rows: int, *, paper: int | None = None, claim: bool = True
) -> tuple[Ordering, ...]:
    r"""Compare the order of methods with the paper's, pair by pair.

    The paper's gap is more than noise if it exceeds

    .. math:: \max\Bigl((q_a - f_a) + (q_b - f_b),\; 0.002 \sqrt{10000 / n}\Bigr)

    :math:`f` and :math:`q` are the mean and the 95 % quantile of the floors of methods a and b,
    n the test rows. The papers published no floors, so those of our runs are used. Our gap is
    more than noise if that of the means over seeds exceeds the same noise and two standard errors
    over seeds (all seeds share their test rows, so neither covers the other); with one seed, if
    the intervals of the two runs do not overlap. This is a rule of thumb, not a test: no error
    rate is promised, least of all over many pairs.

    Parameters
    ----------
    methods : with the paper's figures, where it has some
    rows : test rows n
    paper : test rows of the paper, where they are not as many; its noise is that much larger
    claim : whether the runs are on the paper's schedule
    """
    orderings = []
    for published, figure, way in PRINTED:
        if figure == "error":  # the papers rank calibration, and errors lie close together
            continue
        known = [
            (each.published[published] / 100, each, ours)
            for each in methods
            if published in each.published and (ours := each.figure(way, figure)) is not None
        ]
        ranked = sorted(known, key=lambda each: (each[0], each[1].label))
        pairs = tuple(_pair(a, b, rows, paper or rows) for a, b in combinations(ranked, 2))
        if pairs:
            orderings.append(Ordering(figure, way, pairs, paper or rows, claim))
    return tuple(orderings)


_Known = tuple[float, MethodSummary, SeedFigure]


def _pair(first: _Known, second: _Known, rows: int, paper_rows: int) -> Pair:
    (paper_a, a, ours_a), (paper_b, b, ours_b) = first, second
    noise = _NOISE * math.sqrt(_ROWS / rows)
    spreads = [_spread(ours_a), _spread(ours_b)]
    if None not in spreads:
        noise = max(noise, math.fsum(each or 0.0 for each in spreads))
    gap = ours_b.value.mean - ours_a.value.mean
    error = _error(ours_a, ours_b)
    distinct = _apart(ours_a, ours_b) if error is None else abs(gap) > max(noise, _SURE * error)
    outcome: Outcome = "same order" if gap > 0 else "opposite order"
    return Pair(
        first=a.label,
        second=b.label,
        paper=paper_b - paper_a,
        noise=noise * math.sqrt(rows / paper_rows),
        ours=gap,
        error=error,
        outcome=outcome if distinct else "within noise",
    )


def _spread(figure: SeedFigure) -> float | None:
    if figure.floor is None or figure.floor_q95 is None:
        return None
    return figure.floor_q95 - figure.floor


def _error(a: SeedFigure, b: SeedFigure) -> float | None:
    if a.value.sd is None or b.value.sd is None:
        return None
    return math.hypot(a.value.sd / math.sqrt(a.value.n), b.value.sd / math.sqrt(b.value.n))


def _apart(a: SeedFigure, b: SeedFigure) -> bool:
    if a.low is None or a.high is None or b.low is None or b.high is None:
        return False
    return a.high < b.low or b.high < a.low


def _noise_words(pairs: Sequence[Pair]) -> str:
    least, most = (f"{100 * end(each.noise for each in pairs):.2f}" for end in (min, max))
    return f"{least} points" if least == most else f"{least} to {most} points"


def _named(pairs: Sequence[Pair], outcome: Outcome, words: str) -> str:
    names = [f"{each.first} and {each.second}" for each in pairs if each.outcome == outcome]
    if not names:
        return f"none {words}"
    shown = names[:_MOST]
    if len(names) > _MOST:
        shown.append(f"{len(names) - _MOST} more")
    return f"{len(names)} {words} ({'; '.join(shown)})"
