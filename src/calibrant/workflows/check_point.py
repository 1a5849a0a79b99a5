"""`calibrant decide --check`: what later labels say about the promises of a point file."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from calibrant.errors import SplitMisuse
from calibrant.thresholds import Band
from calibrant.thresholds.after.transfer import Transfer, check_transfer
from calibrant.thresholds.proof.largest_weight import check_largest_weight
from calibrant.workflows.point_file import PointFile
from calibrant.workflows.point_rows import columns_of, in_classes_of, rows_of_scores

__all__ = ["Checked", "check_rows"]

CONFIDENCE = 0.95
"""That all verdicts together are right."""


@dataclass(frozen=True)
class Checked:
    """The verdict on each point, by the class or the side it is about."""

    found: tuple[tuple[str, Transfer], ...]

    @property
    def verdict(self) -> str:
        """`broken` where one is, `kept` where all are, else `undecidable`."""
        verdicts = {check.verdict for _, check in self.found}
        if "broken" in verdicts:
            return "broken"
        return "kept" if verdicts == {"kept"} else "undecidable"

    @property
    def lines(self) -> list[str]:
        """Each verdict as a sentence."""
        if len(self.found) == 1:
            return [self.found[0][1].text]
        return [f"“{name}”: {check.text}" for name, check in self.found]

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict, and those of the points where there are several."""
        if len(self.found) == 1:
            return self.found[0][1].to_dict()
        points = [{"of": name, **check.to_dict()} for name, check in self.found]
        return {"verdict": self.verdict, "points": points}


def check_rows(
    loaded: PointFile,
    files: list[Path],
    columns: dict[str, Any],
    *,
    largest_weight: float | None = None,
) -> Checked:
    """Judge every promise by labelled rows, which are read whole.

    Rows that chose the point are refused: on those it holds by construction. So are rows that its
    calibrator was fitted on, whose scores know their labels.
    """
    layout = columns_of(files, label=columns["label"])
    read = rows_of_scores(files, columns, kind=layout.kind, calibration=loaded.calibration)
    if read.fingerprint == loaded.chosen_on:
        raise SplitMisuse(
            f"--check needs rows that did not choose the point, but {loaded.path} was chosen on "
            f"these very rows of {files[0]}: give later labelled rows."
        )
    if loaded.chosen_by is not None and loaded.chosen_by.shares(read.sketched):
        raise SplitMisuse(
            f"--check needs rows that did not choose the point, but some of those that chose "
            f"{loaded.path} stand in {files[0]}: give later labelled rows only."
        )
    if read.seen:
        raise SplitMisuse(
            f"--check needs rows that the calibrator was not fitted on, but that of {loaded.path} "
            f"was fitted on those of {files[0]}, or on some of them: give later labelled rows."
        )
    rows = in_classes_of(read, loaded.classes, files=(str(files[0]), str(loaded.path)))
    points = loaded.points
    level = 1 - (1 - CONFIDENCE) / len(points)
    sides = ("act", "clear") if isinstance(loaded.result, Band) else [str(p.of) for p in points]
    check_largest_weight(largest_weight, rows.weights, name="--largest-weight")
    heavy: dict[str, Any] = {"weights": rows.weights, "largest_weight": largest_weight}
    found = (
        check_transfer(point, rows.labels, confidence=level, **heavy, **rows.scores)
        for point in points
    )
    return Checked(tuple(zip(sides, found, strict=True)))
