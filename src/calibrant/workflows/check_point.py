"""`calibrant decide --check`: check the promises of a point file on later labels."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.errors import SplitMisuse
from calibrant.thresholds import Band
from calibrant.thresholds.after.transfer import Transfer, check_transfer
from calibrant.thresholds.proof.largest_weight import check_largest_weight
from calibrant.workflows.point_file import PointFile
from calibrant.workflows.point_rows import read_layout, read_point_rows, reorder_classes

CONFIDENCE = 0.95  # Joint confidence of all verdicts


@dataclass(frozen=True)
class PromiseCheck:
    """Verdict on each point, by class or side of the band."""

    transfers: tuple[tuple[str, Transfer], ...]

    @property
    def verdict(self) -> str:
        """`broken` if any point is, `kept` if all are, else `undecidable`."""
        verdicts = {check.verdict for _, check in self.transfers}
        if "broken" in verdicts:
            return "broken"
        return "kept" if verdicts == {"kept"} else "undecidable"

    @property
    def lines(self) -> list[str]:
        """Each verdict as a sentence."""
        if len(self.transfers) == 1:
            return [self.transfers[0][1].text]
        return [f"“{name}”: {check.text}" for name, check in self.transfers]

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, with those of the points if there are several."""
        if len(self.transfers) == 1:
            return self.transfers[0][1].to_dict()
        points = [{"of": name, **check.to_dict()} for name, check in self.transfers]
        return {"verdict": self.verdict, "points": points}


def check_rows(
    loaded: PointFile,
    files: list[Path],
    columns: dict[str, Any],
    *,
    largest_weight: float | None = None,
) -> PromiseCheck:
    """Check every promise on labelled rows, read into memory.

    Rows that chose the point or fitted its calibrator are refused: there the promise holds by
    construction.
    """
    layout = read_layout(files, label=columns["label"])
    unordered = read_point_rows(files, columns, kind=layout.kind, calibration=loaded.calibration)
    if unordered.fingerprint == loaded.chosen_on:
        raise SplitMisuse(
            f"--check needs rows that did not choose the point, but {loaded.path} was chosen on "
            f"these very rows of {files[0]}: give later labelled rows."
        )
    if loaded.chosen_by is not None and loaded.chosen_by.shares(unordered.sketch_input):
        raise SplitMisuse(
            f"--check needs rows that did not choose the point, but {files[0]} contains some "
            f"that chose {loaded.path}: give later labelled rows only."
        )
    if unordered.seen:
        raise SplitMisuse(
            f"--check needs rows that the calibrator was not fitted on, but that of {loaded.path} "
            f"was fitted on those of {files[0]}, or on some of them: give later labelled rows."
        )
    rows = reorder_classes(unordered, loaded.classes, files=(str(files[0]), str(loaded.path)))
    points = loaded.points
    level = 1 - (1 - CONFIDENCE) / len(points)
    sides = ("act", "clear") if isinstance(loaded.result, Band) else [str(p.of) for p in points]
    check_largest_weight(largest_weight, rows.weights, name="--largest-weight")
    weighting: dict[str, Any] = {"weights": rows.weights, "largest_weight": largest_weight}
    transfers = (
        check_transfer(point, rows.labels, confidence=level, **weighting, **rows.scores)
        for point in points
    )
    return PromiseCheck(tuple(zip(sides, transfers, strict=True)))
