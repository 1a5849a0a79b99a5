"""From saved scores to figures: one run, and one data set over its seeds."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from benchmarks.models.sets import DataSet
from benchmarks.models.store import RunFolder

__all__ = ["Paired", "RunFigures", "Scored", "SetFigures", "holm", "paired", "read_run"]

Floats = NDArray[np.float64]
Bools = NDArray[np.bool_]

MARGIN = 0.01
SMALL_LOSS, SMALL_MARGIN = 0.1, 0.002
"""Worse means by more than 1 %, or by more than 0.002 nats where the log loss is under 0.1."""


@dataclass(frozen=True, eq=False)
class Scored:
    """A model on the test rows of one run.

    Parameters
    ----------
    losses : (n,) log loss of each row
    right : (n,) whether the most probable class is the true one
    hits : (n,) whether the row is rightly acted on under the proved promise, or None
    choice : log loss of the choice rows, or None
    """

    losses: Floats
    right: Bools
    hits: Bools | None = None
    choice: float | None = None


@dataclass(frozen=True, eq=False)
class RunFigures:
    """One data set and seed.

    Parameters
    ----------
    codes : (n,) true classes of the test rows
    wanted : (n,) whether a test row is one that the promise wants found
    peers : each with a temperature
    record : of the command, empty before it ran
    ours : the command's bundle: "packed", with a "temperature" instead of its calibrator, and
        "plain", cross-entropy with the same model and a temperature; empty before it ran
    beside : FLAML and single families with a temperature, where they ran
    """

    codes: NDArray[np.int64]
    wanted: Bools
    peers: Mapping[str, Scored]
    record: Mapping[str, Any]
    ours: Mapping[str, Scored]
    beside: Mapping[str, Scored]

    @property
    def chosen_peer(self) -> str:
        """The peer with the smallest log loss on the choice rows; no test row is looked at."""
        return min(self.peers, key=lambda name: self.peers[name].choice or 0.0)

    def recall(self, scored: Scored) -> float:
        """Return the share of wanted test rows that are found."""
        assert scored.hits is not None
        return float(scored.hits[self.wanted].mean())


@dataclass(frozen=True)
class Paired:
    """Mean difference of two models over test rows and seeds.

    Its standard error is the larger of two: that of the rows, and that of the seeds' means.
    """

    difference: float
    error: float

    @property
    def score(self) -> float:
        """The difference in standard errors."""
        return self.difference / self.error if self.error > 0 else 0.0


def paired(ours: Sequence[NDArray[Any]], theirs: Sequence[NDArray[Any]]) -> Paired:
    """Return the mean difference of two models, given the rows of each seed.

    >>> paired([np.array([1.0, 2.0])], [np.array([1.0, 1.0])])
    Paired(difference=0.5, error=0.5)
    """
    differences = [np.subtract(a, b, dtype=np.float64) for a, b in zip(ours, theirs, strict=True)]
    means = np.array([d.mean() for d in differences])
    within = float(np.mean([d.var(ddof=1) / len(d) for d in differences]))
    between = float(means.var(ddof=1)) if len(means) > 1 else 0.0
    return Paired(float(means.mean()), math.sqrt(max(within, between) / len(means)))


def holm(scores: Mapping[str, float], errors: float = 2.0) -> set[str]:
    """Return the names whose score lies above `errors`, at that level for all of them together.

    >>> sorted(holm({"a": 4.0, "b": 2.1, "c": 0.0}))
    ['a']
    """
    level = _upper_tail(errors)
    above: set[str] = set()
    for i, name in enumerate(sorted(scores, key=lambda name: -scores[name])):
        if _upper_tail(scores[name]) > level / (len(scores) - i):
            break
        above.add(name)
    return above


def _upper_tail(z: float) -> float:
    return 0.5 * math.erfc(z / math.sqrt(2))


@dataclass(frozen=True, eq=False)
class SetFigures:
    """One data set over its seeds."""

    data_set: DataSet
    runs: tuple[RunFigures, ...]

    @property
    def name(self) -> str:
        """Its name."""
        return self.data_set.name

    @cached_property
    def hindsight_peer(self) -> str:
        """The peer with the smallest log loss on the test rows of all seeds."""
        return min(self.runs[0].peers, key=lambda name: self._mean(self._peer_losses(name)))

    def ours(self, way: str) -> float:
        """Return our log loss, over all seeds."""
        return self._mean([run.ours[way].losses for run in self.runs])

    def peer(self, name: str | None = None) -> float:
        """Return the log loss of a peer, or of the one chosen on the choice rows."""
        return self._mean(self._peer_losses(name))

    def beside(self, name: str) -> float | None:
        """Return the log loss of what stands beside, if it ran with every seed."""
        if any(name not in run.beside for run in self.runs):
            return None
        return self._mean([run.beside[name].losses for run in self.runs])

    def against_peer(self, way: str) -> Paired:
        """Compare us with the chosen peer, row by row."""
        return paired([run.ours[way].losses for run in self.runs], self._peer_losses(None))

    def recall_behind_peer(self) -> Paired:
        """Return how much less of what is wanted we find than the chosen peer, row by row."""
        ours, theirs = [], []
        for run in self.runs:
            hits, peer = run.ours["packed"].hits, run.peers[run.chosen_peer].hits
            assert hits is not None
            assert peer is not None
            ours.append(hits[run.wanted])
            theirs.append(peer[run.wanted])
        return paired(theirs, ours)

    def is_behind(self, way: str) -> bool:
        """Return whether our log loss is higher by more than the margin."""
        peer = self.peer()
        margin = SMALL_MARGIN if peer < SMALL_LOSS else MARGIN * peer
        return self.ours(way) - peer > margin

    def to_dict(self) -> dict[str, Any]:
        """Return the row of the table."""
        runs = self.runs
        peers = {name: round(self.peer(name), 5) for name in runs[0].peers}
        out = {
            "set": self.name,
            "kind": self.data_set.kind,
            "classes": int(max(run.codes.max() for run in runs)) + 1,
            "test_rows": [len(run.codes) for run in runs],
            "peers": peers,
            "chosen_peer": [run.chosen_peer for run in runs],
            "peer": round(self.peer(), 5),
            "hindsight_peer": self.hindsight_peer,
            "peer_accuracy": _share([run.peers[run.chosen_peer].right for run in runs]),
            "hold": self.data_set.hold,
            "peer_recall": _mean_of([run.recall(run.peers[run.chosen_peer]) for run in runs]),
            "beside": {name: self.beside(name) for name in runs[0].beside},
        }
        return out | (self._our_columns() if all(run.ours for run in runs) else {})

    def _our_columns(self) -> dict[str, Any]:
        runs = self.runs
        difference, recall = self.against_peer("temperature"), self.recall_behind_peer()
        return {
            "packed": round(self.ours("packed"), 5),
            "temperature": round(self.ours("temperature"), 5),
            "ratio": round(self.ours("temperature") / self.peer(), 4),
            "packed_ratio": round(self.ours("packed") / self.peer(), 4),
            "hindsight_ratio": round(self.ours("temperature") / self.peer(self.hindsight_peer), 4),
            "difference": round(difference.difference, 5),
            "standard_error": round(difference.error, 5),
            "accuracy": _share([run.ours["packed"].right for run in runs]),
            "recall": _mean_of([run.recall(run.ours["packed"]) for run in runs]),
            "recall_behind": round(recall.difference, 4),
            "recall_standard_error": round(recall.error, 4),
            "chosen": [_chosen(run.record) for run in runs],
            "seconds": [run.record["seconds"] for run in runs],
        }

    def _peer_losses(self, name: str | None) -> list[Floats]:
        return [run.peers[name or run.chosen_peer].losses for run in self.runs]

    def _mean(self, losses: Sequence[Floats]) -> float:
        return float(np.mean([each.mean() for each in losses]))


def _share(masks: Sequence[Bools]) -> float:
    return _mean_of([float(mask.mean()) for mask in masks])


def _mean_of(values: Sequence[float]) -> float:
    return round(float(np.mean(values)), 4)


def _chosen(record: Mapping[str, Any]) -> str:
    chosen = record["chosen"]
    model, way = chosen.get("model"), chosen.get("way", "one")
    loss = chosen["loss"] if way == "one" else f"{chosen['loss']}, {way}"
    return loss if model is None else f"{model}: {loss}"


def read_run(data_set: DataSet, folder: RunFolder) -> RunFigures:
    """Judge what is saved about one data set and seed."""
    record, arrays = folder.record("rows"), folder.arrays("rows")
    codes = {name: arrays[f"codes_{name}"] for name in ("choice", "calibrate", "test")}
    judge = _Judge(data_set.hold, tuple(record["classes"]), codes)
    peers = folder.arrays("peers")
    ours: dict[str, Scored] = {}
    command = folder.record("command")
    if command:
        saved = folder.arrays("command")
        logits = {name: saved[f"logits/{name}"] for name in ("calibrate", "test")}
        plain = {name: saved[f"plain/{name}"] for name in ("calibrate", "test")}
        packed = judge.scored(np.log(saved["probs/test"]), saved["found/test"])
        ours = {"packed": packed, "temperature": judge.scaled(logits)}
        ours["plain"] = judge.scaled(plain)
    beside = {}
    for side in ("automl", "families"):
        if folder.record(side):
            beside |= _named(folder.arrays(side), judge)
    return RunFigures(
        codes["test"], judge.wanted, _named(peers, judge, promise=True), command, ours, beside
    )


def _named(
    arrays: Mapping[str, NDArray[Any]], judge: _Judge, *, promise: bool = False
) -> dict[str, Scored]:
    """Judge each model of "MODEL/SPLIT" arrays."""
    names = dict.fromkeys(key.rpartition("/")[0] for key in arrays)
    return {
        name: judge.scaled(
            {key.rpartition("/")[2]: a for key, a in arrays.items() if key.startswith(f"{name}/")},
            promise=promise,
        )
        for name in names
    }


class _Judge:
    """The labels of a run, and what logits are worth on them."""

    def __init__(
        self, hold: str, classes: tuple[Any, ...], codes: Mapping[str, NDArray[np.int64]]
    ) -> None:
        from calibrant.thresholds.rates import parse_hold

        of, self.targets = parse_hold(hold)
        self.codes, self.k = codes, len(classes)
        named = {str(name): code for code, name in enumerate(classes)}
        self.of = None if of is None else named[of]
        test = codes["test"]
        self.wanted = np.ones(len(test), bool) if self.of is None else test == self.of

    def scored(self, log_probs: Floats, hits: Bools | None = None) -> Scored:
        test = self.codes["test"]
        losses = -log_probs[np.arange(len(test)), test]
        return Scored(losses, log_probs.argmax(axis=1) == test, hits)

    def scaled(self, logits: Mapping[str, Floats], *, promise: bool = False) -> Scored:
        """Judge logits after the temperature that is best on the calibrate rows."""
        from calibrant.calibrators import TemperatureScaling

        scaling = TemperatureScaling().fit(
            logits["calibrate"], self.codes["calibrate"], classes=range(self.k)
        )
        hits = self._find_hits(logits) if promise else None
        scored = self.scored(scaling.predict_log_proba(logits["test"]), hits)
        if "choice" not in logits:
            return scored
        codes = self.codes["choice"]
        choice = scaling.predict_log_proba(logits["choice"])[np.arange(len(codes)), codes]
        return Scored(scored.losses, scored.right, hits, float(-choice.mean()))

    def _find_hits(self, logits: Mapping[str, Floats]) -> Bools:
        """Prove the promise on the calibrate rows; without a proof nothing is acted on."""
        from calibrant import TargetUnreachable, select

        test = self.codes["test"]
        try:
            point = select(
                self.codes["calibrate"],
                logits=logits["calibrate"],
                hold=self.targets,
                positive=self.of,
                classes=range(self.k),
            )
        except TargetUnreachable:
            return np.zeros(len(test), bool)
        acted = point.act(logits=logits["test"])
        predicted = logits["test"].argmax(axis=1) if self.of is None else self.of
        return np.asarray(acted & (predicted == test))
