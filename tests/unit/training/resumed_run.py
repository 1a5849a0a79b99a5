"""Runs that kill themselves at given steps: `python -m ... FOLDER STEP [STEP ...]`.

Each run is a process of its own with a folder of its own, FOLDER/STEP. All are forked from one that
has imported torch and computed nothing; how each ended is printed, a line for each.
"""

import os
import signal
import sys

import lightning_fabric  # noqa: F401  once for all, where each run would import it
import torch
from tests.unit.training.runs import blobs, net, options

from calibrant.losses import AdaFocalLoss
from calibrant.training import Hook, train

EPOCHS, STEPS = 6, 10  # 320 rows in batches of 32


class Kill(Hook):
    """Ends the process as a power cut would."""

    def __init__(self, step: int) -> None:
        self.step = step

    def on_batch_end(self, run, logits, labels):
        if run.step == self.step:
            os.kill(os.getpid(), signal.SIGKILL)


def loss() -> AdaFocalLoss:
    return AdaFocalLoss(n_bins=4, update_every=7)  # out of step with epochs: resuming must know


def run(folder, step=None):
    torch.set_num_threads(1)
    hooks = [] if step is None else [Kill(step)]
    chosen = options(epochs=EPOCHS, schedule="cosine", patience=None, clip=1.0)
    rows, steer = blobs(320), blobs(100, seed=1)
    return train(net(), rows, steer, loss=loss(), hooks=hooks, folder=folder, options=chosen)


if __name__ == "__main__":
    for step in sys.argv[2:]:
        child = os.fork()
        if child == 0:
            run(os.path.join(sys.argv[1], step), int(step))
            os._exit(0)
        print(step, os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), flush=True)
