"""Columns of a table that no model can learn from, told before training and all at once."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from calibrant.data import TableEncoder
from calibrant.errors import InputError

if TYPE_CHECKING:
    import pyarrow as pa

__all__ = ["check_table"]


def check_table(table: pa.Table, categories: Sequence[str], file: str) -> None:
    """Refuse a table with dates, ids, free text or other columns that cannot be encoded.

    Parameters
    ----------
    table : the train rows
    categories : columns that are categories although they hold numbers
    file : what errors call the table
    """
    reasons: dict[str, str] = {}
    for name in table.column_names:
        chosen = [one for one in categories if one == name]
        try:
            TableEncoder(categories=chosen).fit(table.select([name]))
        except InputError as error:
            reasons[name] = str(error).removeprefix("X ").partition(": ")[0].rstrip(".")
    if reasons:
        drops = " ".join(f"--drop '{name}'" for name in reasons)
        raise InputError(f"{file}: {next(iter(reasons.values()))}: leave it out with {drops}.")
