"""The named splits of a study: which row serves which job."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any, Literal

import numpy as np

from calibrant.errors import InputError, SplitMisuse
from calibrant.inputs import IntArray

__all__ = ["Part", "Splits"]

FORMAT = 1

Source = Literal["logs", "golden"]


def _no_ids() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of one file.

    Parameters
    ----------
    source : "logs" or "golden", the file
    ids : positions of the rows in that file, from 0
    """

    source: Source = "logs"
    ids: IntArray = field(default_factory=_no_ids)

    def __post_init__(self) -> None:
        if self.source not in ("logs", "golden"):
            raise InputError(f"source must be 'logs' or 'golden', got {self.source!r}.")
        object.__setattr__(self, "ids", _as_ids(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Part):
            return NotImplemented
        return self.source == other.source and np.array_equal(self.ids, other.ids)


@dataclass(frozen=True)
class Splits:
    """The named splits of a study, one job each, as row ids.

    No row has two jobs: figures of rows that also trained or chose something are too good.
    Overlapping rows are refused with `SplitMisuse`. Equal rows with different ids are not
    noticed here: see `calibrant.data.row_identity`.

    Parameters
    ----------
    train : rows of the gradients; of the logs
    steer : rows that stop the training; of the logs. Without `choice` they may choose too
    calibrate : rows of calibrators and thresholds
    test : rows of reported figures
    log_test : held-out rows of the logs beside a golden set; may be empty
    out_of_scope : rows that belong to no class; may be empty
    choice : rows that choose among candidates and do nothing else; of the logs; may be empty

    Examples
    --------
    >>> splits = Splits(
    ...     train=Part("logs", [0, 1, 2, 5]),
    ...     steer=Part("logs", [3]),
    ...     calibrate=Part("golden", [0, 1]),
    ...     test=Part("golden", [2, 3]),
    ... )
    >>> print(splits)
    train 4 rows of logs, steer 1 row of logs, calibrate 2 rows of golden, test 2 rows of golden
    >>> Splits.from_dict(splits.to_dict()) == splits
    True
    >>> Splits(Part("logs", [0, 7]), Part("logs", [1]), Part("logs", [2]), Part("logs", [7]))
    Traceback (most recent call last):
    ...
    calibrant.errors.SplitMisuse: train and test share 1 row of logs (row 7): give each row one job,
    for figures of rows that also trained or chose something are too good.
    """

    train: Part
    steer: Part
    calibrate: Part
    test: Part
    log_test: Part = field(default_factory=Part)
    out_of_scope: Part = field(default_factory=Part)
    choice: Part = field(default_factory=Part)

    def __post_init__(self) -> None:
        for name in ("train", "steer", "calibrate", "test"):
            if not len(getattr(self, name)):
                raise SplitMisuse(f"the split {name} is empty: give it at least one row.")
        for name in ("train", "steer", "log_test", "choice"):
            if getattr(self, name).source != "logs":
                raise SplitMisuse(
                    f"the split {name} must be rows of the logs, got rows of the golden set: those "
                    "are for calibrate and test."
                )
        for name, part in self.parts().items():
            if len(np.unique(part.ids)) != len(part):
                values, counts = np.unique(part.ids, return_counts=True)
                raise SplitMisuse(
                    f"{name} has row {values[counts > 1][0]} of {part.source} twice: name each row "
                    "once."
                )
        for one, other in combinations(self.parts(), 2):
            self._refuse_shared(one, other)

    def parts(self) -> dict[str, Part]:
        """Return the splits that have rows, by name."""
        found = {one.name: getattr(self, one.name) for one in fields(self)}
        return {name: part for name, part in found.items() if len(part)}

    def sizes(self) -> dict[str, int]:
        """Return the number of rows of each split, empty ones included."""
        return {one.name: len(getattr(self, one.name)) for one in fields(self)}

    def check(self, job: str, ids: Any, *, source: Source = "logs") -> None:
        """Refuse rows that are not those of the split `job`.

        Examples
        --------
        >>> one = [Part("logs", [i]) for i in range(4)]
        >>> Splits(*one).check("train", [0, 3])
        Traceback (most recent call last):
        ...
        calibrant.errors.SplitMisuse: row 3 of logs belongs to test, not to train: use the rows of
        train.
        """
        known = {one.name for one in fields(self)}
        if job not in known:
            raise InputError(f"{job!r} is no split: choose among {', '.join(sorted(known))}.")
        asked = _as_ids(ids)
        part: Part = getattr(self, job)
        stray = asked if part.source != source else asked[~np.isin(asked, part.ids)]
        if not len(stray):
            return
        owner = next(
            (n for n, p in self.parts().items() if p.source == source and stray[0] in p.ids),
            "no split",
        )
        raise SplitMisuse(
            f"row {stray[0]} of {source} belongs to {owner}, not to {job}: use the rows of {job}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "format": FORMAT,
            "splits": {
                one.name: {
                    "source": getattr(self, one.name).source,
                    "ids": getattr(self, one.name).ids.tolist(),
                }
                for one in fields(self)
            },
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Splits:
        """Rebuild from `to_dict`."""
        if saved.get("format") != FORMAT:
            raise InputError(
                f"these are not splits of format {FORMAT}: got format {saved.get('format')!r}."
            )
        return cls(**{name: Part(**part) for name, part in saved["splits"].items()})

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {_rows(len(part))} of {part.source}" for name, part in self.parts().items()
        )

    def _refuse_shared(self, one: str, other: str) -> None:
        a, b = getattr(self, one), getattr(self, other)
        if a.source != b.source:
            return
        shared = np.intersect1d(a.ids, b.ids)
        if not len(shared):
            return
        word = "row" if len(shared) == 1 else "rows"
        first = ", ".join(str(i) for i in shared[:5])
        more = ", ..." if len(shared) > 5 else ""
        raise SplitMisuse(
            f"{one} and {other} share {_rows(len(shared))} of {a.source} ({word} {first}{more}): "
            "give each row one job, for figures of rows that also trained or chose something are "
            "too good."
        )


def _rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _as_ids(ids: Any) -> IntArray:
    found = np.asarray(ids)
    if found.ndim != 1 or (len(found) and found.dtype.kind not in "iu"):
        raise InputError(
            f"row ids must be a list of whole numbers, got {found.dtype} of shape {found.shape}."
        )
    found = found.astype(np.int64)
    if len(found) and found.min() < 0:
        raise InputError(f"row ids must be >= 0, got {found.min()}: rows count from 0.")
    return found
