"""Atomic, batched writing of tables as parquet, CSV or JSON Lines."""

from __future__ import annotations

import datetime
import decimal
import json
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as pacsv
import pyarrow.parquet as pq

from calibrant.errors import InputError
from calibrant.files.atomic_write import check_writable, write_atomically

Write = Callable[[pa.Table], None]

_ROW_GROUP = 1 << 24
"""Bytes per parquet row group: larger groups keep the index small, but compressing one takes
several times this much memory."""

_SUFFIXES = (".parquet", ".csv", ".csv.gz", ".jsonl", ".jsonl.gz")


def check_table_file(path: str | os.PathLike[str], *, name: str = "path") -> Path:
    """Check up front that a table can be written to `path`."""
    path = check_writable(path, name=name)
    if not path.name.lower().endswith(_SUFFIXES):
        raise InputError(
            f"{name} {path}: the name must end in .parquet, .csv or .jsonl (text also .gz)."
        )
    return path


def write_tables(
    path: str | os.PathLike[str],
    tables: Iterable[pa.Table],
    *,
    name: str = "path",
    private: bool = False,
) -> int:
    r"""Write tables with the same columns to one file atomically, and return the number of rows.

    The suffix selects the format. On failure (a full disk, an interruption, an error in the last
    row), an existing file stays unchanged and no partial file is left.
    """
    path = check_table_file(path, name=name)
    rows = 0
    with write_atomically(path, name=name, private=private) as draft:
        parts = iter(tables)
        first = _convert_columns(next(parts), path, name)
        with _writer(draft, path, first.schema, name) as write:
            write(first)
            rows += int(first.num_rows)
            for part in parts:
                write(_convert_columns(part, path, name))
                rows += int(part.num_rows)
    return rows


@contextmanager
def _writer(draft: Path, path: Path, schema: pa.Schema, name: str) -> Iterator[Write]:
    lower = path.name.lower()
    try:
        if lower.endswith(".parquet"):
            with pq.ParquetWriter(draft, schema) as parquet, _buffer_row_groups(parquet) as write:
                yield write
            return
        packing = "gzip" if lower.endswith(".gz") else None
        with pa.output_stream(str(draft), compression=packing) as stream:
            if ".csv" in lower[-7:]:
                with pacsv.CSVWriter(stream, schema) as lines:
                    yield lines.write_table
            else:
                yield lambda table: stream.write(_json_lines(table, name, path))
    except (pa.ArrowNotImplementedError, pa.ArrowInvalid, pa.ArrowTypeError) as error:
        reason = str(error).strip().splitlines()[0][:160].rstrip(".")
        raise InputError(
            f"{name} {path} cannot store these columns ({reason}): drop the column or choose "
            "another format."
        ) from None


@contextmanager
def _buffer_row_groups(parquet: pq.ParquetWriter) -> Iterator[Write]:
    """Yield a write function that buffers tables into row groups."""
    buffered: list[pa.Table] = []

    def flush() -> None:
        if buffered:
            combined = pa.concat_tables(buffered)
            parquet.write_table(combined, row_group_size=max(1, combined.num_rows))
            buffered.clear()

    def write(table: pa.Table) -> None:
        buffered.append(table)
        if sum(part.nbytes for part in buffered) >= _ROW_GROUP:
            flush()

    yield write
    flush()


def _convert_columns(table: pa.Table, path: Path, name: str) -> pa.Table:
    """Convert columns to types supported by the format, or raise `InputError`."""
    if path.name.lower().endswith(".parquet"):
        return table
    text = ".csv" in path.name.lower()[-7:]
    columns = {}
    for field, column in zip(table.schema, table.columns, strict=True):
        kind = field.type
        if text and pa.types.is_nested(kind):
            raise InputError(
                f"{name} {path} cannot store the column '{field.name}' of type {kind}: write "
                ".parquet or .jsonl, or drop the column."
            )
        if pa.types.is_dictionary(kind):
            column, kind = column.cast(kind.value_type), kind.value_type
        if pa.types.is_binary(kind) or pa.types.is_large_binary(kind) or "view" in str(kind):
            column = column.cast(pa.string())
        if not text and pa.types.is_floating(kind):  # JSON has no NaN
            column = pc.if_else(pc.is_finite(column), column, pa.scalar(None, kind))
        columns[field.name] = column
    return pa.table(columns)


def _json_lines(table: pa.Table, name: str, path: Path) -> bytes:
    try:
        lines = [
            json.dumps(row, ensure_ascii=False, allow_nan=False, default=_json_text)
            for row in table.to_pylist()
        ]
    except (TypeError, ValueError) as error:
        raise InputError(
            f"{name} {path} cannot store these columns as JSON ({error}): write .parquet instead."
        ) from None
    return "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogatepass")


def _json_text(value: Any) -> str:
    """Convert values without a JSON type to text."""
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, decimal.Decimal | datetime.timedelta):
        return str(value)
    raise TypeError(f"a value of type {type(value).__name__} has no JSON form")
