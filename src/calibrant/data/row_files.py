r"""Data files as Arrow tables, read whole or in batches.

Formats: `.csv` and `.tsv` (separated by commas, semicolons or tabs) and `.jsonl`, also `.gz`, and
`.parquet`. A folder or a glob selects several files with the same columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa
import pyarrow.types as pt

from calibrant.data.row_columns import as_numbers, as_words, infer_type
from calibrant.errors import InputError
from calibrant.files.csv import CsvSource
from calibrant.files.find import FileKind, Paths, permission_error, resolve_files, suffix_of
from calibrant.files.jsonl import JsonlSource
from calibrant.files.missing_column import lacking_columns_error, missing_column_error
from calibrant.files.parquet import ParquetSource
from calibrant.files.source import BatchLocation, ColumnOptions, Source, reason_of

_KIND = FileKind(
    noun="data file",
    suffixes=(".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".parquet"),
    shown=".csv, .tsv, .parquet or .jsonl",
    needs="column names and at least one row",
)


@dataclass(frozen=True)
class Cells:
    """A table as its files hold it."""

    table: pa.Table
    untyped: tuple[str, ...]  # columns of text because the files, such as CSV, have no types


def read_rows(path: Paths, *, texts: Sequence[str] = ()) -> pa.Table:
    r"""Read data files into one table.

    The type of a CSV column is inferred from all its cells: numbers, booleans, ISO 8601 dates, else
    text. A single word in a column of numbers makes it text, as do decimal commas, which
    `TableEncoder` reads. Empty cells are null; in columns of numbers and dates so are NA, null, -
    and similar words. Parquet and jsonl columns keep their types.

    For files larger than memory use `scan_rows`.

    Parameters
    ----------
    path : a .csv, .tsv or .jsonl file (also .gz) or a .parquet file; a folder or a glob of them
    texts : columns to read as text, so that "007" stays "007"

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "returns.csv"
    >>> _ = file.write_text("id,comment,price\n007,it broke,9.5\n008,,12\n")
    >>> read_rows(file, texts=["id"]).to_pylist()
    [{'id': '007', 'comment': 'it broke', 'price': 9.5}, {'id': '008', 'comment': None,
    'price': 12.0}]
    """
    cells = read_cells(path, texts=texts)
    return infer_types(cells)


def read_cells(path: Paths, *, texts: Sequence[str] = ()) -> Cells:
    """Read data files into one table, without inferring types; see `read_rows`."""
    texts = _as_name_list(texts, "texts")
    files = resolve_files(path, _KIND)
    parts, first = [], None
    for file in files:
        source = _open_file(file, texts, first)
        first = first or source
        parts.append(_read_table(source))
    table = _concatenate(parts, files)
    place, csv = BatchLocation(files[0]), isinstance(first, CsvSource)
    for i, name in enumerate(table.column_names):
        if name in texts:
            table = table.set_column(i, name, as_words(table.column(i), place, name))
    untyped = [name for name in table.column_names if name not in texts] if csv else []
    return Cells(table, tuple(untyped))


def infer_types(
    cells: Cells, *, decimal: str | None = None, missing: tuple[str, ...] = ()
) -> pa.Table:
    """Return a table with columns of the types that all their cells have; see `read_rows`."""
    columns = [
        infer_type(column, decimal=decimal or ".", missing=missing)
        if name in cells.untyped
        else column
        for name, column in zip(cells.table.column_names, cells.table.columns, strict=True)
    ]
    return pa.Table.from_arrays(columns, names=cells.table.column_names)


def scan_rows(
    path: Paths,
    *,
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    unchanged: Sequence[str] = (),
    batch_rows: int = 8192,
) -> Iterator[pa.Table]:
    r"""Yield the rows of data files as tables of `batch_rows` rows, in constant memory.

    Types are not inferred: columns in `numbers` are float64 and columns in `texts` are text. Other
    columns pass through (text in CSV files, their own type in parquet and jsonl files), so that the
    rows can be written again with new columns. All tables have the same columns, in file order.

    Parameters
    ----------
    path : a .csv, .tsv or .jsonl file (also .gz) or a .parquet file; a folder or a glob of them
    numbers : numeric columns; a cell that is not a number raises `InputError` with its row
    texts : text columns
    unchanged : further columns that the files must have
    batch_rows : number of rows per table; the last may have fewer

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "returns.csv"
    >>> _ = file.write_text("id,comment,price\n007,it broke,9.5\n008,,12\n")
    >>> for rows in scan_rows(file, numbers=["price"], batch_rows=1):
    ...     print(rows.to_pylist())
    [{'id': '007', 'comment': 'it broke', 'price': 9.5}]
    [{'id': '008', 'comment': None, 'price': 12.0}]
    """
    numbers, texts = _as_name_list(numbers, "numbers"), _as_name_list(texts, "texts")
    overlap = [name for name in numbers if name in texts]
    if overlap:
        raise InputError(
            f"column '{overlap[0]}' is in both numbers and texts: give it in one of them."
        )
    if not isinstance(batch_rows, int) or batch_rows < 1:
        raise InputError(f"batch_rows must be a whole number >= 1, got {batch_rows!r}.")
    files = resolve_files(path, _KIND)
    unchanged = _as_name_list(unchanged, "unchanged")
    first = _open_file(files[0], [*numbers, *texts, *unchanged])  # before the first batch
    return _rebatch(_scan_files(first, files[1:], numbers, texts, batch_rows), batch_rows)


def row_files(path: Paths) -> list[Path]:
    """Return the data files selected by a path, a folder or a glob."""
    return resolve_files(path, _KIND)


def read_column_names(path: Paths) -> list[str]:
    r"""Return the column names of data files, without reading all rows where the format allows.

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "returns.csv"
    >>> _ = file.write_text("id,comment\n007,it broke\n")
    >>> read_column_names(file)
    ['id', 'comment']
    """
    return list(_open_file(row_files(path)[0], ()).names)


def check_bundle_columns(path: Paths, wanted: Sequence[str]) -> None:
    """Raise `InputError` if data files lack columns that a bundle reads, naming all of them."""
    file = row_files(path)[0]
    names = _open_file(file, ()).names
    lacking = [name for name in wanted if name not in set(names)]
    if lacking:
        raise lacking_columns_error(file, lacking, names)


def estimate_rows(path: Paths) -> int:
    """Estimate the number of rows without reading them; exact for parquet."""
    return sum(_open_file(file, ()).estimate() for file in row_files(path))


def _scan_files(
    first: Source,
    others: list[Path],
    numbers: Sequence[str],
    texts: Sequence[str],
    batch_rows: int,
) -> Iterator[pa.Table]:
    schema: pa.Schema | None = None
    for file in (first.file, *others):
        source = first if file == first.file else _open_file(file, [*numbers, *texts], first)
        rows_before = 0
        for batch in _batches(source, batch_rows):
            table = _convert_types(
                pa.Table.from_batches([batch]), numbers, texts, BatchLocation(file, rows_before)
            )
            schema = schema or table.schema
            yield _cast_to_schema(table, schema, file)
            rows_before += batch.num_rows
        if not rows_before:
            raise _no_rows_error(file)


def _rebatch(tables: Iterator[pa.Table], batch_rows: int) -> Iterator[pa.Table]:
    """Rebatch tables to `batch_rows` rows each."""
    pending: list[pa.Table] = []
    remaining = batch_rows
    for table in tables:
        start = 0
        while table.num_rows - start >= remaining:
            yield pa.concat_tables([*pending, table.slice(start, remaining)])
            start += remaining
            pending, remaining = [], batch_rows
        if start < table.num_rows:
            pending.append(table.slice(start))
            remaining -= table.num_rows - start
    if pending:
        yield pa.concat_tables(pending)


def _convert_types(
    table: pa.Table, numbers: Sequence[str], texts: Sequence[str], place: BatchLocation
) -> pa.Table:
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in numbers:
            column = as_numbers(column, place, name)
        elif name in texts or pt.is_null(column.type):
            column = as_words(column, place, name)
        columns.append(column)
    return pa.Table.from_arrays(columns, names=table.column_names)


def _cast_to_schema(table: pa.Table, schema: pa.Schema, file: Path) -> pa.Table:
    """Cast a later table to the schema of the first one."""
    if table.schema == schema:
        return table
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"{file} has column types that differ from earlier rows ({reason_of(error)}): "
            "use the same types in all files."
        ) from None


def _open_file(file: Path, required: Sequence[str], first: Source | None = None) -> Source:
    """Open a file and check its column names."""
    try:
        source = _source_for(file)
    except PermissionError:
        raise permission_error(file) from None
    names = list(source.names)
    duplicates = [name for name, count in Counter(names).items() if count > 1]
    if duplicates and not duplicates[0]:
        raise InputError(
            f"{file} has {names.count('')} columns without a name: name all but one of them in the "
            "header."
        )
    if duplicates:
        raise InputError(
            f"{file} has the column '{duplicates[0]}' twice: rename or drop one of them."
        )
    for name in required:
        if name not in names:
            raise missing_column_error(file, name, names)
    if first is not None and set(first.names) != set(names):
        unmatched = sorted(set(first.names) ^ set(names))[0]
        raise InputError(
            f"{file} and {first.file} have different columns: they differ in '{unmatched}': "
            "give all files the same columns."
        )
    return source


def _source_for(file: Path) -> Source:
    suffix = suffix_of(file, _KIND).removesuffix(".gz")
    if suffix == ".parquet":
        return ParquetSource(file, ColumnOptions())
    if suffix == ".jsonl":
        return JsonlSource(file, ColumnOptions(whole=True))
    return CsvSource(file, ColumnOptions(), as_text=True)


def _batches(source: Source, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield batches with all columns of a file."""
    return source.batches((), list(source.names), batch_rows)


def _read_table(source: Source) -> pa.Table:
    """Return all rows of a file, with columns in file order."""
    batches = list(_batches(source, 1 << 16))
    if not sum(batch.num_rows for batch in batches):
        raise _no_rows_error(source.file)
    table = pa.Table.from_batches(batches).replace_schema_metadata(None)
    return table.select(list(source.names))


def _concatenate(parts: list[pa.Table], files: list[Path]) -> pa.Table:
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            f"{files[0]} and the files after it have columns of different types "
            f"({reason_of(error)}): use the same types in all files."
        ) from None


def _no_rows_error(file: Path) -> InputError:
    return InputError(f"{file} has column names but no rows: it needs at least one row.")


def _as_name_list(names: Sequence[str], what: str) -> list[str]:
    if isinstance(names, str):
        raise InputError(
            f"{what} must be a list of column names, got {names!r}: write [{names!r}]."
        )
    return list(names)
