"""Results of a study, from which the page, the terminal text and the JSON are built."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from calibrant.calibrators.choice.comparison import Choice
from calibrant.errors import TargetUnreachable
from calibrant.reports.threshold.view import PointView
from calibrant.results import Evaluation
from calibrant.thresholds import OperatingPoint, Transfer

_STORED_METRICS = ("accuracy", "nll", "ece_em")
"""Metrics stored for each candidate; the report has all of them."""


def name_candidate(
    loss: str,
    seed: int = 0,
    way: str = "one",
    members: int = 0,
    passes: int = 0,
    model: str = "",
) -> str:
    """Name a candidate: model and loss, the seed if it is not 0, and the kind of average.

    Examples
    --------
    >>> name_candidate("ce"), name_candidate("ce", way="ensemble", members=5)
    ('ce', 'ce, ensemble of 5')
    >>> name_candidate("ce", 1, "mc_dropout", passes=20)
    'ce (seed 1), MC dropout (20 passes)'
    >>> name_candidate("ce", model="boosting"), name_candidate("ce", way="weighted", members=3)
    ('boosting, ce', 'weighted ensemble of 3')
    """
    if way == "weighted":
        return f"weighted ensemble of {members}"
    start = f"{model}, " if model else ""
    if way == "ensemble":
        return f"{start}{loss}, ensemble of {members}"
    name = f"{start}{loss} (seed {seed})" if seed else f"{start}{loss}"
    return f"{name}, MC dropout ({passes} passes)" if way == "mc_dropout" else name


@dataclass(frozen=True)
class CandidateResult:
    """One candidate, evaluated on rows that it was neither trained nor steered by.

    Parameters
    ----------
    loss : as requested, like "focal:gamma=3"
    seed : of its training; of an ensemble the first member's
    failed : why it could not be trained, one sentence; None if it was trained
    reference : whether it is only a reference and cannot be chosen
    refinement : log loss of the choice rows after temperature scaling on them; the smallest is
        chosen. Of a single candidate that of the steer rows, and None of a reference beside it
    test : its own probabilities on the test rows (of the golden set, where there is one)
    scaled : the same after temperature scaling on the calibrate rows
    log_test : its own probabilities on the held-out rows of the logs; None without a golden set
    temperature : that of `scaled`
    epochs, best_epoch, seconds, weights : how it was trained, and how many weights it has
    records : one `EpochRecord.to_dict()` for each epoch
    gammas : `GammaHistory.to_dict()` of an AdaFocal loss, else None
    way : "one" model, or an average: "ensemble" (of seeds), "mc_dropout" or "weighted" (of several
        models), which are judged as one model and have no epochs and records
    members : seeds of the models of an ensemble
    passes : thinned copies that MC dropout averages
    model : name of the model, such as "boosting" or "bilstm"
    raced : whether several models were raced, so that the name says which it is
    mixture : name and weight of each model of a weighted ensemble
    behind, behind_error : mean loss on the choice rows minus that of the best candidate, and the
        standard error of this paired difference
    score_seconds : seconds to score one row, in the batches of the study
    learned : whether its log loss on the rows that candidates are compared on is smaller than that
        of the class shares of the train rows, by more than chance explains
    """

    loss: str
    seed: int
    failed: str | None = None
    reference: bool = False
    refinement: float | None = None
    test: Evaluation | None = None
    scaled: Evaluation | None = None
    log_test: Evaluation | None = None
    temperature: float | None = None
    epochs: int = 0
    best_epoch: int = 0
    seconds: float = 0.0
    weights: int = 0
    records: tuple[Mapping[str, Any], ...] = ()
    gammas: Mapping[str, Any] | None = None
    way: str = "one"
    members: tuple[int, ...] = ()
    passes: int = 0
    model: str = ""
    raced: bool = False
    mixture: tuple[tuple[str, float], ...] = ()
    behind: float | None = None
    behind_error: float | None = None
    score_seconds: float = 0.0
    learned: bool = True

    @property
    def name(self) -> str:
        """The raced model, the loss, the seed if it is not 0, and the kind of average."""
        return self.named(self.loss, self.model)

    def named(self, loss: str, model: str) -> str:
        """Return the name with other words for the loss and the model."""
        shown = model if self.raced else ""
        return name_candidate(loss, self.seed, self.way, len(self.members), self.passes, shown)

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        out: dict[str, Any] = {"loss": self.loss, "seed": self.seed, "failed": self.failed}
        out |= {"name": self.name, "model": self.model, "behind": self.behind}
        out |= {"behind_error": self.behind_error, "score_seconds": self.score_seconds}
        out |= {"reference": self.reference, "refinement": self.refinement}
        out |= {"learned": self.learned}
        for key, part in (("metrics", self.test), ("scaled", self.scaled), ("logs", self.log_test)):
            out[key] = None if part is None else part.to_dict()["metrics"]
        out |= {"temperature": self.temperature, "epochs": self.epochs, "weights": self.weights}
        out |= {"best_epoch": self.best_epoch, "seconds": round(self.seconds, 2), "way": self.way}
        out |= {"members": list(self.members)} if self.members else {}
        out |= {"mixture": [list(pair) for pair in self.mixture]} if self.mixture else {}
        return out | ({"passes": self.passes} if self.passes else {})


@dataclass(frozen=True)
class PointResult:
    """One requested promise.

    Parameters
    ----------
    hold : as requested, like "item_defective: precision>=0.85"
    view : the operating point, or why there is none, with the operating curve of the calibrate
        rows
    check : check on the test rows, which chose nothing; None without a point
    fresh : check on fresh rows of a world whose truth is known; None for real data
    decides : whether the bundle decides by it, as the first of its class; else it is an
        alternative
    calibrated_threshold : where its threshold lies among calibrated probabilities; None if the
        calibrator does not keep the order of rows, or changes nothing
    """

    hold: str
    view: PointView
    check: Transfer | None = None
    fresh: Transfer | None = None
    decides: bool = True
    calibrated_threshold: float | None = None

    @property
    def result(self) -> OperatingPoint | TargetUnreachable:
        """The operating point, or why there is none."""
        return self.view.result

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: that of `threshold`, with the checks."""
        out = {"hold_text": self.hold, **self.result.to_dict(), "decides": self.decides}
        out["calibrated_threshold"] = self.calibrated_threshold
        for key, transfer in (("check", self.check), ("fresh", self.fresh)):
            out[key] = None if transfer is None else transfer.to_dict()
        return out


