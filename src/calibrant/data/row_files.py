r"""The rows of a user's data file as Arrow tables: all at once, or batch by batch.

A file is `.csv` or `.tsv` (separated by commas, semicolons or tabs), `.jsonl`, each also `.gz`, or
`.parquet`; a folder or a glob stands for several with the same columns.
"""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.csv as pacsv
import pyarrow.types as pt

from calibrant.data.row_columns import as_inferred, as_numbers, as_words
from calibrant.errors import InputError
from calibrant.files.csv import CsvSource
from calibrant.files.find import FileKind, Paths, denied, named_files, suffix_of
from calibrant.files.jsonl import JsonlSource
from calibrant.files.parquet import ParquetSource
from calibrant.files.source import Ask, Place, Source, reason_of

__all__ = ["estimated_rows", "read_rows", "row_files", "scan_rows"]

_KIND = FileKind(
    noun="data file",
    suffixes=(".csv", ".csv.gz", ".tsv", ".tsv.gz", ".jsonl", ".jsonl.gz", ".parquet"),
    shown=".csv, .tsv, .parquet or .jsonl",
    needs="column names and at least one row",
)
_BLOCKS = (1 << 18, 1 << 22, 1 << 26)
"""Bytes of a csv file that are parsed at a time. Arrow reads up to 32 blocks ahead, so they are
small; a row must fit into one, so a file with longer rows is read again in larger ones."""


class _CsvRows(CsvSource):
    """A csv file whose cells are text, or null where they are empty."""

    def _open(self, types: dict[str, pa.DataType], *, threads: bool) -> Iterator[pa.RecordBatch]:
        cells = pacsv.ConvertOptions(column_types=types, null_values=[""], strings_can_be_null=True)
        seen = 0
        for block in _BLOCKS:
            skipped = seen
            try:
                for batch in self._parsed(cells, threads, block):
                    fresh = batch.slice(min(skipped, batch.num_rows))
                    skipped -= batch.num_rows - fresh.num_rows
                    seen += fresh.num_rows
                    if fresh.num_rows:
                        yield fresh
                return
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or block == _BLOCKS[-1]:
                    raise


def read_rows(path: Paths, *, texts: Sequence[str] = ()) -> pa.Table:
    r"""Read a whole data file.

    The cells of a csv file are text; each column is given the type that all its cells have:
    numbers, true and false, dates (ISO 8601), else text. A column of numbers with one word in it is
    text. An empty cell is null; in a column of numbers so are NA, null and the like. Columns of
    parquet and jsonl files keep their types.

    It is not for files that do not fit into memory: see `scan_rows`.

    Parameters
    ----------
    path : a .csv, .tsv or .jsonl file (also .gz) or a .parquet file; a folder or a glob of them
    texts : columns that are text whatever they look like, so that "007" stays "007"

    Examples
    --------
    >>> import tempfile
    >>> file = Path(tempfile.mkdtemp()) / "returns.csv"
    >>> _ = file.write_text("id,comment,price\n007,it broke,9.5\n008,,12\n")
    >>> read_rows(file, texts=["id"]).to_pylist()
    [{'id': '007', 'comment': 'it broke', 'price': 9.5}, {'id': '008', 'comment': None,
    'price': 12.0}]
    """
    texts = _names(texts, "texts")
    files = named_files(path, _KIND)
    parts, first = [], None
    for file in files:
        source = _opened(file, texts, first)
        first = first or source
        parts.append(_whole(source))
    table = _joined(parts, files)
    place, csv = Place(files[0]), isinstance(first, _CsvRows)
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in texts:
            columns.append(as_words(column, place, name))
        else:
            columns.append(as_inferred(column) if csv else column)
    return pa.Table.from_arrays(columns, names=table.column_names)


