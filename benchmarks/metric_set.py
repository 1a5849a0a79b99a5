"""The default metrics on 1,000,000 x 10 probabilities, in units of one top-label ECE.

`calibrant.metrics.measure` checks the input, finds the predicted class and sorts the scores once
for all thirteen figures; without the sweep, the ranking metrics and intervals.
"""

from __future__ import annotations

from functools import partial

from benchmarks.harness import Size, race
from benchmarks.made_scores import multiclass_scores
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

ROWS = {"full": 1_000_000, "toy": 20_000}
ROUNDS = {"full": 7, "toy": 2}
LIMIT = 15.0


def measure(size: Size) -> list[Outcome]:
    """Time the whole set and one ECE in alternating turns."""
    from calibrant import metrics

    labels, probs = multiclass_scores(ROWS[size])
    runs = race(
        {
            "one ECE": partial(metrics.ece, labels, probs),
            "the set": partial(metrics.measure, labels, probs),
        },
        ROUNDS[size],
    )
    total, unit = runs["the set"].median, runs["one ECE"].median
    return [
        within(
            "thirteen default metrics for less than 15 top-label ECEs",
            total / unit,
            LIMIT,
            "times",
            {
                "total_s": round(total, 6),
                "one_ece_s": round(unit, 6),
                "values": runs["the set"].value,
            },
        )
    ]
