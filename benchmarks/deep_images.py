"""CIFAR-10 with a ResNet-50 in 30 epochs: its test error, and the seconds that it took.

45,000 images train, 5,000 steer (one in ten, numpy seed 1, as in the papers on calibration), the
10,000 test images judge. Other losses are those of `python -m reproductions cifar10-resnet50`.
"""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.gpu import cifar10, gpu_name, random_images
from benchmarks.harness import Size
from benchmarks.outcome import Outcome, within

__all__ = ["measure", "with_earlier"]

SCHEDULE: dict[str, Any] = {
    "epochs": 30, "batch_size": 128, "learning_rate": 0.1, "schedule": "linear", "warmup": 0.2,
    "weight_decay": 1e-3, "precision": "bf16-mixed", "compile": True,
    "model_options": {"zero_init": True},
}  # fmt: skip
TOY: dict[str, Any] = {
    "epochs": 1, "batch_size": 16, "model_options": {"width": 2}, "device": "cpu",
}  # fmt: skip
LIMIT = 6.5  # percent
OTHERS = "other schedules, ce"


def measure(size: Size) -> list[Outcome]:
    """Train on the train images and judge on the test images."""
    if size == "full" and gpu_name() is None:
        return []
    if size == "full":
        (images, labels), test = cifar10("train"), cifar10("test")
    else:
        (images, labels), test = random_images(120), random_images(40, seed=1)
    order = np.random.default_rng(1).permutation(len(labels))
    steer, train = order[: len(order) // 10], order[len(order) // 10 :]
    rows = (images, labels), train, steer, test
    figures = _run(*rows, size)
    if size == "full":
        figures = with_earlier(figures, _saved())
    goal = f"CIFAR-10 ResNet-50, epochs: {figures['epochs']}, cross-entropy: test error"
    return [within(goal, figures["error"], LIMIT if size == "full" else 100.1, "%", figures)]


def _run(rows: Any, train: Any, steer: Any, test: Any, size: Size) -> dict[str, Any]:
    from calibrant import ImageClassifier
    from calibrant.calibrators import TemperatureScaling
    from calibrant.metrics import ece, nll

    images, labels = rows
    model = ImageClassifier(**(SCHEDULE if size == "full" else TOY))
    started = time.perf_counter()
    model.fit(images[train], labels[train], steer=(images[steer], labels[steer]))
    seconds = time.perf_counter() - started
    scaling = TemperatureScaling().fit(model.predict_logits(images[steer]), labels[steer])
    logits = model.predict_logits(test[0])
    probs, scaled = model.predict_proba(test[0]), scaling.predict_proba(logits)
    return {
        "error": round(100 * float(np.mean(logits.argmax(1) != test[1])), 3),
        "seconds": round(seconds, 1),
        "epochs": len(model.records_),
        "seconds_of_an_epoch": round(float(np.median([r.seconds for r in model.records_])), 2),
        "best_epoch": model.best_epoch_,
        "steer_error": round(100 * (1 - model.records_[model.best_epoch_].accuracy), 3),
        "steer_refinement": round(model.records_[model.best_epoch_].refinement, 4),
        "ece_em": round(100 * float(ece(test[1], probs, scheme="mass")), 3),
        "ece_em_scaled": round(100 * float(ece(test[1], scaled, scheme="mass")), 3),
        "nll_scaled": round(float(nll(test[1], scaled)), 4),
        "temperature": round(float(scaling.temperature_), 3),
        "gpu": gpu_name(),
        "settings": SCHEDULE if size == "full" else TOY,
    }


def with_earlier(figures: dict[str, Any], saved: dict[str, Any] | None) -> dict[str, Any]:
    """Keep every run of before beside a new one: the best of several looks too good."""
    if saved is None:
        return figures
    beside = {name: runs for name, runs in saved.items() if name.startswith("other schedules")}
    last = {name: value for name, value in saved.items() if name not in beside}
    return {**figures, **beside, OTHERS: [last, *beside.get(OTHERS, [])]}


def _saved() -> dict[str, Any] | None:
    path = Path(__file__).parent / "results" / "deep_images.json"
    if not path.exists():
        return None
    details: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))["goals"][0]["details"]
    return details
