"""`calibrant pack`: bundle a calibrator and operating points, without a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from calibrant.cli import interruption
from calibrant.cli.options import Debug, Json, Label
from calibrant.cli.output import echo, print_json
from calibrant.errors import InputError

if TYPE_CHECKING:
    from calibrant.bundle import Bundle, BundlePoint, CalibRows
    from calibrant.bundle.calibration import BundleCalibration
    from calibrant.workflows.point_file import PointFile

NAME = "pack"
EXAMPLE = (
    "calibrant demo --scores, then calibrant threshold runs/demo/scores.csv "
    '--hold "item_defective: precision>=0.85" -o point.json, then '
    "calibrant pack --point point.json -o runs/demo/packed"
)


def pack_command(
    calibrator: Annotated[
        Path | None,
        typer.Option("--calibrator", metavar="FILE", help="Calibrator, written by calibrate -o."),
    ] = None,
    point: Annotated[
        list[Path] | None,
        typer.Option(
            "--point",
            metavar="FILE",
            help="Operating point, written by threshold -o; may be repeated.",
        ),
    ] = None,
    out: Annotated[
        Path | None, typer.Option("--out", "-o", metavar="BUNDLE", help="Output folder.")
    ] = None,
    action: Annotated[
        list[str] | None,
        typer.Option("--action", metavar="CLASS=NAME", help="Action for a class; may be repeated."),
    ] = None,
    calib: Annotated[
        str | None,
        typer.Option(
            "--calib",
            metavar="SCORES",
            help="Labelled scores, for exploring thresholds in the console.",
        ),
    ] = None,
    label: Label = "label",
    force: Annotated[bool, typer.Option("--force", help="Overwrite an existing bundle.")] = False,
    json: Json = False,
    debug: Debug = False,
) -> None:
    """Pack a calibrator and operating points into a bundle: logits in, decisions out.

    The folder contains JSON and a model card, no code.

    A point chosen with threshold --calibrator includes its calibrator.

    With --calib, the bundle also contains the logits and labels of SCORES for the console.
    """
    if out is None:
        raise InputError("-o is missing: name the folder for the bundle, like -o bundle.")
    if calibrator is None and not point:
        raise InputError("nothing to pack: give --point, --calibrator, or both.")
    from calibrant.bundle import pack
    from calibrant.bundle.files import check_folder

    check_folder(out, force=force, name="-o")
    rows_from = [] if calib is None else _find_files(calib)
    calibration, points = _read_parts(calibrator, point or [])
    classes = calibration.classes if calibration else list(points[0].classes)
    actions = parse_actions(action or [], [str(name) for name in classes])
    sources = [("calibrator", calibrator)] if calibrator is not None else []
    sources += [("operating_point", file) for file in point or []]
    sources += [("calibrate_file", file) for file in rows_from]
    rows, notes = _read_rows(rows_from, classes, calibration, label)
    interruption.check()
    bundle = pack(
        out,
        calibrator=calibration,
        points=points,
        actions=actions,
        sources=sources,
        calib=rows,
        force=force,
        name="-o",
    )
    _show(bundle, out, [*_describe_unused(bundle), *notes], json=json)


def parse_actions(texts: Sequence[str], classes: Sequence[str]) -> dict[str, str]:
    """Parse `CLASS=NAME`; both may contain a =."""
    actions: dict[str, str] = {}
    for text in texts:
        splits = [(text[:i], text[i + 1 :]) for i, sign in enumerate(text) if sign == "="]
        matches = [
            (class_name.strip(), name.strip())
            for class_name, name in splits
            if class_name.strip() in classes
        ]
        if not splits or not all(name for _, name in matches):
            raise InputError(
                f"--action {text} is not an action: write it like --action '{classes[0]}=refund'."
            )
        if not matches:
            listed = ", ".join(f"'{name}'" for name in classes[:8])
            raise InputError(
                f"--action {text}: '{splits[0][0].strip()}' is not among the classes {listed}: "
                "name one of them."
            )
        class_name, name = matches[-1]
        if class_name in actions:
            raise InputError(f"--action names '{class_name}' twice: give each class one action.")
        actions[class_name] = name
    return actions


def _read_parts(
    calibrator: Path | None, files: Sequence[Path]
) -> tuple[BundleCalibration | None, list[BundlePoint]]:
    """Read the files, and check that the points match the calibrator."""
    from calibrant.bundle import BundlePoint
    from calibrant.workflows.point_file import read_point

    calibration, source = None, calibrator
    if calibrator is not None:
        calibration = _read_calibration(calibrator)
    points = []
    for path in files:
        point_file = read_point(path)
        point_calibration = _point_calibration(point_file)
        if point_calibration is not None and calibration is None:
            calibration, source = point_calibration, path
        if (
            point_calibration is not None
            and calibration is not None
            and not point_calibration.same_as(calibration)
        ):
            raise InputError(
                f"{path}: the point was chosen on scores calibrated by another calibrator than "
                f"that of {source}: pack the one it was chosen with, or choose the point again."
            )
        points.append(
            BundlePoint(point_file.result, "raw" if point_calibration is None else "calibrated")
        )
    _check_classes(calibration, source, points, files)
    return calibration, points


def _find_files(path: str) -> list[Path]:
    from calibrant.scores.files import score_files

    return score_files(path)


def _read_rows(
    files: Sequence[Path], classes: Sequence[Any], calibration: BundleCalibration | None, label: str
) -> tuple[CalibRows | None, tuple[str, ...]]:
    """Read the calibration rows and their notes."""
    if not files:
        return None, ()
    from calibrant.workflows.calibrator_file import read_calib_rows

    return read_calib_rows(files, classes, calibration, label=label)


def _read_calibration(path: Path) -> BundleCalibration:
    from calibrant.bundle.calibration import BundleCalibration
    from calibrant.files.atomic_write import read_json
    from calibrant.workflows.calibrator_file import build_calibrator

    saved = read_json(path, what="calibrator", maker="calibrate -o", flag="--calibrator")
    if isinstance(saved, dict) and {"threshold", "points", "upper"} & set(saved):
        raise InputError(f"--calibrator {path} is a point, not a calibrator: give it to --point.")
    return BundleCalibration(*build_calibrator(saved, path))


def _point_calibration(point_file: PointFile) -> BundleCalibration | None:
    from calibrant.bundle.calibration import BundleCalibration

    calibration = point_file.calibration
    return (
        None
        if calibration is None
        else BundleCalibration(calibration.calibrator, calibration.zero_as)
    )


def _check_classes(
    calibration: BundleCalibration | None,
    source: Path | None,
    points: Sequence[BundlePoint],
    files: Sequence[Path],
) -> None:
    """Refuse files with different classes."""
    from calibrant.bundle.scores import class_positions

    first = source if calibration is not None else files[0]
    classes = points[0].classes if calibration is None else calibration.classes
    for point, path in zip(points, files, strict=True):
        class_positions(point.classes, classes, owners=(str(path), str(first)))


def _show(bundle: Bundle, out: Path, notes: list[str], *, json: bool) -> None:
    from calibrant.bundle.files import MANIFEST
    from calibrant.bundle.packing import CARD

    if json:
        content: dict[str, Any] = {
            "schema": 1,
            "out": str(out),
            "format": bundle.manifest["format"],
            "classes": list(bundle.classes),
            "calibrator": None if bundle.calibration is None else bundle.calibration.method,
            "operating_points": [point.to_dict() for point in bundle.points],
            "rules": [rule.to_dict() for rule in bundle.decision_rules],
            "actions": dict(bundle.actions),
            "files": [MANIFEST, *bundle.manifest["files"]],
        }
        print_json({**content, "notes": notes} if notes else content)
        return
    from calibrant.formatting import printable

    echo(printable_lines(str(bundle)))
    for note in notes:
        echo(f"Note: {note}")
    echo(f"\nThe bundle is in {out}, and its card in {out / CARD}")
    echo(f"Decide with it: calibrant.load_bundle({printable(repr(str(out)))}).decide(logits)")


def printable_lines(text: str) -> str:
    """Return text without terminal control characters, line by line."""
    from calibrant.formatting import printable

    return "\n".join(printable(line) for line in text.split("\n"))


def _describe_unused(bundle: Bundle) -> list[str]:
    notes = []
    raw = [str(i) for i, point in enumerate(bundle.points) if point.decides_on == "raw"]
    if raw and bundle.calibration is not None:
        which = f"Point {raw[0]} decides" if len(raw) == 1 else f"Points {', '.join(raw)} decide"
        notes.append(
            f"{which} on the raw scores of the model, as chosen: that is the decision score, and "
            "the calibrator only sets the probabilities."
        )
    acted = {class_name for point in bundle.points for class_name in point.acts_on}
    idle = [class_name for class_name in bundle.actions if not acted & {class_name, None}]
    if idle:
        notes.append(
            f"The action for '{idle[0]}' is not used, because no point acts on that class."
        )
    return notes
