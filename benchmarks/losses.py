"""AdaFocal's loss against `F.cross_entropy`, and its look-up against a loop over rows.

A step is forward and backward of 8,192 x 1,000 float32 logits, after an update that gave the bins
different gammas. `F.cross_entropy` is the yardstick; focal loss as it is mostly written, with 1 - p
formed from the probability, runs in the same turns. The loop looks up one row after the other, as
the released code does; both must find the same gammas.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.harness import Disagreement, Size, agree, race
from benchmarks.outcome import Outcome, speed_up, within

__all__ = ["measure"]

SHAPE = {"full": (8_192, 1_000), "toy": (512, 50)}
ROUNDS = {"full": 31, "toy": 3}
LOOPS = {"full": 7, "toy": 1}


def measure(size: Size) -> list[Outcome]:
    """Time a step of each loss, and both ways of looking gammas up."""
    return [_step(size), _look_up(size)]


def _step(size: Size) -> Outcome:
    import torch
    from torch.nn import functional

    from calibrant.losses import FocalLoss

    logits, labels = made_rows(*SHAPE[size])
    loss, focal = steered(SHAPE[size][1]), FocalLoss(2.0)

    def naive(z: Any, y: Any) -> Any:
        log_p = torch.log_softmax(z, -1).gather(-1, y.unsqueeze(-1)).squeeze(-1)
        return (-((1 - log_p.exp()) ** 2.0) * log_p).mean()

    runs = race(
        {
            "calibrant, adafocal": _work(loss, logits, labels),
            "calibrant, focal": _work(focal, logits, labels),
            "torch, cross-entropy": _work(functional.cross_entropy, logits, labels),
            "torch, focal from 1 - p": _work(naive, logits, labels),
        },
        ROUNDS[size],
    )
    agree("focal", runs["calibrant, focal"].value, runs["torch, focal from 1 - p"].value, 1e-5)
    return within(
        "AdaFocal forward and backward at most 1.6 times F.cross_entropy",
        runs["calibrant, adafocal"].median / runs["torch, cross-entropy"].median,
        1.6,
        "times",
        {"threads": torch.get_num_threads()} | {name: run.to_dict() for name, run in runs.items()},
    )


def _look_up(size: Size) -> Outcome:
    import torch

    from calibrant.losses.confidence_bins import look_up
    from calibrant.losses.true_odds import true_odds

    loss = steered(SHAPE[size][1])
    odds = true_odds(*made_rows(*SHAPE[size]))
    edges, gammas = loss.edges.tolist(), loss.gammas.tolist()

    def one_by_one() -> Any:
        values = []
        for row in odds:
            b = 0
            while b < len(edges) and row >= edges[b]:
                b += 1
            values.append(gammas[b])
        return torch.tensor(values)

    runs = race(
        {
            "calibrant": lambda: loss.gammas.to(odds).index_select(0, look_up(odds, loss.edges)),
            "one row after the other": one_by_one,
        },
        LOOPS[size],
    )
    ours, theirs = (run.value for run in runs.values())
    if not torch.equal(ours, theirs):
        raise Disagreement("the look-up and the loop found different gammas.")
    return speed_up(
        "AdaFocal's look-up at least 50 times faster than a loop over rows",
        runs["one row after the other"].median,
        runs["calibrant"].median,
        50.0,
        {name: run.to_dict() for name, run in runs.items()},
    )


def made_rows(n: int, k: int) -> tuple[Any, Any]:
    """Draw logits and labels that they predict fairly well."""
    import torch

    draw = torch.Generator().manual_seed(0)
    labels = torch.randint(0, k, (n,), generator=draw)
    logits = torch.randn(n, k, generator=draw)
    logits[torch.arange(n), labels] += 12.0 * torch.rand(n, generator=draw) + 3.0
    return logits, labels


def steered(k: int) -> Any:
    """Return AdaFocal after updates from too sure rows: gammas on both sides of 1."""
    from calibrant.losses import AdaFocalLoss

    loss = AdaFocalLoss(strength=4.0)
    logits, labels = made_rows(3_000, k)
    for sharpness in (3.0, 0.4, 0.4):
        loss.update(sharpness * logits, labels)
    return loss


def _work(loss: Callable[..., Any], logits: Any, labels: Any) -> Callable[[], float]:
    """Return a step of a loss: forward, backward, the value."""

    def step() -> float:
        leaf = logits.detach().requires_grad_()
        value = loss(leaf, labels)
        value.backward()
        return float(value.detach())

    return step
