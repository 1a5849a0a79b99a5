"""What people would use instead, in a few lines: each fitted on the train rows of the study."""

from __future__ import annotations

import os
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from benchmarks.harness import cores
from benchmarks.models.rows import PeerRows

__all__ = ["PEERS", "PeerScores", "fit_peers", "log_loss_at_best_temperature"]

STRENGTHS = (1.0, 10.0, 100.0)
"""C of the logistic regressions on texts."""

SCORED = ("choice", "calibrate", "test")
Logits = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class PeerScores:
    """A fitted peer.

    Parameters
    ----------
    name : of the peer
    logits : (n, K) of the choice, calibrate and test rows
    seconds : of its fit, choices included
    facts : what it chose
    """

    name: str
    logits: Mapping[str, Logits]
    seconds: float
    facts: Mapping[str, Any] = field(default_factory=dict)


def fit_peers(rows: PeerRows, kind: str, seed: int) -> list[PeerScores]:
    """Fit every peer of this kind of rows."""
    return [_fit(name, fit, rows, seed) for name, fit in PEERS[kind].items()]


def log_loss_at_best_temperature(codes: NDArray[np.int64], logits: Logits) -> float:
    """Return the log loss of logits at the temperature that is best on these very rows."""
    from calibrant.calibrators import TemperatureScaling

    scaling = TemperatureScaling().fit(logits, codes, classes=range(logits.shape[1]))
    log_probs = scaling.predict_log_proba(logits)
    return float(-log_probs[np.arange(len(codes)), codes].mean())


Score = Callable[[str], Any]
Fit = Callable[[PeerRows, int], tuple[Score, dict[str, Any]]]


def _fit(name: str, fit: Fit, rows: PeerRows, seed: int) -> PeerScores:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        start = time.perf_counter()
        score, facts = fit(rows, seed)
        seconds = time.perf_counter() - start
        logits = {split: as_columns(score(split), len(rows.classes)) for split in SCORED}
    return PeerScores(name, logits, seconds, facts)


def as_columns(scores: Any, k: int) -> Logits:
    """Return a column for each class; log-odds of the second of two get a column of zeros."""
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim == 1:
        scores = np.column_stack([np.zeros(len(scores)), scores])
    if scores.shape[1] != k:
        raise ValueError(f"a peer knows {scores.shape[1]} of {k} classes: a split lacks one.")
    return scores


class Frames:
    """The splits of a table as pandas frames, with texts as categories of the train rows."""

    def __init__(self, rows: PeerRows) -> None:
        train = rows.inputs["train"].to_pandas()
        self.words = [name for name in train if not pd.api.types.is_numeric_dtype(train[name])]
        self.numbers = [name for name in train if name not in self.words]
        self.kinds = {
            name: pd.CategoricalDtype(sorted(set(train[name].dropna()))) for name in self.words
        }
        self.rows = rows

    def __getitem__(self, split: str) -> pd.DataFrame:
        """Return a split; a category that the train rows lack is missing."""
        frame = self.rows.inputs[split].to_pandas()
        return frame.astype({**self.kinds, **dict.fromkeys(self.numbers, float)})


def _hist_gradient_boosting(rows: PeerRows, seed: int) -> tuple[Score, dict[str, Any]]:
    from sklearn.ensemble import HistGradientBoostingClassifier

    frames = Frames(rows)
    model = HistGradientBoostingClassifier(random_state=seed, categorical_features="from_dtype")
    model.fit(frames["train"], rows.codes["train"])
    return lambda split: model.decision_function(frames[split]), {"rounds": int(model.n_iter_)}


def _lightgbm(rows: PeerRows, seed: int) -> tuple[Score, dict[str, Any]]:
    from lightgbm import LGBMClassifier

    frames = Frames(rows)
    threads = int(os.environ.get("OMP_NUM_THREADS") or cores())  # by default it asks no one
    model = LGBMClassifier(random_state=seed, verbose=-1, n_jobs=threads)
    model.fit(frames["train"], rows.codes["train"])
    return lambda split: model.predict(frames[split], raw_score=True), {}


def _logistic_regression(rows: PeerRows, seed: int) -> tuple[Score, dict[str, Any]]:
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.linear_model import LogisticRegression
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder, StandardScaler

    frames = Frames(rows)
    numbers = make_pipeline(SimpleImputer(strategy="median", add_indicator=True), StandardScaler())
    model = make_pipeline(
        make_column_transformer(
            (OneHotEncoder(handle_unknown="ignore"), frames.words), (numbers, frames.numbers)
        ),
        LogisticRegression(max_iter=1_000, random_state=seed),
    ).fit(frames["train"], rows.codes["train"])
    return lambda split: model.decision_function(frames[split]), {}


def _words(rows: PeerRows, seed: int) -> tuple[Score, dict[str, Any]]:
    from sklearn.feature_extraction.text import TfidfVectorizer

    return _linear(rows, seed, TfidfVectorizer(ngram_range=(1, 2)))


def _words_and_characters(rows: PeerRows, seed: int) -> tuple[Score, dict[str, Any]]:
    from sklearn.feature_extraction.text import TfidfVectorizer
    from sklearn.pipeline import make_union

    characters = TfidfVectorizer(analyzer="char_wb", ngram_range=(2, 5))
    return _linear(rows, seed, make_union(TfidfVectorizer(ngram_range=(1, 2)), characters))


def _linear(rows: PeerRows, seed: int, features: Any) -> tuple[Score, dict[str, Any]]:
    """Fit a logistic regression; its C has the best steer rows after temperature scaling."""
    from sklearn.linear_model import LogisticRegression

    train = features.fit_transform(rows.inputs["train"]).tocsr()
    steer = features.transform(rows.inputs["steer"]).tocsr()
    losses, models, seconds = {}, {}, {}
    for c in STRENGTHS:
        start = time.perf_counter()
        model = LogisticRegression(C=c, max_iter=1_000, random_state=seed)
        models[c] = model.fit(train, rows.codes["train"])
        seconds[c] = time.perf_counter() - start
        logits = as_columns(model.decision_function(steer), len(rows.classes))
        losses[c] = log_loss_at_best_temperature(rows.codes["steer"], logits)
    best = min(STRENGTHS, key=losses.__getitem__)
    facts = {
        "C": best,
        "features": train.shape[1],
        "steer_log_loss": {f"{c:g}": round(loss, 5) for c, loss in losses.items()},
        "fit_seconds": {f"{c:g}": round(s, 2) for c, s in seconds.items()},
    }

    def score(split: str) -> Any:
        return models[best].decision_function(features.transform(rows.inputs[split]))

    return score, facts


PEERS: Mapping[str, Mapping[str, Fit]] = {
    "table": {
        "HistGradientBoosting": _hist_gradient_boosting,
        "LightGBM": _lightgbm,
        "logistic regression": _logistic_regression,
    },
    "text": {
        "word TF-IDF + LR": _words,
        "word + char TF-IDF + LR": _words_and_characters,
    },
}
