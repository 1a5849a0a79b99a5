"""Columns that a model reads from a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from calibrant.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa


_SHOWN = 8


@dataclass(frozen=True)
class InputColumns:
    """Names of the columns to read.

    Parameters
    ----------
    numbers : numeric columns
    texts : text columns, including categories that look like numbers
    formatted : dates, and numbers that may be texts with decimal commas, units and the like; they
        are taken as they are, since the encoder knows how they are written

    Examples
    --------
    >>> InputColumns(texts=("text",)).names
    ('text',)
    """

    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    formatted: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All column names."""
        return (*self.numbers, *self.texts, *self.formatted)

    def to_dict(self) -> dict[str, list[str]]:
        """Return the names as lists; `formatted` only if there are any."""
        lists = {key: list(names) for key, names in asdict(self).items()}
        return {key: names for key, names in lists.items() if names or key != "formatted"}

    def select_from(self, table: pa.Table) -> pa.Table:
        """Select these columns from an Arrow table; raise `InputError` if one is missing."""
        require_columns(self.names, table.column_names)
        return table.select(list(self.names))


def require_columns(wanted: Iterable[str], available: Sequence[str]) -> None:
    """Raise `InputError` if a table lacks a column, listing those that it has.

    Examples
    --------
    >>> require_columns(["text"], ["id", "message"])
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: the table lacks the column 'text', which the bundle reads (columns:
    'id', 'message').
    """
    available_names = set(available)
    missing = [name for name in wanted if name not in available_names]
    if missing:
        more = f" and {len(missing) - 1} more" if len(missing) > 1 else ""
        raise InputError(
            f"the table lacks the column {missing[0]!r}{more}, which the bundle reads "
            f"(columns: {format_names(available)})."
        )


def format_names(names: Sequence[str]) -> str:
    """Format the first few names for a message.

    Examples
    --------
    >>> format_names(["id", "message"])
    "'id', 'message'"
    """
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (shown or "no columns") + more
