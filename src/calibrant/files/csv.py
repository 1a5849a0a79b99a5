"""Score files as comma, semicolon or tab separated text."""

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
from calibrant.files.source import Ask, Place, reason_of

__all__ = ["CsvSource"]

_HEAD = 1 << 20  # room for the header of some ten thousand classes
_BLOCK = 1 << 23
_GZIP_GAIN = 4  # what gzip makes of text, roughly: only the choice to stream hangs on it
_MISSING = ["", "NA", "N/A", "#N/A", "null", "NULL", "None"]


class CsvSource:
    """A csv file (or csv.gz) whose first line names the columns."""

    called: tuple[tuple[str, str], ...] = ()
    pair: tuple[str, str] | None = None
    left_out: tuple[str, ...] = ()

    def __init__(self, file: Path, ask: Ask) -> None:
        self.file = file
        self._head = _first_bytes(file)
        text = _decoded(self._head, file)
        self._delimiter = _delimiter(text, ask)
        self._skipped, header = _header(text, self._delimiter, file)
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
            raise _unreadable(self.file, error) from None

    def estimate(self) -> int:
        """Divide the size of the file by the mean length of its first rows."""
        lines = lines_estimate(self.file, self._head, whole=len(self._head) < _HEAD)
        return max(0, lines - 1 - self._skipped)

    def _open(self, types: dict[str, pa.DataType], *, threads: bool) -> Iterator[pa.RecordBatch]:
        cells = pacsv.ConvertOptions(
            include_columns=list(types), column_types=types, null_values=_MISSING
        )
        return self._parsed(cells, threads, _BLOCK)

    def _parsed(
        self, cells: pacsv.ConvertOptions, threads: bool, block: int
    ) -> Iterator[pa.RecordBatch]:
        """Parse the file, `block` bytes at a time, its cells as the options say."""
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
                convert_options=cells,
            )

    def _blame(
        self, error: pa.ArrowInvalid, numbers: Sequence[str], words: Sequence[str]
    ) -> InputError:
        """Read again, slowly and as text, to name the cell at fault."""
        seen = 0
        try:
            for batch in self._open(dict.fromkeys([*numbers, *words], pa.string()), threads=False):
                found = self._bad_number(batch, numbers, Place(self.file, seen))
                if found is not None:
                    return found
                seen += batch.num_rows
        except pa.ArrowInvalid as second:
            error = second
        except OSError as second:
            return _unreadable(self.file, second)
        return self._bad_row(str(error))

    def _bad_number(
        self, batch: pa.RecordBatch, numbers: Sequence[str], place: Place
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
                f"{row[2]}: look for an unquoted separator, a decimal comma or a cut-off line."
            )
        if "UTF8" in message:
            return InputError(f"{self.file} is not UTF-8 text: save it as UTF-8.")
        reason = reason_of(message)
        return InputError(f"{self.file} cannot be read as CSV ({reason}): check the file.")


def lines_estimate(file: Path, head: bytes, *, whole: bool) -> int:
    """Return about how many lines a text file has, given how it begins or the `whole` of it."""
    lines = head.count(b"\n") + (not head.endswith(b"\n"))
    if whole:
        return lines
    gain = _GZIP_GAIN if file.name.lower().endswith(".gz") else 1
    return round(file.stat().st_size * gain * lines / len(head))


def _first_bytes(file: Path) -> bytes:
    try:
        with pa.input_stream(str(file), compression="detect") as stream:
            return bytes(stream.read(_HEAD))
    except PermissionError:
        raise
    except OSError as error:
        raise _unreadable(file, error) from None


def _unreadable(file: Path, error: OSError) -> InputError:
    return InputError(
        f"{file} is damaged or cut short and cannot be read ({reason_of(error)}): "
        "write or copy it again."
    )


def _decoded(head: bytes, file: Path) -> str:
    # The last line may be cut inside a character, so a broken end is forgiven.
    try:
        text = head.decode("utf-8-sig", errors="strict" if len(head) < _HEAD else "ignore")
    except UnicodeDecodeError:
        raise InputError(f"{file} is not UTF-8 text: save it as UTF-8.") from None
    if "\0" in text:
        raise InputError(f"{file} holds binary data, not text: check its type and its name.")
    return text


def _delimiter(text: str, ask: Ask) -> str:
    """Find which separator makes the header hold the columns that are looked for."""
    line = next((one for one in text.splitlines() if one.strip()), "")

    def score(mark: str) -> tuple[bool, int]:
        try:
            cells = [cell.strip() for cell in next(csv.reader([line], delimiter=mark), [])]
        except csv.Error:  # a long header with the wrong separator is one cell beyond csv's limit
            return False, 0
        return ask.label in cells, len(cells)

    return max(",;\t", key=score)


def _header(text: str, delimiter: str, file: Path) -> tuple[int, list[str]]:
    """Return how many empty lines come first, and the column names."""
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
    return "_" not in value  # float() takes 1_000, a file format should not
