"""Score files with one JSON object on each line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from calibrant.data.csv_source import lines_estimate
from calibrant.data.score_columns import Ask, Place, reason_of
from calibrant.errors import InputError

__all__ = ["JsonlSource"]

_BLOCK = 1 << 23
_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}


class JsonlSource:
    """A jsonl file (or jsonl.gz); the first object names the columns and their order."""

    called: tuple[tuple[str, str], ...] = ()
    pair: tuple[str, str] | None = None

    def __init__(self, file: Path, ask: Ask) -> None:
        self.file = file
        self._head = next(self._blocks(), b"")
        first = next((line for line in self._head.splitlines() if line.strip()), b"")
        if not first:
            raise InputError(f"{file} is empty: it needs a JSON object on at least one line.")
        pairs = _parsed(first.removeprefix(b"\xef\xbb\xbf"), Place(file), 0)
        self.names = [name for name, _ in pairs]
        self._first = dict(pairs)

    def batches(
        self, numbers: Sequence[str], words: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches; their length follows from the block size, not `batch_rows`."""
        fields = [(name, pa.float64()) for name in numbers]
        fields += [(name, _TYPES.get(type(self._first[name]), pa.string())) for name in words]
        options = pajson.ParseOptions(
            explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
        )
        seen = 0
        for block in self._blocks():
            try:
                table = pajson.read_json(
                    pa.BufferReader(block),
                    read_options=pajson.ReadOptions(block_size=_BLOCK),
                    parse_options=options,
                )
            except pa.ArrowInvalid as error:
                raise self._blame(block, fields, seen, error) from None
            yield from table.combine_chunks().to_batches()
            seen += table.num_rows

    def estimate(self) -> int:
        """Divide the size of the file by the mean length of its first rows."""
        return lines_estimate(self.file, self._head, whole=len(self._head) < _BLOCK // 2)

    def _blocks(self) -> Iterator[bytes]:
        """Cut the file into blocks of whole lines."""
        rest = b""
        try:
            with pa.input_stream(str(self.file), compression="detect") as stream:
                while chunk := bytes(stream.read(_BLOCK)):
                    whole, newline, tail = chunk.rpartition(b"\n")
                    if newline and (block := rest + whole).strip():
                        yield block.removeprefix(b"\xef\xbb\xbf")
                    rest = tail if newline else rest + tail
        except PermissionError:
            raise
        except OSError as error:
            reason = reason_of(error)
            raise InputError(f"{self.file} cannot be read ({reason}): check the file.") from None
        if rest.strip():
            yield rest.removeprefix(b"\xef\xbb\xbf")

    def _blame(
        self, block: bytes, fields: list[tuple[str, pa.DataType]], seen: int, error: Exception
    ) -> InputError:
        """Parse line by line to name the value at fault."""
        place = Place(self.file, seen)
        lines = [line for line in block.split(b"\n") if line.strip()]
        for i, line in enumerate(lines):
            try:
                row = dict(_parsed(line, place, i))
            except InputError as found:
                return found
            for name, kind in fields:
                if not _fits(row.get(name), kind):
                    first = "numbers" if kind in _TYPES.values() else "text"
                    return InputError(
                        f"{place.row(i)}, {place.column(name)}: {json.dumps(row[name])[:80]} "
                        f"has the wrong type: this column holds {first}."
                    )
        reason = reason_of(error)
        return InputError(f"{self.file} cannot be read as JSON lines ({reason}): check the file.")


def _parsed(line: bytes, place: Place, i: int) -> list[tuple[str, Any]]:
    """Return a line's names and values; names that occur twice stay twice."""
    try:
        found = json.loads(line, object_pairs_hook=_Pairs)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        text = line[:40].decode("utf-8", "replace").strip()
        raise InputError(
            f"{place.row(i)} is not JSON ({text!r}): write one object on each line."
        ) from None
    if not isinstance(found, _Pairs):
        raise InputError(
            f"{place.row(i)} is not a JSON object: write one like "
            '{"label": 1, "prob": 0.9} on each line.'
        )
    return list(found)


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, told apart from a JSON array."""


def _fits(value: Any, kind: pa.DataType) -> bool:
    if value is None:
        return True
    if kind == pa.string():
        return isinstance(value, str)
    if kind == pa.bool_():
        return isinstance(value, bool)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    return kind != pa.int64() or (isinstance(value, int) and abs(value) < 2**63)
