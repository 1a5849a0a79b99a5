"""The promises that are asked for again and again, and wrong ways that must be caught."""

from __future__ import annotations

from collections.abc import Iterator

from tests.guarantees.promises import Cell

from calibrant.testing.threshold_laws import Atoms, Steps, Strata
from calibrant.testing.threshold_worlds import (
    THRESHOLD_WORLDS,
    ThresholdWorld,
    constant_rate,
    crossing,
    hugging,
    sawtooth,
    straddling,
)
from calibrant.thresholds import (
    Cost,
    Target,
    abstention,
    accuracy,
    coverage,
    false_discovery,
    fpr,
    npv,
    precision,
    recall,
    specificity,
)

ROWS = (300, 1_000, 5_000, 20_000)
LOOSE = 0.2
"""A delta at which a method that claims too easily is caught with fewer runs."""

HARD = [world for world in THRESHOLD_WORLDS.values() if world.kind != "ordinary"]
COST = Cost(false_positive=1, false_negative=1)

_TORN = THRESHOLD_WORLDS["torn"]
TORN = (recall >= 0.9, fpr <= round(_TORN.truth(fpr, 0.6) - 1e-4, 4))
"""Two targets of which the torn world keeps one above its tie and the other one with it."""


def mirrored(world: ThresholdWorld) -> ThresholdWorld:
    """The world with labels and scores turned round: its NPV is the other's precision."""
    law = world.law
    assert isinstance(law, Steps | Atoms)
    rates = tuple(1 - rate for rate in law.rates[::-1])
    turned: Steps | Atoms
    if isinstance(law, Atoms):
        turned = Atoms(tuple(1 - v for v in law.values[::-1]), law.shares[::-1], rates)
    else:
        turned = Steps(law.widths[::-1], rates)
    return ThresholdWorld(f"{world.name}, turned", "", turned, world.target, world.kind)


def coin() -> ThresholdWorld:
    """Scores that know nothing, half of the rows positive: every threshold costs the same."""
    return ThresholdWorld("coin", "Scores know nothing.", Steps((1.0,), (0.5,)), 0.5)


def two_sided() -> ThresholdWorld:
    """High scores are good enough to act on; low ones are not quite good enough to clear."""
    text = "Good enough above, just not good enough below."
    return ThresholdWorld("two-sided", text, Steps((0.5, 0.5), (0.95, 0.151)))


def lightly_weighted() -> ThresholdWorld:
    """Scores and strata know nothing, and the label rate is just below the target."""
    law = Strata((0.5, 0.5), (1.0, 0.5), (Steps((1.0,), (0.849,)), Steps((1.0,), (0.849,))))
    text = "Half is sampled half as often; the label rate is just below the target."
    return ThresholdWorld("lightly weighted", text, law)


def unseen() -> ThresholdWorld:
    """Half of the population is so rarely sampled that it is often missing altogether."""
    halves = Steps((1.0,), (0.98,)), Steps((1.0,), (0.7,))
    law = Strata((0.5, 0.5), (1.0, 0.001), halves)
    return ThresholdWorld("rarely sampled", "Half is sampled a thousandth as often.", law)


def precision_cells(n: int) -> Iterator[Cell]:
    """Precision in every world, and at other targets and deltas in the hard ones."""
    for world in THRESHOLD_WORLDS.values():
        yield Cell(world, (precision >= world.target,), n)
    for world in HARD:
        yield Cell(world, (precision >= world.target,), n, LOOSE)
    yield Cell(THRESHOLD_WORLDS["saturated"], (precision >= 0.85,), n, on="logits")
    yield Cell(hugging(), (false_discovery <= 0.15,), n)
    for target in (0.05, 0.5, 0.99):
        for world in (
            constant_rate(target, 1e-5),
            hugging(target, 1e-6),
            hugging(target, 1e-6, cells=20),
            sawtooth(target, gap=1e-6),
            straddling(target),
        ):
            yield Cell(world, (precision >= target,), n, LOOSE)


