"""The columns that a model reads of a table, and a sentence for a table that lacks one."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING

from calibrant.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["InputColumns", "listed", "refuse_lacking"]

_SHOWN = 8


@dataclass(frozen=True)
class InputColumns:
    """Columns by what they hold, as readers of files want to know it.

    Parameters
    ----------
    numbers : columns of numbers
    texts : columns of text, categories that look like numbers among them

    Examples
    --------
    >>> InputColumns(texts=("text",)).names
    ('text',)
    """

    numbers: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """All of them."""
        return (*self.numbers, *self.texts)

    def to_dict(self) -> dict[str, list[str]]:
        """Return plain lists."""
        return {key: list(names) for key, names in asdict(self).items()}

    def picked_from(self, table: pa.Table) -> pa.Table:
        """Return an Arrow table with these columns only; one that is lacking is named."""
        refuse_lacking(self.names, table.column_names)
        return table.select(list(self.names))


def refuse_lacking(wanted: Iterable[str], there: Sequence[str]) -> None:
    """Refuse a table that lacks a column, and list those that it has.

    Examples
    --------
    >>> refuse_lacking(["text"], ["id", "message"])
    Traceback (most recent call last):
    ...
    calibrant.errors.InputError: the table lacks the column 'text', which the bundle reads: it has
    'id', 'message'.
    """
    known = set(there)
    lacking = [name for name in wanted if name not in known]
    if lacking:
        more = f" and {len(lacking) - 1} more" if len(lacking) > 1 else ""
        raise InputError(
            f"the table lacks the column {lacking[0]!r}{more}, which the bundle reads: it has "
            f"{listed(there)}."
        )


def listed(names: Sequence[str]) -> str:
    """Return the first few names for a sentence.

    Examples
    --------
    >>> listed(["id", "message"])
    "'id', 'message'"
    """
    shown = ", ".join(repr(name) for name in names[:_SHOWN])
    more = f" and {len(names) - _SHOWN} more" if len(names) > _SHOWN else ""
    return (shown or "no columns") + more
