"""Explanation of logits: what each part of a row contributes to them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple, Self

import numpy as np

from calibrant.errors import InputError
from calibrant.inputs import FloatArray


class Reason(NamedTuple):
    """A part of a row, and its contribution to a class against the other classes."""

    part: str
    contribution: float


@dataclass(frozen=True, eq=False)
class RowExplanation:
    """Contributions to the logits of one row.

    Parameters
    ----------
    parts : names of the parts of the row: columns of a table, n-grams of a text
    values : (K, number of parts) contribution of each part to the logit of each class
    """

    parts: tuple[str, ...]
    values: FloatArray

    def strongest(self, label: int, most: int = 5) -> list[tuple[str, float]]:
        """Return the parts with the largest contributions to a class, of either sign.

        Examples
        --------
        >>> row = RowExplanation(("age", "job"), np.array([[0.1, -2.0], [-0.1, 2.0]]))
        >>> row.strongest(0, most=1)
        [('job', -2.0)]
        """
        values = self.values[label]
        return [(self.parts[i], float(values[i])) for i in _order_by_size(values, most)]

    def reasons(self, label: int, most: int = 5) -> list[Reason]:
        r"""Return the parts that speak most for a class, or against it, compared with the others.

        $$ r_j = c_{jk} - \frac{1}{K - 1} \sum_{l \ne k} c_{jl} $$

        c are the contributions of part j to the logits, k is the class and K the number of classes.
        For two classes r is the contribution to the log-odds of the class; for more, to its mean
        log-odds against each other class. What a part adds to all classes alike cancels. Parts
        with r = 0 are left out.

        Parameters
        ----------
        label : position of the class
        most : largest number of parts

        Examples
        --------
        >>> row = RowExplanation(("age", "job"), np.array([[3.0, -2.0], [3.0, 1.0]]))
        >>> row.reasons(1)
        [Reason(part='job', contribution=3.0)]
        """
        others = np.delete(self.values, label, axis=0)
        values = self.values[label] - others.mean(axis=0)
        order = _order_by_size(values, most)
        return [Reason(self.parts[i], float(values[i])) for i in order if values[i] != 0.0]


def _order_by_size(values: FloatArray, most: int) -> list[int]:
    """Return the positions of the largest values of either sign."""
    order: list[int] = np.argsort(-np.abs(values), kind="stable")[:most].tolist()
    return order


@dataclass(frozen=True, eq=False)
class Explanation:
    r"""Contributions of the parts of each row to its logits.

    $$ z_{ik} = b_k + \sum_j c_{ijk} $$

    z are the logits of `RowScorer.predict_logits`, b the base, c the contribution of part j of row
    i to class k. Rows may have different parts, such as the n-grams of a text. A contribution
    describes the model; it is not an effect of the part in the world.

    Parameters
    ----------
    base : (K,) logits of a row without any contribution
    rows : one `RowExplanation` for each row

    Examples
    --------
    >>> values = np.array([[[0.5, 0.0], [-0.5, 1.0]]])  # a row, two classes, two columns
    >>> found = Explanation.from_array(("age", "job"), values, base=np.array([0.0, 1.0]))
    >>> found.logits.tolist()
    [[0.5, 1.5]]
    >>> found.rows[0].strongest(1)
    [('job', 1.0), ('age', -0.5)]
    """

    base: FloatArray
    rows: tuple[RowExplanation, ...]

    @classmethod
    def from_array(cls, parts: Sequence[str], values: FloatArray, *, base: FloatArray) -> Self:
        """Build from contributions (n, K, parts) where all rows have the same parts."""
        names = tuple(parts)
        if values.ndim != 3 or values.shape[1:] != (len(base), len(names)):
            raise InputError(
                f"values must have shape (n, {len(base)}, {len(names)}) for {len(base)} classes "
                f"and {len(names)} parts, got {values.shape}."
            )
        return cls(base, tuple(RowExplanation(names, row) for row in values))

    def __len__(self) -> int:
        return len(self.rows)

    @property
    def logits(self) -> FloatArray:
        """(n, K) sums of base and contributions."""
        sums = [self.base + row.values.sum(axis=1) for row in self.rows]
        return np.array(sums, dtype=np.float64).reshape(len(sums), len(self.base))

    def to_dict(self) -> dict[str, Any]:
        """Return it as JSON values: for each row, its parts with a number for each class."""
        rows = [{"parts": list(row.parts), "values": row.values.tolist()} for row in self.rows]
        return {"schema": 1, "base": self.base.tolist(), "rows": rows}
