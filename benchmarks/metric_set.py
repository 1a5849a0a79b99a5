"""The default metrics on 1,000,000 x 10 probabilities, in units of one top-label ECE.

Thirteen calls of public functions, each with its own checks of the input; without the sweep, the
ranking metrics and intervals. What a user pays who calls metrics one by one.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from benchmarks.harness import Size, race
from benchmarks.made_scores import multiclass_scores
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

ROWS = {"full": 1_000_000, "toy": 20_000}
ROUNDS = {"full": 7, "toy": 2}
LIMIT = 15.0


def measure(size: Size) -> list[Outcome]:
    """Time each metric and one ECE in alternating turns."""
    labels, probs = multiclass_scores(ROWS[size])
    contenders = {name: partial(metric, labels, probs) for name, metric in _metrics().items()}
    runs = race({"one ECE": contenders["ece"], **contenders}, ROUNDS[size])
    parts = {name: run.median for name, run in runs.items() if name != "one ECE"}
    total, unit = sum(parts.values()), runs["one ECE"].median
    return [
        within(
            "thirteen default metrics for less than 15 top-label ECEs",
            total / unit,
            LIMIT,
            "times",
            {
                "total_s": round(total, 6),
                "one_ece": runs["one ECE"].to_dict(),
                "parts_s": {name: round(seconds, 6) for name, seconds in parts.items()},
                "values": {name: float(runs[name].value) for name in parts},
            },
        )
    ]


def _metrics() -> dict[str, Callable[..., Any]]:
    from calibrant import metrics

    return {
        "ece": metrics.ece,
        "ece mass": partial(metrics.ece, scheme="mass"),
        "mce": metrics.mce,
        "ece_debiased": metrics.ece_debiased,
        "ece_classwise": metrics.ece_classwise,
        "ece_smooth": metrics.ece_smooth,
        "ks": metrics.ks,
        "nll": metrics.nll,
        "brier": metrics.brier,
        "accuracy": metrics.accuracy,
        "precision_macro": metrics.precision_macro,
        "recall_macro": metrics.recall_macro,
        "f1_macro": metrics.f1_macro,
    }
