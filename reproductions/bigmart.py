"""BigMart sales above or below the median: the tutorial's table, without its leaks."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pyarrow as pa

from calibrant.data.encoders.target_cut import TargetCut
from calibrant.data.splitting import split_rows
from calibrant.inputs import IntArray
from reproductions.bigmart_rows import ITEM, SALES, bigmart_rows
from reproductions.parts import Part, Parts
from reproductions.tutorial import tutorial

__all__ = ["bigmart", "tutorial"]

_SHARES = (64, 8, 8, 20)  # the tutorial's 64, 16 and 20 %, its validation rows in two halves
_CLASSES = ("low", "high")


def bigmart(reading: Mapping[str, Any]) -> Parts:
    """Return the parts of the BigMart table, cut into low and high sales.

    Rows are split first. Then the cut is learned: it is the median of the sales of the train rows
    (`TargetCut`), and the others are labelled by it. Missing values, scales and categories are not
    touched here: the classifier's encoder learns them from the train rows.

    Left out are the sales themselves and the name of the product, as in the tutorial. The name of
    the outlet stays: there are ten, and the model is to be used for these. Rows are split one by
    one, so that a product may stand in several parts, in different outlets.

    Parameters
    ----------
    reading : `rows`, how many at most (all); `made`, whether to make rows up

    Examples
    --------
    >>> parts = bigmart({"made": True, "rows": 300})
    >>> parts.sizes(), parts.classes
    ({'train': 192, 'steer': 24, 'calib': 24, 'test': 60}, ('low', 'high'))
    """
    table = bigmart_rows(reading)
    sales = table[SALES].to_numpy()
    features = table.drop_columns([ITEM, SALES])
    places = split_rows(None, _SHARES, n=table.num_rows, seed=1)
    cut = TargetCut(names=(0, 1)).fit(sales[places[0]])
    labels = cut.transform(sales).astype(np.int64)
    train, steer, calib, test = (_part(features, labels, at) for at in places)
    note = (
        f"Sales are high above {cut.median_:,.2f}, the median of the train rows; the tutorial took "
        "the median of all rows, and its validation rows are steer and calibration rows here."
    )
    return Parts(train, steer, calib, test, _CLASSES, note=note)


def _part(features: pa.Table, labels: IntArray, places: IntArray) -> Part:
    return Part(features.take(pa.array(places)), labels[places])
