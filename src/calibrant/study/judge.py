"""Judge every candidate on rows that it was neither trained nor steered on."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from calibrant.calibrators import TemperatureScaling
from calibrant.convert import probs_from_logits
from calibrant.inputs import FloatArray
from calibrant.metrics import evaluate
from calibrant.results import Evaluation
from calibrant.study.candidates.candidate import Candidate
from calibrant.study.candidates.combined import CombinedCandidate
from calibrant.study.candidates.train_all import Outcome
from calibrant.study.candidates.trained import TrainedCandidate
from calibrant.study.result import CandidateResult
from calibrant.study.rows.rows import StudyRows

__all__ = ["choose", "fitted_temperature", "judge", "judged_logits", "log_test_of"]


def judge(
    rows: StudyRows, candidates: Sequence[Candidate], outcomes: Sequence[Outcome]
) -> list[CandidateResult]:
    """Measure every candidate on the test rows and on held-out rows of the logs."""
    found = []
    for candidate, outcome in zip(candidates, outcomes, strict=True):
        if isinstance(outcome, str):
            found.append(CandidateResult(**_told(candidate), failed=outcome))
        else:
            found.append(_judged(rows, outcome))
    return found


def choose(results: Sequence[CandidateResult]) -> tuple[int, str]:
    """Return the candidate with the least refinement on the choice rows, and why that one.

    Nobody was trained or steered by those rows, so that no candidate is flattered. No trusted label
    has a say in it either, so promises certified on trusted rows need not pay for it.
    """
    able = [i for i, each in enumerate(results) if each.failed is None and not each.reference]
    best = min(able, key=lambda i: (results[i].refinement, i))
    others = [i for i in able if i != best]
    if not others:
        which = "" if len(results) == 1 else " that could be trained"
        return best, f"{results[best].name} is the only candidate{which}."
    second = min(others, key=lambda i: (results[i].refinement, i))
    return best, (
        f"On the choice rows {results[best].name} has the least log loss after temperature "
        f"scaling, {results[best].refinement:.4f} (next is {results[second].name}, "
        f"{results[second].refinement:.4f})."
    )


def judged_logits(
    rows: StudyRows, split: str, logits: FloatArray, temperature: float | None = None
) -> Evaluation:
    """Evaluate logits on those rows of a split that belong to a class."""
    codes, weights = rows[split].scored
    probs = probs_from_logits(logits[rows[split].inside] / (temperature or 1.0))
    return evaluate(codes, probs, weights=weights).with_classes(rows.classes)


def fitted_temperature(rows: StudyRows, logits: Mapping[str, FloatArray]) -> float:
    """Fit a temperature on the calibrate rows."""
    codes, weights = rows["calibrate"].scored
    own = logits["calibrate"][rows["calibrate"].inside]
    fitted = TemperatureScaling().fit(own, codes, weights=weights)
    return float(fitted.temperature_)


def _judged(rows: StudyRows, trained: TrainedCandidate) -> CandidateResult:
    logits, facts = trained.logits, trained.facts
    temperature = fitted_temperature(rows, logits)
    return CandidateResult(
        **_told(trained.candidate, trained),
        refinement=trained.refinement,
        test=judged_logits(rows, "test", logits["test"]),
        scaled=judged_logits(rows, "test", logits["test"], temperature),
        log_test=log_test_of(rows, logits),
        temperature=temperature,
        records=tuple(facts["records"]),
        gammas=facts["gammas"],
        **{key: facts[key] for key in ("epochs", "best_epoch", "seconds", "weights")},
    )


def _told(candidate: Candidate, trained: TrainedCandidate | None = None) -> dict[str, Any]:
    """Return which candidate it is; of an ensemble the seeds that could be trained."""
    members = candidate.members
    if isinstance(trained, CombinedCandidate):
        members = tuple(one.candidate for one in trained.members)
    seeds = tuple(one.seed for one in members) if candidate.way == "ensemble" else ()
    told = {"loss": candidate.loss, "seed": candidate.seed, "way": candidate.way}
    return {**told, "members": seeds, "passes": candidate.passes}


def log_test_of(rows: StudyRows, logits: Mapping[str, FloatArray]) -> Evaluation | None:
    """Evaluate held-out rows of the logs, where a golden set leaves some."""
    if "log_test" not in logits:
        return None
    return judged_logits(rows, "log_test", logits["log_test"])
