"""What reproductions left behind, as pages and charts take it up."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from reproductions.experiment import Experiment, Size
    from reproductions.summary import Summary

Run = Mapping[str, Any]

SIZES: tuple[Size, ...] = ("full", "small", "toy")


@dataclass(frozen=True, eq=False)
class ExperimentRuns:
    """An experiment with its runs, all of one size, and their summary."""

    experiment: Experiment
    runs: Sequence[Run]
    summary: Summary
    notes: Mapping[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return self.experiment.name

    @property
    def size(self) -> str:
        return str(self.runs[0]["size"])

    @cached_property
    def methods(self) -> dict[str, list[Run]]:
        """The runs of each method, in the experiment's order, then by seed."""
        groups: dict[str, list[Run]] = {}
        for run in self.runs:
            groups.setdefault(run["method"], []).append(run)
        return groups

    @cached_property
    def labels(self) -> dict[str, str]:
        """The label of each method in tables."""
        return {name: str(runs[0]["label"]) for name, runs in self.methods.items()}


def read_results(folder: Path, experiments: Iterable[Experiment]) -> dict[str, ExperimentRuns]:
    """Return the experiments that have records in a folder, by name."""
    outcomes = (read_one(folder, each) for each in experiments)
    return {one.name: one for one in outcomes if one is not None}


def read_one(folder: Path, experiment: Experiment) -> ExperimentRuns | None:
    """Read the records of an experiment at the largest available size."""
    from reproductions.record import read_losses, read_notes, read_records
    from reproductions.summary import summarise

    sizes = {one["size"] for one in read_records(folder, experiment)}
    size = next((size for size in SIZES if size in sizes), None)
    if size is None:
        return None
    sized = experiment.at(size)  # may have fewer methods: records of others are left out
    runs = [one for one in read_records(folder, sized) if one["size"] == size]
    run_keys = {(one["method"], one["seed"]) for one in runs}
    losses = {key: each for key, each in read_losses(folder, sized).items() if key in run_keys}
    notes = read_notes(folder, sized)
    return ExperimentRuns(sized, runs, summarise(sized, runs, losses), notes) if runs else None


def shown_error(summary: Summary) -> str:
    """Return the calibration error to show: bins of equal mass, unless the paper's are wide."""
    from reproductions.seed_figures import paper_error

    return paper_error(summary.methods)


def last_epoch(outcome: ExperimentRuns, method: str) -> float | None:
    """Return ECE_EM as trained after the last epoch, mean over seeds; None where one lacks it."""
    histories = [run.get("test_history") or () for run in outcome.methods[method]]
    if not all(histories):
        return None
    return mean(history[-1]["ece_em"] for history in histories)


def extras(runs: Sequence[Run], name: str) -> list[Mapping[str, Any]]:
    """Return an extra of every run that has it."""
    return [run["extras"][name] for run in runs if (run.get("extras") or {}).get(name)]


def extra(runs: Sequence[Run], name: str) -> Mapping[str, Any] | None:
    """Return an extra of the first run that has it."""
    return next(iter(extras(runs, name)), None)


def mean(values: Iterable[float | None]) -> float | None:
    """Return the mean of what is known, or None."""
    known = [one for one in values if one is not None]
    return sum(known) / len(known) if known else None


def data_set(name: str) -> str:
    """Write the name of a data set outside as people do."""
    known = {
        "svhn": "SVHN",
        "fashion_mnist": "Fashion-MNIST",
        "noise": "noise",
        "oos": "requests of no intent",
    }
    return known.get(name, name.replace("_", " "))
