"""Run an experiment: every method with every seed, one record file each."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.errors import InputError
from calibrant.study.candidates.processes import Progress
from reproductions.experiment import Experiment, Method, Size
from reproductions.parts import Parts
from reproductions.runs import Run, run_all
from reproductions.setting import differences, own_options, setting_of

__all__ = ["RunRequest", "reproduce"]


@dataclass(frozen=True)
class RunRequest:
    """Requested runs of an experiment.

    Parameters
    ----------
    size : "full", "small" or "toy"
    methods : names; None for all
    seeds : None for those of the experiment
    overrides : arguments of the classifier over those of the experiment, such as `device`
    again : whether to run again what is already there
    calibrate_again : whether to fit the calibrators of what is there again, without training
    jobs : runs at a time, each in a process of its own; on one GPU they share it

    Examples
    --------
    >>> RunRequest(size="toy", methods=["ce"]).seeds is None
    True
    """

    size: Size = "full"
    methods: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    overrides: Mapping[str, Any] | None = None
    again: bool = False
    calibrate_again: bool = False
    jobs: int = 1


def reproduce(
    experiment: Experiment,
    out: str | Path,
    request: RunRequest | None = None,
    *,
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Run what is missing of an experiment; return the records of all requested runs.

    A run whose record stands in the folder is not run again, so an interrupted command goes on
    where it was. A record that was made otherwise (another size, other options) is refused rather
    than mixed in.

    Parameters
    ----------
    experiment : of `experiments()`
    out : folder; records go to `out/<experiment>/<method>-<seed>.json`
    request : which runs; None for all at full size
    progress : gets one-line messages

    Examples
    --------
    >>> import tempfile
    >>> from reproductions import RunRequest, experiment_named, reproduce
    >>> request = RunRequest(size="toy", methods=["ce"], seeds=[0])
    >>> [record] = reproduce(experiment_named("newsgroups-cnn"), tempfile.mkdtemp(), request)
    >>> record.name
    'ce-0.json'
    """
    request = request or RunRequest()
    tell = progress or (lambda _: None)
    wanted = experiment.at(request.size)
    place = _checked_folder(Path(out))
    from reproductions.record import file_of

    runs = [
        Run(file_of(place, wanted, method, seed), method, seed)
        for seed in (wanted.seeds if request.seeds is None else request.seeds)
        for method in wanted.chosen(request.methods)
    ]
    if request.calibrate_again:
        _calibrate_again(wanted, runs, request, tell)
        return [each.path for each in runs]
    missing = [
        each
        for each in runs
        if request.again or not _is_done(each.path, wanted, each.method, request)
    ]
    _check_neighbours(place, wanted, {each.path for each in missing}, request)
    if missing:
        _check_device(wanted, request)
        from reproductions.loaders import load

        tell(f"{wanted.name}: reading")
        parts = load(wanted)  # where data is missing, no empty folder stays behind
        _make_folder(place, wanted)
        _write_notes(place / wanted.name / "notes.json", wanted, parts, request)
        run_all(wanted, missing, parts, request.overrides, jobs=request.jobs, tell=tell)
    return [each.path for each in runs]


def _calibrate_again(
    experiment: Experiment, runs: Sequence[Run], request: RunRequest, tell: Progress
) -> None:
    from reproductions.calibrate_again import calibrate_again, check_extras, saved_logits

    check_extras(experiment)
    for each in runs:  # before anything is written
        if not _is_done(each.path, experiment, each.method, request):
            raise InputError(
                f"{each.path} is not there, or not whole: run it first, without --calibrate-again."
            )
        saved_logits(each.path)
    for number, each in enumerate(runs, 1):
        tell(f"{experiment.name}: {each}, calibrators ({number} of {len(runs)})")
        calibrate_again(each.path)


def _is_done(path: Path, experiment: Experiment, method: Method, request: RunRequest) -> bool:
    """Return whether a run exists; refuse one with other settings."""
    from reproductions.record import SCHEMA

    if not path.exists():
        return False
    try:
        saved = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False  # cut short by something that no writer of ours leaves behind
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}): move it away, and run again."
        ) from None
    if not isinstance(saved, dict) or saved.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is not the record of a run in format {SCHEMA}: run it --again to replace it."
        )
    if saved.get("size") != request.size:
        difference = f"size {saved.get('size')} instead of {request.size}"
    else:
        setting = setting_of(experiment, method, request.overrides)
        difference = differences(saved.get("setting") or setting, setting)
    if difference:
        raise InputError(
            f"{path} is a run with {difference}: choose another --out, or rerun it with --again."
        )
    return _has_losses(path.with_suffix(".npz"), saved)


def _has_losses(path: Path, record: Mapping[str, Any]) -> bool:
    """Return whether the log losses of a run exist; without them it is rerun."""
    from reproductions.record import losses_in

    try:
        losses = losses_in(path)
    except InputError:
        return False
    n = (record.get("rows") or {}).get("test")
    return all(len(losses.get(way, ())) == n for way in ("temperature", "auto"))


def _check_neighbours(
    out: Path, experiment: Experiment, new: set[Path], request: RunRequest
) -> None:
    """Refuse, before training, a folder whose other runs cannot be combined with these."""
    from reproductions.record import file_of, read_records

    methods = {method.name: method for method in experiment.methods}
    for one in read_records(out, experiment, without=new):
        path = file_of(out, experiment, methods[one["method"]], one["seed"])
        if one["size"] != request.size:
            continue
        difference = differences(own_options(one.get("given")), own_options(request.overrides))
        if not difference and one.get("setting"):
            setting = setting_of(experiment, methods[one["method"]], one.get("given"))
            difference = differences(one["setting"], setting)
        if difference:
            raise InputError(
                f"{path} is a run with {difference}, which cannot be combined with these: choose "
                "another --out, or move it away."
            )


def _check_device(experiment: Experiment, request: RunRequest) -> None:
    """Refuse, before reading data, a device that is not available."""
    from calibrant.training.devices import check_device

    device = {**experiment.training, **(request.overrides or {})}.get("device", "auto")
    check_device(str(device))


def _write_notes(path: Path, experiment: Experiment, parts: Parts, request: RunRequest) -> None:
    """Compute and write the results that belong to the experiment instead of a run."""
    from reproductions.extras import notes_of
    from reproductions.record import origin, write_record

    if not experiment.once:
        return
    header = {"size": request.size, "rows": parts.sizes()}
    if path.exists() and not request.again:
        try:
            notes = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            notes = {}
        if {name: notes.get(name) for name in header} == header:
            return
    write_record(path, {**header, "notes": notes_of(experiment, parts), **origin()})


def _checked_folder(out: Path) -> Path:
    """Refuse, before reading data, a path that cannot be a folder."""
    try:
        first = next((each for each in (out, *out.parents) if each.exists()), out)
    except OSError as error:
        raise _no_folder(out, str(error.strerror)) from None
    if first.exists() and not first.is_dir():
        raise _no_folder(out, f"{first} is a file")
    return out


def _make_folder(out: Path, experiment: Experiment) -> None:
    try:
        (out / experiment.name).mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _no_folder(out, str(error.strerror)) from None


def _no_folder(out: Path, why: str) -> InputError:
    return InputError(f"--out {out} cannot be made a folder: {why}: choose another place.")
