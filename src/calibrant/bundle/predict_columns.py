"""Columns that `calibrant predict` adds to the rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["predict_columns"]


def predict_columns(
    classes: Sequence[Any], *, decides: bool = True, scoped: bool = True, stored: bool = True
) -> list[str]:
    """Return the column names in order; by default all possible ones.

    Examples
    --------
    >>> predict_columns(["no", "yes"], decides=False, stored=False)
    ['predicted', 'prob_no', 'prob_yes', 'out_of_scope']
    """
    names = ["predicted", *(f"prob_{name}" for name in classes)]
    names += ["decision", "acted_as", "action"] if decides else []
    names += ["out_of_scope"] if scoped else []
    return [*names, "prediction_id"] if stored else names
