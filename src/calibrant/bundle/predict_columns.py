"""Columns that `calibrant predict` adds to the rows of a file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["predict_columns"]


def predict_columns(
    classes: Sequence[Any], *, decides: bool = True, scoped: bool = True, stored: bool = True
) -> list[str]:
    """Return the names of the columns in their order, as a default all that there can be.

    Examples
    --------
    >>> predict_columns(["no", "yes"], decides=False, stored=False)
    ['predicted', 'prob_no', 'prob_yes', 'out_of_scope']
    """
    found = ["predicted", *(f"prob_{name}" for name in classes)]
    found += ["decision", "acted_as", "action"] if decides else []
    found += ["out_of_scope"] if scoped else []
    return [*found, "prediction_id"] if stored else found
