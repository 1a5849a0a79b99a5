"""Evaluate candidates on rows that they were not trained or steered on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.inputs import FloatArray
from calibrant.metrics import evaluate
from calibrant.results import Evaluation
from calibrant.study.candidates.candidate import StudyCandidate
from calibrant.study.candidates.combined import CombinedCandidate
from calibrant.study.candidates.train_all import Outcome
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.result import CandidateResult
from calibrant.study.rows.rows import StudyRows


def evaluate_candidates(
    rows: StudyRows, candidates: Sequence[StudyCandidate], outcomes: Sequence[Outcome]
) -> list[CandidateResult]:
    """Evaluate every candidate on the test rows and on held-out rows of the logs."""
    results = []
    for candidate, outcome in zip(candidates, outcomes, strict=True):
        if isinstance(outcome, str):
            results.append(CandidateResult(**_identity(candidate), failed=outcome))
        else:
            results.append(_evaluate_candidate(rows, outcome))
    return results


def choose_candidate(results: Sequence[CandidateResult]) -> tuple[int, str]:
    """Return the candidate with the smallest refinement on the choice rows, and the reason.

    No candidate was trained or steered on these rows, so the comparison is fair. No trusted label
    is used either, so promises certified on trusted rows need no correction for the choice.
    """
    eligible = [
        i for i, result in enumerate(results) if result.failed is None and not result.reference
    ]
    best = min(eligible, key=lambda i: (results[i].refinement, i))
    others = [i for i in eligible if i != best]
    if not others:
        which = "" if len(results) == 1 else " that could be trained"
        return best, f"{results[best].name} is the only candidate{which}."
    second = min(others, key=lambda i: (results[i].refinement, i))
    return best, (
        f"On the choice rows {results[best].name} has the smallest log loss after temperature "
        f"scaling, {results[best].refinement:.4f} (next is {results[second].name}, "
        f"{results[second].refinement:.4f})."
    )


def evaluate_logits(
    rows: StudyRows, split: str, logits: FloatArray, temperature: float | None = None
) -> Evaluation:
    """Evaluate logits on the in-scope rows of a split."""
    codes, weights = rows[split].codes_and_weights
    probs = probs_from_logits(logits[rows[split].inside] / (temperature or 1.0))
    return evaluate(codes, probs, weights=weights).with_classes(rows.classes)


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
        **{key: facts[key] for key in ("epochs", "best_epoch", "seconds", "weights")},
    )


def _identity(candidate: StudyCandidate, trained: TrainedCandidate | None = None) -> dict[str, Any]:
    """Return the fields that identify a candidate; for an ensemble, the seeds that were trained."""
    members = candidate.members
    if isinstance(trained, CombinedCandidate):
        members = tuple(member.candidate for member in trained.members)
    seeds = tuple(member.seed for member in members) if candidate.way == "ensemble" else ()
    identity = {"loss": candidate.loss, "seed": candidate.seed, "way": candidate.way}
    return {**identity, "members": seeds, "passes": candidate.passes}


def evaluate_log_test(rows: StudyRows, logits: Mapping[str, FloatArray]) -> Evaluation | None:
    """Evaluate held-out rows of the logs; None without a golden set."""
    if "log_test" not in logits:
        return None
    return evaluate_logits(rows, "log_test", logits["log_test"])