def scan_rows(
    path: Paths,
    *,
    numbers: Sequence[str] = (),
    texts: Sequence[str] = (),
    batch_rows: int = 8192,
) -> Iterator[pa.Table]:
    r"""Yield the rows of a data file as tables of `batch_rows` rows, in constant memory.

    No type is guessed: the columns named in `numbers` are float64 and those in `texts` are text.
    All others come along as they are (text in csv files, their own type in parquet and jsonl
    files), so that the rows can be written out again with new columns beside them. All tables have
    the same columns, in the order of the file.

    Parameters
    ----------
    path : a .csv, .tsv or .jsonl file (also .gz) or a .parquet file; a folder or a glob of them
    numbers : columns of numbers; a cell that is none is refused with its row
    texts : columns of text
    batch_rows : the number of rows of a table; the last may have fewer

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
    numbers, texts = _names(numbers, "numbers"), _names(texts, "texts")
    both = [name for name in numbers if name in texts]
    if both:
        raise InputError(f"'{both[0]}' is named in numbers and in texts: name it in one of them.")
    if not isinstance(batch_rows, int) or batch_rows < 1:
        raise InputError(f"batch_rows must be a whole number >= 1, got {batch_rows!r}.")
    files = named_files(path, _KIND)
    first = _opened(files[0], [*numbers, *texts])  # before the first row is asked for
    return _gathered(_scanned(first, files[1:], numbers, texts, batch_rows), batch_rows)


def row_files(path: Paths) -> list[Path]:
    """Return the data files that a path, a folder or a glob stands for."""
    return named_files(path, _KIND)


def estimated_rows(path: Paths) -> int:
    """Return about how many rows there are, without reading them; for parquet exactly."""
    return sum(_opened(file, ()).estimate() for file in row_files(path))


def _scanned(
    first: Source,
    others: list[Path],
    numbers: Sequence[str],
    texts: Sequence[str],
    batch_rows: int,
) -> Iterator[pa.Table]:
    schema: pa.Schema | None = None
    for file in (first.file, *others):
        source = first if file == first.file else _opened(file, [*numbers, *texts], first)
        seen = 0
        for batch in _batches(source, batch_rows):
            table = _typed(pa.Table.from_batches([batch]), numbers, texts, Place(file, seen))
            schema = schema or table.schema
            yield _like(table, schema, file)
            seen += batch.num_rows
        if not seen:
            raise _no_rows(file)


def _gathered(tables: Iterator[pa.Table], batch_rows: int) -> Iterator[pa.Table]:
    """Cut and join tables to `batch_rows` rows each: the blocks of a file have no say in it."""
    waiting: list[pa.Table] = []
    missing = batch_rows
    for table in tables:
        start = 0
        while table.num_rows - start >= missing:
            yield pa.concat_tables([*waiting, table.slice(start, missing)])
            start += missing
            waiting, missing = [], batch_rows
        if start < table.num_rows:
            waiting.append(table.slice(start))
            missing -= table.num_rows - start
    if waiting:
        yield pa.concat_tables(waiting)


def _typed(table: pa.Table, numbers: Sequence[str], texts: Sequence[str], place: Place) -> pa.Table:
    columns = []
    for name, column in zip(table.column_names, table.columns, strict=True):
        if name in numbers:
            column = as_numbers(column, place, name)
        elif name in texts or pt.is_null(column.type):
            column = as_words(column, place, name)
        columns.append(column)
    return pa.Table.from_arrays(columns, names=table.column_names)


def _like(table: pa.Table, schema: pa.Schema, file: Path) -> pa.Table:
    """Give a later table the types of the first one."""
    if table.schema == schema:
        return table
    try:
        return table.select(schema.names).cast(schema)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError) as error:
        raise InputError(
            f"{file} has columns of other types than the rows before ({reason_of(error)}): give "
            "all files the same types."
        ) from None


def _opened(file: Path, asked: Sequence[str], first: Source | None = None) -> Source:
    """Open a file and check the names of its columns."""
    try:
        source = _source(file)
    except PermissionError:
        raise denied(file) from None
    names = list(source.names)
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice and not twice[0]:
        raise InputError(
            f"{file} has {names.count('')} columns without a name: name all but one of them in the "
            "first line."
        )
    if twice:
        raise InputError(f"{file} has the column '{twice[0]}' twice: rename or drop one of them.")
    for name in asked:
        if name not in names:
            raise _no_column(file, name, names)
    if first is not None and set(first.names) != set(names):
        odd = sorted(set(first.names) ^ set(names))[0]
        raise InputError(
            f"{file} has other columns than {first.file}: they differ in '{odd}': all files must "
            "have the same columns."
        )
    return source


def _source(file: Path) -> Source:
    suffix = suffix_of(file, _KIND).removesuffix(".gz")
    if suffix == ".parquet":
        return ParquetSource(file, Ask())
    if suffix == ".jsonl":
        return JsonlSource(file, Ask(whole=True))
    return _CsvRows(file, Ask())


def _batches(source: Source, batch_rows: int) -> Iterator[pa.RecordBatch]:
    """Yield all columns of a file."""
    return source.batches((), list(source.names), batch_rows)


def _whole(source: Source) -> pa.Table:
    """Return all rows of a file, its columns in its order."""
    found = list(_batches(source, 1 << 16))
    if not sum(batch.num_rows for batch in found):
        raise _no_rows(source.file)
    table = pa.Table.from_batches(found).replace_schema_metadata(None)
    return table.select(list(source.names))


def _joined(parts: list[pa.Table], files: list[Path]) -> pa.Table:
    try:
        return pa.concat_tables(parts, promote_options="permissive")
    except (pa.ArrowInvalid, pa.ArrowTypeError) as error:
        raise InputError(
            f"{files[0]} and the files after it have columns of different types "
            f"({reason_of(error)}): give all files the same types."
        ) from None


def _no_rows(file: Path) -> InputError:
    return InputError(f"{file} names its columns but has no rows: it needs at least one row.")


def _no_column(file: Path, name: str, names: list[str]) -> InputError:
    lower = {known.lower(): known for known in reversed(names)}
    close = difflib.get_close_matches(name.lower(), list(lower), n=1)
    near = f" (is it '{lower[close[0]]}'?)" if close else ""
    shown = ", ".join(f"'{known}'" for known in names[:20])
    more = f" and {len(names) - 20} more" if len(names) > 20 else ""
    return InputError(
        f"{file} has no column '{name}'{near}: name one of its columns: {shown}{more}."
    )


def _names(names: Sequence[str], what: str) -> list[str]:
    if isinstance(names, str):
        raise InputError(
            f"{what} must be a list of column names, got {names!r}: write [{names!r}]."
        )
    return list(names)
