"""Smooth ECE of 1,000,000 binary scores against relplot, the authors' own code.

Both find the bandwidth that equals its own error. relplot halves an interval of length 1 ten
times, so its value is known to 1/1024 and the two must agree within that.
"""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Size, agree, race
from benchmarks.made_scores import binary_scores
from benchmarks.outcome import Outcome, speed_up

__all__ = ["measure"]

ROWS = {"full": 1_000_000, "toy": 50_000}
ROUNDS = {"full": 9, "toy": 2}
RESOLUTION = 2.0**-10


def measure(size: Size) -> list[Outcome]:
    """Time both on float64 scores, and check that they agree."""
    from relplot import smECE

    from calibrant.metrics import ece_smooth

    labels, scores = binary_scores(ROWS[size], power=1.3)
    wide, events = scores.astype(np.float64), labels.astype(np.float64)
    runs = race(
        {
            "calibrant": lambda: ece_smooth(labels, wide),
            "relplot": lambda: float(smECE(wide, events)),
        },
        ROUNDS[size],
    )
    ours, theirs = runs["calibrant"], runs["relplot"]
    agree("smooth ECE and relplot", ours.value, theirs.value, RESOLUTION)
    details = {name: {**run.to_dict(), "value": run.value} for name, run in runs.items()}
    return [
        speed_up(
            "smooth ECE at least 5 times faster than relplot",
            theirs.median,
            ours.median,
            5.0,
            {**details, "allowed_difference": RESOLUTION},
        )
    ]
