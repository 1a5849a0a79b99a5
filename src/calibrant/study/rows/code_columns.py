"""Columns of digits with leading zeros, such as postal codes, which are categories."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.types as pt

from calibrant.data.encoders.category_column import is_code
from calibrant.data.encoders.number_format import null_missing
from calibrant.data.row_files import Cells
from calibrant.study.settings.config import StudyConfig

_REPEATED = 2
"""Rows for each value, on average, of codes; amounts that are padded with zeros hardly repeat."""


def keep_codes(table: pa.Table, cells: Cells, config: StudyConfig, notes: list[str]) -> pa.Table:
    """Return a table with codes as the texts of their cells, and note them.

    Codes are digits of one width, some with leading zeros, that repeat.
    """
    others = {config.label, config.weight, config.group, config.time, *config.drop}
    codes = []
    for i, name in enumerate(table.column_names):
        whole = pt.is_integer(table.column(i).type) and name in cells.untyped
        if not whole or name in others:
            continue
        texts = null_missing(cells.table.column(name), config.missing)
        values = pc.unique(texts.drop_null()).to_pylist()
        if _REPEATED * len(values) <= len(texts) and is_code(values):
            table = table.set_column(i, name, cells.table.column(name))
            codes.append(name)
    if codes:
        names = ", ".join(f"'{name}'" for name in codes)
        what = "column {} has leading zeros and is a category"
        if len(codes) > 1:
            what = "columns {} have leading zeros and are categories"
        notes.append(f"The {what.format(names)}: write numbers that count or measure without them.")
    return table
