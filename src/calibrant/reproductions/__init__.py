"""The papers' tables beside ours: experiments, how to run them, and reference conventions."""

from calibrant.reproductions import parity
from calibrant.reproductions.experiment import (
    Experiment,
    Method,
    experiment_named,
    experiments,
)
from calibrant.reproductions.reproduce import Asked, reproduce

__all__ = [
    "Asked",
    "Experiment",
    "Method",
    "experiment_named",
    "experiments",
    "parity",
    "reproduce",
]
