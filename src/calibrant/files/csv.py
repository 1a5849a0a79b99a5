"""CSV files: values separated by commas, semicolons or tabs."""

from __future__ import annotations

import csv
import io
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.csv as pacsv

from calibrant.errors import InputError
from calibrant.files.source import BatchLocation, ColumnOptions, reason_of

_HEAD = 1 << 20  # enough for a header with ten thousand classes
_BLOCKS: tuple[int, ...] = (1 << 23,)
_TEXT_BLOCKS: tuple[int, ...] = (1 << 18, 1 << 22, 1 << 26)
"""Block sizes in bytes. Arrow reads up to 32 blocks ahead, so they are small; a row must fit into
one block, so a file with longer rows is parsed again with the next larger size."""

_GZIP_GAIN = 4  # typical gzip ratio of text: only used to decide whether to stream
_MISSING = ["", "NA", "N/A", "#N/A", "null", "NULL", "None"]


class CsvSource:
    """A CSV file (plain or gzip) whose first line names the columns.

    With `as_text`, all cells are read as text and only empty cells are null.
    """

    display_names: tuple[tuple[str, str], ...] = ()
    pair: tuple[str, str] | None = None
    left_out: tuple[str, ...] = ()

    def __init__(self, file: Path, ask: ColumnOptions, *, as_text: bool = False) -> None:
        self.file = file
        self._as_text = as_text
        self._head = _read_head(file)
        text = _decode_head(self._head, file)
        self._delimiter = _guess_delimiter(text, ask)
        self._skipped, header = _read_header(text, self._delimiter, file)
        self.names = [name.strip() for name in header]

    def batches(
        self, numbers: Sequence[str], words: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches; their length follows from the block size, not `batch_rows`."""
        types = {**dict.fromkeys(numbers, pa.float64()), **dict.fromkeys(words, pa.string())}
        try:
            yield from self._open(types, threads=True)
        except pa.ArrowInvalid as error:
            raise self._blame(error, numbers, words) from None
        except PermissionError:
            raise
        except OSError as error:
            raise _unreadable_file(self.file, error) from None

    def estimate(self) -> int:
        """Estimate the number of rows from the file size and the mean length of the first rows."""
        lines = estimate_lines(self.file, self._head, whole=len(self._head) < _HEAD)
        return max(0, lines - 1 - self._skipped)

    def _open(self, types: dict[str, pa.DataType], *, threads: bool) -> Iterator[pa.RecordBatch]:
        """Yield the record batches; after a row that is too long, resume with larger blocks."""
        options = pacsv.ConvertOptions(
            include_columns=[] if self._as_text else list(types),
            column_types=types,
            null_values=[""] if self._as_text else _MISSING,
            strings_can_be_null=self._as_text,
        )
        blocks = _TEXT_BLOCKS if self._as_text else _BLOCKS
        seen = 0
        for block in blocks:
            skipped = seen
            try:
                for batch in self._parse(options, threads, block):
                    fresh = batch.slice(min(skipped, batch.num_rows))
                    skipped -= batch.num_rows - fresh.num_rows
                    seen += fresh.num_rows
                    if fresh.num_rows:
                        yield fresh
                return
            except pa.ArrowInvalid as error:
                if "straddling" not in str(error) or block == blocks[-1]:
                    raise

    def _parse(
        self, options: pacsv.ConvertOptions, threads: bool, block: int
    ) -> Iterator[pa.RecordBatch]:
        """Parse the file in blocks of `block` bytes."""
        with pa.input_stream(str(self.file), compression="detect") as stream:
            yield from pacsv.open_csv(
                stream,
                read_options=pacsv.ReadOptions(
                    use_threads=threads,
                    block_size=block,
                    column_names=self.names,
                    skip_rows_after_names=self._skipped + 1,
                ),
                parse_options=pacsv.ParseOptions(
                    delimiter=self._delimiter, newlines_in_values=True
                ),
                convert_options=options,
            )

    def _blame(
        self, error: pa.ArrowInvalid, numbers: Sequence[str], words: Sequence[str]
    ) -> InputError:
        """Parse the file again as text to locate the invalid cell."""
        seen = 0
        try:
            for batch in self._open(dict.fromkeys([*numbers, *words], pa.string()), threads=False):
                fault = self._bad_number(batch, numbers, BatchLocation(self.file, seen))
                if fault is not None:
                    return fault
                seen += batch.num_rows
        except pa.ArrowInvalid as second:
            error = second
        except OSError as second:
            return _unreadable_file(self.file, second)
        return self._bad_row(str(error))

    def _bad_number(
        self, batch: pa.RecordBatch, numbers: Sequence[str], place: BatchLocation
    ) -> InputError | None:
        for name in numbers:
            for i, value in enumerate(batch.column(name).to_pylist()):
                if value is None or _is_number(value):
                    continue
                comma = re.fullmatch(r"\s*-?\d+,\d+\s*", value)
                remedy = "write a decimal point" if comma else "correct or drop that row"
                what = "has a decimal comma" if comma else "is not a number"
                return InputError(
                    f"{place.row(i)}, {place.column(name)}: {value!r} {what}: {remedy}."
                )
        return None

    def _bad_row(self, message: str) -> InputError:
        row = re.search(r"Row #(\d+): Expected (\d+) columns, got (\d+)", message)
        if row:
            number = int(row[1]) - 1 - self._skipped
            return InputError(
                f"{self.file}, data row {number:,} has {row[3]} cells where the header has "
                f"{row[2]}: look for an unquoted separator, a decimal comma or a truncated line."
            )
        if "UTF8" in message:
            return InputError(f"{self.file} is not UTF-8 text: save it as UTF-8.")
        if not _has_rows(self._head):
            return InputError(
                f"{self.file} ends in its header: it needs at least one row below the names."
            )
        reason = reason_of(message)
        return InputError(f"{self.file} cannot be read as CSV ({reason}): check the file.")


def _has_rows(head: bytes) -> bool:
    """Return whether anything follows the first line with content."""
    return len([line for line in head.splitlines() if line.strip()]) > 1


def estimate_lines(file: Path, head: bytes, *, whole: bool) -> int:
    """Estimate the number of lines of a text file from its head, or count them if `whole`."""
    lines = head.count(b"\n") + (not head.endswith(b"\n"))
    if whole:
        return lines
    gain = _GZIP_GAIN if file.name.lower().endswith(".gz") else 1
    return round(file.stat().st_size * gain * lines / len(head))


def _read_head(file: Path) -> bytes:
    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            return bytes(stream.read(_HEAD))
    except PermissionError:
        raise
    except OSError as error:
        raise _unreadable_file(file, error) from None


def _unreadable_file(file: Path, error: OSError) -> InputError:
    return InputError(
        f"{file} is damaged or truncated and cannot be read ({reason_of(error)}): "
        "write or copy it again."
    )


def _decode_head(head: bytes, file: Path) -> str:
    # The head may end inside a character, so an invalid end is ignored.
    try:
        text = head.decode("utf-8-sig", errors="strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text: save it as UTF-8.") from None
    if "\0" in text:
        raise InputError(f"{file} contains binary data, not text: check the file type and name.")
    return text


def _guess_delimiter(text: str, ask: ColumnOptions) -> str:
    """Choose the separator that gives a header with the label column and most cells."""
    line = next((text_line for text_line in text.splitlines() if text_line.strip()), "")

    def score(mark: str) -> tuple[bool, int]:
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=mark), [])]
        except csv.Error:  # with the wrong separator a long header exceeds csv's cell size limit
            return False, 0
        return ask.label in cells, len(cells)

    return max(",;\t", key=score)


def _read_header(text: str, delimiter: str, file: Path) -> tuple[int, list[str]]:
    """Return the number of leading empty lines, and the column names."""
    reader = csv.reader(io.StringIO(text), delimiter=delimiter)
    try:
        for skipped, cells in enumerate(reader):
            if any(cell.strip() for cell in cells):
                return skipped, cells
    except csv.Error as error:
        raise InputError(f"{file} cannot be read as CSV ({error}): check the header.") from None
    raise InputError(f"{file} is empty: it needs a header and at least one row.")


def _is_number(value: Any) -> bool:
    try:
        float(value)
    except ValueError:
        return False
    return "_" not in value  # float() accepts 1_000, which is not valid in a file
