"""Training throughput against skorch and Lightning's Trainer: a table network and a text network.

All train the same network on the same rows for the same epochs in the same batches with
cross-entropy and Adam, set-up included. The peers do what their manuals show, with everything off
that is not training: validation, callbacks, logging, checkpoints, progress (Lightning in its own
`barebones` mode). `calibrant.train` cannot leave out its steer split; scoring it is in its time.
Torch's Adam updates one tensor at a time by default; `calibrant.train` uses the
fused kind, and so do the peers in the stricter row of each goal. A bare loop (forward, loss,
backward and Adam on ready tensors, nothing else) runs along to show how fast any loop on torch can
be.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from benchmarks.harness import Disagreement, Run, Size, cores, race
from benchmarks.outcome import Outcome, speed_up
from benchmarks.training_peers import lightning_fit, skorch_fit

__all__ = ["measure"]

BATCH = 64
TABLE = {"full": (20_000, 30, 3), "toy": (1_000, 30, 1)}  # rows, columns, epochs
TEXTS = {"full": (2_000, 1), "toy": (100, 1)}  # rows, epochs
ROUNDS = {"full": (7, 3), "toy": (1, 1)}  # of the table, of the texts
VOCABULARY = 5_000
NETWORK = {"embedding": 256, "hidden": 64}  # of the text network; the paper's is 1024 and 128
STEER = 128  # rows
FLOOR = "a bare torch loop"
SPREAD = 0.03  # how far accuracies may lie apart after the same number of steps


def measure(size: Size) -> list[Outcome]:
    """Race both networks."""
    with _quiet():
        return [*_table(size), *_texts(size)]


def _table(size: Size) -> list[Outcome]:
    from calibrant.models import MLP
    from calibrant.training import ArrayRows

    n, columns, epochs = TABLE[size]
    rng = np.random.default_rng(0)
    features = rng.normal(size=(n, columns)).astype(np.float32)
    labels = (features[:, :5].sum(axis=1) + rng.normal(size=n) > 0).astype(np.int64)

    def network() -> Any:
        return MLP(columns, 2)

    def rows(part: slice) -> Any:
        return ArrayRows(features[part], labels[part])

    peers = {"inputs": (features,), "labels": labels, "epochs": epochs, "batch": BATCH}
    return _goals("table MLP", network, rows, peers, 3.0, n * epochs, ROUNDS[size][0])


def _texts(size: Size) -> list[Outcome]:
    from calibrant.models import BiLSTM
    from calibrant.training import TextRows

    n, epochs = TEXTS[size]
    tokens, offsets, labels = made_texts(n)

    def network() -> Any:
        return BiLSTM(VOCABULARY, 2, **NETWORK)

    def rows(part: slice) -> Any:
        bounds = offsets[slice(part.start, None if part.stop is None else part.stop + 1)]
        return TextRows(tokens[: bounds[-1]], bounds, labels[part])

    texts = np.split(tokens, offsets[1:-1])
    peers = {"inputs": (texts,), "labels": labels, "epochs": epochs, "batch": BATCH}
    return _goals("BiLSTM on ragged texts", network, rows, peers, 1.5, n * epochs, ROUNDS[size][1])


def made_texts(n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Make texts of log-normal length (median 20 tokens); one word in ten depends on the class."""
    rng = np.random.default_rng(0)
    lengths = np.clip(rng.lognormal(3.0, 0.8, n).astype(int), 1, 400)
    labels = rng.integers(0, 2, n)
    tokens = rng.integers(1000, VOCABULARY, lengths.sum())
    informative = rng.random(len(tokens)) < 0.1
    class_tokens = np.repeat(labels, lengths) * 100 + rng.integers(1, 100, len(tokens))
    tokens[informative] = class_tokens[informative]
    return tokens, np.concatenate([[0], lengths.cumsum()]), labels


def _goals(
    what: str,
    network: Callable[[], Any],
    rows: Callable[[slice], Any],
    peers: dict[str, Any],
    least: float,
    trained: int,
    rounds: int,
) -> list[Outcome]:
    """Race our loop with the peers, each with torch's own Adam and with the fused one."""
    everything, steer = rows(slice(0, None)), rows(slice(0, STEER))

    def ours() -> Any:
        return _ours(_seeded(network), everything, steer, peers["epochs"])

    def bare() -> Any:
        return _bare(_seeded(network), everything, peers["epochs"])

    contenders: dict[str, Callable[[], Any]] = {"calibrant": ours, FLOOR: bare}
    for name, fit in (("skorch", skorch_fit), ("Lightning", lightning_fit)):
        for fused in (False, True):
            contenders[f"{name}{', fused Adam' if fused else ''}"] = _contender(
                fit, network, {**peers, "fused": fused}
            )
    runs = race(contenders, rounds)
    accuracies = {name: _accuracy(run.value, everything) for name, run in runs.items()}
    # A few steps of a toy leave more to chance than a thousand.
    if trained >= 10_000 and max(accuracies.values()) - min(accuracies.values()) > SPREAD:
        raise Disagreement(f"{what}: accuracies after training are {accuracies}.")
    details = {name: _details(run, trained, accuracies[name]) for name, run in runs.items()}
    return [
        speed_up(
            f"{what}, batch {BATCH}: training at least {least:g} times faster than {name}",
            run.median,
            runs["calibrant"].median,
            least,
            {key: details[key] for key in ("calibrant", name, FLOOR)} | {"cores": cores()},
        )
        for name, run in runs.items()
        if name not in ("calibrant", FLOOR)
    ]


def _contender(
    fit: Callable[..., Any], network: Callable[[], Any], options: dict[str, Any]
) -> Callable[[], Any]:
    return lambda: fit(_seeded(network), **options)


def _seeded(network: Callable[[], Any]) -> Any:
    """Make a network with the same first weights for all."""
    import torch

    torch.manual_seed(0)
    return network()


def _ours(model: Any, rows: Any, steer: Any, epochs: int) -> Any:
    from calibrant.training import TrainingOptions, train

    options = TrainingOptions(epochs=epochs, batch_size=BATCH, patience=None, device="cpu")
    return train(model, rows, steer, loss="ce", options=options).model


def _bare(model: Any, rows: Any, epochs: int) -> Any:
    import torch
    from torch.nn.functional import cross_entropy

    adam = torch.optim.Adam(model.train().parameters(), fused=True)
    draw = torch.Generator().manual_seed(0)
    for _ in range(epochs):
        for _, inputs, labels in rows.batches(BATCH, generator=draw):
            cross_entropy(model(*inputs), labels).backward()
            adam.step()
            adam.zero_grad()
    return model


def _accuracy(model: Any, rows: Any) -> float:
    """Return the share of rows that a network gets right; outside the times."""
    from calibrant.training import predict_logits

    return float((predict_logits(model, rows).argmax(axis=1) == rows.labels.numpy()).mean())


def _details(run: Run, trained: int, accuracy: float) -> dict[str, float]:
    per_second = round(trained / run.median)
    return {**run.to_dict(), "rows_per_second": per_second, "accuracy": round(accuracy, 4)}


@contextmanager
def _quiet() -> Iterator[None]:
    """Keep the peers from printing, which would be in their time."""
    names = [name for name in logging.root.manager.loggerDict if "lightning" in name]
    levels = {name: logging.getLogger(name).level for name in names}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for name in names:
            logging.getLogger(name).setLevel(logging.ERROR)
        yield
    for name, level in levels.items():
        logging.getLogger(name).setLevel(level)
