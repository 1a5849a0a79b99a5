"""One column of numbers: missing values filled, standardised, far ones known."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray

__all__ = ["NumberColumn"]

_ERASED = 1e-6
"""Standard deviations within which the ordinary values of a column are no longer told apart."""

_LARGEST = 1e30
"""Beyond this a standardised value would square to infinity in float32."""

_TINIEST, _HUGEST = 1e-300, 1e300
"""Spans beyond these have no tenth to round to, or limits that are no numbers."""

_FEWEST = 20
"""Values of train rows from which their span says something about values of new rows."""


@dataclass(frozen=True)
class NumberColumn:
    r"""A column of numbers, standardised with statistics of the train rows.

    $$ z = (x - \text{mean}) / \text{scale}, \qquad z = 0 \text{ where } x \text{ is missing} $$

    mean and scale are the mean and the standard deviation (divided by n) of the values that the
    train rows have; so a missing value is filled with the train mean, for which z is 0. Where train
    rows lacked values, a second feature is 1 for a missing value and 0 otherwise, from which a
    model can learn what absence means. A column that never varied becomes 0.

    Values beyond

    $$ \text{least} \approx \min - (\max - \min), \qquad \text{most} \approx \max + (\max - \min) $$

    are far: they lie further outside the train rows' values than these lie apart. Far values are
    not clipped; `is_far` tells them, for a network was never shown what they mean. Both limits are
    rounded outwards to two digits of the span.
    It is no test: a new value of the same kind as the n train rows' is far with a chance below 1/n
    where tails are not heavier than those of a Cauchy distribution.

    Parameters
    ----------
    name : of the column
    mean, scale : of the train rows; scale is 0 for a constant column
    missing : whether train rows lacked values
    least, most : between which values are not far; None where all are near, as in a column that
        never varied, with fewer than 20 values, or learned before there were such limits

    Examples
    --------
    >>> column = NumberColumn.learn("weight", np.array([1.0, 3.0, np.nan]))
    >>> column.mean, column.scale, column.features
    (2.0, 1.0, ('weight', 'weight missing'))
    >>> column.encode(np.array([np.nan, 5.0]))
    array([[0., 1.],
           [3., 0.]], dtype=float32)
    >>> age = NumberColumn.learn("age", np.arange(18.0, 91.0))
    >>> age.least, age.most
    (-54.0, 162.0)
    >>> age.is_far(np.array([17.0, np.nan, 5000.0]))
    array([False, False,  True])
    """

    name: str
    mean: float
    scale: float
    missing: bool
    least: float | None = None
    most: float | None = None

    @classmethod
    def learn(cls, name: str, values: FloatArray) -> NumberColumn:
        """Take the statistics of the train rows."""
        there = values[~np.isnan(values)]
        if not len(there):
            raise InputError(
                f"column {name!r} has no value in any of the {len(values)} train rows: leave it "
                f"out with drop=[{name!r}]."
            )
        largest = float(np.abs(there).max()) or 1.0  # squares of huge values must be numbers
        small = there / largest
        constant = bool((there == there[0]).all())
        mean = float(there[0]) if constant else float(small.mean()) * largest
        scale = 0.0 if constant else float(small.std()) * largest
        _refuse_erased(name, there, mean, scale)
        least, most = _limits(there)
        return cls(name, mean, scale, len(there) < len(values), least, most)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the features that the column becomes."""
        return (self.name, f"{self.name} missing") if self.missing else (self.name,)

    def encode(self, values: FloatArray) -> NDArray[np.float32]:
        """Return the features (n, 1 or 2) of any rows."""
        absent = np.isnan(values)
        if self.scale == 0.0:
            z = np.zeros(len(values))
        else:
            with np.errstate(over="ignore"):
                z = np.where(absent, 0.0, (values - self.mean) / self.scale)
        if not (np.abs(z) < _LARGEST).all():
            row = int(np.argmin(np.abs(z) < _LARGEST))
            raise InputError(
                f"column {self.name!r} row {row} is {values[row]:g}, more than {_LARGEST:g} "
                f"standard deviations from the train rows' mean {self.mean:g}: repair that value."
            )
        found = np.column_stack([z, absent]) if self.missing else z[:, None]
        return found.astype(np.float32)

    def is_far(self, values: FloatArray) -> NDArray[np.bool_]:
        """Return which values (n,) are far from those of the train rows; a missing one is not."""
        if self.least is None or self.most is None:
            return np.zeros(len(values), dtype=np.bool_)
        return np.asarray((values < self.least) | (values > self.most))

    def to_dict(self) -> dict[str, Any]:
        """Return what was learned as JSON."""
        return {"kind": "number", **asdict(self)}

    @classmethod
    def from_dict(cls, saved: Mapping[str, Any]) -> NumberColumn:
        """Rebuild from `to_dict`."""
        least, most = (
            None if saved.get(key) is None else float(saved[key]) for key in ("least", "most")
        )
        return cls(
            str(saved["name"]),
            float(saved["mean"]),
            float(saved["scale"]),
            bool(saved["missing"]),
            least,
            most,
        )


def _limits(there: FloatArray) -> tuple[float | None, float | None]:
    """Return between which values a new one is not far, rounded outwards."""
    low, high = float(there.min()), float(there.max())
    span = high - low
    if len(there) < _FEWEST or not _TINIEST < span < _HUGEST:
        return None, None
    step = 10.0 ** (math.floor(math.log10(span)) - 1)
    return math.floor((low - span) / step) * step, math.ceil((high + span) / step) * step


def _refuse_erased(name: str, there: FloatArray, mean: float, scale: float) -> None:
    """Refuse a value so far off that the middle 98 % of the column would become one number."""
    if scale == 0.0:
        return
    low, high = np.quantile(there / scale, [0.01, 0.99])
    if 0.0 < high - low < _ERASED:
        far = there[int(np.argmax(np.abs(there / scale - mean / scale)))]
        raise InputError(
            f"column {name!r} holds {far:g}, beside which its other values can hardly be told "
            "apart: repair that value, or leave the column out."
        )
