"""Gradient boosting as a reference for the candidates of a table."""

from __future__ import annotations

import time

import numpy as np

from calibrant.calibrators.base.rows import two_columns
from calibrant.data import TableEncoder
from calibrant.data.encoders.column_warning import ignore_column_warnings
from calibrant.inputs import FloatArray
from calibrant.study.candidates.trained import compute_refinement
from calibrant.study.judge import evaluate_log_test, evaluate_logits, fit_temperature
from calibrant.study.result import CandidateResult
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig


def train_gradient_boosting(rows: StudyRows, config: StudyConfig) -> CandidateResult:
    """Train scikit-learn's gradient boosting on the same rows, as a reference.

    Its refinement is measured on the choice rows. Without choice rows it is None: a single
    candidate is steered by the steer rows, and gradient boosting is not.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    started = time.perf_counter()
    with ignore_column_warnings():  # training warns about them
        encoder = TableEncoder(categories=config.category_features, missing=config.missing).fit(
            rows["train"].inputs
        )
    model = HistGradientBoostingClassifier(random_state=config.seed)
    model.fit(encoder.transform(rows["train"].inputs), rows["train"].codes)

    def score_split(split: str) -> FloatArray:
        scores = model.decision_function(encoder.transform(rows[split].inputs))
        return two_columns(scores) if scores.ndim == 1 else np.asarray(scores, dtype=np.float64)

    splits = [name for name in ("choice", "log_test", "calibrate", "test") if len(rows[name].codes)]
    logits = {name: score_split(name) for name in splits}
    temperature = fit_temperature(rows, logits)
    return CandidateResult(
        loss="HistGradientBoosting",
        seed=0,
        reference=True,
        refinement=compute_refinement(rows, logits) if "choice" in logits else None,
        test=evaluate_logits(rows, "test", logits["test"]),
        scaled=evaluate_logits(rows, "test", logits["test"], temperature),
        log_test=evaluate_log_test(rows, logits),
        temperature=temperature,
        epochs=int(model.n_iter_),
        seconds=time.perf_counter() - started,
    )
