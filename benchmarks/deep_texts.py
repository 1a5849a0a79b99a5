"""20 Newsgroups: MiniLM fine-tuned, and the text CNN of the papers on calibration.

Posts are read as in those papers: the header is cut off at the first empty line, quotes and footers
stay, rows are drawn with numpy seed 1 into train, 900 to steer by, and 3,999 to judge. The CNN
reads 1,000 of 20,000 words; its vectors are learned, as no pretrained ones are at hand, and only
its speed is asked for. `CALIBRANT_MINILM` names the folder of MiniLM.
"""

from __future__ import annotations

import os
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks.gpu import gpu_name, newsgroups
from benchmarks.harness import Size
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

STEER, TEST = 900, 3_999
MINILM: dict[str, Any] = {
    "epochs": 4, "batch_size": 32, "learning_rate": 1e-4, "max_length": 256,
    "precision": "bf16-mixed",
}  # fmt: skip
CNN: dict[str, Any] = {
    "model": "text_cnn", "vocabulary": 20_000, "min_count": 1, "max_length": 1_000,
    "batch_size": 128, "epochs": 3, "precision": "bf16-mixed",
}  # fmt: skip
TOY: dict[str, Any] = {
    "model": "text_cnn", "model_options": {"embedding": 4, "filters": 4}, "epochs": 1,
    "min_count": 1, "device": "cpu",
}  # fmt: skip


def measure(size: Size) -> list[Outcome]:
    """Fine-tune MiniLM, and time the CNN."""
    if size == "toy":
        return [_cnn(_toy_rows(), TOY, limit=3600.0)]
    if gpu_name() is None:
        return []
    rows = _drawn(newsgroups())
    figures = _run({"model": os.environ["CALIBRANT_MINILM"], **MINILM}, rows)
    goal = "MiniLM on 20 Newsgroups (body, rows drawn): test error"
    return [within(goal, figures["error"], 20.0, "%", figures), _cnn(rows, CNN, limit=5.0)]


def _cnn(rows: Sequence[Any], settings: dict[str, Any], *, limit: float) -> Outcome:
    figures = _run(settings, rows)
    goal = "20 Newsgroups text CNN: an epoch"
    return within(goal, figures["seconds_of_an_epoch"], limit, "s", figures)


def _run(settings: dict[str, Any], rows: Sequence[Any]) -> dict[str, Any]:
    from calibrant import TextClassifier

    (train, own), steer, (texts, labels) = rows
    model = TextClassifier(**settings)
    started = time.perf_counter()
    model.fit(train, own, steer=steer)
    seconds = time.perf_counter() - started
    predicted = model.predict(texts)
    return {
        "error": round(100 * float(np.mean(predicted != labels)), 3),
        "seconds": round(seconds, 1),
        "seconds_of_an_epoch": round(float(np.median([r.seconds for r in model.records_])), 3),
        "epochs": len(model.records_),
        "best_epoch": model.best_epoch_,
        "rows": [len(train), len(steer[0]), len(texts)],
        "settings": {key: value for key, value in settings.items() if key != "model"},
        "gpu": gpu_name(),
    }


def _drawn(posts: dict[str, Any]) -> list[Any]:
    """Draw rows as the papers do, of posts without their header."""
    texts = np.array([text.partition("\n\n")[2] for text in posts["text"]], dtype=object)
    order = np.random.default_rng(1).permutation(len(texts))
    cut = np.split(order, [len(order) - STEER - TEST, len(order) - TEST])
    return [(texts[part].tolist(), posts["label"][part]) for part in cut]


def _toy_rows() -> list[Any]:
    texts = ["the car has an engine", "the team won the game", "god and faith"] * 20
    return [(texts, np.arange(60) % 3)] * 3
