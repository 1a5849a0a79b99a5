"""How often a promise about a threshold is broken, on worlds whose truth is known.

A promise is broken when any of its targets is missed by the true rate at the chosen threshold. Of
all runs at most a share delta may break one. Runs that issue no promise count as kept, so the
share among issued ones may be larger; it is reported beside it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Literal
from unittest.mock import patch
from zlib import crc32

import numpy as np

from calibrant.errors import InputError, TargetUnreachable
from calibrant.testing.threshold_laws import ThresholdDraw
from calibrant.testing.threshold_worlds import ThresholdWorld
from calibrant.thresholds import (
    Cost,
    LabelUse,
    OperatingPoint,
    Rate,
    Target,
    accuracy,
    precision,
    select,
    select_band,
    select_each,
)
from calibrant.thresholds.proof.certify import certify_positions
from calibrant.thresholds.proof.ranked import rank_rows

SLACK = 1e-12  # sums of floats stand behind every truth
REFUSALS = (
    "so no threshold can be chosen",  # one of the classes is missing
    "too much for any promise",  # one row has most of the weight
    "overlap for every certified pair",  # the sides of a band
)


@dataclass(frozen=True)
class Cell:
    """A promise to be asked for again and again.

    Parameters
    ----------
    world : where the rows come from
    hold : what is to be held; empty where a cost is to be made small
    n : rows
    delta : the share of broken promises that is allowed; None asks for the plain empirical choice
    maximise, minimise : as for `select`
    on : whether scores are handed over as probabilities or as logits
    classes : hand the scores over as those of so many classes, for accuracy on accepted rows
    candidates : models among which the best promise is taken, all on the same labels
    told : whether the library is told of them
    weighted, largest_weight : whether it is given the weights, and the most that a row can weigh
    ask : for one threshold, or for a band that acts on rows above it and clears those below
    """

    world: ThresholdWorld
    hold: tuple[Target, ...]
    n: int
    delta: float | None = 0.05
    maximise: Rate | None = None
    minimise: Cost | None = None
    on: str = "probs"
    classes: int = 2
    candidates: int = 1
    told: bool = True
    weighted: bool = True
    largest_weight: float | None = None
    ask: Literal["point", "band"] = "point"

    @property
    def what(self) -> str:
        """What is promised, in words."""
        text = " and ".join(map(str, self.hold)) or "the smallest cost"
        text += " on logits" if self.on == "logits" else ""
        text += f", {self.classes} classes" if self.classes > 2 else ""
        text += f", best of {self.candidates} models" if self.candidates > 1 else ""
        return text if self.ask == "point" else f"band with {text}"


@dataclass(frozen=True)
class Count:
    """Runs, the promises that were issued in them, and those that were broken."""

    broken: int
    issued: int
    runs: int

    def keeps(self, delta: float) -> bool:
        """Whether chance can excuse the broken ones: 3.1 standard errors are allowed."""
        return self.broken / self.runs <= delta + 3.1 * math.sqrt(delta * (1 - delta) / self.runs)

    def __str__(self) -> str:
        among = f"{self.broken / self.issued:.2%}" if self.issued else "none"
        return (
            f"broken/all {self.broken / self.runs:.2%}, broken/issued {among} "
            f"({self.broken} of {self.issued} issued in {self.runs} runs)"
        )


def count(cell: Cell, repetitions: int, seed: int) -> Count:
    """Ask for the promise on fresh rows again and again."""
    rng = _generator(cell, seed)
    broken = issued = 0
    with short_refusals():
        for _ in range(repetitions):
            points = _band(cell, rng) if cell.ask == "band" else _best_point(cell, rng)
            issued += len(points) > 0
            broken += not all(_keeps(cell, point) for point in points)
    return Count(broken, issued, repetitions)


def count_each(n: int, classes: int, delta: float, repetitions: int, seed: int) -> Count:
    """Ask for a point for each class where scores know nothing: every promise is broken."""
    rng = np.random.default_rng([seed, n])
    broken = 0
    with short_refusals():
        for _ in range(repetitions):
            labels = rng.integers(classes, size=n)
            probs = rng.dirichlet(np.ones(classes), n)
            hold = precision >= 1 / classes + 1e-4
            broken += len(select_each(labels, probs, hold=hold, confidence=1 - delta).points) > 0
    return Count(broken, broken, repetitions)


@contextmanager
def short_refusals() -> Iterator[None]:
    """Leave out the explanation of a refusal, and nothing else: it takes far longer than that."""
    with (
        patch("calibrant.thresholds.selection.build_unreachable_error", _refuse),
        patch("calibrant.thresholds.band.build_unreachable_error", _refuse),
    ):
        yield


def count_all(cell: Cell, repetitions: int, seed: int) -> Count:
    """Look at every certified position instead of the chosen one: none may miss the target.

    This is what is proved, and what allows to choose among them by any rule. A threshold may lie
    anywhere between the last score acted on and the first one left out, so both ends are tried.
    """
    (target,) = cell.hold
    rng = _generator(cell, seed)
    broken = issued = 0
    for _ in range(repetitions):
        draw = cell.world.draw(cell.n, rng)
        rows = rank_rows(draw.probs, draw.labels == 1, draw.weights)
        passed = _few(rows.ends[certify_positions(rows, target, cell.delta)])
        issued += len(passed) > 0
        left_out = np.append(rows.score, -np.inf)[passed]
        tried = np.append(np.nextafter(left_out, np.inf), rows.score[passed - 1])
        broken += any(cell.world.truth(target.rate, t) < target.value - SLACK for t in tried)
    return Count(broken, issued, repetitions)


def _few(positions: np.ndarray) -> np.ndarray:
    """Some of the positions, the first and the last among them: a truth takes its time."""
    some = np.linspace(0, len(positions) - 1, min(len(positions), 40))
    return positions[some.astype(int)]


def _generator(cell: Cell, seed: int) -> np.random.Generator:
    return np.random.default_rng([seed, cell.n, crc32(f"{cell.world.name} {cell.what}".encode())])


def _keeps(cell: Cell, point: OperatingPoint) -> bool:
    """Whether every target is met by the population."""
    threshold = point.threshold if point.on == "probs" else point.logit
    if cell.classes > 2:
        threshold = 2 * threshold - 1  # see _as_classes
    for target in point.hold or cell.hold:
        # With more classes, the world's labels say whether the predicted class is right.
        rate = precision if cell.classes > 2 and target.rate == accuracy else target.rate
        top = point.of is None and cell.classes == 2  # scored by the predicted class
        true = cell.world.truth(rate, threshold, on=point.on, top=top)
        missing = target.value - true if target.sense == ">=" else true - target.value
        if missing > SLACK:
            return False
    return True


def _best_point(cell: Cell, rng: np.random.Generator) -> list[OperatingPoint]:
    """The promise with the highest measured recall among those of the candidates, if any."""
    draw = cell.world.draw(cell.n, rng)
    draws = [draw, *(cell.world.rescore(draw.labels, rng) for _ in range(cell.candidates - 1))]
    points = [point for one in draws if (point := _point(cell, one, rng)) is not None]
    if len(points) < 2:
        return points
    return [max(points, key=lambda point: point["recall"].value or 0.0)]


def _band(cell: Cell, rng: np.random.Generator) -> list[OperatingPoint]:
    draw, (act, clear) = cell.world.draw(cell.n, rng), cell.hold
    try:
        band = select_band(draw.labels, draw.probs, act=act, clear=clear, confidence=1 - cell.delta)
    except (TargetUnreachable, InputError) as error:
        return _refused(error)
    return [band.upper, band.lower]


def _point(cell: Cell, draw: ThresholdDraw, rng: np.random.Generator) -> OperatingPoint | None:
    """The point, where it comes with a promise (or where none was asked for)."""
    labels, scores = draw.labels, {cell.on: draw.logits if cell.on == "logits" else draw.probs}
    if cell.classes > 2:
        labels, scores = _as_classes(draw, cell.classes, rng)
    try:
        point = select(
            labels,
            **scores,
            hold=cell.hold,
            maximise=cell.maximise,
            minimise=cell.minimise,
            weights=draw.weights if cell.weighted else None,
            largest_weight=cell.largest_weight if cell.weighted else None,
            confidence=None if cell.delta is None else 1 - cell.delta,
            label_use=LabelUse(candidates=cell.candidates if cell.told else 1),
        )
    except (TargetUnreachable, InputError) as error:
        _refused(error)
        return None
    return point if point.guarantee or cell.delta is None else None


def _refused(error: Exception) -> list[OperatingPoint]:
    """No promise; anything else than a refusal is a fault."""
    if isinstance(error, InputError) and not any(words in str(error) for words in REFUSALS):
        raise error
    return []


def _as_classes(
    draw: ThresholdDraw, classes: int, rng: np.random.Generator
) -> tuple[np.ndarray, dict[str, Any]]:
    """Hand rows over as predictions of several classes that are right where the label is 1."""
    n = len(draw.labels)
    top, confidence = rng.integers(classes, size=n), (1 + draw.probs) / 2
    probs = np.repeat((1 - confidence)[:, None] / (classes - 1), classes, axis=1)
    probs[np.arange(n), top] = confidence
    wrong = (top + rng.integers(1, classes, size=n)) % classes
    return np.where(draw.labels == 1, top, wrong), {"probs": probs}


def _refuse(question: Any, found: Any, targets: Any, **options: Any) -> TargetUnreachable:
    return TargetUnreachable(hold=[str(t) for t in targets], n=question.rows.n, positives=0)
