"""Standardisation of a numeric column, with detection of far values."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.encoders.number_format import PLAIN, NumberFormat
from calibrant.errors import InputError
from calibrant.inputs import FloatArray

_MIN_SPREAD = 1e-6
"""Spread of the middle 98 % (in standard deviations) below which values are indistinguishable."""

_MAX_Z = 1e30
"""Largest standardised value whose square is finite in float32."""

_MIN_SPAN, _MAX_SPAN = 1e-300, 1e300
"""Range of spans for which rounded limits are finite numbers."""

_MIN_VALUES = 20
"""Fewest train values for which limits are set."""


@dataclass(frozen=True)
class NumberColumn:
    r"""A numeric column, standardised with statistics of the train rows.

    $$ z = (x - \text{mean}) / \text{scale}, \qquad z = 0 \text{ where } x \text{ is missing} $$

    mean and scale are the mean and the standard deviation (divided by n) of the non-missing train
    values; missing values are imputed with the train mean, z = 0. If train values were missing, a
    second feature indicates missing values. A constant column becomes 0.

    Values beyond

    $$ \text{least} \approx \min - (\max - \min), \qquad \text{most} \approx \max + (\max - \min) $$

    are far: their distance from the train range exceeds its width. Far values are not clipped;
    `is_far` flags them, because a network never saw values like them. Both limits are rounded
    outwards to two digits of the span. This is not a test: a new value from the distribution of the
    n train values is far with probability below 1/n if its tails are not heavier than Cauchy.
    `least` and `most` are None for constant columns, for fewer than 20 values, and for columns
    saved before limits existed.

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
    format: NumberFormat = PLAIN

    @classmethod
    def learn(cls, name: str, values: FloatArray, format: NumberFormat = PLAIN) -> NumberColumn:
        """Learn the statistics of the train rows, of which texts were written in this format."""
        present = values[~np.isnan(values)]
        if not len(present):
            raise InputError(
                f"column {name!r} has no value in any of the {len(values)} train rows: drop "
                f"it with drop=[{name!r}]."
            )
        largest = float(np.abs(present).max()) or 1.0  # avoids overflow of squares
        scaled = present / largest
        constant = bool((present == present[0]).all())
        mean = float(present[0]) if constant else float(scaled.mean()) * largest
        scale = 0.0 if constant else float(scaled.std()) * largest
        _reject_extreme_value(name, present, mean, scale)
        least, most = _limits(present)
        return cls(name, mean, scale, len(present) < len(values), least, most, format)

    @property
    def features(self) -> tuple[str, ...]:
        """Names of the encoded features."""
        return (self.name, f"{self.name} missing") if self.missing else (self.name,)

    def encode(self, values: FloatArray) -> NDArray[np.float32]:
        """Return the features (n, 1 or 2) of rows."""
        z, missing = NumberColumns((self,)).standardise(values[None])
        features = np.stack([z[0], missing[0]], axis=1) if self.missing else z.T
        return features.astype(np.float32)

    def is_far(self, values: FloatArray) -> NDArray[np.bool_]:
        """Return which values (n,) are far from the train values; missing values are not."""
        return NumberColumns((self,)).is_far(values[None])

    def to_dict(self) -> dict[str, Any]:
        """Return the fitted state as JSON values."""
        saved = {"kind": "number", **asdict(self), "format": self.format.to_dict()}
        if self.format == PLAIN:
            del saved["format"]
        return saved

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
            NumberFormat.from_dict(saved["format"]) if "format" in saved else PLAIN,
        )


class NumberColumns:
    """Numeric columns that are standardised together, which is faster than one by one.

    Parameters
    ----------
    columns : the columns, in the order of the values
    """

    def __init__(self, columns: Sequence[NumberColumn]) -> None:
        self._columns = tuple(columns)
        self._mean = np.array([[column.mean] for column in columns])
        self._constant = np.array([column.scale == 0.0 for column in columns], dtype=np.bool_)
        self._scale = np.array([[column.scale or 1.0] for column in columns])
        limits = [
            (-np.inf, np.inf) if c.least is None or c.most is None else (c.least, c.most)
            for c in columns
        ]
        self.has_limits = any(column.most is not None for column in columns)
        self._least, self._most = np.array(limits).reshape(-1, 2, 1).transpose(1, 0, 2)

    def standardise(self, values: FloatArray) -> tuple[FloatArray, NDArray[np.bool_]]:
        """Return standardised values (m, n), 0 where missing, and which are missing."""
        missing = np.isnan(values)
        with np.errstate(over="ignore"):
            z = (values - self._mean) / self._scale
        z[missing] = 0.0
        z[self._constant] = 0.0
        if z.size and not np.abs(z).max() < _MAX_Z:
            place, row = np.unravel_index(np.argmin(np.abs(z) < _MAX_Z), z.shape)
            column = self._columns[place]
            raise InputError(
                f"column {column.name!r} row {row} is {values[place, row]:g}, more than "
                f"{_MAX_Z:g} standard deviations from the train mean {column.mean:g}: correct that "
                "value."
            )
        return z, missing

    def is_far(self, values: FloatArray) -> NDArray[np.bool_]:
        """Return which rows (n,) have a value far from the train values."""
        if not self.has_limits:
            return np.zeros(values.shape[1], dtype=np.bool_)
        return np.asarray(((values < self._least) | (values > self._most)).any(axis=0))


def _limits(present: FloatArray) -> tuple[float | None, float | None]:
    """Return the limits beyond which values are far, rounded outwards."""
    low, high = float(present.min()), float(present.max())
    span = high - low
    if len(present) < _MIN_VALUES or not _MIN_SPAN < span < _MAX_SPAN:
        return None, None
    step = 10.0 ** (math.floor(math.log10(span)) - 1)
    return math.floor((low - span) / step) * step, math.ceil((high + span) / step) * step


def _reject_extreme_value(name: str, present: FloatArray, mean: float, scale: float) -> None:
    """Reject a value so extreme that the middle 98 % of the column would become one number."""
    if scale == 0.0:
        return
    low, high = np.quantile(present / scale, [0.01, 0.99])
    if 0.0 < high - low < _MIN_SPREAD:
        extreme = present[int(np.argmax(np.abs(present / scale - mean / scale)))]
        raise InputError(
            f"column {name!r} contains {extreme:g}, which makes its other values "
            "indistinguishable: correct that value, or drop the column."
        )
