"""`calibrant pack`: a calibrator and operating points as one folder: logits in, decisions out."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import interruption
from calibrant.cli.options import Debug, Json, Label
from calibrant.cli.output import print_json, say
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.bundle import Bundle, BundlePoint, CalibRows
    from calibrant.bundle.calibration import BundleCalibration
    from calibrant.workflows.point_file import PointFile

__all__ = ["pack"]

NAME = "pack"
EXAMPLE = (
    "calibrant demo --scores, then calibrant threshold runs/demo/scores.csv "
    '--hold "item_defective: precision>=0.85" -o point.json, then '
    "calibrant pack --point point.json -o runs/demo/packed"
)


def pack(
    calibrator: Annotated[
        Path | None,
        typer.Option("--calibrator", metavar="FILE", help="What calibrate -o wrote."),
    ] = None,
    point: Annotated[
        list[Path] | None,
        typer.Option("--point", metavar="FILE", help="What threshold -o wrote; may be repeated."),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="BUNDLE", help="The folder to write.")
    ] = None,
    action: Annotated[
        list[str] | None,
        typer.Option(
            "--action", metavar="CLASS=NAME", help="What acting on a class means; may be repeated."
        ),
    ] = None,
    calib: Annotated[
        str | None,
        typer.Option(
            "--calib", metavar="SCORES", help="Labelled scores, to explore thresholds with later."
        ),
    ] = None,
    label: Label = "label",
    force: Annotated[
        bool, typer.Option("--force", help="Replace a bundle that stands there.")
    ] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Put a calibrator and operating points into a bundle: logits in, decisions out.

    The folder holds JSON and a model card, no code.

    A point chosen with threshold --calibrator brings its calibrator along.

    With --calib, the logits and labels of SCORES go along too: the console needs them.
    """
    if out is None:
        raise InputError("-o is missing: name the folder for the bundle, like -o bundle.")
    if calibrator is None and not point:
        raise InputError("there is nothing to pack: give --point, --calibrator, or both.")
    from calibrant.bundle import pack as write_bundle
    from calibrant.bundle.files import check_folder

    check_folder(out, force=force, name="-o")
    rows_from = [] if calib is None else _calib_files(calib)
    calibration, points = _parts(calibrator, point or [])
    classes = calibration.classes if calibration else list(points[0].classes)
    actions = actions_of(action or [], [str(name) for name in classes])
    sources = [("calibrator", calibrator)] if calibrator is not None else []
    sources += [("operating_point", file) for file in point or []]
    sources += [("calibrate_file", file) for file in rows_from]
    rows, notes = _calib(rows_from, classes, calibration, label)
    interruption.check()
    made = write_bundle(
        out,
        calibrator=calibration,
        points=points,
        actions=actions,
        sources=sources,
        calib=rows,
        force=force,
        name="-o",
    )
    _show(made, out, [*_notes(made), *notes], json=json)


def actions_of(given: Sequence[str], classes: Sequence[str]) -> dict[str, str]:
    """Read `CLASS=NAME`; a class may have a = in its name, and so may an action.

    Examples
    --------
    >>> actions_of(["spam=move to junk", "a=b=c"], ["spam", "a=b"])
    {'spam': 'move to junk', 'a=b': 'c'}
    """
    found: dict[str, str] = {}
    for text in given:
        splits = [(text[:i], text[i + 1 :]) for i, sign in enumerate(text) if sign == "="]
        known = [(of.strip(), name.strip()) for of, name in splits if of.strip() in classes]
        if not splits or not all(name for _, name in known):
            raise InputError(
                f"--action {text} is no action: write it like --action '{classes[0]}=refund'."
            )
        if not known:
            listed = ", ".join(f"'{name}'" for name in classes[:8])
            raise InputError(
                f"--action {text}: '{splits[0][0].strip()}' is not among the classes {listed}: "
                "name one of them."
            )
        of, name = known[-1]
        if of in found:
            raise InputError(f"--action names '{of}' twice: give each class one action.")
        found[of] = name
    return found


