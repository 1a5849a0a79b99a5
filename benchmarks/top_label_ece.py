"""Top-label ECE of 1,000,000 x 10 float32 probabilities against torchmetrics and netcal.

The most common call of all. Each contender gets the container it likes best, made beforehand;
each runs the checks of its input that it runs by default.
"""

from __future__ import annotations

from benchmarks.harness import Run, Size, agree, cores, race
from benchmarks.made_scores import multiclass_scores
from benchmarks.outcome import Outcome, speed_up

__all__ = ["measure"]

ROWS = {"full": 1_000_000, "toy": 20_000}
ROUNDS = {"full": 15, "toy": 3}
CLASSES, BINS = 10, 15


def measure(size: Size) -> list[Outcome]:
    """Time the three, check that they agree, and compare."""
    runs = _race(ROWS[size], ROUNDS[size])
    ours, torch, netcal = (runs[name] for name in ("calibrant", "torchmetrics", "netcal"))
    agree("ECE and torchmetrics", ours.value, torch.value, 2e-4)  # it adds up in float32
    agree("ECE and netcal", ours.value, netcal.value, 1e-6)
    shared = {"shape": [ROWS[size], CLASSES], "torch_threads": cores()}
    details = shared | {
        name: {**run.to_dict(), "value": round(run.value, 7)} for name, run in runs.items()
    }
    faster = "top-label ECE faster than torchmetrics"
    far_faster = "top-label ECE at least 6 times faster than netcal"
    return [
        speed_up(faster, torch.median, ours.median, 1.0, details),
        speed_up(far_faster, netcal.median, ours.median, 6.0, shared),
    ]


def _race(rows: int, rounds: int) -> dict[str, Run]:
    import torch
    from netcal.metrics import ECE
    from torchmetrics.functional.classification import multiclass_calibration_error

    from calibrant.metrics import ece

    labels, probs = multiclass_scores(rows, CLASSES)
    torch.set_num_threads(cores())
    labels_tensor, probs_tensor = torch.from_numpy(labels), torch.from_numpy(probs)
    peer = ECE(BINS)

    def torchmetrics(*, checks: bool = True) -> float:
        return float(
            multiclass_calibration_error(
                probs_tensor, labels_tensor, CLASSES, n_bins=BINS, validate_args=checks
            )
        )

    return race(
        {
            "calibrant": lambda: ece(labels, probs, n_bins=BINS),
            "torchmetrics": torchmetrics,
            "torchmetrics without checks": lambda: torchmetrics(checks=False),
            "netcal": lambda: float(peer.measure(probs, labels)),
        },
        rounds,
    )
