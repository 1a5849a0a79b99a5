"""Studies for tests of their reports: the networks are simulated, every figure is measured."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
from tests.few_draws import few_draws
from tests.unit.reports.training_figures import steered

from calibrant.calibrators import AutoCalibrator, TemperatureScaling
from calibrant.data.reasons import REASONS
from calibrant.errors import TargetUnreachable
from calibrant.metrics import evaluate
from calibrant.reports.threshold.page import point_view
from calibrant.study.result import (
    CandidateResult,
    KnownTruth,
    OutOfScope,
    PointResult,
    StudyResult,
)
from calibrant.testing import Draw, true_ce
from calibrant.thresholds import check_transfer, select

HOSTILE = "</script><img src=x onerror=\"document.title='broken'\">"
FACTORS = {"ce": 2.2, "focal:gamma=1": 1.7, "focal:gamma=3": 1.1, "focal:gamma=5": 0.7}


@dataclass(frozen=True)
class Rows:
    """Rows of a world of unit Gaussian clouds, whose posterior is known."""

    labels: np.ndarray
    logits: np.ndarray
    posterior: np.ndarray


def softmax(logits):
    spread = np.exp(logits - logits.max(axis=1, keepdims=True))
    return spread / spread.sum(axis=1, keepdims=True)


def rows_of(n, seed, prior, *, distance=2.3, noise=0.0):
    """Draw rows; `noise` is the share of labels that are replaced by the last class."""
    rng = np.random.default_rng(seed)
    labels = rng.choice(len(prior), size=n, p=prior)
    labels[: len(prior)] = np.arange(len(prior))  # every class occurs
    logits = rng.standard_normal((n, len(prior)))
    logits[np.arange(n), labels] += distance
    logits = distance * logits + np.log(prior)
    shown = np.where(rng.random(n) < noise, len(prior) - 1, labels)
    shown[: len(prior)] = np.arange(len(prior))
    return Rows(shown, logits, softmax(logits))


def said(rows, factor, seed):
    """What a simulated network says: blurred, and surer than it should be."""
    blur = np.random.default_rng(seed).standard_normal(rows.logits.shape)
    return factor * (rows.logits + 0.9 * blur)


def prior_of(k):
    prior = np.array([0.18, 0.1, 0.14, 0.2, 0.38]) if k == 5 else np.ones(k)
    return prior / prior.sum() if k != 2 else np.array([0.7, 0.3])


def a_record(epoch, pace, level):
    nll = level + 1.2 * np.exp(-pace * (epoch + 1)) + 0.004 * epoch**1.5
    best = level + 0.9 * np.exp(-pace * (epoch + 1)) + 0.001 * epoch
    return {
        "epoch": epoch, "loss": nll, "nll": nll, "refinement": best, "temperature": 1.0 + epoch / 9,
        "ece": 0.02 + 0.01 * epoch, "f1": 0.8 - 0.4 * np.exp(-epoch - 1), "accuracy": 0.8,
        "learning_rate": 1e-3, "seconds": 1.0, "gammas": None,
    }  # fmt: skip


def judge(labels, probs, names):
    """Evaluate; a report shows an interval and a floor whatever they are, so few draws will do."""
    with few_draws():
        return evaluate(labels, probs, classes=list(names))


def a_candidate(loss, place, parts, names, *, factor, reference=False):
    """Judge one simulated network on all splits."""
    spoken = {name: said(rows, factor, 100 * place + i) for i, (name, rows) in enumerate(parts)}
    labels = {name: np.array(names, dtype=object)[rows.labels] for name, rows in parts}
    scaling = TemperatureScaling().fit(spoken["calibrate"], labels["calibrate"], classes=names)

    def judged(name, probs):
        shown = probs[:, 1] if len(names) == 2 else probs
        return judge(labels[name], shown, names)

    test, logs = softmax(spoken["test"]), spoken.get("log_test")
    records = tuple(a_record(e, 0.5 + 0.05 * place, 0.5) for e in range(8))
    return CandidateResult(
        loss, 0, reference=reference, refinement=0.55 - 0.004 * place,
        test=judged("test", test),
        scaled=judged("test", scaling.predict_proba(spoken["test"])),
        log_test=None if logs is None else judged("log_test", softmax(logs)),
        temperature=float(scaling.temperature_), epochs=8, best_epoch=5, seconds=21.0,
        weights=0 if reference else 1_250_000, records=() if reference else records,
        gammas=steered().to_dict() if loss == "adafocal" else None,
    ), spoken  # fmt: skip


def a_promise(hold, of, calibrated, parts, names, *, fresh=None, decides=True):
    """Choose a threshold on the calibrate rows and hold it against the test rows."""
    probs = {name: rows[:, 1] if len(names) == 2 else rows for name, rows in calibrated.items()}
    labels = {name: np.array(names, dtype=object)[rows.labels] for name, rows in parts}
    asked = {"classes": list(names), "positive": of, "hold": hold}
    try:
        found = select(labels["calibrate"], probs["calibrate"], **asked)
    except TargetUnreachable as error:
        found = error
    view = point_view(
        found, labels=labels["calibrate"], scores=probs["calibrate"], on="probs", classes=names
    )
    checks = {}
    if not isinstance(found, TargetUnreachable):
        checks["check"] = check_transfer(found, labels["test"], probs["test"])
        if fresh is not None:
            truth, shown = fresh
            given = np.array(names, dtype=object)[truth]
            checks["fresh"] = check_transfer(found, given, shown)
    return PointResult(f"{of}: {hold}", view, decides=decides, **checks)


def splits_of(parts, names, golden):
    def entry(name, rows):
        counts = np.bincount(rows.labels, minlength=len(names))
        source = "golden" if golden and name in ("calibrate", "test") else "logs"
        shown = {str(n): int(c) for n, c in zip(names, counts, strict=True)}
        return {"source": source, "rows": len(rows.labels), "classes": shown}

    return {name: entry(name, rows) for name, rows in parts}


@cache
def a_study(names=REASONS, *, n=700, golden=True, losses=(*FACTORS, "adafocal")):
    """A study with everything in it: golden set, promises, out-of-scope rule and known truth."""
    prior, k = prior_of(len(names)), len(names)
    even = (prior + 1 / k) / 2
    parts = [("train", rows_of(4 * n, 1, even)), ("steer", rows_of(n, 2, even))]
    if golden:
        parts.append(("log_test", rows_of(n, 3, even, noise=0.12)))
    parts += [("calibrate", rows_of(2 * n, 4, prior)), ("test", rows_of(n, 5, prior))]
    made = [
        a_candidate(loss, i, parts[2:], names, factor=FACTORS.get(loss, 1.05))
        for i, loss in enumerate(losses)
    ]
    own = made[-1][1]
    method = AutoCalibrator().fit(own["calibrate"], parts[-2][1].labels)
    probs = {name: method.predict_proba(own[name]) for name in ("calibrate", "test")}
    beside = a_candidate("hist_gradient_boosting", 9, parts[2:], names, factor=1.3, reference=True)
    named = np.array(names, dtype=object)[parts[-1][1].labels]
    shown = probs["test"][:, 1] if k == 2 else probs["test"]
    failed = CandidateResult(
        "focal:gamma=10", 0, failed="the loss was no number any more in epoch 3"
    )
    fresh_rows = rows_of(20_000, 6, prior)
    fresh = method.predict_proba(said(fresh_rows, 1.05, 77))
    spoken = fresh[:, 1] if k == 2 else fresh
    asked = [("precision>=0.85", names[0], True), ("precision>=0.999", names[1], True)]
    asked.append(("recall>=0.9", names[0], False))
    return StudyResult(
        title="Return reasons", kind="text", classes=tuple(names), focus=names[0],
        splits=splits_of([*parts[:2], ("choice", rows_of(n, 7, even)), *parts[2:]], names, golden),
        candidates=(*(one for one, _ in made), failed, beside[0]),
        chosen=len(made) - 1,
        why="adafocal has the lowest log loss of the choice rows after temperature scaling, 0.534",
        method=method.chosen_.method, choice=method.comparison_,
        calibrated=judge(named, shown, names),
        points=tuple(
            a_promise(hold, of, probs, parts, names, decides=yes,
                      fresh=(fresh_rows.labels, spoken))
            for hold, of, yes in asked
        ),
        out_of_scope=OutOfScope(
            "energy", -1.2, 0.95, 2 * n, 0.047,
            {name: {"auroc": a, "fpr95": f, "caught": c} for name, a, f, c in (
                ("energy", 0.91, 0.31, 0.66), ("entropy", 0.86, 0.42, 0.52),
                ("max_logit", 0.9, 0.33, 0.63))},
            120,
        ),
        truth=a_truth(made, fresh_rows, fresh),
        actions={str(names[0]): "offer a replacement", str(names[3 % k]): "offer a refund"},
        notes=("12 log rows stand in the golden set too and were left out",),
        config={"data": "logs.csv", "label": "reason", "text": "message", "seeds": [0],
                "training": {"epochs": 8}, "weight": None},
        seconds=184.0,
    )  # fmt: skip


def a_truth(made, rows, calibrated):
    """True figures from the posterior."""

    def error(probs):
        return true_ce(Draw(rows.labels, probs, rows.posterior), target="top-label")

    def errors(one):
        logits = said(rows, FACTORS.get(one.loss, 1.05), 77)
        return {"own": error(softmax(logits)), "scaled": error(softmax(logits / one.temperature))}

    top = calibrated.argmax(axis=1)
    return KnownTruth(
        rows=len(rows.labels),
        bayes_accuracy=float(rows.posterior.max(axis=1).mean()),
        true_ce={one.name: errors(one) for one, _ in made},
        calibrated=error(calibrated),
        accuracy=float(rows.posterior[np.arange(len(top)), top].mean()),
    )


@cache
def a_plain_study():
    """Two classes and nothing that is optional: no golden set, promise, rule, truth or action."""
    full = a_study(("no", "yes"), golden=False, losses=("ce", "focal:gamma=3"))
    return replace(
        full, points=(), out_of_scope=None, truth=None, actions={}, notes=(), config={},
        candidates=full.candidates[:2], chosen=1, choice=None, focus="yes",
    )  # fmt: skip


@cache
def a_lonely_study():
    """All candidates but one failed, cross-entropy too."""
    full = a_study()
    why = "ran out of memory"
    kept = [
        one if i == full.chosen else CandidateResult(one.loss, one.seed, failed=why)
        for i, one in enumerate(full.candidates)
        if not one.reference
    ]
    return replace(full, candidates=tuple(kept))


@cache
def an_averaged_study():
    """Two losses with two seeds each, MC dropout of each network, and ensembles; one is chosen."""
    full = a_study(losses=("ce", "focal:gamma=3"))
    prior = prior_of(len(full.classes))
    parts = [(name, rows_of(700, 30 + i, prior)) for i, name in enumerate(("calibrate", "test"))]
    bare = {"epochs": 0, "best_epoch": 0, "records": ()}
    found = []
    for k, loss in enumerate(("ce", "focal:gamma=3")):
        factor = FACTORS[loss]
        made = [
            a_candidate(loss, 20 + 5 * k + i, parts, full.classes, factor=factor / (1 + 0.1 * i))[0]
            for i in range(5)
        ]
        ones = [replace(one, seed=seed) for seed, one in enumerate(made[:2])]
        thinned = [
            replace(one, seed=seed, way="mc_dropout", passes=20, **bare)
            for seed, one in enumerate(made[2:4])
        ]
        both = replace(made[4], way="ensemble", members=(0, 1), weights=2_500_000, **bare)
        found += [*ones, *thinned, both]
    failed = CandidateResult(
        "adafocal", 0, failed="an ensemble needs at least two networks", way="ensemble",
        members=(0, 1),
    )  # fmt: skip
    return replace(
        full, candidates=(*found, failed, full.candidates[-1]), chosen=9, truth=None,
        why="focal:gamma=3, ensemble of 2 has the smallest log loss",
    )  # fmt: skip


@cache
def a_wide_study(k=150):
    """So many classes that only some have curves, the one in focus none; any class is accepted."""
    names = tuple(f"intent_{i:03}" for i in range(k))
    parts = [(name, rows_of(900, i, prior_of(k), distance=4.5))
             for i, name in enumerate(("calibrate", "test"))]  # fmt: skip
    probs = {name: rows.posterior for name, rows in parts}
    found = judge(np.array(names)[parts[1][1].labels], probs["test"], names)
    one = CandidateResult("ce", 0, test=found, scaled=found, temperature=1.0, refinement=1.2)
    return StudyResult(
        title="Intents", kind="table", classes=names, focus=names[-1],
        splits=splits_of(parts, names, golden=True), candidates=(one,), chosen=0,
        why="it is the only one", method="identity", choice=None, calibrated=found,
        points=(a_promise("accuracy>=0.9", None, probs, parts, names),),
    )  # fmt: skip


@cache
def a_hostile_study():
    """Class names that would be markup."""
    return a_study((HOSTILE, "plain", "third_class"), n=400, losses=("ce", "adafocal"))


@cache
def an_unpromised_study():
    """The only promise that was asked for cannot be made."""
    full = a_study()
    return replace(full, points=full.points[1:2])


@cache
def an_uncurved_study():
    """No promise, and no stored curve of the class in focus."""
    return replace(a_wide_study(), points=())


@cache
def an_unbinned_study():
    """The evaluation of the bundle has no bins, so it has no reliability diagram."""
    full = a_study()
    return replace(full, calibrated=replace(full.calibrated, bins={}))