@dataclass(frozen=True)
class OutOfScope:
    """The rule that keeps rows unlike the train rows from being acted on.

    Parameters
    ----------
    score : its name: "energy", "entropy", "max_logit" or "unreadable"
    threshold : rows that score higher are left to a person
    quantile : share of in-distribution rows that the threshold lets through by design
    n : in-distribution rows that it was fitted on
    flagged : share of the in-scope test rows that it stops
    scores : for each score {"auroc", "fpr95", "caught"} against out-of-scope rows; empty where
        there are none
    out_of_scope : number of those rows
    """

    score: str
    threshold: float
    quantile: float
    n: int
    flagged: float
    scores: Mapping[str, Mapping[str, float]] = field(default_factory=dict)
    out_of_scope: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "score": self.score,
            "threshold": self.threshold,
            "quantile": self.quantile,
            "n": self.n,
            "flagged": self.flagged,
            "scores": {name: dict(row) for name, row in self.scores.items()},
            "out_of_scope": self.out_of_scope,
        }


@dataclass(frozen=True)
class KnownTruth:
    """True figures instead of estimates, from a world whose posterior is known.

    Parameters
    ----------
    rows : number of fresh rows
    bayes_accuracy : accuracy of the best possible classifier on them
    true_ce : for each candidate's name {"own", "scaled"}: its true calibration error
    calibrated : true calibration error of the bundle's probabilities
    accuracy : of the bundle's most probable class, against the posterior
    each : fresh rows that every true error, the bundle's too, was computed on
    """

    rows: int
    bayes_accuracy: float
    true_ce: Mapping[str, Mapping[str, float]]
    calibrated: float
    accuracy: float
    each: int = 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "rows": self.rows,
            "bayes_accuracy": self.bayes_accuracy,
            "true_ce": {name: dict(row) for name, row in self.true_ce.items()},
            "calibrated": self.calibrated,
            "accuracy": self.accuracy,
            "each": self.each,
        }


