"""The papers' tables beside ours: experiments, how to run them, and reference conventions."""

from reproductions import parity
from reproductions.experiment import (
    Experiment,
    Method,
    experiment_named,
    experiments,
)
from reproductions.reproduce import Asked, reproduce

__all__ = [
    "Asked",
    "Experiment",
    "Method",
    "experiment_named",
    "experiments",
    "parity",
    "reproduce",
]
