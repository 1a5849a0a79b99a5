"""Evaluate candidates on rows that they were not trained or steered on."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from calibrant.calibrators import Calibrator, TemperatureScaling
from calibrant.calibrators.base.rows import two_columns
from calibrant.convert import log_probs_from_logits
from calibrant.data import TableEncoder
from calibrant.data.encoders.column_warning import ignore_column_warnings
from calibrant.inputs import FloatArray
from calibrant.metrics import evaluate
from calibrant.metrics.influence_figures import loss_interval
from calibrant.metrics.summary import moments
from calibrant.results import Evaluation
from calibrant.study.candidates.candidate import StudyCandidate, short_name
from calibrant.study.candidates.combined import CombinedCandidate
from calibrant.study.candidates.race import TrainedStudy
from calibrant.study.candidates.train_all import Outcome
from calibrant.study.candidates.trained import TrainedCandidate, compute_refinement
from calibrant.study.candidates.weighted import WeightedCandidate
from calibrant.study.choose import PairedChoice, paired_mean
from calibrant.study.result import CandidateResult, Gain, Skill
from calibrant.study.rows.rows import StudyRows
from calibrant.study.settings.config import BASELINE, StudyConfig

_SMALLEST = 1e-300


def evaluate_candidates(
    rows: StudyRows, trained: TrainedStudy, comparison: PairedChoice
) -> list[CandidateResult]:
    """Evaluate every candidate on the test rows and on held-out rows of the logs."""
    results = []
    for i, (candidate, outcome) in enumerate(
        zip(trained.candidates, trained.outcomes, strict=True)
    ):
        if isinstance(outcome, str):
            results.append(CandidateResult(**_identity(candidate), failed=outcome))
        else:
            one = _evaluate_candidate(rows, outcome)
            behind, error = comparison.behind[i], comparison.errors[i]
            learned = has_learned(rows, outcome.refinement)
            results.append(replace(one, behind=behind, behind_error=error, learned=learned))
    return results


def has_learned(rows: StudyRows, refinement: float) -> bool:
    """Return whether a candidate is better than the class shares by more than chance explains.

    Both are measured on the rows that candidates are compared on.
    """
    from calibrant.fitting.steer_figures import beats_frequencies

    classes = len(rows.classes)
    trained = np.bincount(rows["train"].codes_and_weights[0], minlength=classes) + 1.0 / classes
    codes, _ = rows[rows.compared_on].codes_and_weights
    base = -float(np.log(trained / trained.sum())[codes].mean())
    return beats_frequencies(refinement, base, len(codes))


def explain_choice(results: Sequence[CandidateResult], comparison: PairedChoice, n: int) -> str:
    """Return why a candidate was chosen, with the figures of the choice rows."""
    chosen, best = results[comparison.chosen], results[comparison.best]
    others = [one for one in results if one.failed is None and one is not chosen]
    if not others:
        which = "" if len(results) == 1 else " that could be trained"
        name = replace(chosen, raced=bool(chosen.model)).name
        return f"the only candidate{which} is {name}."
    rows = f"On the {n:,} choice rows"
    if chosen is best:
        second = min(others, key=lambda one: one.refinement or np.inf)
        return (
            f"{rows} {chosen.name} has the smallest log loss after temperature scaling, "
            f"{chosen.refinement:.4f} (next is {second.name}, {second.refinement:.4f})."
        )
    return (
        f"{rows} {chosen.name} (log loss after temperature scaling {chosen.refinement:.4f}) cannot "
        f"be distinguished from the smallest, {best.name} ({best.refinement:.4f}; they differ by "
        f"{chosen.behind:.4f} \N{PLUS-MINUS SIGN} {chosen.behind_error:.4f}), and comes first: "
        "cross-entropy before other losses, single models before averages."
    )


def measure_gain(
    rows: StudyRows, trained: TrainedStudy, results: Sequence[CandidateResult], chosen: int
) -> Gain | None:
    """Measure on the test rows what the choice gained or lost; None for a single candidate."""
    tried = [i for i, one in enumerate(results) if one.failed is None]
    if len(tried) < 2:
        return None
    losses = {i: _test_losses(rows, trained.outcomes[i], results[i]) for i in tried}
    weights = rows["test"].codes_and_weights[1]
    usual = _find_usual(results, trained.models[0], chosen)
    means = {i: paired_mean(loss, weights)[0] for i, loss in losses.items()}
    hindsight = min(tried, key=lambda i: (means[i], i))

    def against(i: int | None) -> tuple[str, float, float] | None:
        if i is None or i == chosen:
            return None
        return (results[i].name, *paired_mean(losses[chosen] - losses[i], weights))

    return Gain(against(usual), against(hindsight))


def _find_usual(results: Sequence[CandidateResult], winner: str, chosen: int) -> int | None:
    """Return the position of cross-entropy of the chosen model, preferably with the same seed.

    A weighted ensemble mixes several models; it is compared with the winner of the race.
    """
    own = results[chosen]
    model = short_name(winner) if own.way == "weighted" else own.model
    usual = [
        i
        for i, one in enumerate(results)
        if one.failed is None and one.model == model and (one.loss, one.way) == (BASELINE, "one")
    ]
    return min(usual, key=lambda i: results[i].seed != own.seed, default=None)


def _test_losses(rows: StudyRows, outcome: Outcome, result: CandidateResult) -> FloatArray:
    """Return the log loss of each in-scope test row, after temperature scaling."""
    assert isinstance(outcome, TrainedCandidate)
    codes, _ = rows["test"].codes_and_weights
    logits = outcome.logits["test"][rows["test"].inside] / (result.temperature or 1.0)
    return -log_probs_from_logits(logits)[np.arange(len(codes)), codes]


def measure_skill(
    rows: StudyRows, calibrator: Calibrator, logits: Mapping[str, FloatArray]
) -> Skill:
    """Compare the bundle's probabilities on the test rows with always saying the class shares.

    The shares are those of the calibrate rows, which the bundle knows too.
    """
    known, known_weights = rows["calibrate"].codes_and_weights
    codes, weights = rows["test"].codes_and_weights
    counts = np.bincount(known, weights=known_weights, minlength=len(rows.classes)) + 0.5
    shares = counts / counts.sum()
    probs = calibrator.predict_proba(logits["test"][rows["test"].inside])
    own = -np.log(np.maximum(probs[np.arange(len(codes)), codes], _SMALLEST))
    base = -np.log(shares[codes])
    gain, error = paired_mean(base - own, weights)
    return Skill(gain, error, paired_mean(own, weights)[0], paired_mean(base, weights)[0])


def evaluate_logits(
    rows: StudyRows, split: str, logits: FloatArray, temperature: float | None = None
) -> Evaluation:
    """Evaluate logits on the in-scope rows of a split."""
    codes, weights = rows[split].codes_and_weights
    log_probs = log_probs_from_logits(logits[rows[split].inside] / (temperature or 1.0))
    evaluation = evaluate(codes, np.exp(log_probs), weights=weights)
    if evaluation["nll"].value is None:
        evaluation = _with_log_loss(evaluation, -log_probs[np.arange(len(codes)), codes], weights)
    return evaluation.with_classes(rows.classes)


def _with_log_loss(
    evaluation: Evaluation, losses: FloatArray, weights: FloatArray | None
) -> Evaluation:
    """Return a copy with the log loss of these rows.

    A probability may round to 0, which makes the log loss infinite, where its logarithm is finite.
    """
    summary = moments(losses, weights)
    interval = loss_interval(summary, len(losses), evaluation.confidence)
    nll = replace(evaluation["nll"], value=summary.mean, interval=interval, why=None)
    return replace(evaluation, figures={**evaluation.figures, "nll": nll})


def fit_temperature(rows: StudyRows, logits: Mapping[str, FloatArray]) -> float:
    """Fit a temperature on the calibrate rows."""
    codes, weights = rows["calibrate"].codes_and_weights
    in_scope = logits["calibrate"][rows["calibrate"].inside]
    fitted = TemperatureScaling().fit(in_scope, codes, weights=weights)
    return float(fitted.temperature_)


def _evaluate_candidate(rows: StudyRows, trained: TrainedCandidate) -> CandidateResult:
    logits, facts = trained.logits, trained.facts
    temperature = fit_temperature(rows, logits)
    return CandidateResult(
        **_identity(trained.candidate, trained),
        refinement=trained.refinement,
        test=evaluate_logits(rows, "test", logits["test"]),
        scaled=evaluate_logits(rows, "test", logits["test"], temperature),
        log_test=evaluate_log_test(rows, logits),
        temperature=temperature,
        records=tuple(facts["records"]),
        gammas=facts["gammas"],
        score_seconds=facts.get("score_seconds", 0.0),
        **{key: facts[key] for key in ("epochs", "best_epoch", "seconds", "weights")},
    )


def _identity(candidate: StudyCandidate, trained: TrainedCandidate | None = None) -> dict[str, Any]:
    """Return the fields that identify a candidate; for an ensemble, the seeds that were trained."""
    members = candidate.members
    if isinstance(trained, CombinedCandidate):
        members = tuple(member.candidate for member in trained.members)
    averages = candidate.way in ("ensemble", "weighted")
    identity: dict[str, Any] = {
        "loss": candidate.loss,
        "seed": candidate.seed,
        "way": candidate.way,
        "model": short_name(candidate.model),
        "raced": candidate.raced,
        "members": tuple(member.seed for member in members) if averages else (),
        "passes": candidate.passes,
    }
    if isinstance(trained, WeightedCandidate):
        identity["mixture"] = tuple(
            (member.candidate.name, weight)
            for member, weight in zip(trained.members, trained.mixture.weights, strict=True)
        )
    return identity


def evaluate_log_test(rows: StudyRows, logits: Mapping[str, FloatArray]) -> Evaluation | None:
    """Evaluate held-out rows of the logs; None without a golden set."""
    if "log_test" not in logits:
        return None
    return evaluate_logits(rows, "log_test", logits["log_test"])


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
