"""Fitting time: our boosted trees against LightGBM's own, our n-grams against scikit-learn's.

The contenders have the same train and steer rows, threads and parameters. Trees: a fixed number of
rounds, the steer rows evaluated on both sides. N-grams: both sides choose their regularisation on
the steer rows.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Mapping
from typing import Any

from benchmarks.harness import Run, Size, cores, race
from benchmarks.models import sets
from benchmarks.models.peers import PEERS, Frames
from benchmarks.models.rows import PeerRows, read_peer_rows
from benchmarks.models.sets import DataSet
from benchmarks.models.store import RunFolder
from benchmarks.outcome import Outcome, within

__all__ = ["measure_speed"]

TREES = {"full": ("adult", "credit_default", "bank_marketing"), "toy": ("made_sales",)}
NGRAMS = {"full": ("it_tickets", "womens_clothing"), "toy": ("return_reasons",)}
N_TREES = {"full": 300, "toy": 20}
TURNS = {"full": 5, "toy": 1}
SAME, FOCAL, LINEAR = 1.15, 1.5, 1.2
_SHARED = (
    "learning_rate", "num_leaves", "min_child_samples", "reg_lambda", "colsample_bytree",
    "subsample", "cat_smooth", "max_bin",
)  # fmt: skip
_CATEGORIES = ("min_data_per_group", "max_cat_to_onehot")  # follow from the train rows


def measure_speed(size: Size) -> list[Outcome]:
    """Race trees and n-grams on a few data sets; the slowest ratio is held to the goal."""
    known = {each.name: each for each in (sets.FULL if size == "full" else sets.TOY)}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        trees = {name: _race_trees(known[name], size) for name in TREES[size]}
        ngrams = {name: _race_ngrams(known[name], size) for name in NGRAMS[size]}
    n = f"{N_TREES[size]} rounds"
    return [
        _slowest(f"BoostingClassifier, {n}, against LightGBM's own time", trees, "ours", SAME),
        _slowest(f"BoostingClassifier with focal loss, {n}, likewise", trees, "focal", FOCAL),
        _slowest("NgramClassifier against TF-IDF + logistic regression", ngrams, "ours", LINEAR),
    ]


def _slowest(
    goal: str, races: Mapping[str, Mapping[str, Run]], contender: str, limit: float
) -> Outcome:
    ratios = {name: runs[contender].median / runs["peer"].median for name, runs in races.items()}
    seconds = {
        name: {which: run.to_dict() for which, run in runs.items()} for name, runs in races.items()
    }
    ratio = max(ratios.values())
    return within(goal, ratio, limit, "times, the slowest set", {"seconds": seconds})


def _race_trees(data_set: DataSet, size: Size) -> dict[str, Run]:
    from lightgbm import LGBMClassifier

    from calibrant import BoostingClassifier

    rows = _rows(data_set, size)
    frames, threads = Frames(rows), int(os.environ.get("OMP_NUM_THREADS") or cores())
    train, steer = frames["train"], frames["steer"]
    budget = {"n_estimators": N_TREES[size], "n_jobs": threads}
    options = BoostingClassifier().get_params()
    same = {name: options[name] for name in _SHARED}
    same |= {"subsample_freq": int(same["subsample"] < 1), "deterministic": True, "verbose": -1}
    fitted = _fit(BoostingClassifier(n_estimators=1), rows)
    learned = fitted.options_.parameters(len(rows.codes["train"]), len(rows.classes))
    same |= {name: learned[name] for name in _CATEGORIES}

    def ours(loss: str) -> Callable[[], Any]:
        model = BoostingClassifier(loss=loss, patience=None, **budget)
        return lambda: _fit(model, rows)

    def theirs() -> Any:
        model = LGBMClassifier(**same, **budget, force_col_wise=True)
        held = [(steer, rows.codes["steer"])]
        return model.fit(train, rows.codes["train"], eval_set=held)

    contenders = {"ours": ours("ce"), "focal": ours("focal:gamma=3"), "peer": theirs}
    return race(contenders, TURNS[size])


def _race_ngrams(data_set: DataSet, size: Size) -> dict[str, Run]:
    from calibrant.training import NgramClassifier

    rows = _rows(data_set, size)
    peer = PEERS["text"]["word + char TF-IDF + LR"]
    return race({"ours": lambda: _fit(NgramClassifier(), rows), "peer": lambda: peer(rows, 0)}, 1)


def _fit(model: Any, rows: PeerRows) -> Any:
    steer = (rows.inputs["steer"], rows.codes["steer"])
    return model.fit(rows.inputs["train"], rows.codes["train"], steer=steer)


def _rows(data_set: DataSet, size: Size) -> PeerRows:
    return read_peer_rows(data_set.config(RunFolder.of(size, data_set.name, 0).path.parent, 0))