_SURE = 1.645
"""Standard errors of a one-sided test at 5 %."""


@dataclass(frozen=True)
class Skill:
    r"""What the bundle's probabilities are worth against always saying the class shares.

    $$ \text{skill} = 1 - L / L_0 $$

    with L the bundle's log loss on the test rows and L_0 that of the class shares of the calibrate
    rows, whatever the row. Skill 1 is perfect; 0 means that nothing was learned.

    Parameters
    ----------
    gain, error : L_0 - L, and its standard error
    loss, base : L and L_0

    Examples
    --------
    >>> skill = Skill(gain=0.3, error=0.02, loss=0.3, base=0.6)
    >>> skill.value, skill.learned
    (0.5, True)
    """

    gain: float
    error: float
    loss: float
    base: float

    @property
    def value(self) -> float:
        """The skill."""
        return self.gain / self.base if self.base > 0 else 0.0

    @property
    def learned(self) -> bool:
        """Whether the bundle is clearly better than the class shares (one-sided test, 5 %)."""
        return self.gain > _SURE * self.error and self.gain > 0

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        values = {"value": self.value, "gain": self.gain, "error": self.error}
        return {**values, "loss": self.loss, "base": self.base, "learned": self.learned}


@dataclass(frozen=True)
class Gain:
    """What the choice gained or lost on the test rows, in log loss after temperature scaling.

    Each is a name, the chosen candidate's loss minus that of this one, and the standard error of
    the paired difference; None if the chosen candidate is the one itself.

    Parameters
    ----------
    usual : cross-entropy of the chosen model; of the winner of the race for a weighted ensemble
    hindsight : the candidate that turned out best on the test rows, which nobody could know
    """

    usual: tuple[str, float, float] | None
    hindsight: tuple[str, float, float] | None

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        names = ("against", "difference", "error")
        return {
            key: None if pair is None else dict(zip(names, pair, strict=True))
            for key, pair in (("usual", self.usual), ("hindsight", self.hindsight))
        }


@dataclass(frozen=True)
class StudyResult:
    """A whole study.

    Parameters
    ----------
    title : title of the page
    kind : "text", "table" or "image"
    classes : in the order of the columns
    focus : the class of the histograms and curves: that of the first promise
    splits : for each split its source ("logs" or "golden") and its rows per class (class names as
        text): {"train": {"source": "logs", "rows": 800, "classes": {"a": 700, "b": 100}}, ...};
        splits are train, steer, choice (with several candidates only), log_test (with a golden set
        only), calibrate, test, out_of_scope (where there are such rows)
    candidates : in the requested order; references last
    chosen : position among `candidates`
    why : why that one, one sentence
    method : name of the chosen calibrator
    choice : how it was chosen; None if the user named it
    calibrated : the bundle's probabilities on the test rows
    points : one for each requested promise
    out_of_scope : the rule; None if none was requested
    truth : None for real data
    actions : the action of each class
    notes : sentences for the reader
    config : the study's settings, as `study.toml` has them; of files and folders only the names
    seconds : duration
    skill : the bundle against the class shares
    gain : what the choice gained or lost on the test rows; None for a single candidate
    packed : whether there is a bundle: not of a model that learned nothing
    winner : the model that was trained with all losses: the winner of the race, or the only one
    """

    title: str
    kind: str
    classes: tuple[Any, ...]
    focus: Any
    splits: Mapping[str, Mapping[str, Any]]
    candidates: tuple[CandidateResult, ...]
    chosen: int
    why: str
    method: str
    choice: Choice | None
    calibrated: Evaluation
    points: tuple[PointResult, ...] = ()
    out_of_scope: OutOfScope | None = None
    truth: KnownTruth | None = None
    actions: Mapping[str, str] = field(default_factory=dict)
    notes: tuple[str, ...] = ()
    config: Mapping[str, Any] = field(default_factory=dict)
    seconds: float = 0.0
    skill: Skill | None = None
    gain: Gain | None = None
    packed: bool = True
    winner: str = ""

    @property
    def best(self) -> CandidateResult:
        """The chosen candidate."""
        return self.candidates[self.chosen]

    @property
    def golden(self) -> bool:
        """Whether the figures are those of a golden set."""
        return bool(self.splits["test"]["source"] == "golden")

    def to_dict(self) -> dict[str, Any]:
        """Return the stable JSON shape: keys may be added, never renamed."""
        return {
            "schema": 1,
            "kind": self.kind,
            "classes": list(self.classes),
            "splits": {name: dict(part) for name, part in self.splits.items()},
            "candidates": [candidate.to_dict() for candidate in self.candidates],
            "chosen": {
                "name": self.best.name,
                "model": self.best.model,
                "loss": self.best.loss,
                "seed": self.best.seed,
                "way": self.best.way,
                "why": self.why,
                "gain": None if self.gain is None else self.gain.to_dict(),
            },
            "skill": None if self.skill is None else self.skill.to_dict(),
            "packed": self.packed,
            "winner": self.winner,
            "calibrator": {
                "method": self.method,
                "why": None if self.choice is None else self.choice.why,
                "metrics": self.calibrated.to_dict()["metrics"],
                "verdict": self.calibrated.verdict.text,
            },
            "operating_points": [point.to_dict() for point in self.points],
            "out_of_scope": None if self.out_of_scope is None else self.out_of_scope.to_dict(),
            "truth": None if self.truth is None else self.truth.to_dict(),
            "actions": dict(self.actions),
            "notes": list(self.notes),
            "seconds": round(self.seconds, 1),
        }


