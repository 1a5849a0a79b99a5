"""Run an experiment: every method with every seed, one file for each."""

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

__all__ = ["Asked", "reproduce"]


@dataclass(frozen=True)
class Asked:
    """Which runs of an experiment are asked for.

    Parameters
    ----------
    size : "full", "small" or "toy"
    methods : names; None for all
    seeds : None for those of the experiment
    given : arguments of the classifier over those of the experiment, such as `device`
    again : whether to run again what is already there
    calibrate_again : whether to fit the calibrators of what is there again, without training
    jobs : runs at a time, each in a process of its own; on one GPU they share it

    Examples
    --------
    >>> Asked(size="toy", methods=["ce"]).seeds is None
    True
    """

    size: Size = "full"
    methods: Sequence[str] | None = None
    seeds: Sequence[int] | None = None
    given: Mapping[str, Any] | None = None
    again: bool = False
    calibrate_again: bool = False
    jobs: int = 1


def reproduce(
    experiment: Experiment,
    out: str | Path,
    asked: Asked | None = None,
    *,
    progress: Callable[[str], None] | None = None,
) -> list[Path]:
    """Run what is missing of an experiment; return the records of all that was asked for.

    A run whose record stands in the folder is not run again, so an interrupted command goes on
    where it was. A record that was made otherwise (another size, other options) is refused rather
    than mixed in.

    Parameters
    ----------
    experiment : of `experiments()`
    out : folder; records go to `out/<experiment>/<method>-<seed>.json`
    asked : which runs; None for all at full size
    progress : gets one-line messages

    Examples
    --------
    >>> import tempfile
    >>> from reproductions import Asked, experiment_named, reproduce
    >>> asked = Asked(size="toy", methods=["ce"], seeds=[0])
    >>> [record] = reproduce(experiment_named("newsgroups-cnn"), tempfile.mkdtemp(), asked)
    >>> record.name
    'ce-0.json'
    """
    asked = asked or Asked()
    tell = progress or (lambda _: None)
    wanted = experiment.at(asked.size)
    place = _checked_folder(Path(out))
    from reproductions.record import file_of

    runs = [
        Run(file_of(place, wanted, method, seed), method, seed)
        for seed in (wanted.seeds if asked.seeds is None else asked.seeds)
        for method in wanted.chosen(asked.methods)
    ]
    if asked.calibrate_again:
        _calibrate_again(wanted, runs, asked, tell)
        return [each.path for each in runs]
    missing = [
        each for each in runs if asked.again or not _is_done(each.path, wanted, each.method, asked)
    ]
    _check_neighbours(place, wanted, {each.path for each in missing}, asked)
    if missing:
        _check_device(wanted, asked)
        from reproductions.loaders import load

        tell(f"{wanted.name}: reading")
        parts = load(wanted)  # where data is missing, no empty folder stays behind
        _make_folder(place, wanted)
        _write_notes(place / wanted.name / "notes.json", wanted, parts, asked)
        run_all(wanted, missing, parts, asked.given, jobs=asked.jobs, tell=tell)
    return [each.path for each in runs]


def _calibrate_again(
    experiment: Experiment, runs: Sequence[Run], asked: Asked, tell: Progress
) -> None:
    from reproductions.calibrate_again import calibrate_again, check_extras, kept_logits

    check_extras(experiment)
    for each in runs:  # before anything is written
        if not _is_done(each.path, experiment, each.method, asked):
            raise InputError(
                f"{each.path} is not there, or not whole: run it first, without --calibrate-again."
            )
        kept_logits(each.path)
    for number, each in enumerate(runs, 1):
        tell(f"{experiment.name}: {each}, calibrators ({number} of {len(runs)})")
        calibrate_again(each.path)


def _is_done(path: Path, experiment: Experiment, method: Method, asked: Asked) -> bool:
    """Whether a run is there; one that was made otherwise is refused."""
    from reproductions.record import SCHEMA

    if not path.exists():
        return False
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except ValueError:
        return False  # cut short by something that no writer of ours leaves behind
    except OSError as error:
        raise InputError(
            f"{path} cannot be read ({error.strerror or error}): move it away, and run again."
        ) from None
    if not isinstance(found, dict) or found.get("schema") != SCHEMA:
        raise InputError(
            f"{path} is not the record of a run in format {SCHEMA}: run it --again to replace it."
        )
    if found.get("size") != asked.size:
        told = f"size {found.get('size')} instead of {asked.size}"
    else:
        made = setting_of(experiment, method, asked.given)
        told = differences(found.get("setting") or made, made)
    if told:
        raise InputError(
            f"{path} is a run with {told}: choose another --out, or run it --again as asked now."
        )
    return _has_losses(path.with_suffix(".npz"), found)


def _has_losses(path: Path, record: Mapping[str, Any]) -> bool:
    """Whether the log losses of a run are beside its record; without them it is run again."""
    from reproductions.record import losses_in

    try:
        found = losses_in(path)
    except InputError:
        return False
    n = (record.get("rows") or {}).get("test")
    return all(len(found.get(way, ())) == n for way in ("temperature", "auto"))


def _check_neighbours(out: Path, experiment: Experiment, new: set[Path], asked: Asked) -> None:
    """Refuse, before anything is trained, a folder whose other runs cannot stand beside these."""
    from reproductions.record import file_of, read_records

    methods = {method.name: method for method in experiment.methods}
    for one in read_records(out, experiment, without=new):
        path = file_of(out, experiment, methods[one["method"]], one["seed"])
        if one["size"] != asked.size:
            continue
        told = differences(own_options(one.get("given")), own_options(asked.given))
        if not told and one.get("setting"):
            made = setting_of(experiment, methods[one["method"]], one.get("given"))
            told = differences(one["setting"], made)
        if told:
            raise InputError(
                f"{path} is a run with {told}, which cannot stand beside these: choose another "
                "--out, or move it away."
            )


def _check_device(experiment: Experiment, asked: Asked) -> None:
    """Refuse, before anything is read, a device that is not here."""
    from calibrant.training.devices import check_device

    device = {**experiment.training, **(asked.given or {})}.get("device", "auto")
    check_device(str(device))


def _write_notes(path: Path, experiment: Experiment, parts: Parts, asked: Asked) -> None:
    """Compute once what belongs to the experiment and not to a run."""
    from reproductions.extras import notes_of
    from reproductions.record import origin, write_record

    if not experiment.once:
        return
    made = {"size": asked.size, "rows": parts.sizes()}
    if path.exists() and not asked.again:
        try:
            found = json.loads(path.read_text(encoding="utf-8"))
        except ValueError:
            found = {}
        if {name: found.get(name) for name in made} == made:
            return
    write_record(path, {**made, "notes": notes_of(experiment, parts), **origin()})


def _checked_folder(out: Path) -> Path:
    """Refuse, before anything is read, a place that can be no folder."""
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
