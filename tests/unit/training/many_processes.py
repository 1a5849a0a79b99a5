"""Runs on as many processes as it is started with: `torchrun -m ... OUT 1` or `... OUT 2`."""

import json
import sys
from pathlib import Path

import torch
from tests.unit.training.runs import blobs, net, options

from calibrant.losses import AdaFocalLoss
from calibrant.training import train


def run(out: Path, devices: int, folder: str | None = None) -> None:
    torch.set_num_threads(1)
    found = {"linear": trained(line(), devices, folder)}
    if folder is None:
        found["sum"] = trained(line(), devices, reduction="sum")
        found["normed"] = trained(net(), devices)  # batch norm and dropout
        found["averaged"] = trained(line(), devices, average=0.9, choose_by="last")
        found["averaged normed"] = trained(net(), devices, average=0.9, choose_by="last")
    running = torch.distributed.is_initialized()
    found["world"] = torch.distributed.get_world_size() if running else 1
    rank = torch.distributed.get_rank() if running else 0
    (out / f"rank-{rank}.json").write_text(json.dumps(found))


def line() -> torch.nn.Module:
    torch.manual_seed(0)
    return torch.nn.Linear(3, 3)


def trained(model, devices, folder=None, reduction="mean", **changes):
    rate = 0.1 if reduction == "mean" else 0.1 / 32
    chosen = options(
        epochs=4, batch_size=32, optimizer="sgd", learning_rate=rate, devices=devices,
        patience=None, precision="64-true", **changes,
    )  # fmt: skip
    loss = AdaFocalLoss(n_bins=5, update_every=3, reduction=reduction)
    loss = loss if reduction == "mean" else 1.0 * loss  # a sum of losses passes its terms' on
    # 101 steer rows: the two processes cannot have equally many
    done = train(model, blobs(320), blobs(101, seed=1), loss=loss, folder=folder, options=chosen)
    own = getattr(done.loss, "terms", [done.loss])[0]
    return {
        "weights": {name: value.tolist() for name, value in done.model.state_dict().items()},
        "gammas": own.gammas.tolist(),
        "edges": own.edges.tolist(),
        "average": done.average and done.average.to_dict(),
        "records": [[record.loss, record.nll, record.ece] for record in done.records],
    }


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
