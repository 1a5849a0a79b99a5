"""A run on as many processes as it is started with: `torchrun -m ... OUT` or `--devices 2`."""

import json
import sys
from pathlib import Path

import torch
from tests.unit.training.runs import blobs, options

from calibrant.losses import AdaFocalLoss
from calibrant.training import train


def run(out: Path, devices: int, folder: str | None = None, epochs: int = 4) -> None:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model = torch.nn.Linear(3, 3)
    loss = AdaFocalLoss(n_bins=5, update_every=3)
    chosen = options(
        epochs=epochs, batch_size=32, optimizer="sgd", learning_rate=0.1, devices=devices,
        patience=None, precision="64-true",
    )  # fmt: skip
    # 101 steer rows: the two processes cannot have equally many
    trained = train(model, blobs(320), blobs(101, seed=1), loss=loss, folder=folder, options=chosen)
    rank = torch.distributed.get_rank() if torch.distributed.is_initialized() else 0
    found = {
        "world": torch.distributed.get_world_size() if torch.distributed.is_initialized() else 1,
        "weights": trained.model.weight.tolist(),
        "gammas": trained.loss.gammas.tolist(),
        "edges": trained.loss.edges.tolist(),
        "records": [[record.loss, record.nll, record.ece] for record in trained.records],
    }
    (out / f"rank-{rank}.json").write_text(json.dumps(found))


if __name__ == "__main__":
    run(Path(sys.argv[1]), int(sys.argv[2]), *sys.argv[3:])
