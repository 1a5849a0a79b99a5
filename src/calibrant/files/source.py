"""A file as a table: its columns and batches, and the location of its rows for messages."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol


@dataclass(frozen=True)
class ColumnOptions:
    """Column names given by the user; `whole` requests all columns and needs no labels."""

    label: str = "label"
    weight: str = "weight"
    group: str | None = None
    positive: str | None = None
    ids: str | None = None
    whole: bool = False


@dataclass(frozen=True)
class BatchLocation:
    """Location of a batch in its file, for messages about rows and columns."""

    file: Path
    first: int = 0
    display_names: tuple[tuple[str, str], ...] = ()

    def row(self, i: int) -> str:
        """Describe row `i` of the batch; data rows count from 1."""
        return f"{self.file}, data row {self.first + i + 1:,}"

    def column(self, name: str) -> str:
        """Describe a column by its display name."""
        return dict(self.display_names).get(name, f"column '{name}'")


class Source(Protocol):
    """A data or score file of any format, as a table."""

    file: Path

    @property
    def names(self) -> Sequence[str]:
        """Column names, in order."""

    @property
    def display_names(self) -> tuple[tuple[str, str], ...]:
        """Pairs of column name and display name, if they differ."""

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two classes of a single score column, if the file names them."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """Content of the file that is not a column."""

    def batches(
        self, numbers: Sequence[str], words: Sequence[str], batch_rows: int
    ) -> Iterator[Any]:
        """Yield Arrow record batches of these columns."""

    def estimate(self) -> int:
        """Estimate the number of rows."""


def reason_of(error: object) -> str:
    """Return the first sentence of another library's message, for quoting."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    return lines[0].split(". ")[0][:160].rstrip(". ")


def is_score(name: str, *kinds: str) -> bool:
    """Return whether a column name is that of scores of the given kinds (default: any)."""
    kinds = kinds or ("prob", "logit")
    return any(name == kind or name.startswith(f"{kind}_") for kind in kinds)
