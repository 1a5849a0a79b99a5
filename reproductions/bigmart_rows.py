"""The BigMart sales table of the tutorial, or synthetic rows like it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.data.row_files import read_rows
from reproductions.data_sets import find

__all__ = ["ITEM", "SALES", "bigmart_rows"]

ITEM = "Item_Identifier"
SALES = "Item_Outlet_Sales"

_MADE_ROWS = 400
_FAT = ("Low Fat", "Regular", "LF", "reg", "low fat")
_TYPES = ("Dairy", "Snack Foods", "Household", "Frozen Foods", "Soft Drinks", "Meat")
_OUTLETS = {  # year, size, place, kind, and how much of an item is sold
    "OUT010": (1998, None, "Tier 3", "Grocery Store", 2.0),
    "OUT027": (1985, "Medium", "Tier 3", "Supermarket Type3", 26.0),
    "OUT035": (2004, "Small", "Tier 2", "Supermarket Type1", 16.0),
    "OUT018": (2009, "Medium", "Tier 3", "Supermarket Type2", 14.0),
    "OUT045": (2002, None, "Tier 2", "Supermarket Type1", 16.0),
}


def bigmart_rows(reading: Mapping[str, Any]) -> pa.Table:
    """Return all rows and all columns, missing values and misspelt categories as they are.

    Parameters
    ----------
    reading : options of the loader: `made` makes rows up instead of reading the file, `rows` is how
        many at most, drawn at random

    Examples
    --------
    >>> table = bigmart_rows({"made": True, "rows": 300})
    >>> table.num_rows, table.column_names[:3]
    (300, ['Item_Identifier', 'Item_Weight', 'Item_Fat_Content'])
    """
    rows = reading.get("rows")
    if reading.get("made"):
        return _make_rows(rows or _MADE_ROWS)
    table = read_rows(find("bigmart", "bigmart_train.csv.gz")[0])
    if rows is None or rows >= table.num_rows:
        return table
    drawn = np.random.default_rng(1).permutation(table.num_rows)[:rows]
    return table.take(pa.array(np.sort(drawn)))


def _make_rows(n: int) -> pa.Table:
    """Sales are price times units; units depend on the outlet and on chance."""
    draw = np.random.default_rng(0)
    item = draw.integers(0, max(n // 5, 1), n)
    price = 30.0 + 230.0 * draw.random(n)
    outlet = draw.choice(list(_OUTLETS), n)
    facts = [_OUTLETS[name] for name in outlet]
    units = np.array([fact[4] for fact in facts]) * draw.lognormal(0.0, 0.5, n)
    return pa.table(
        {
            ITEM: [f"FD{i:04d}" for i in item],
            "Item_Weight": [
                None if draw.random() < 0.17 else round(4.0 + (i * 37 % 170) / 10, 2) for i in item
            ],
            "Item_Fat_Content": draw.choice(_FAT, n, p=(0.6, 0.34, 0.03, 0.02, 0.01)).tolist(),
            "Item_Visibility": draw.beta(1.2, 16.0, n),
            "Item_Type": [_TYPES[i % len(_TYPES)] for i in item],
            "Item_MRP": price,
            "Outlet_Identifier": outlet.tolist(),
            "Outlet_Establishment_Year": [fact[0] for fact in facts],
            "Outlet_Size": [fact[1] for fact in facts],
            "Outlet_Location_Type": [fact[2] for fact in facts],
            "Outlet_Type": [fact[3] for fact in facts],
            SALES: price * units,
        }
    )
