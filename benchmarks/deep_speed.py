"""Images per second of the training loop with a CIFAR ResNet-50, and what AdaFocal adds to a step.

Timed is the loop as users get it: shuffling, cropping, flipping, normalising, the step, the look at
the clock; from the moment that the card has done the first steps (compiling and tuning are over) to
the moment that it has done the last. The images are noise, which takes as long as photos. The
limits are what a plain loop of eager torch in bf16 with channels last reached on one H200.
"""

from __future__ import annotations

import statistics
import time
from typing import Any

from benchmarks.gpu import gpu_name, random_images
from benchmarks.harness import Size
from benchmarks.outcome import Outcome, within

__all__ = ["measure"]

PLAIN = {128: 6_000.0, 512: 15_700.0}  # images per second
LEAST = {False: PLAIN, True: {128: 1.5 * PLAIN[128], 512: PLAIN[512]}}  # eager, compiled
STEPS = {"full": {128: 120, 512: 60}, "toy": {8: 2}}  # timed steps by batch size
WARM = {"full": 20, "toy": 1}
ROUNDS = 3  # of AdaFocal against cross-entropy
STEER = {"full": 2_000, "toy": 64}


def measure(size: Size) -> list[Outcome]:
    """Time the loop at each batch size, eager and compiled."""
    if size == "full" and gpu_name() is None:
        return []
    outcomes = []
    for compiled in (False, True) if size == "full" else (False,):
        for batch in STEPS[size]:
            rate = images_per_second(size, batch, compile=compiled)
            limit = LEAST[compiled].get(batch, 0.1)
            how = "compile=True" if compiled else "eager"
            goal = f"CIFAR ResNet-50 in bf16, batch {batch}, {how}"
            details = {"plain eager loop": PLAIN.get(batch)}
            outcomes.append(Outcome(goal, round(rate, 1), limit, "images/s", "at least", details))
    return [*outcomes, *_adafocal(size)]


def _adafocal(size: Size) -> list[Outcome]:
    """Compare steps with AdaFocal and with torch's cross-entropy, in turns."""
    import torch.nn.functional as F  # noqa: N812

    outcomes = []
    for batch in STEPS[size]:
        rates: dict[str, list[float]] = {"adafocal": [], "F.cross_entropy": []}
        for turn in range(ROUNDS if size == "full" else 1):
            order: list[tuple[str, Any]] = [
                ("adafocal", "adafocal"), ("F.cross_entropy", F.cross_entropy)
            ]  # fmt: skip
            for name, loss in order if turn % 2 else reversed(order):
                rates[name].append(images_per_second(size, batch, loss=loss))
        middle = {name: statistics.median(each) for name, each in rates.items()}
        slower = middle["F.cross_entropy"] / middle["adafocal"] - 1
        outcomes.append(
            within(
                f"A step with AdaFocal against F.cross_entropy, batch {batch}, eager: slower by",
                max(100 * slower, 0.0), 3.0, "%",
                {name: [round(rate) for rate in each] for name, each in rates.items()},
            )
        )  # fmt: skip
    return outcomes


def images_per_second(
    size: Size, batch: int, *, loss: Any = "ce", compile: bool = False, **more: Any
) -> float:
    """Train for a little more than one epoch, and time the steps after the first ones."""
    import torch

    from calibrant.models import ResNet50
    from calibrant.training import TrainingOptions, train
    from calibrant.training.image_rows import ImageRows

    warm, steps = WARM[size], STEPS[size][batch]
    shape = {"mean": [0.5] * 3, "std": [0.25] * 3}
    rows = ImageRows(*random_images(batch * (warm + steps)), crop=4, flip=True, **shape)
    steer = ImageRows(*random_images(STEER[size], seed=1), **shape)
    torch.manual_seed(0)
    model = ResNet50(3, 10, width=64 if size == "full" else 2)
    options = TrainingOptions(
        epochs=1, batch_size=batch, optimizer="sgd", learning_rate=0.05, nesterov=True,
        precision="bf16-mixed", compile=compile, patience=None, **more,
    )  # fmt: skip
    watch = _watch(warm, warm + steps)
    train(model, rows, steer, loss=loss, options=options, hooks=[watch])
    torch._dynamo.reset()
    return float(batch * steps / watch.seconds)


def _watch(first: int, last: int) -> Any:
    """Return a hook that measures the time from one step to another."""
    import torch

    from calibrant.training import Hook

    class Watch(Hook):
        seconds = float("nan")

        def on_batch_end(self, run: Any, logits: Any, labels: Any) -> None:
            if run.step in (first, last):
                if logits.is_cuda:
                    torch.cuda.synchronize()
                now = time.perf_counter()
                self.seconds = now - self.started if run.step == last else float("nan")
                self.started = now if run.step == first else self.started

    return Watch()
