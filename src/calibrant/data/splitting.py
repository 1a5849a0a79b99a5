"""Stratified, grouped and temporal splitting of rows."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray


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


def split_rows(
    labels: Any,
    shares: Sequence[float] = (8, 1, 1),
    *,
    groups: Any = None,
    times: Any = None,
    n: int | None = None,
    seed: int = 0,
) -> tuple[IntArray, ...]:
    r"""Split rows at random into parts, stratified by class, and return their positions.

    Of the n_c rows of class c part p gets

        \lfloor n_c s_p \rfloor or \lceil n_c s_p \rceil,  s_p = shares_p / sum of shares,

    where remainders go to the parts with the largest deficit, so that the total sizes follow the
    shares as well. Every part gets at least one row of each class, so rare classes may deviate.

    With `groups`, rows of one group stay together, for example the messages of one customer: groups
    are assigned from large to small to the part with the largest deficit of their classes, so that
    shares hold approximately. With `times`, the parts follow each other in time, as in production:
    nothing is random, and class shares are those of each period.

    Duplicate rows are not detected: pass `calibrant.data.row_identity.content_groups` as groups to
    keep them together.

    Parameters
    ----------
    labels : n labels of any kind, or None for no stratification
    shares : relative sizes of the parts
    groups : n group names, or None; a row with a missing group is a group by itself
    times : n numbers, dates or ISO 8601 texts, or None; rows with equal times stay together
    n : number of rows, if labels, groups and times are all None
    seed : random seed

    Returns
    -------
    for each share, the positions of its rows in ascending order

    Examples
    --------
    >>> train, test = split_rows(["a"] * 8 + ["b"] * 4, (3, 1))
    >>> len(train), len(test), int(sum(test >= 8))
    (9, 3, 1)
    >>> split_rows(None, (1, 1), times=[3, 1, 2, 4])
    (array([1, 2]), array([0, 3]))
    """
    weights = _normalise_shares(shares)
    if groups is not None and times is not None:
        raise InputError(
            "groups and times cannot be combined, because a group may extend over several parts: "
            "omit one of them."
        )
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0, got {seed!r}.")
    codes, names = (None, []) if labels is None else _label_codes(labels)
    group_of_row = None if groups is None else group_codes(groups)
    instants = None if times is None else _as_instants(times)
    rows = _row_count(codes, group_of_row, instants, n)
    if rows < len(weights):
        raise InputError(
            f"{rows} rows cannot be split into {len(weights)} parts: provide more rows."
        )
    if codes is None:
        codes, names = np.zeros(rows, dtype=np.int64), [None]
    rng = np.random.default_rng(seed)
    if instants is not None:
        parts = _split_by_time(instants, weights)
    elif group_of_row is not None:
        parts = deal_groups(codes, group_of_row, weights, names, rng)
    else:
        parts = _split_by_class(codes, weights, names, rng)
    return tuple(np.flatnonzero(parts == p) for p in range(len(weights)))


def _split_by_class(
    codes: IntArray, shares: FloatArray, names: list[Any], rng: np.random.Generator
) -> IntArray:
    """Return the part of each row."""
    sizes = np.bincount(codes, minlength=len(names))
    few = np.flatnonzero(sizes < len(shares))
    if len(few):
        raise InputError(
            f"class {names[few[0]]!r} has only {sizes[few[0]]} row"
            f"{'' if sizes[few[0]] == 1 else 's'}, which cannot be split into {len(shares)} "
            "parts: merge it with another class, drop its rows, or collect more of them."
        )
    parts = np.empty(len(codes), dtype=np.int64)
    lacking = np.zeros(len(shares))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    by_class = np.argsort(codes, kind="stable")
    for c in np.argsort(sizes, kind="stable"):  # rare classes first: frequent ones compensate
        counts = apportion_rows(int(sizes[c]), shares, lacking)
        lacking += sizes[c] * shares - counts
        rows = rng.permutation(by_class[starts[c] : starts[c + 1]])
        parts[rows] = np.repeat(np.arange(len(shares)), counts)
    return parts


def _split_by_time(instants: FloatArray | IntArray, shares: FloatArray) -> IntArray:
    """Return the part of each row; cuts are between distinct times, nearest to the shares."""
    values, inverse, counts = np.unique(instants, return_inverse=True, return_counts=True)
    if len(values) < len(shares):
        raise InputError(
            f"times has only {len(values)} distinct values, which cannot be split into "
            f"{len(shares)} parts: use finer times, or fewer parts."
        )
    ends = np.cumsum(counts)
    part_of = np.zeros(len(values), dtype=np.int64)
    first = 0
    for p, wanted in enumerate(np.cumsum(shares)[:-1] * len(instants)):
        last = len(values) - (len(shares) - 1 - p)  # leave one time for each later part
        cut = first + 1 + int(np.argmin(np.abs(ends[first:last] - wanted)))
        part_of[cut:] = p + 1
        first = cut
    return part_of[inverse.reshape(-1)]


def _row_count(*inputs: Any) -> int:
    """Return the number of rows, which must be the same in all inputs."""
    lengths = [x if isinstance(x, int | np.integer) else len(x) for x in inputs if x is not None]
    if not lengths:
        raise InputError("labels, groups and times are all None: give the number of rows as n.")
    if len(set(lengths)) > 1:
        raise InputError(
            "labels, groups, times and n must agree on the number of rows, got "
            f"{' and '.join(map(str, lengths))}."
        )
    return int(lengths[0])


def _normalise_shares(shares: Sequence[float]) -> FloatArray:
    try:
        weights = np.asarray(shares, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.empty(0)
    if (
        weights.ndim != 1
        or len(weights) < 2
        or not np.isfinite(weights).all()
        or weights.min() <= 0
    ):
        raise InputError(f"shares must be two or more numbers above 0, got {shares!r}.")
    return np.asarray(weights / weights.sum())


def _label_codes(labels: Any) -> tuple[IntArray, list[Any]]:
    encoded = _dictionary_encode(labels, "labels")
    _reject_missing(encoded, "labels", "label the row or drop it")
    codes = encoded.indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), encoded.dictionary.to_pylist()


def group_codes(groups: Any) -> IntArray:
    """Number the groups; a row with a missing group is a group by itself."""
    encoded = _dictionary_encode(groups, "groups")
    codes = encoded.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    ungrouped = np.flatnonzero(codes < 0)
    codes[ungrouped] = len(encoded.dictionary) + np.arange(len(ungrouped))
    return np.asarray(codes)


def _dictionary_encode(values: Any, name: str) -> Any:
    """Return a column as a dictionary-encoded Arrow array."""
    column = _column(values, name)
    if pt.is_nested(column.type):
        raise InputError(f"{name} must have single values, got {column.type}.")
    if pt.is_dictionary(column.type):  # its dictionary may contain unused values
        column = column.cast(column.type.value_type)
    return column.dictionary_encode()


def _column(values: Any, name: str) -> Any:
    if hasattr(values, "to_arrow") and not isinstance(values, pa.Array):  # polars
        values = values.to_arrow()
    if not isinstance(values, pa.Array | pa.ChunkedArray):
        try:
            values = pa.array(values, from_pandas=True)
        except (pa.ArrowException, TypeError, ValueError, OverflowError) as error:
            reason = str(error).splitlines()[0][:100]
            raise InputError(
                f"{name} must be a column of one type ({reason}): use either numbers or text."
            ) from None
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _as_instants(times: Any) -> FloatArray | IntArray:
    """Convert times to numbers in the same order."""
    column = _column(times, "times")
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    _reject_missing(column, "times", "give the row a time or drop it")
    kind = column.type
    if pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view":
        return _from_text(column)
    if pt.is_temporal(kind) and not pt.is_duration(kind) and not pt.is_time(kind):
        instants = column if pt.is_timestamp(kind) else column.cast(pa.timestamp("us"))
        return np.asarray(instants.cast(pa.int64()).to_numpy())
    if pt.is_integer(kind):
        return np.asarray(column.to_numpy())
    if pt.is_floating(kind):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    raise InputError(f"times must be numbers, dates or ISO 8601 text, got {kind}.")


def _from_text(column: Any) -> IntArray:
    instants = _parse_iso(column)
    if instants is not None:
        return instants
    unparsable = (i for i in range(len(column)) if _parse_iso(column.slice(i, 1)) is None)
    row = next(unparsable, None)
    if row is None:
        raise InputError("times must all have a time zone, or none: use one format.")
    raise InputError(
        f"times row {row} is {column[row].as_py()!r}, which is not an ISO 8601 date: write "
        "dates like 2024-01-31 or 2024-01-31T09:30:00, or use numbers."
    )


def _parse_iso(column: Any) -> IntArray | None:
    """Parse ISO 8601 texts to microseconds (nanoseconds if needed); None if one is invalid."""
    units = [(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
    for kind in (pa.timestamp(*parameters) for parameters in units):
        with suppress(pa.ArrowInvalid):
            return np.asarray(column.cast(kind).cast(pa.int64()).to_numpy())
    return None


def _reject_missing(column: Any, name: str, remedy: str) -> None:
    missing = column.is_null(nan_is_null=True)
    if missing.true_count:
        row = missing.index(True).as_py()
        raise InputError(f"{name} row {row} is missing: {remedy}.")
