"""Parquet files."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from calibrant.errors import InputError
from calibrant.files.source import ColumnOptions, reason_of


class ParquetSource:
    """A parquet file; only the requested columns are read."""

    display_names: tuple[tuple[str, str], ...] = ()
    pair: tuple[str, str] | None = None
    left_out: tuple[str, ...] = ()

    def __init__(self, file: Path, ask: ColumnOptions) -> None:
        self.file = file
        try:
            # Pre-buffering would keep every row group in memory.
            self._reader = pq.ParquetFile(file, pre_buffer=False)
        except PermissionError:
            raise
        except (pa.ArrowException, OSError) as error:
            raise _damaged_file(file, error) from None
        self.names = list(self._reader.schema_arrow.names)

    def batches(
        self, numbers: Sequence[str], words: Sequence[str], batch_rows: int
    ) -> Iterator[pa.RecordBatch]:
        """Yield record batches of at most `batch_rows` rows."""
        columns = list(dict.fromkeys([*numbers, *words]))
        try:
            yield from self._reader.iter_batches(batch_rows, columns=columns, use_threads=True)
        except (pa.ArrowException, OSError) as error:
            raise _damaged_file(self.file, error) from None

    def estimate(self) -> int:
        """Return the number of rows from the footer."""
        return int(self._reader.metadata.num_rows)


def _damaged_file(file: Path, error: Exception) -> InputError:
    return InputError(
        f"{file} is damaged, truncated or not parquet ({reason_of(error)}): write or copy it again."
    )