def _parts(
    calibrator: Path | None, files: Sequence[Path]
) -> tuple[BundleCalibration | None, list[BundlePoint]]:
    """Read the files, and check that the points and the calibrator belong together."""
    from calibrant.bundle import BundlePoint
    from calibrant.workflows.point_file import read_point

    found, source = None, calibrator
    if calibrator is not None:
        found = _read_calibration(calibrator)
    points = []
    for path in files:
        loaded = read_point(path)
        own = _own_calibration(loaded)
        if own is not None and found is None:
            found, source = own, path
        if own is not None and found is not None and not own.same_as(found):
            raise InputError(
                f"{path}: the point was chosen on scores calibrated by another calibrator than "
                f"that of {source}: pack the one it was chosen with, or choose the point again."
            )
        points.append(BundlePoint(loaded.result, "raw" if own is None else "calibrated"))
    _check_classes(found, source, points, files)
    return found, points


def _calib_files(path: str) -> list[Path]:
    from calibrant.workflows.calibrate_rows import calib_files

    return calib_files(path)


def _calib(
    files: Sequence[Path], classes: Sequence[Any], calibration: BundleCalibration | None, label: str
) -> tuple[CalibRows | None, tuple[str, ...]]:
    """Read the rows that go along, and what a user should be told of them."""
    if not files:
        return None, ()
    from calibrant.workflows.calibrate_rows import read_calib

    return read_calib(files, classes, calibration, label=label)


def _read_calibration(path: Path) -> BundleCalibration:
    from calibrant.bundle.calibration import BundleCalibration
    from calibrant.files.strict_json import read_json
    from calibrant.workflows.calibrator_file import calibrator_of

    saved = read_json(path, what="calibrator", maker="calibrate -o", flag="--calibrator")
    if isinstance(saved, dict) and {"threshold", "points", "upper"} & set(saved):
        raise InputError(f"--calibrator {path} is a point, not a calibrator: give it to --point.")
    return BundleCalibration(*calibrator_of(saved, path))


def _own_calibration(loaded: PointFile) -> BundleCalibration | None:
    from calibrant.bundle.calibration import BundleCalibration

    own = loaded.calibration
    return None if own is None else BundleCalibration(own.calibrator, own.zero_as)


def _check_classes(
    calibration: BundleCalibration | None,
    source: Path | None,
    points: Sequence[BundlePoint],
    files: Sequence[Path],
) -> None:
    """Refuse files that are about different classes, by their names."""
    from calibrant.bundle.scores import class_positions

    first = source if calibration is not None else files[0]
    classes = points[0].classes if calibration is None else calibration.classes
    for each, path in zip(points, files, strict=True):
        class_positions(each.classes, classes, owners=(str(path), str(first)))


def _show(made: Bundle, out: Path, notes: list[str], *, json: bool) -> None:
    from calibrant.bundle.files import MANIFEST
    from calibrant.bundle.packing import CARD

    if json:
        content: dict[str, Any] = {
            "schema": 1,
            "out": str(out),
            "format": made.manifest["format"],
            "classes": list(made.classes),
            "calibrator": None if made.calibration is None else made.calibration.method,
            "operating_points": [each.to_dict() for each in made.points],
            "actions": dict(made.actions),
            "files": [MANIFEST, *made.manifest["files"]],
        }
        print_json({**content, "notes": notes} if notes else content)
        return
    from calibrant.formatting import printable

    say(printable_lines(str(made)))
    for note in notes:
        say(f"Note: {note}")
    say(f"\nThe bundle is in {out}, and its card in {out / CARD}")
    say(f"Decide with it: calibrant.load_bundle({printable(repr(str(out)))}).decide(logits)")


def printable_lines(text: str) -> str:
    """Return lines without characters that could steer a terminal."""
    from calibrant.formatting import printable

    return "\n".join(printable(line) for line in text.split("\n"))


def _notes(made: Bundle) -> list[str]:
    notes = []
    raw = [str(i) for i, each in enumerate(made.points) if each.decides_on == "raw"]
    if raw and made.calibration is not None:
        which = f"Point {raw[0]} decides" if len(raw) == 1 else f"Points {', '.join(raw)} decide"
        notes.append(
            f"{which} on the model's own scores, as chosen: the calibrator only gives the "
            "probabilities."
        )
    acted = {of for each in made.points for of in each.acts_on}
    idle = [of for of in made.actions if not acted & {of, None}]
    if idle:
        notes.append(f"The action for '{idle[0]}' is not used, for no point acts on that class.")
    return notes
