"""Deal whole groups of rows to parts, so that each class is spread about in proportion."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

__all__ = ["deal_groups", "shared_out"]


def shared_out(
    n: int, shares: FloatArray, lacking: FloatArray, has: NDArray[np.bool_] | None = None
) -> IntArray:
    """Share n rows out, each part rounded down or up, the rest going where most is lacking.

    Every part that has none yet gets at least one row, where there are enough.

    Examples
    --------
    >>> shared_out(10, np.array([0.75, 0.25]), np.zeros(2))
    array([8, 2])
    >>> shared_out(10, np.array([0.75, 0.25]), np.array([0.0, 0.5]))
    array([7, 3])
    >>> shared_out(3, np.array([0.8, 0.1, 0.1]), np.zeros(3))
    array([1, 1, 1])
    """
    quota = n * shares
    counts = np.floor(quota + 1e-9).astype(np.int64)
    rest = quota - counts
    order = np.argsort(-np.where(rest > 1e-9, rest + lacking, -np.inf), kind="stable")
    counts[order[: n - counts.sum()]] += 1
    for part in np.flatnonzero((counts == 0) & (True if has is None else ~has)):
        if counts.max() > 1:
            counts[np.argmax(counts)] -= 1
            counts[part] += 1
    return counts


def deal_groups(
    codes: IntArray,
    groups: IntArray,
    shares: FloatArray,
    names: list[Any],
    rng: np.random.Generator,
) -> IntArray:
    """Return the part of each row; rows of one group are in one part.

    Groups are dealt by size, the largest first, equals in random order: each to the part that
    lacks most of its classes, rare classes counting as much as frequent ones, among the parts that
    have room for it. Groups of one row fill up what is left. A class that one part missed is mended
    at the end by moving a small group.
    """
    table = _Table.of(codes, np.unique(groups, return_inverse=True)[1].reshape(-1), len(names))
    _refuse_few(table, shares, names)
    deal = _Deal(table, shares)
    order = rng.permutation(len(table.sizes))
    order = order[np.argsort(-table.sizes[order], kind="stable")]
    several = int((table.sizes > 1).sum())
    for group in order[:several].tolist():
        deal.put(group, deal.best(group))
    deal.put_singles(order[several:])
    deal.mend(names)
    return deal.part_of[table.group_of]


@dataclass(frozen=True)
class _Table:
    """Rows per group and class, the pairs that occur only.

    The classes of group g are `classes[starts[g]:starts[g + 1]]`, with `counts` rows each.
    """

    group_of: IntArray
    sizes: IntArray
    starts: IntArray
    classes: IntArray
    counts: IntArray
    n_classes: int

    @classmethod
    def of(cls, codes: IntArray, groups: IntArray, n_classes: int) -> _Table:
        pairs, counts = np.unique(groups * n_classes + codes, return_counts=True)
        sizes = np.bincount(groups)
        owners = pairs // n_classes
        starts = np.searchsorted(owners, np.arange(len(sizes) + 1))
        return cls(groups, sizes, starts, pairs % n_classes, counts, n_classes)

    def content(self, group: int) -> tuple[IntArray, IntArray]:
        """Return the classes of a group and their rows."""
        here = slice(self.starts[group], self.starts[group + 1])
        return self.classes[here], self.counts[here]


class _Deal:
    """Which part has which groups so far."""

    def __init__(self, table: _Table, shares: FloatArray) -> None:
        self.table = table
        self.shares = shares
        totals = np.bincount(table.classes, weights=table.counts, minlength=table.n_classes)
        self.totals = totals
        self.want = shares[:, None] * totals
        self.have = np.zeros_like(self.want)
        self.room = shares * totals.sum()
        self.part_of = np.full(len(table.sizes), -1, dtype=np.int64)

    def put(self, group: int, part: int) -> None:
        """Give a group to a part, and take it from the one that has it."""
        classes, counts = self.table.content(group)
        before = self.part_of[group]
        if before >= 0:
            self.have[before, classes] -= counts
            self.room[before] += self.table.sizes[group]
        self.have[part, classes] += counts
        self.room[part] -= self.table.sizes[group]
        self.part_of[group] = part

    def best(self, group: int) -> int:
        """Return the part that lacks most of the group's classes, among those with room."""
        classes, counts = self.table.content(group)
        fits = self.room >= self.table.sizes[group]
        if not fits.any():
            return int(np.argmax(self.room))
        lack = 1 - self.have[:, classes] / self.want[:, classes]
        score = lack @ (counts / self.totals[classes])
        # Of equals the largest part: a large group harms it least.
        return int(np.lexsort((-self.shares, -np.round(score, 12), ~fits))[0])

    def put_singles(self, groups: IntArray) -> None:
        """Fill up with groups of one row, class by class."""
        classes = self.table.classes[self.table.starts[groups]]
        lacking = np.zeros(len(self.shares))
        for c in np.unique(classes):
            mine = groups[classes == c]
            lack = np.clip(self.want[:, c] - self.have[:, c], 0, None)
            shares = lack / lack.sum() if lack.any() else self.shares
            counts = shared_out(len(mine), shares, lacking, has=self.have[:, c] > 0)
            lacking += len(mine) * shares - counts
            self.part_of[mine] = np.repeat(np.arange(len(shares)), counts)
            self.have[:, c] += counts
            self.room -= counts

    def mend(self, names: list[Any]) -> None:
        """Give each part a row of each class, if that is possible by moving one group."""
        for part, c in np.argwhere(self.have == 0):
            group = self._spare(c)
            if group is None:
                raise InputError(
                    f"groups leave part {part + 1} without {_called(names[c])}: the groups are too "
                    "large to be spread, so drop that class, use smaller groups, or another seed."
                )
            self.put(group, part)

    def _spare(self, c: int) -> int | None:
        """Return the smallest group with rows of class c that its part can do without."""
        owners = np.repeat(np.arange(len(self.table.sizes)), np.diff(self.table.starts))
        mine = owners[self.table.classes == c]
        for group in mine[np.argsort(self.table.sizes[mine], kind="stable")].tolist():
            classes, counts = self.table.content(group)
            if (self.have[self.part_of[group], classes] > counts).all():
                return int(group)
        return None


def _refuse_few(table: _Table, shares: FloatArray, names: list[Any]) -> None:
    """Refuse a class that too few groups have."""
    spread = np.bincount(table.classes, minlength=table.n_classes)
    few = np.flatnonzero(spread < len(shares))
    if len(few):
        groups = f"{spread[few[0]]} group{'' if spread[few[0]] == 1 else 's'}"
        raise InputError(
            f"{_called(names[few[0]])} stand in only {groups}, which cannot be spread over "
            f"{len(shares)} parts: merge the class with another, drop its rows, or leave groups "
            "out."
        )


def _called(name: Any) -> str:
    return "rows" if name is None else f"rows of class {name!r}"
