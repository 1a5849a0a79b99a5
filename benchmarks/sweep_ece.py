"""Sweep ECE of 1,000,000 calibrated scores: the slowest case, because order breaks late."""

from __future__ import annotations

from functools import partial

from benchmarks.harness import Size, race
from benchmarks.made_scores import binary_scores
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

ROWS = {"full": 1_000_000, "toy": 20_000}
ROUNDS = {"full": 5, "toy": 2}
LIMIT = 5.0


def measure(size: Size) -> list[Outcome]:
    """Time the sweep over equally filled and over equally wide bins."""
    from calibrant.metrics import ece_sweep

    labels, scores = binary_scores(ROWS[size])
    runs = race(
        {scheme: partial(ece_sweep, labels, scores, scheme=scheme) for scheme in ("mass", "width")},
        ROUNDS[size],
    )
    return [
        within(
            f"sweep ECE (equal {scheme}) under 5 s",
            run.median,
            LIMIT,
            "s",
            {**run.to_dict(), "value": run.value},
        )
        for scheme, run in runs.items()
    ]
