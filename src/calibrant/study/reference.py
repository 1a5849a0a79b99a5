"""A reference beside the candidates of a table: what gradient boosting gets on the same rows."""

from __future__ import annotations

import time

import numpy as np

from calibrant.calibrators.base.rows import two_columns
from calibrant.data import TableEncoder
from calibrant.inputs import FloatArray
from calibrant.study.candidates.trained import refinement_of
from calibrant.study.judge import fitted_temperature, judged_logits, log_test_of
from calibrant.study.result import CandidateResult
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import StudyConfig

__all__ = ["gradient_boosting"]


def gradient_boosting(rows: StudyRows, config: StudyConfig) -> CandidateResult:
    """Train scikit-learn's gradient boosting on the same rows, to stand beside the candidates.

    Its refinement is that of the choice rows. Where there are none it has none: a single candidate
    was steered by the steer rows, and gradient boosting was not.
    """
    from sklearn.ensemble import HistGradientBoostingClassifier

    started = time.perf_counter()
    encoder = TableEncoder(categories=config.categories).fit(rows["train"].inputs)
    model = HistGradientBoostingClassifier(random_state=config.seed)
    model.fit(encoder.transform(rows["train"].inputs), rows["train"].codes)

    def scored(split: str) -> FloatArray:
        found = model.decision_function(encoder.transform(rows[split].inputs))
        return two_columns(found) if found.ndim == 1 else np.asarray(found, dtype=np.float64)

    splits = [name for name in ("choice", "log_test", "calibrate", "test") if len(rows[name].codes)]
    logits = {name: scored(name) for name in splits}
    temperature = fitted_temperature(rows, logits)
    return CandidateResult(
        loss="HistGradientBoosting",
        seed=0,
        reference=True,
        refinement=refinement_of(rows, logits) if "choice" in logits else None,
        test=judged_logits(rows, "test", logits["test"]),
        scaled=judged_logits(rows, "test", logits["test"], temperature),
        log_test=log_test_of(rows, logits),
        temperature=temperature,
        epochs=int(model.n_iter_),
        seconds=time.perf_counter() - started,
    )
