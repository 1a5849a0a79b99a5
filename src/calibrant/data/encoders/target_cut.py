"""Binarisation of a continuous target at the train median."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Self

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.table_columns import as_column, is_number
from calibrant.errors import InputError, NotFitted
from calibrant.inputs import FloatArray

FORMAT = 1


class TargetCut:
    r"""Cut a continuous target into two classes at the median of the train rows.

    $$ \text{class} = \text{high} \text{ if } y > m, \text{ else low}; \qquad
       m = \text{median of the train rows} $$

    y is the target of a row. A value equal to m is low, so with many ties the classes differ in
    size. The median of all rows would leak the test rows into the labels, so only `fit` learns, and
    `transform` before `fit` raises `NotFitted`.

    The classes are balanced by construction, so class weights, focal losses and F1 have no
    imbalance to correct.

    Parameters
    ----------
    names : names of the lower and the upper class

    Attributes
    ----------
    median_ : the threshold

    Examples
    --------
    >>> cut = TargetCut().fit([100.0, 300.0, 200.0])
    >>> cut.median_
    200.0
    >>> cut.transform([200.0, 201.0]).tolist()
    ['low', 'high']
    """

    def __init__(self, names: Sequence[Any] = ("low", "high")) -> None:
        self.names = names

    def fit(self, target: Any) -> Self:
        """Learn the median of the train rows."""
        if isinstance(self.names, str) or len(set(self.names)) != 2 or len(self.names) != 2:
            raise InputError(f"names must be two different classes, got {self.names!r}.")
        values = _numbers(target)
        median = float(np.median(values))
        if not (values > median).any():
            raise InputError(
                f"target cannot be cut at its median {median:g}, which is also its largest value: "
                "choose another threshold."
            )
        self.median_ = median
        return self

    def transform(self, target: Any) -> NDArray[Any]:
        """Return the class of each row."""
        if not hasattr(self, "median_"):
            raise NotFitted(
                "this TargetCut is not fitted yet: call fit with the targets of the train rows."
            )
        return np.asarray(self.names)[(_numbers(target) > self.median_).astype(np.int64)]

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        if not hasattr(self, "median_"):
            raise NotFitted("this TargetCut is not fitted yet: call fit first.")
        return {
            "format": FORMAT,
            "kind": "target_cut",
            "names": np.asarray(self.names).tolist(),
            "median": self.median_,
        }

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> TargetCut:
        """Rebuild from `to_dict`."""
        if saved.get("format") != FORMAT or saved.get("kind") != "target_cut":
            raise InputError(
                f"this is not a target cut of format {FORMAT}: got format "
                f"{saved.get('format')!r} and kind {saved.get('kind')!r}."
            )
        cut = cls(tuple(saved["names"]))
        cut.median_ = float(saved["median"])
        return cut


def _numbers(target: Any) -> FloatArray:
    values = as_column(target, name="target")
    if not len(values):
        raise InputError("target is empty: at least one row is needed.")
    if not is_number(values) or values.ndim != 1:
        raise InputError("target must have one number per row: give a numeric column.")
    missing = np.isnan(values)
    if missing.any():
        raise InputError(
            f"target has a missing value in row {int(np.argmax(missing))}: drop that row."
        )
    return np.asarray(values)
