"""Named splits of a study, as row ids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from itertools import combinations
from typing import Any, Literal

import numpy as np

from calibrant.errors import InputError, SplitMisuse
from calibrant.inputs import IntArray

FORMAT = 1

RowSource = Literal["logs", "golden"]


def _no_ids() -> IntArray:
    return np.empty(0, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class SplitPart:
    """Rows of one split: positions in the file `source` ("logs" or "golden"), from 0."""

    source: RowSource = "logs"
    ids: IntArray = field(default_factory=_no_ids)

    def __post_init__(self) -> None:
        if self.source not in ("logs", "golden"):
            raise InputError(f"source must be 'logs' or 'golden', got {self.source!r}.")
        object.__setattr__(self, "ids", _as_ids(self.ids))

    def __len__(self) -> int:
        return len(self.ids)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SplitPart):
            return NotImplemented
        return self.source == other.source and np.array_equal(self.ids, other.ids)


@dataclass(frozen=True)
class Splits:
    """The named splits of a study, as row ids.

    Every row belongs to one split only, because metrics on rows also used for training or selection
    are optimistic. Overlapping splits raise `SplitMisuse`. Duplicate rows with different ids are
    not detected here: see `calibrant.data.row_identity`.

    Parameters
    ----------
    train : rows for gradients, from the logs
    steer : rows for early stopping, from the logs; without `choice`, also for model selection
    calibrate : rows for calibrators and thresholds
    test : rows for reported metrics
    log_test : held-out rows of the logs in addition to a golden set; may be empty
    out_of_scope : rows of no class; may be empty
    choice : rows for model selection only, from the logs; may be empty

    Examples
    --------
    >>> splits = Splits(
    ...     train=SplitPart("logs", [0, 1, 2, 5]),
    ...     steer=SplitPart("logs", [3]),
    ...     calibrate=SplitPart("golden", [0, 1]),
    ...     test=SplitPart("golden", [2, 3]),
    ... )
    >>> print(splits)
    train 4 rows of logs, steer 1 row of logs, calibrate 2 rows of golden, test 2 rows of golden
    >>> Splits.from_dict(splits.to_dict()) == splits
    True
    >>> Splits(*(SplitPart("logs", ids) for ids in ([0, 7], [1], [2], [7])))
    Traceback (most recent call last):
    ...
    calibrant.errors.SplitMisuse: train and test share 1 row of logs (row 7): use each row in one
    split only, or metrics are optimistic.
    """

    train: SplitPart
    steer: SplitPart
    calibrate: SplitPart
    test: SplitPart
    log_test: SplitPart = field(default_factory=SplitPart)
    out_of_scope: SplitPart = field(default_factory=SplitPart)
    choice: SplitPart = field(default_factory=SplitPart)

    def __post_init__(self) -> None:
        for name in ("train", "steer", "calibrate", "test"):
            if not len(getattr(self, name)):
                raise SplitMisuse(f"the split {name} is empty: give it at least one row.")
        for name in ("train", "steer", "log_test", "choice"):
            if getattr(self, name).source != "logs":
                raise SplitMisuse(
                    f"the split {name} must be rows of the logs, got rows of the golden set: use "
                    "those for calibrate and test."
                )
        for name, part in self.parts().items():
            if len(np.unique(part.ids)) != len(part):
                values, counts = np.unique(part.ids, return_counts=True)
                raise SplitMisuse(
                    f"{name} has row {values[counts > 1][0]} of {part.source} twice: list each row "
                    "once."
                )
        for one, other in combinations(self.parts(), 2):
            self._refuse_shared(one, other)

    def parts(self) -> dict[str, SplitPart]:
        """Return the non-empty splits by name."""
        all_parts = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        return {name: part for name, part in all_parts.items() if len(part)}

    def sizes(self) -> dict[str, int]:
        """Return the number of rows of every split."""
        return {entry.name: len(getattr(self, entry.name)) for entry in fields(self)}

    def check(self, job: str, ids: Any, *, source: RowSource = "logs") -> None:
        """Raise `SplitMisuse` if rows are not in the split `job`.

        Examples
        --------
        >>> parts = [SplitPart("logs", [i]) for i in range(4)]
        >>> Splits(*parts).check("train", [0, 3])
        Traceback (most recent call last):
        ...
        calibrant.errors.SplitMisuse: row 3 of logs belongs to test, not to train: use the rows of
        train.
        """
        known = {entry.name for entry in fields(self)}
        if job not in known:
            raise InputError(f"{job!r} is not a split: choose one of {', '.join(sorted(known))}.")
        row_ids = _as_ids(ids)
        part: SplitPart = getattr(self, job)
        foreign = row_ids if part.source != source else row_ids[~np.isin(row_ids, part.ids)]
        if not len(foreign):
            return
        owner = next(
            (n for n, p in self.parts().items() if p.source == source and foreign[0] in p.ids),
            "no split",
        )
        raise SplitMisuse(
            f"row {foreign[0]} of {source} belongs to {owner}, not to {job}: use the rows of {job}."
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the splits as JSON values."""
        return {
            "format": FORMAT,
            "splits": {
                entry.name: {
                    "source": getattr(self, entry.name).source,
                    "ids": getattr(self, entry.name).ids.tolist(),
                }
                for entry in fields(self)
            },
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> Splits:
        """Rebuild from `to_dict`."""
        if saved.get("format") != FORMAT:
            raise InputError(
                f"these are not splits of format {FORMAT}: got format {saved.get('format')!r}."
            )
        return cls(**{name: SplitPart(**part) for name, part in saved["splits"].items()})

    def __str__(self) -> str:
        return ", ".join(
            f"{name} {_count_rows(len(part))} of {part.source}"
            for name, part in self.parts().items()
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
            f"{one} and {other} share {_count_rows(len(shared))} of {a.source} ({word} "
            f"{first}{more}): use each row in one split only, or metrics are optimistic."
        )


def _count_rows(count: int) -> str:
    return f"{count:,} row{'' if count == 1 else 's'}"


def _as_ids(ids: Any) -> IntArray:
    array = np.asarray(ids)
    if array.ndim != 1 or (len(array) and array.dtype.kind not in "iu"):
        raise InputError(
            f"row ids must be a list of whole numbers, got {array.dtype} of shape {array.shape}."
        )
    array = array.astype(np.int64)
    if len(array) and array.min() < 0:
        raise InputError(f"row ids must be >= 0, got {array.min()}: rows count from 0.")
    return array
