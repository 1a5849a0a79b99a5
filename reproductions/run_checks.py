"""Checks that run records belong together in one table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from calibrant.errors import InputError
from reproductions.experiment import Experiment
from reproductions.setting import differences, own_options, setting_of

__all__ = ["checked_losses", "checked_records"]

_SCHEMA = 1
_KEYS = ("experiment", "method", "seed", "size", "rows", "classes", "figures")


def checked_records(
    experiment: Experiment, records: Sequence[Mapping[str, Any]]
) -> list[Mapping[str, Any]]:
    """Return each run once, ordered by method and seed; refuse what cannot stand in one table.

    Parameters
    ----------
    experiment : that they should be of
    records : run records, in any order
    """
    if not records:
        raise InputError(
            f"{experiment.name} has no runs yet: run python -m reproductions {experiment.name}."
        )
    for each in records:
        _check_one(experiment, each)
    for key, what in (("size", "sizes"), ("rows", "rows"), ("classes", "classes")):
        _check_alike(records, key, what)
    _check_settings(experiment, records)
    runs: dict[tuple[str, int], Mapping[str, Any]] = {}
    for each in records:
        own = (str(each["method"]), int(each["seed"]))
        if own in runs and runs[own] != each:
            raise InputError(
                f"there are two different records of {experiment.name}, {own[0]} with seed "
                f"{own[1]}: keep one of them."
            )
        runs[own] = each
    order = {method.name: i for i, method in enumerate(experiment.methods)}
    return [runs[own] for own in sorted(runs, key=lambda own: (order[own[0]], own[1]))]


def _check_settings(experiment: Experiment, records: Sequence[Mapping[str, Any]]) -> None:
    """Refuse runs of a config that has changed since, and runs with different options."""
    methods = {method.name: method for method in experiment.methods}
    first = own_options(records[0].get("given"))
    for each in records:
        run = f"{experiment.name}, {each['method']} with seed {each['seed']},"
        if difference := differences(own_options(each.get("given")), first):
            raise InputError(
                f"{run} is a run with {difference}: keep runs of one kind in a folder."
            )
        expected = setting_of(experiment, methods[each["method"]], each.get("given"))
        if difference := differences(each.get("setting") or expected, expected):
            raise InputError(f"{run} was made with {difference}: rerun it with --again.")


def checked_losses(
    runs: Sequence[Mapping[str, Any]], losses: Mapping[tuple[str, int], Mapping[str, Any]]
) -> dict[tuple[str, int], Mapping[str, Any]]:
    """Return the losses of the runs' test rows; those of other runs are left out.

    Parameters
    ----------
    runs : as `checked_records` gives them
    losses : by method and seed, then by way of calibrating: (n,) log losses
    """
    losses_of_runs = {}
    for run in runs:
        own = (str(run["method"]), int(run["seed"]))
        if own not in losses:
            continue
        n = int(run["rows"]["test"])
        for way, values in losses[own].items():
            if np.shape(values) != (n,):
                raise InputError(
                    f"{own[0]} with seed {own[1]} has {way} losses of shape {np.shape(values)} "
                    f"for {n:,} test rows: run it again."
                )
        losses_of_runs[own] = losses[own]
    return losses_of_runs


def _check_one(experiment: Experiment, record: Mapping[str, Any]) -> None:
    lost = [key for key in _KEYS if key not in record]
    if lost or record.get("schema") != _SCHEMA:
        what = f"lacks {', '.join(lost)}" if lost else f"has schema {record.get('schema')}, not 1"
        raise InputError(f"a run record of {experiment.name} {what}: run it again.")
    if record["experiment"] != experiment.name:
        raise InputError(
            f"a run of {record['experiment']} lies among those of {experiment.name}: move it to a "
            "folder of its own."
        )
    if record["method"] not in {each.name for each in experiment.methods}:
        raise InputError(
            f"{experiment.name} has no method {record['method']!r}: remove its record, or give it "
            "its config back."
        )


def _check_alike(records: Sequence[Mapping[str, Any]], key: str, what: str) -> None:
    first = records[0]
    for each in records:
        if each[key] != first[key]:
            raise InputError(
                f"runs of different {what} cannot stand in one table: {_describe_run(first, key)}, "
                f"{_describe_run(each, key)}; keep one kind."
            )


def _describe_run(record: Mapping[str, Any], key: str) -> str:
    value = record[key]
    if key == "classes":
        value = f"{len(value)} classes"
    elif key == "rows":
        value = f"{value.get('train')} train and {value.get('test')} test rows"
    return f"{record['method']} with seed {record['seed']} has {value}"