def rate_cells(n: int) -> Iterator[Cell]:
    """The other rates: given the other side, given a label, given all rows."""
    for world in (constant_rate(), hugging(), hugging(cells=20), sawtooth(), straddling()):
        yield Cell(mirrored(world), (npv >= world.target,), n, LOOSE)
    monotone: tuple[Target, ...] = (recall >= 0.9, fpr <= 0.05, abstention <= 0.6)
    for name in ("overlapping", "ties", "rare"):
        for target in monotone:
            yield Cell(THRESHOLD_WORLDS[name], (target,), n)
    # What is made best draws these towards their limit.
    yield Cell(THRESHOLD_WORLDS["overlapping"], (specificity >= 0.9,), n, maximise=recall)
    yield Cell(THRESHOLD_WORLDS["overlapping"], (coverage <= 0.2,), n, maximise=recall)
    yield Cell(THRESHOLD_WORLDS["overlapping"], (npv >= 0.9,), n)
    for name in ("overlapping", "ties", "saturated"):
        yield Cell(THRESHOLD_WORLDS[name], (accuracy >= 0.9,), n)
    yield Cell(THRESHOLD_WORLDS["saturated"], (accuracy >= 0.9,), n, on="logits")
    for world in (constant_rate(), hugging()):
        yield Cell(world, (accuracy >= 0.85,), n, LOOSE, classes=4)


def joint_cells(n: int) -> Iterator[Cell]:
    """Several targets, costs, weights, and models chosen on the same labels."""
    both = (precision >= 0.85, recall >= 0.9)
    yield Cell(_TORN, both, n)
    yield Cell(_TORN, both, n, LOOSE)
    yield Cell(_TORN, TORN, n, LOOSE)
    yield Cell(THRESHOLD_WORLDS["separable"], (precision >= 0.95, recall >= 0.95), n)
    yield Cell(coin(), (COST <= 0.4999,), n, LOOSE)
    yield Cell(coin(), (), n, LOOSE, minimise=COST)
    yield Cell(THRESHOLD_WORLDS["overlapping"], (), n, minimise=Cost(1, 5))
    yield Cell(THRESHOLD_WORLDS["weighted"], (), n, minimise=COST)
    for name in ("weighted", "weighted_hugging"):
        yield Cell(THRESHOLD_WORLDS[name], (recall >= 0.8,), n)
    yield Cell(lightly_weighted(), (precision >= 0.85,), n, LOOSE)
    yield Cell(unseen(), (precision >= 0.85,), n, largest_weight=1000.0)
    yield Cell(two_sided(), (precision >= 0.85, npv >= 0.85), n, LOOSE, ask="band")
    yield Cell(THRESHOLD_WORLDS["overlapping"], (precision >= 0.85, npv >= 0.9), n, ask="band")
    yield Cell(constant_rate(), (precision >= 0.85,), n, candidates=10)
    yield Cell(THRESHOLD_WORLDS["overlapping"], (precision >= 0.85,), n, candidates=10)


def cells(n: int) -> list[Cell]:
    """Every promise at one number of rows."""
    return [*precision_cells(n), *rate_cells(n), *joint_cells(n)]


def every_threshold_cells(n: int) -> list[Cell]:
    """Worlds in which certified thresholds other than the chosen one could be wrong."""
    worlds = (constant_rate(), hugging(), sawtooth(rising=False), crossing(gap=1e-5))
    return [Cell(world, (precision >= world.target,), n, LOOSE) for world in worlds]


def very_rare_cells() -> list[Cell]:
    """One positive in a thousand, with as many rows as that needs."""
    world = THRESHOLD_WORLDS["very_rare"]
    return [
        Cell(world, (precision >= 0.85,), 100_000),
        Cell(world, (recall >= 0.9,), 100_000),
        Cell(world, (precision >= 0.85,), 1_000_000),
    ]


def wrong_ways(n: int) -> dict[str, tuple[Cell, float]]:
    """Ways that break more promises than they may, each with the share that it may break."""
    plain = Cell(THRESHOLD_WORLDS["overlapping"], (precision >= 0.85,), n, None)
    untold = Cell(constant_rate(), (precision >= 0.85,), n, candidates=10, told=False)
    bare = Cell(THRESHOLD_WORLDS["weighted_hugging"], (precision >= 0.85,), n, weighted=False)
    return {
        "the threshold whose estimate meets the target": (plain, 0.05),
        "the best of 10 models, not told": (untold, 0.05),
        "weights left out": (bare, 0.05),
        # Held together each gets half of delta: at twice the delta each gets all of it.
        "the largest of two p-values": (Cell(_TORN, TORN, n, 2 * LOOSE), LOOSE),
    }
