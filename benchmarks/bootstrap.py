"""1,000 bootstrap replicates of the ECE of 100,000 rows, drawn as counts in cells.

Resampling rows costs n draws per replicate; drawing how often each cell occurs costs one draw per
cell. The plain bootstrap over rows runs beside it, with fewer replicates, to show that both have
the same spread.
"""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Size, agree, race
from benchmarks.made_scores import binary_scores
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

ROWS = {"full": 100_000, "toy": 5_000}
ROUNDS = {"full": 7, "toy": 2}
REPLICATES, PLAIN, BINS = 1_000, 200, 15
LIMIT = 3.0


def measure(size: Size) -> list[Outcome]:
    """Time the replicates from rows to sizes."""
    labels, scores = binary_scores(ROWS[size], power=1.3)
    events = labels == 1
    run = race({"cells": lambda: _in_cells(scores, events)}, ROUNDS[size])["cells"]
    start = time.perf_counter()
    plain = _over_rows(labels, scores)
    each = (time.perf_counter() - start) / PLAIN
    agree("mean of the replicates", run.value.mean(), plain.mean(), 0.4 * plain.std())
    agree("spread of the replicates", run.value.std() / plain.std(), 1.0, 0.25)
    return [
        within(
            "1,000 bootstrap replicates of ECE at n = 100,000 under 3 s",
            run.median,
            LIMIT,
            "s",
            {
                **run.to_dict(),
                "spread": float(run.value.std()),
                "spread_over_rows": float(plain.std()),
                "seconds_over_rows_for_1000": round(each * REPLICATES, 3),
            },
        )
    ]


def _in_cells(scores: NDArray[Any], events: NDArray[np.bool_]) -> NDArray[np.float64]:
    from calibrant.metrics.binning import width_edges
    from calibrant.metrics.resampling import bootstrap_noise
    from calibrant.metrics.seminorms import binned_size
    from calibrant.metrics.tally import tally_rows

    edges = width_edges(BINS)
    cells = tally_rows(scores, events).compress(edges)
    noise = bootstrap_noise(cells, REPLICATES, np.random.default_rng(1))
    return binned_size(cells, edges)(cells.residual + noise)


def _over_rows(labels: NDArray[Any], scores: NDArray[Any]) -> NDArray[np.float64]:
    from calibrant.metrics import ece

    rng = np.random.default_rng(2)
    n = len(labels)
    draws = (rng.integers(0, n, n) for _ in range(PLAIN))
    return np.array([ece(labels[rows], scores[rows], n_bins=BINS) for rows in draws])
