"""Record files of runs: writing, and reading those of an experiment."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import InputError
from calibrant.files.atomic_write import write_atomically
from calibrant.files.npz import read_npz
from calibrant.inputs import FloatArray
from reproductions.experiment import Experiment, Method, Size
from reproductions.figures import RunFigures
from reproductions.fitting import Fitted
from reproductions.machine import machine

__all__ = [
    "SCHEMA",
    "figures_in_record",
    "file_of",
    "origin",
    "read_losses",
    "read_notes",
    "read_records",
    "record_of",
    "write_record",
]

SCHEMA = 1
_DIGITS = 6
_STEER = ("refinement", "nll", "ece", "accuracy")
_BINS = ("epoch", "confidence", "accuracy", "train_confidence", "own_confidence")


def file_of(folder: Path, experiment: Experiment, method: Method, seed: int) -> Path:
    """Return where the record of a run is kept.

    Examples
    --------
    >>> from reproductions.experiment import experiments
    >>> one = experiments()["newsgroups-cnn"]
    >>> file_of(Path("results"), one, one.methods[0], 0).as_posix()
    'results/newsgroups-cnn/ce-0.json'
    """
    return folder / experiment.name / f"{method.name}-{seed}.json"


def record_of(fitted: Fitted, figures: RunFigures, size: Size, extras: Any) -> dict[str, Any]:
    """Return everything known about a run as JSON values."""
    model = fitted.model
    gammas = getattr(model.loss_, "history", None)
    first = fitted.seed == fitted.experiment.seeds[0]  # bins of one seed are enough for charts
    record = {
        "schema": SCHEMA,
        "experiment": fitted.experiment.name,
        "method": fitted.method.name,
        "label": fitted.method.label,
        "seed": fitted.seed,
        "size": size,
        "rows": fitted.parts.sizes(),
        "classes": list(fitted.parts.classes),
        "note": fitted.parts.note,
        "epochs": len(model.records_),
        "best_epoch": model.best_epoch_,
        "why": model.why_,
        "seconds": fitted.seconds,
        "seconds_of_an_epoch": float(np.median([each.seconds for each in model.records_])),
        "steer": _compared(fitted, "steer"),
        "choice": None if fitted.parts.choice is None else _compared(fitted, "choice"),
        **figures_in_record(figures),
        "history": [each.to_dict() for each in model.records_],
        "test_history": [dict(each) for each in fitted.test_history],
        "bins": _bins(fitted) if first else None,
        "gammas": None if gammas is None or not first else _short(gammas.gamma),
        "extras": extras,
        "options": model.options_.to_dict(),
        "loss": str(model.loss),
        **origin(model.options_.device),
    }
    return {name: _rounded(value) for name, value in record.items()}


def figures_in_record(figures: RunFigures) -> dict[str, Any]:
    """Return what a record says of calibrators."""
    return {
        "calib": {"nll": figures.calib_nll},
        "temperature": figures.temperature,
        "chosen": figures.chosen,
        "comparison": figures.comparison,
        "figures": figures.figures,
    }


def _compared(fitted: Fitted, part: str) -> dict[str, float]:
    """Measure rows that methods are compared by, with the logits that the method gives out.

    In training, what moved class frequencies is taken off first; a method that leaves it in must
    not be inferred from that.
    """
    from calibrant.fitting.steer_figures import steer_figures

    figures = steer_figures(fitted.logits[part], fitted.parts.named()[part].labels)
    return {name: getattr(figures, name) for name in _STEER}


def origin(device: str = "auto") -> dict[str, Any]:
    """Return what something was measured on, and when."""
    return {"machine": machine(device), "date": datetime.now(UTC).date().isoformat()}


def write_record(
    path: Path, record: Mapping[str, Any], losses: Mapping[str, FloatArray] | None = None
) -> None:
    """Write a record, and the log losses of its test rows beside it."""
    if losses is not None:
        with write_atomically(path.with_suffix(".npz")) as draft:
            held: dict[str, Any] = {name: each.astype(np.float32) for name, each in losses.items()}
            np.savez_compressed(draft, **held)
    # The record comes last: where it stands, the run is whole.
    with write_atomically(path) as draft:
        draft.write_text(
            json.dumps(_rounded(record), separators=(",", ":")) + "\n", encoding="utf-8"
        )


def read_records(
    folder: str | Path, experiment: Experiment, *, without: Collection[Path] = ()
) -> list[dict[str, Any]]:
    """Read the records of an experiment, methods in its order, then by seed.

    Parameters
    ----------
    folder : of all experiments
    experiment : whose records
    without : files that are not looked at, such as those that are about to be replaced
    """
    place = {method.name: i for i, method in enumerate(experiment.methods)}
    files = sorted((Path(folder) / experiment.name).glob("[!.]*-*.json"))  # no drafts
    read = (_read(path) for path in files if path not in without)
    records = [one for one in read if one["method"] in place]
    return sorted(records, key=lambda one: (place[one["method"]], one["seed"]))


def _read(path: Path) -> dict[str, Any]:
    """Read a record; raise an error that names an invalid file."""
    try:
        one = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        raise InputError(f"{path} is not the record of a run: delete it, and run again.") from None
    if not isinstance(one, dict) or one.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is not the record of a run in format {SCHEMA}: delete it, and run again."
        )
    kinds = {"method": str, "seed": int, "size": str, "rows": dict, "figures": dict}
    wrong = [name for name, kind in kinds.items() if not isinstance(one.get(name), kind)]
    if wrong:
        raise InputError(
            f"{path} is the record of a run without a proper {wrong[0]}: delete it, and run again."
        )
    return one


def read_losses(folder: str | Path, experiment: Experiment) -> dict[tuple[str, int], Any]:
    """Read the log losses of test rows, by method and seed, where they are kept."""
    losses = {}
    for one in read_records(folder, experiment):
        path = Path(folder) / experiment.name / f"{one['method']}-{one['seed']}.npz"
        if path.is_file():
            losses[one["method"], one["seed"]] = losses_in(path)
    return losses


def read_notes(folder: str | Path, experiment: Experiment) -> dict[str, Any]:
    """Read what was computed once for all runs of the experiment's size; {} where nothing was."""
    try:
        path = Path(folder) / experiment.name / "notes.json"
        saved = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    known = isinstance(saved, dict) and saved.get("size") == experiment.size
    notes: dict[str, Any] = saved.get("notes", {}) if known else {}
    return notes


def losses_in(path: Path) -> dict[str, FloatArray]:
    """Read the log losses of one run; raise an error that names an invalid file."""
    try:
        return dict(read_npz(path))
    except (InputError, OSError):
        raise InputError(
            f"{path} does not hold the log losses of a run: delete it, and run again."
        ) from None


def _bins(fitted: Fitted) -> dict[str, Any] | None:
    """Return the steer rows by bin and epoch, as charts draw them."""
    if fitted.bins is None:
        return None
    return {name: _short(getattr(fitted.bins, name)) for name in _BINS}


def _short(values: FloatArray) -> FloatArray:
    """Round for a chart: these are most of a record."""
    return np.round(values, 4)


def _rounded(value: Any) -> Any:
    """Return plain values; numbers keep six digits, and NaN becomes null."""
    if isinstance(value, Mapping):
        return {str(name): _rounded(each) for name, each in value.items()}
    if isinstance(value, np.ndarray):
        return _rounded(value.tolist())
    if isinstance(value, list | tuple):
        return [_rounded(each) for each in value]
    if isinstance(value, np.generic):
        return _rounded(value.item())
    if isinstance(value, float):
        return float(f"{value:.{_DIGITS}g}") if np.isfinite(value) else None
    return value
