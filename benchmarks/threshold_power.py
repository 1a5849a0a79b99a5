"""Power of guaranteed thresholds: how many positives they keep, beside MAPIE's.

In worlds whose truth is known, rows are drawn and a threshold is selected that keeps a precision
with 95 % confidence. What counts is the true recall at that threshold: 0 if there is none.
A promise is broken where the true precision at the threshold is below the target.

Every method has one setting for all worlds, numbers of rows and targets, and all see the same
draws. A cell is one world, number of rows and target. Ours may be behind the best of MAPIE's
settings in that cell by 0.02 or by 2 standard errors of the paired difference, whichever is more.
The best setting is picked afterwards and separately for each cell, which favours MAPIE.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from functools import partial
from importlib import metadata
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

from benchmarks.harness import Size
from benchmarks.outcome import Outcome, within
from benchmarks.threshold_peers import SETTINGS, mapie_thresholds

__all__ = ["OURS", "measure"]

OURS = "calibrant"
CONFIDENCE = 0.95
TARGETS = (0.8, 0.85, 0.9)
ROWS = {"full": (300, 1_000, 5_000, 20_000), "toy": (300, 1_000)}
REPETITIONS = {"full": 400, "toy": 4}
SLACK = 0.02
RARELY = 0.01
"""A cell in which no method gives a threshold in more than this share of draws is marked."""

Thresholds = list[float | None]


def measure(size: Size) -> list[Outcome]:
    """Fill every cell, then hold means over all cells and each cell against MAPIE's."""
    worlds = _worlds()
    cells = [
        cell for n in ROWS[size] for world in worlds for cell in _cells(world, n, REPETITIONS[size])
    ]
    means = {name: _mean(cells, name) for name in (OURS, *SETTINGS)}
    facts = {
        "confidence": CONFIDENCE,
        "repetitions": REPETITIONS[size],
        "versions": {name: metadata.version(name) for name in ("calibrant", "MAPIE")},
        "settings": {name: setting.words for name, setting in SETTINGS.items()},
        "worlds": {world.name: world.description for world in worlds},
        "mean_recall": means,
        "cells_nobody": sum(cell["nobody"] for cell in cells),
        "table": cells,
    }
    behind = [cell for cell in cells if not cell["holds"]]
    return [
        within(
            f"recall of thresholds clearly below the best MAPIE setting in none of {len(cells)} "
            "cells",
            len(behind),
            1,
            "cells",
            facts,
        ),
        *(_above(name, means, len(cells)) for name in SETTINGS),
    ]


def _worlds() -> list[Any]:
    """Return the ordinary worlds whose rows have equal weights: MAPIE takes no others."""
    from calibrant.testing.threshold_worlds import THRESHOLD_WORLDS

    return [world for world in THRESHOLD_WORLDS.values() if world.kind == "ordinary"]


def _above(name: str, means: Mapping[str, float], cells: int) -> Outcome:
    setting = SETTINGS[name]
    return Outcome(
        f"mean recall of thresholds over {cells} cells above MAPIE's ({setting.words})",
        round(means[OURS], 4),
        max(round(means[name], 4), 1e-4),  # the ratio needs a limit above 0
        "of the positives",
        "at least",
        {"difference": means[OURS] - means[name], "mended": setting.nan_is_one},
    )


def _cells(world: Any, n: int, repetitions: int) -> list[dict[str, Any]]:
    """Draw the repetitions of one world and number of rows, and judge every target on them."""
    by_target: dict[float, dict[str, Thresholds]] = {
        target: {name: [] for name in (OURS, *SETTINGS)} for target in TARGETS
    }
    rng = np.random.default_rng([crc32(world.name.encode()), n])
    for _ in range(repetitions):
        draw = world.draw(n, rng)
        for target, of in by_target.items():
            of[OURS].append(_ours(draw.labels, draw.probs, target))
            theirs = mapie_thresholds(draw.labels, draw.probs, target, CONFIDENCE)
            for name, threshold in theirs.items():
                of[name].append(threshold)
    return [_cell(world, n, target, of) for target, of in by_target.items()]


def _ours(labels: NDArray[Any], probs: NDArray[Any], target: float) -> float | None:
    """Return the threshold of `select`, or None where it raises `TargetUnreachable`.

    Whether it would raise is checked first: its error reports how many labels are missing, which
    it finds by simulation, and that would take most of the time here.
    """
    from calibrant.thresholds import precision, recall, select
    from calibrant.thresholds.proof.certify import certify_positions
    from calibrant.thresholds.proof.ranked import rank_rows

    held = precision >= target
    if not certify_positions(rank_rows(probs, labels == 1), held, 1 - CONFIDENCE).any():
        return None
    return select(labels, probs, hold=held, maximise=recall, confidence=CONFIDENCE).threshold


def _cell(world: Any, n: int, target: float, by_method: Mapping[str, Thresholds]) -> dict[str, Any]:
    """Judge the thresholds of every method by the truth of the world."""
    judged = {name: _judged(world, target, thresholds) for name, thresholds in by_method.items()}
    recalls = {name: recall for name, (recall, _) in judged.items()}
    best = max(SETTINGS, key=lambda name: float(recalls[name].mean()))
    excess = recalls[OURS] - recalls[best]
    error = float(excess.std(ddof=1) / math.sqrt(len(excess)))
    allowed = max(SLACK, 2 * error)
    issued = {name: sum(one is not None for one in of) for name, of in by_method.items()}
    return {
        "world": world.name,
        "n": n,
        "target": target,
        "recall": {name: float(recall.mean()) for name, recall in recalls.items()},
        "issued": issued,
        "broken": {name: int(broken.sum()) for name, (_, broken) in judged.items()},
        "best_of_mapie": best,
        "difference": float(excess.mean()),
        "paired_error": error,
        "holds": bool(excess.mean() >= -allowed),
        "nobody": max(issued.values()) <= RARELY * len(excess),
    }


def _judged(
    world: Any, target: float, thresholds: Sequence[float | None]
) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """Return the true recall of each draw, and whether its promise was broken."""
    issued = np.array([one is not None for one in thresholds])
    values = np.array([np.nan if one is None else one for one in thresholds])
    recall, precise = np.zeros(len(values)), np.ones(len(values))
    for rate, out in (("recall", recall), ("precision", precise)):
        truth = partial(world.truth, rate)
        out[issued] = [truth(one) for one in values[issued]]
    return recall, precise < target


def _mean(cells: Sequence[Mapping[str, Any]], name: str) -> float:
    return float(np.mean([cell["recall"][name] for cell in cells]))
