"""Score files with one JSON object on each line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.json as pajson

from calibrant.errors import InputError
from calibrant.files.csv import lines_estimate
from calibrant.files.source import Ask, Place, is_score, reason_of

__all__ = ["JsonlSource"]

_BLOCK = 1 << 23
_TYPES = {bool: pa.bool_(), int: pa.int64(), float: pa.float64()}
_HOLDS = {pa.bool_(): "true or false", pa.string(): "text"}
_BOM = b"\xef\xbb\xbf"


class JsonlSource:
    """A jsonl file (or jsonl.gz); the first object names the columns and their order."""

    called: tuple[tuple[str, str], ...] = ()
    pair: tuple[str, str] | None = None
    left_out: tuple[str, ...] = ()

    def __init__(self, file: Path, ask: Ask) -> None:
        self.file = file
        self._head = next(self._blocks(), b"")
        first = next((line for line in self._head.splitlines() if line.strip()), b"")
        if not first:
            raise InputError(f"{file} is empty: it needs a JSON object on at least one line.")
        pairs = _parsed(first.removeprefix(_BOM), Place(file), 0)
        self.names = [name for name, _ in pairs]
        self._first = dict(pairs)
        self._types = self._all_types() if ask.whole else {}
        # A score that comes late stays unknown, so that its row is refused.
        self.names += [n for n in self._types if n not in self._first and not is_score(n)]
        asked = {ask.label, ask.weight, ask.group, ask.ids} - {None}
        self._absent = asked - set(self.names)
        kinds = "|".join([r"(?:prob|logit)(?:_[^\"]*)?", *(re.escape(str(n)) for n in asked)])
        self._key = re.compile(f'"({kinds})"[ \t]*:'.encode())

    def batches(
        self, numbers: Sequence[str], words: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches; their length follows from the block size, not `batch_rows`."""
        fields = [(name, pa.float64()) for name in numbers]
        fields += [(name, self._kind(name)) for name in words]
        seen = 0
        for block in self._blocks():
            self._refuse_late_keys(block, seen)
            try:
                table = _read(block, fields)
            except pa.ArrowInvalid as error:
                found = self._blame(block, fields, seen)
                if found is not None:
                    raise found from None
                table = self._read_as_floats(block, fields, error)
            yield from table.combine_chunks().to_batches()
            seen += table.num_rows

    def estimate(self) -> int:
        """Divide the size of the file by the mean length of its first rows."""
        return lines_estimate(self.file, self._head, whole=len(self._head) < _BLOCK // 2)

    def _kind(self, name: str) -> pa.DataType:
        """Return the type of a column of names: that of its first value which is not null."""
        if name in self._types:
            return self._types[name]
        value = self._first[name]
        if value is None:
            for i, line in enumerate(_lines(self._head)):
                value = dict(_parsed(line.removeprefix(_BOM), Place(self.file), i)).get(name)
                if value is not None:
                    break
        return _TYPES.get(type(value), pa.string())

    def _all_types(self) -> dict[str, pa.DataType]:
        """Read the whole file once to find a type for each column that suits every row."""
        schema, seen = pa.schema([]), 0
        for block in self._blocks():
            try:
                table = pajson.read_json(
                    pa.BufferReader(block),
                    read_options=pajson.ReadOptions(block_size=len(block) + 1),
                )
                found = pa.schema([(f.name, _without_dates(f.type)) for f in table.schema])
                schema = pa.unify_schemas([schema, found], promote_options="permissive")
            except pa.ArrowException as error:
                raise self._blame(block, [], seen) or self._mixed(error, seen) from None
            seen += table.num_rows
        return {field.name: field.type for field in schema}

    def _mixed(self, error: Exception, seen: int) -> InputError:
        """Name the column whose values have types that cannot stand in one column."""
        found = re.search(r"Column\(/?(.+?)\) .* in row (\d+)", str(error))
        if found and "twice" in str(error):
            return InputError(
                f"{Place(self.file, seen).row(int(found[2]))} has the column '{found[1]}' twice: "
                "rename or drop one of them."
            )
        if found:
            where = f"{Place(self.file, seen).row(int(found[2]))}, column '{found[1]}': the value"
        else:
            name = re.search(r"Field (\S+) has incompatible types", str(error))
            where = f"{self.file}: column '{name[1]}'" if name else f"{self.file}: a column"
        return InputError(
            f"{where} has another type than in the rows before: write the same type on every line, "
            "or leave the column out."
        )

    def _refuse_late_keys(self, block: bytes, seen: int) -> None:
        """Refuse a column that the first line lacks: leaving it out would go unnoticed."""
        if not self._may_have_late_keys(block):
            return
        known = set(self.names)
        late = {key for key in set(self._key.findall(block)) if _text(key) not in known}
        if not late:
            return
        place = Place(self.file, seen)
        for i, line in enumerate(_lines(block)):
            if not any(key in line for key in late):
                continue
            for name, _ in _parsed(line, place, i):  # a key deeper inside is none of ours
                if name not in known and self._key.fullmatch(f'"{name}":'.encode()):
                    raise InputError(
                        f"{place.row(i)} has '{name}', which the first line does not have: "
                        "write the same keys on each line."
                    )

    def _may_have_late_keys(self, block: bytes) -> bool:
        """Count rather than look, which is much faster and almost always enough."""
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
        """Read whole numbers that are mixed with others, such as 1 and 0.0."""
        lax = [(name, pa.float64() if kind == pa.int64() else kind) for name, kind in fields]
        try:
            return _read(block, lax)
        except pa.ArrowInvalid:
            raise InputError(
                f"{self.file} cannot be read as JSON lines ({reason_of(error)}): check the file."
            ) from None

    def _blocks(self) -> Iterator[bytes]:
        """Cut the file into blocks of whole lines."""
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
        """Parse line by line to name the value at fault, if there is one."""
        place = Place(self.file, seen)
        for i, line in enumerate(_lines(block)):
            try:
                row = dict(_parsed(line, place, i))
            except InputError as found:
                return found
            for name, kind in fields:
                wrong = _wrong(row.get(name), kind)
                if wrong:
                    value = dict(row[name]) if isinstance(row[name], _Pairs) else row[name]
                    shown = json.dumps(value, ensure_ascii=False)[:80]
                    return InputError(f"{place.row(i)}, {place.column(name)}: {shown} {wrong}.")
        return None


def _lines(block: bytes) -> list[bytes]:
    return [line for line in block.split(b"\n") if line.strip()]


def _read(block: bytes, fields: list[tuple[str, pa.DataType]]) -> pa.Table:
    return pajson.read_json(
        pa.BufferReader(block),
        read_options=pajson.ReadOptions(block_size=_BLOCK),
        parse_options=pajson.ParseOptions(
            explicit_schema=pa.schema(fields), unexpected_field_behavior="ignore"
        ),
    )


def _without_dates(kind: pa.DataType) -> pa.DataType:
    """Leave text that looks like a date as text."""
    if pa.types.is_timestamp(kind):
        return pa.string()
    if pa.types.is_list(kind):
        return pa.list_(_without_dates(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([(field.name, _without_dates(field.type)) for field in kind])
    return kind


def _text(key: bytes) -> str:
    """Return a key as JSON means it, for it may be written with escapes."""
    try:
        return str(json.loads(b'"' + key + b'"'))
    except ValueError:
        return key.decode("utf-8", "replace")


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


def _wrong(value: Any, kind: pa.DataType) -> str:
    """Say what is wrong with a value in a column of this type, or nothing."""
    if pa.types.is_nested(kind) or pa.types.is_null(kind):
        return ""
    if isinstance(value, list | dict):
        return "is not a single value: write a number, text, true or false"
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if kind == pa.int64() and number and abs(value) >= 2**63:
        return "is too large for a whole number: write it as text on every line"
    fits = {pa.string(): isinstance(value, str), pa.bool_(): isinstance(value, bool)}
    if value is None or fits.get(kind, number):
        return ""
    holds = _HOLDS.get(kind, "numbers")
    return f"has the wrong type: this column holds {holds}, so write that on every line"
