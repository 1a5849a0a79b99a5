"""A file as a table: its columns and batches, and its rows in the words of the user."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

__all__ = ["Ask", "Place", "Source", "is_score", "reason_of"]


@dataclass(frozen=True)
class Ask:
    """What the user said about the columns.

    `whole` asks for every column of the file, as it is, and does without labels.
    """

    label: str = "label"
    weight: str = "weight"
    group: str | None = None
    positive: str | None = None
    ids: str | None = None
    whole: bool = False


@dataclass(frozen=True)
class Place:
    """Where a batch lies in its file, so that errors speak of the user's rows."""

    file: Path
    first: int = 0
    called: tuple[tuple[str, str], ...] = ()

    def row(self, i: int) -> str:
        """Name row `i` of the batch as the user counts: data rows from 1."""
        return f"{self.file}, data row {self.first + i + 1:,}"

    def column(self, name: str) -> str:
        """Name a column in the words of the file's format."""
        return dict(self.called).get(name, f"column '{name}'")


class Source(Protocol):
    """A score file of any format, seen as a table."""

    file: Path

    @property
    def names(self) -> Sequence[str]:
        """Names of the columns, in their order."""

    @property
    def called(self) -> tuple[tuple[str, str], ...]:
        """What the user calls a column, where that is not its name."""

    @property
    def pair(self) -> tuple[str, str] | None:
        """The two classes behind a lone column, where the file names them."""

    @property
    def left_out(self) -> tuple[str, ...]:
        """What the file holds beside its columns."""

    def batches(
        self, numbers: Sequence[str], words: Sequence[str], batch_rows: int
    ) -> Iterator[Any]:
        """Yield Arrow record batches of these columns."""

    def estimate(self) -> int:
        """Return about how many rows there are."""


def reason_of(error: object) -> str:
    """Return the first sentence of another library's message, to be quoted in brackets."""
    lines = str(error).strip().splitlines() or ["no reason given"]
    return lines[0].split(". ")[0][:160].rstrip(". ")


def is_score(name: str, *kinds: str) -> bool:
    """Whether a column holds scores of one of these kinds, by its name; without any, of either."""
    kinds = kinds or ("prob", "logit")
    return any(name == kind or name.startswith(f"{kind}_") for kind in kinds)
