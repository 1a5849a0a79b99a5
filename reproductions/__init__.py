"""Reproductions of published results: experiments, runners and reference conventions."""

from reproductions import parity
from reproductions.experiment import (
    Experiment,
    Method,
    experiment_named,
    experiments,
)
from reproductions.reproduce import RunRequest, reproduce

__all__ = [
    "Experiment",
    "Method",
    "RunRequest",
    "experiment_named",
    "experiments",
    "parity",
    "reproduce",
]
