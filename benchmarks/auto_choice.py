"""Harm and regret of the automatic choice: is it safe, and what does being safe cost.

Every case of `calibration_cases` at 100, 500, 2,000 and 10,000 rows, several draws each. Judged on
all remaining rows of a pool, or on 100,000 new rows of a world.

- harm: NLL above the uncalibrated model's by more than 0.1 % and by more than 2 standard errors of
  the paired difference;
- worse than temperature: with several classes, NLL above that of temperature scaling by the same
  measure;
- regret: mean over cases of (NLL - NLL of the best single method) / NLL of the best single method,
  where the best single method is the one with the lowest mean over these very cases, and an NLL
  below 0.02 counts as 0.02 in the denominator (some tables are separated perfectly).
"""

from __future__ import annotations

import multiprocessing
import os
from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.calibration_cases import Case, Split, cases
from benchmarks.harness import Size, cores
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

ROWS = {"full": (100, 500, 2_000, 10_000), "toy": (100, 500)}
DRAWS = {"full": 3, "toy": 1}
SINGLES = (
    "identity", "temperature", "ets", "platt", "beta", "quadratic", "isotonic_strict",
    "svs", "sms", "vector", "spline",
)  # fmt: skip
LEAST_NLL = 0.02
MOST_HARM = 0.05
MOST_REGRET = 0.005

_CASES: list[Case] = []


@dataclass(frozen=True)
class Judged:
    """One draw: the NLL of each single method and of the automatic choice."""

    case: str
    kind: str
    n: int
    classes: int
    nll: dict[str, float]
    chosen: str
    harm: bool
    harm_of: dict[str, bool]
    below_temperature: bool


def measure(size: Size) -> list[Outcome]:
    """Judge every draw, on all cores, and sum up for each number of rows."""
    _CASES[:] = cases(size)
    jobs = [
        (i, n, seed)
        for n in reversed(ROWS[size])  # the slow ones first
        for i, case in enumerate(_CASES)
        if n <= case.largest
        for seed in range(DRAWS[size])
    ]
    os.environ["OMP_NUM_THREADS"] = "1"
    with multiprocessing.get_context("fork").Pool(cores()) as pool:
        judged = [one for one in pool.imap_unordered(_judge, jobs, chunksize=4) if one is not None]
    summaries = [_summary(n, [j for j in judged if j.n == n]) for n in ROWS[size]]
    return [outcome for summary in summaries for outcome in _outcomes(summary)]


def _judge(job: tuple[int, int, int]) -> Judged | None:
    index, n, seed = job
    case = _CASES[index]
    split = case.split(n, seed)
    if split is None:
        return None
    losses, chosen = _losses(split)
    identity = losses["identity"]
    harm_of = {name: _harmed(loss, identity) for name, loss in losses.items()}
    return Judged(
        case=case.name,
        kind=case.kind,
        n=n,
        classes=2 if split.logits.ndim == 1 else split.logits.shape[1],
        nll={name: float(loss.mean()) for name, loss in losses.items()},
        chosen=chosen,
        harm=harm_of["auto"],
        harm_of=harm_of,
        below_temperature=_harmed(losses["auto"], losses["temperature"]),
    )


def _losses(split: Split) -> tuple[dict[str, np.ndarray], str]:
    """Return the loss of each judged row under every method, and what was chosen."""
    from calibrant.calibrators import AutoCalibrator, list_methods
    from calibrant.errors import InputError

    k = 2 if split.logits.ndim == 1 else split.logits.shape[1]
    known = list_methods()
    every = np.arange(len(split.labels))

    def loss(calibrator: Any) -> np.ndarray:
        log_probs = calibrator.predict_log_proba(
            np.column_stack([np.zeros(len(every)), split.logits]) if k == 2 else split.logits
        )
        return np.asarray(-log_probs[every, split.labels])

    losses: dict[str, np.ndarray] = {}
    for name in SINGLES:
        try:
            losses[name] = loss(known[name]().fit(split.fit_logits, split.fit_labels))
        except InputError:  # a class is missing: the method leaves the model as it is
            losses[name] = losses["identity"]
    auto = AutoCalibrator().fit(split.fit_logits, split.fit_labels)
    losses["auto"] = loss(auto)
    return losses, auto.chosen_.method


def _harmed(loss: np.ndarray, other: np.ndarray) -> bool:
    """Say whether a loss is above another by a thousandth and by two standard errors."""
    excess = loss - other
    error = float(excess.std() / np.sqrt(len(excess)))
    mean = float(excess.mean())
    return mean > 0.001 * float(other.mean()) and mean > 2.0 * error


def _relative(nll: float, other: float) -> float:
    return (nll - other) / max(other, LEAST_NLL)


def _summary(n: int, judged: Sequence[Judged]) -> dict[str, Any]:
    """Return the row of the table for n rows."""
    against = {
        name: float(np.mean([_relative(j.nll[name], j.nll["identity"]) for j in judged]))
        for name in (*SINGLES, "auto")
    }
    best = min(SINGLES, key=lambda name: against[name])
    by_case: dict[str, list[float]] = defaultdict(list)
    for j in judged:
        by_case[f"{j.kind}: {j.case}"].append(_relative(j.nll["auto"], j.nll["identity"]))
    losing = sorted(((float(np.mean(v)), k) for k, v in by_case.items()), reverse=True)[:5]
    return {
        "n": n,
        "draws": len(judged),
        "cases": len(by_case),
        "kinds": dict(Counter(j.kind for j in judged)),
        "harm_share": float(np.mean([j.harm for j in judged])),
        "harm_share_of": {
            name: float(np.mean([j.harm_of[name] for j in judged])) for name in SINGLES
        },
        "worse_than_temperature": _share_of_several(judged),
        "nll_change": against,
        "best_single": best,
        "regret": float(np.mean([_relative(j.nll["auto"], j.nll[best]) for j in judged])),
        "regret_to_best_per_case": float(
            np.mean([_relative(j.nll["auto"], min(j.nll[s] for s in SINGLES)) for j in judged])
        ),
        "chosen": dict(Counter(j.chosen for j in judged).most_common()),
        "worst_cases": [{"case": case, "nll_change": change} for change, case in losing],
    }


def _share_of_several(judged: Sequence[Judged]) -> float:
    """Return how often the choice is worse than a temperature, where there are several classes."""
    return float(np.mean([j.below_temperature for j in judged if j.classes > 2]))


def _outcomes(summary: dict[str, Any]) -> list[Outcome]:
    n = summary["n"]
    harm = within(
        f"automatic choice from {n:,} rows harms fewer than 5 % of draws",
        summary["harm_share"],
        MOST_HARM,
        "of draws",
        {"table": summary},
    )
    if n < 500:
        return [harm]
    regret = within(
        f"automatic choice from {n:,} rows: regret to the best single method at most 0.5 %",
        summary["regret"],
        MOST_REGRET,
        "of the NLL",
        {"best_single": summary["best_single"]},
    )
    worse = within(
        f"automatic choice from {n:,} rows of several classes is worse than temperature in fewer "
        "than 5 % of draws",
        summary["worse_than_temperature"],
        MOST_HARM,
        "of draws",
        {},
    )
    return [harm, regret, worse]
