"""Stratified assignment of whole groups of rows to splits."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

__all__ = ["apportion_rows", "deal_groups"]


def apportion_rows(
    n: int, shares: FloatArray, lacking: FloatArray, has: NDArray[np.bool_] | None = None
) -> IntArray:
    """Apportion n rows by shares; remainders go to the parts with the largest deficit.

    Every part without a row yet gets at least one if there are enough rows.

    Examples
    --------
    >>> apportion_rows(10, np.array([0.75, 0.25]), np.zeros(2))
    array([8, 2])
    >>> apportion_rows(10, np.array([0.75, 0.25]), np.array([0.0, 0.5]))
    array([7, 3])
    >>> apportion_rows(3, np.array([0.8, 0.1, 0.1]), np.zeros(3))
    array([1, 1, 1])
    """
    quota = n * shares
    counts = np.floor(quota + 1e-9).astype(np.int64)
    remainder = quota - counts
    order = np.argsort(-np.where(remainder > 1e-9, remainder + lacking, -np.inf), kind="stable")
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

    Groups are assigned from large to small, ties in random order, to the part with the largest
    deficit of their classes among the parts with room; rare and frequent classes count equally.
    Groups of one row fill the rest. A class still missing from a part is repaired by moving a
    small group.
    """
    table = _GroupTable.from_codes(
        codes, np.unique(groups, return_inverse=True)[1].reshape(-1), len(names)
    )
    _reject_rare_classes(table, shares, names)
    assignment = _Assignment(table, shares)
    order = rng.permutation(len(table.sizes))
    order = order[np.argsort(-table.sizes[order], kind="stable")]
    n_multi_row = int((table.sizes > 1).sum())
    for group in order[:n_multi_row].tolist():
        assignment.assign(group, assignment.best_part(group))
    assignment.assign_singles(order[n_multi_row:])
    assignment.repair_missing_classes(names)
    return assignment.part_of[table.group_of]


@dataclass(frozen=True)
class _GroupTable:
    """Row counts of the (group, class) pairs that occur.

    The classes of group g are `classes[starts[g]:starts[g + 1]]`, with `counts` rows each.
    """

    group_of: IntArray
    sizes: IntArray
    starts: IntArray
    classes: IntArray
    counts: IntArray
    n_classes: int

    @classmethod
    def from_codes(cls, codes: IntArray, groups: IntArray, n_classes: int) -> _GroupTable:
        pairs, counts = np.unique(groups * n_classes + codes, return_counts=True)
        sizes = np.bincount(groups)
        owners = pairs // n_classes
        starts = np.searchsorted(owners, np.arange(len(sizes) + 1))
        return cls(groups, sizes, starts, pairs % n_classes, counts, n_classes)

    def content(self, group: int) -> tuple[IntArray, IntArray]:
        """Return the classes of a group and their row counts."""
        span = slice(self.starts[group], self.starts[group + 1])
        return self.classes[span], self.counts[span]


class _Assignment:
    """Assignment of groups to parts so far."""

    def __init__(self, table: _GroupTable, shares: FloatArray) -> None:
        self.table = table
        self.shares = shares
        totals = np.bincount(table.classes, weights=table.counts, minlength=table.n_classes)
        self.totals = totals
        self.want = shares[:, None] * totals
        self.have = np.zeros_like(self.want)
        self.room = shares * totals.sum()
        self.part_of = np.full(len(table.sizes), -1, dtype=np.int64)

    def assign(self, group: int, part: int) -> None:
        """Assign a group to a part, removing it from its current part."""
        classes, counts = self.table.content(group)
        before = self.part_of[group]
        if before >= 0:
            self.have[before, classes] -= counts
            self.room[before] += self.table.sizes[group]
        self.have[part, classes] += counts
        self.room[part] -= self.table.sizes[group]
        self.part_of[group] = part

    def best_part(self, group: int) -> int:
        """Return the part with room that has the largest deficit of the group's classes."""
        classes, counts = self.table.content(group)
        fits = self.room >= self.table.sizes[group]
        if not fits.any():
            return int(np.argmax(self.room))
        lack = 1 - self.have[:, classes] / self.want[:, classes]
        score = lack @ (counts / self.totals[classes])
        # Ties go to the largest part, which a large group distorts least.
        return int(np.lexsort((-self.shares, -np.round(score, 12), ~fits))[0])

    def assign_singles(self, groups: IntArray) -> None:
        """Assign groups of one row, class by class."""
        classes = self.table.classes[self.table.starts[groups]]
        lacking = np.zeros(len(self.shares))
        for c in np.unique(classes):
            members = groups[classes == c]
            lack = np.clip(self.want[:, c] - self.have[:, c], 0, None)
            shares = lack / lack.sum() if lack.any() else self.shares
            counts = apportion_rows(len(members), shares, lacking, has=self.have[:, c] > 0)
            lacking += len(members) * shares - counts
            self.part_of[members] = np.repeat(np.arange(len(shares)), counts)
            self.have[:, c] += counts
            self.room -= counts

    def repair_missing_classes(self, names: list[Any]) -> None:
        """Give each part at least one row of each class by moving single groups."""
        for part, c in np.argwhere(self.have == 0):
            group = self._movable_group(c)
            if group is None:
                raise InputError(
                    f"groups leave part {part + 1} without {_describe_rows(names[c])}: drop that "
                    "class, use smaller groups, or another seed."
                )
            self.assign(group, part)

    def _movable_group(self, c: int) -> int | None:
        """Return the smallest group with class c that leaves no class of its part empty."""
        owners = np.repeat(np.arange(len(self.table.sizes)), np.diff(self.table.starts))
        candidates = owners[self.table.classes == c]
        for group in candidates[np.argsort(self.table.sizes[candidates], kind="stable")].tolist():
            classes, counts = self.table.content(group)
            if (self.have[self.part_of[group], classes] > counts).all():
                return int(group)
        return None


def _reject_rare_classes(table: _GroupTable, shares: FloatArray, names: list[Any]) -> None:
    """Reject a class that occurs in fewer groups than there are parts."""
    spread = np.bincount(table.classes, minlength=table.n_classes)
    few = np.flatnonzero(spread < len(shares))
    if len(few):
        groups = f"{spread[few[0]]} group{'' if spread[few[0]] == 1 else 's'}"
        raise InputError(
            f"{_describe_rows(names[few[0]])} occur in only {groups}, which cannot be split into "
            f"{len(shares)} parts: merge the class with another, drop its rows, or omit "
            "groups."
        )


def _describe_rows(name: Any) -> str:
    return "rows" if name is None else f"rows of class {name!r}"
