"""JSON Lines files: one JSON object per line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from calibrant.errors import InputError
from calibrant.files.csv import estimate_lines
from calibrant.files.source import BatchLocation, ColumnOptions, is_score, reason_of

_BLOCK = 1 << 23
_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_HOLDS = {pa.bool_(): "true or false", pa.string(): "text"}
_BOM = b"\xef\xbb\xbf"


class JsonlSource:
    """A JSON Lines file (plain or gzip); the first object sets the columns and their order."""

    display_names: tuple[tuple[str, str], ...] = ()
    pair: tuple[str, str] | None = None
    left_out: tuple[str, ...] = ()

    def __init__(self, file: Path, ask: ColumnOptions) -> None:
        self.file = file
        self._head = next(self._blocks(), b"")
        first = next((line for line in self._head.splitlines() if line.strip()), b"")
        if not first:
            raise InputError(f"{file} is empty: it needs a JSON object on at least one line.")
        pairs = _parse_line(first.removeprefix(_BOM), BatchLocation(file), 0)
        self.names = [name for name, _ in pairs]
        self._first = dict(pairs)
        self._types = self._all_types() if ask.whole else {}
        # A score column missing in the first line stays unknown, so that its row is rejected.
        self.names += [n for n in self._types if n not in self._first and not is_score(n)]
        named_columns = {ask.label, ask.weight, ask.group, ask.ids} - {None}
        self._absent = named_columns - set(self.names)
        patterns = "|".join(
            [r"(?:prob|logit)(?:_[^\"]*)?", *(re.escape(str(n)) for n in named_columns)]
        )
        self._key = re.compile(f'"({patterns})"[ \t]*:'.encode())

    def batches(
        self, numbers: Sequence[str], words: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches; their length follows from the block size, not `batch_rows`."""
        fields = [(name, pa.float64()) for name in numbers]
        fields += [(name, self._kind(name)) for name in words]
        rows_before = 0
        for block in self._blocks():
            self._refuse_late_keys(block, rows_before)
            try:
                table = _read_block(block, fields)
            except pa.ArrowInvalid as error:
                fault = self._blame(block, fields, rows_before)
                if fault is not None:
                    raise fault from None
                table = self._read_as_floats(block, fields, error)
            yield from table.combine_chunks().to_batches()
            rows_before += table.num_rows

    def estimate(self) -> int:
        """Estimate the number of rows from the file size and the mean length of the first rows."""
        return estimate_lines(self.file, self._head, whole=len(self._head) < _BLOCK // 2)

    def _kind(self, name: str) -> pa.DataType:
        """Return the type of a text column: that of its first non-null value."""
        if name in self._types:
            return self._types[name]
        value = self._first[name]
        if value is None:
            for i, line in enumerate(_lines(self._head)):
                value = dict(_parse_line(line.removeprefix(_BOM), BatchLocation(self.file), i)).get(
                    name
                )
                if value is not None:
                    break
        return _TYPES.get(type(value), pa.string())

    def _all_types(self) -> dict[str, pa.DataType]:
        """Read the whole file once to find the type of each column."""
        schema, rows_before = pa.schema([]), 0
        for block in self._blocks():
            try:
                table = pajson.read_json(
                    pa.BufferReader(block),
                    read_options=pajson.ReadOptions(block_size=len(block) + 1),
                )
                block_schema = pa.schema([(f.name, _without_dates(f.type)) for f in table.schema])
                schema = pa.unify_schemas([schema, block_schema], promote_options="permissive")
            except pa.ArrowException as error:
                raise self._blame(block, [], rows_before) or self._mixed(
                    error, rows_before
                ) from None
            rows_before += table.num_rows
        return {field.name: field.type for field in schema}

    def _mixed(self, error: Exception, seen: int) -> InputError:
        """Return the error for a column with mixed types."""
        match = re.search(r"Column\(/?(.+?)\) .* in row (\d+)", str(error))
        row = BatchLocation(self.file, seen).row(int(match[2])) if match else ""
        if match and "twice" in str(error):
            return InputError(
                f"{row} has the column '{match[1]}' twice: rename or drop one of them."
            )
        if match:
            where = f"{row}, column '{match[1]}': the value"
        else:
            name = re.search(r"Field (\S+) has incompatible types", str(error))
            where = f"{self.file}: column '{name[1]}'" if name else f"{self.file}: a column"
        return InputError(
            f"{where} has a different type than in earlier rows: use the same type on every line, "
            "or drop the column."
        )

    def _refuse_late_keys(self, block: bytes, seen: int) -> None:
        """Reject a column that the first line lacks, which would otherwise be ignored silently."""
        if not self._may_have_late_keys(block):
            return
        known = set(self.names)
        late_keys = {key for key in set(self._key.findall(block)) if _decode_key(key) not in known}
        if not late_keys:
            return
        location = BatchLocation(self.file, seen)
        for i, line in enumerate(_lines(block)):
            if not any(key in line for key in late_keys):
                continue
            for name, _ in _parse_line(line, location, i):  # nested keys are ignored
                if name not in known and self._key.fullmatch(f'"{name}":'.encode()):
                    raise InputError(
                        f"{location.row(i)} has '{name}', which the first line does not have: "
                        "use the same keys on every line."
                    )

    def _may_have_late_keys(self, block: bytes) -> bool:
        """Check cheaply by counting, which is almost always enough."""
        if any(f'"{name}"'.encode() in block for name in self._absent):
            return True
        rows = block.count(b"\n") + 1
        return any(
            block.count(start)
            != rows * sum(f'"{name}'.encode().startswith(start) for name in self.names)
            for start in (b'"prob', b'"logit')
        )

    def _read_as_floats(
        self, block: bytes, fields: list[tuple[str, pa.DataType]], error: Exception
    ) -> pa.Table:
        """Read a block whose integer columns also contain floats, such as 1 and 0.0."""
        widened = [(name, pa.float64() if kind == pa.int64() else kind) for name, kind in fields]
        try:
            return _read_block(block, widened)
        except pa.ArrowInvalid:
            raise InputError(
                f"{self.file} cannot be read as JSON lines ({reason_of(error)}): check the file."
            ) from None

    def _blocks(self) -> Iterator[bytes]:
        """Yield the file in blocks of whole lines."""
        rest = b""
        try:
            with pa.input_stream(str(self.file), compression="detect") as stream:
                while chunk := bytes(stream.read(_BLOCK)):
                    whole, newline, tail = chunk.rpartition(b"\n")
                    if newline and (block := rest + whole).strip():
                        yield block.removeprefix(_BOM)
                    rest = tail if newline else rest + tail
        except PermissionError:
            raise
        except OSError as error:
            reason = reason_of(error)
            raise InputError(f"{self.file} cannot be read ({reason}): check the file.") from None
        if rest.strip():
            yield rest.removeprefix(_BOM)

    def _blame(
        self, block: bytes, fields: list[tuple[str, pa.DataType]], seen: int
    ) -> InputError | None:
        """Parse line by line to locate the invalid value, if any."""
        location = BatchLocation(self.file, seen)
        for i, line in enumerate(_lines(block)):
            try:
                row = dict(_parse_line(line, location, i))
            except InputError as error:
                return error
            for name, kind in fields:
                problem = _type_problem(row.get(name), kind)
                if problem:
                    value = dict(row[name]) if isinstance(row[name], _Pairs) else row[name]
                    shown = json.dumps(value, ensure_ascii=False)[:80]
                    return InputError(
                        f"{location.row(i)}, {location.column(name)}: {shown} {problem}."
                    )
        return None


def _lines(block: bytes) -> list[bytes]:
    return [line for line in block.split(b"\n") if line.strip()]


def _read_block(block: bytes, fields: list[tuple[str, pa.DataType]]) -> pa.Table:
    return pajson.read_json(
        pa.BufferReader(block),
        read_options=pajson.ReadOptions(block_size=_BLOCK),
        parse_options=pajson.ParseOptions(
            explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
        ),
    )


def _without_dates(kind: pa.DataType) -> pa.DataType:
    """Replace inferred timestamps by text."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_without_dates(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _without_dates(field.type)) for field in kind])
    return kind


def _decode_key(key: bytes) -> str:
    """Decode a JSON key, which may contain escapes."""
    try:
        return str(json.loads(b'"' + key + b'"'))
    except ValueError:
        return key.decode("utf-8", "replace")


def _parse_line(line: bytes, location: BatchLocation, i: int) -> list[tuple[str, Any]]:
    """Return the names and values of a line, including duplicate names."""
    try:
        parsed = json.loads(line, object_pairs_hook=_Pairs)
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError):
        text = line[:40].decode("utf-8", "replace").strip()
        raise InputError(
            f"{location.row(i)} is not JSON ({text!r}): write one object per line."
        ) from None
    if not isinstance(parsed, _Pairs):
        raise InputError(
            f"{location.row(i)} is not a JSON object: write one like "
            '{"label": 1, "prob": 0.9} on each line.'
        )
    return list(parsed)


class _Pairs(list[tuple[str, Any]]):
    """The members of a JSON object, as distinct from a JSON array."""


def _type_problem(value: Any, kind: pa.DataType) -> str:
    """Return what is wrong with a value in a column of this type, or ''."""
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return ""
    if isinstance(value, list | dict):
        return "is not a single value: write a number, text, true or false"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == pa.int64() and number and abs(value) >= 2**63:
        return "exceeds the integer range: write it as text on every line"
    fits = {pa.string(): isinstance(value, str), pa.bool_(): isinstance(value, bool)}
    if value is None or fits.get(kind, number):
        return ""
    holds = _HOLDS.get(kind, "numbers")
    return f"has the wrong type: this column contains {holds}, so use that on every line"