def packed_figures(result: StudyResult) -> dict[str, Any]:
    """Return the test metrics of the bundle, its operating points and all candidates.

    `candidates` has one entry per candidate: `name`, `loss`, `seed` and `way`, whether it was
    `chosen`, `refinement` (log loss of the choice rows after temperature scaling; for a single
    candidate, of the steer rows), `weights`, and the metrics of its raw probabilities on the test
    rows. `points` has one entry per requested promise, with its result on the test rows under
    `check`. `splits` has a "choice" entry; bundles of earlier versions lack it, as their candidate
    was chosen on the steer rows.
    """
    return {
        "n": result.calibrated.n,
        "source": result.splits["test"]["source"],
        "test": result.calibrated.to_dict()["metrics"],
        "verdict": result.calibrated.verdict.to_dict(),
        "splits": {name: part["rows"] for name, part in result.splits.items()},
        "candidates": [
            _candidate_record(candidate, chosen=i == result.chosen)
            for i, candidate in enumerate(result.candidates)
        ],
        "why": result.why,
        "skill": None if result.skill is None else result.skill.to_dict(),
        "points": [_point_record(point) for point in result.points],
    }


def _candidate_record(candidate: CandidateResult, *, chosen: bool) -> dict[str, Any]:
    return {
        "name": candidate.name,
        "model": candidate.model,
        "loss": candidate.loss,
        "seed": candidate.seed,
        "way": candidate.way,
        "chosen": chosen,
        "reference": candidate.reference,
        "failed": candidate.failed,
        "refinement": candidate.refinement,
        "weights": candidate.weights,
        "test": _metric_values(candidate.test),
    }


def _metric_values(evaluation: Evaluation | None) -> dict[str, float] | None:
    if evaluation is None:
        return None
    metrics = evaluation.to_dict()["metrics"]
    return {name: metrics[name]["value"] for name in _STORED_METRICS if name in metrics}


def _point_record(outcome: PointResult) -> dict[str, Any]:
    point = outcome.result if isinstance(outcome.result, OperatingPoint) else None
    return {
        "hold": outcome.hold,
        "class": outcome.result.of,
        "reached": point is not None,
        "threshold": None if point is None else point.threshold,
        "decides": outcome.decides,
        "why": None if point is not None else str(outcome.result),
        "check": None if outcome.check is None else outcome.check.to_dict(),
    }
