"""Split rows into parts: by class, with whole groups, or by time."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.types as pt

from calibrant.data.group_deal import deal_groups, shared_out
from calibrant.errors import InputError
from calibrant.inputs import FloatArray, IntArray

__all__ = ["group_codes", "split_rows"]


def split_rows(
    labels: Any,
    shares: Sequence[float] = (8, 1, 1),
    *,
    groups: Any = None,
    times: Any = None,
    n: int | None = None,
    seed: int = 0,
) -> tuple[IntArray, ...]:
    r"""Split rows at random into parts, each class in proportion, and return their positions.

    Of the n_c rows of class c part p gets

        \lfloor n_c s_p \rfloor or \lceil n_c s_p \rceil,  s_p = shares_p / sum of shares,

    the remainders going where most is missing so far, so that the parts as a whole have their
    shares too; and at least one, for which a rare class may deviate.

    With `groups`, rows of one group stay together, as the messages of one customer should: the
    groups are dealt, the largest first, to the part that lacks most of their classes, so that
    shares are kept only about. With `times` the parts follow each other in time, as they will in
    use: nothing is random, and classes have the shares that time gives them.

    It cannot see equal rows: give `calibrant.data.row_identity.content_groups` as groups to keep
    duplicates together.

    Parameters
    ----------
    labels : n labels of any kind, or None to split without regard to classes
    shares : of the parts, in any unit
    groups : n names of groups, or None; a row whose group is missing stands for itself
    times : n numbers, dates or ISO 8601 texts, or None; rows of one moment stay together
    n : number of rows, where there are neither labels nor groups nor times
    seed : the same seed splits the same rows in the same way

    Returns
    -------
    for each share the positions of its rows, in ascending order

    Examples
    --------
    >>> train, test = split_rows(["a"] * 8 + ["b"] * 4, (3, 1))
    >>> len(train), len(test), int(sum(test >= 8))
    (9, 3, 1)
    >>> split_rows(None, (1, 1), times=[3, 1, 2, 4])
    (array([1, 2]), array([0, 3]))
    """
    weights = _checked_shares(shares)
    if groups is not None and times is not None:
        raise InputError(
            "groups and times cannot be kept together: a group may last beyond the end of a part, "
            "so leave one of them out."
        )
    if not isinstance(seed, int | np.integer) or isinstance(seed, bool) or seed < 0:
        raise InputError(f"seed must be a whole number >= 0, got {seed!r}.")
    codes, names = (None, []) if labels is None else _label_codes(labels)
    kept = None if groups is None else group_codes(groups)
    moments = None if times is None else _moments(times)
    rows = _length(codes, kept, moments, n)
    if rows < len(weights):
        raise InputError(f"{rows} rows cannot be split into {len(weights)} parts: give more rows.")
    if codes is None:
        codes, names = np.zeros(rows, dtype=np.int64), [None]
    rng = np.random.default_rng(seed)
    if moments is not None:
        parts = _by_time(moments, weights)
    elif kept is not None:
        parts = deal_groups(codes, kept, weights, names, rng)
    else:
        parts = _stratified(codes, weights, names, rng)
    return tuple(np.flatnonzero(parts == p) for p in range(len(weights)))


def _stratified(
    codes: IntArray, shares: FloatArray, names: list[Any], rng: np.random.Generator
) -> IntArray:
    """Return the part of each row."""
    sizes = np.bincount(codes, minlength=len(names))
    few = np.flatnonzero(sizes < len(shares))
    if len(few):
        raise InputError(
            f"labels have the class {names[few[0]]!r} in only {sizes[few[0]]} row"
            f"{'' if sizes[few[0]] == 1 else 's'}, which cannot be spread over {len(shares)} "
            "parts: merge it with another class, drop its rows, or collect more of them."
        )
    parts = np.empty(len(codes), dtype=np.int64)
    lacking = np.zeros(len(shares))
    starts = np.concatenate([[0], np.cumsum(sizes)])
    by_class = np.argsort(codes, kind="stable")
    for c in np.argsort(sizes, kind="stable"):  # rare classes first: others make up for them
        counts = shared_out(int(sizes[c]), shares, lacking)
        lacking += sizes[c] * shares - counts
        rows = rng.permutation(by_class[starts[c] : starts[c + 1]])
        parts[rows] = np.repeat(np.arange(len(shares)), counts)
    return parts


def _by_time(moments: FloatArray | IntArray, shares: FloatArray) -> IntArray:
    """Return the part of each row; cuts lie between moments, nearest to where the shares end."""
    values, at, counts = np.unique(moments, return_inverse=True, return_counts=True)
    if len(values) < len(shares):
        raise InputError(
            f"times holds only {len(values)} different moments, which cannot be split into "
            f"{len(shares)} parts: give finer times, or fewer parts."
        )
    ends = np.cumsum(counts)
    part_of = np.zeros(len(values), dtype=np.int64)
    first = 0
    for p, wanted in enumerate(np.cumsum(shares)[:-1] * len(moments)):
        last = len(values) - (len(shares) - 1 - p)  # leave a moment for each later part
        cut = first + 1 + int(np.argmin(np.abs(ends[first:last] - wanted)))
        part_of[cut:] = p + 1
        first = cut
    return part_of[at.reshape(-1)]


def _length(*given: Any) -> int:
    """Return the number of rows, which all that was given must have."""
    lengths = [x if isinstance(x, int | np.integer) else len(x) for x in given if x is not None]
    if not lengths:
        raise InputError("labels is None: give the number of rows as n.")
    if len(set(lengths)) > 1:
        raise InputError(
            "labels, groups, times and n must agree on the number of rows, got "
            f"{' and '.join(map(str, lengths))}."
        )
    return int(lengths[0])


def _checked_shares(shares: Sequence[float]) -> FloatArray:
    try:
        found = np.asarray(shares, dtype=np.float64)
    except (TypeError, ValueError):
        found = np.empty(0)
    if found.ndim != 1 or len(found) < 2 or not np.isfinite(found).all() or found.min() <= 0:
        raise InputError(f"shares must be two or more numbers above 0, got {shares!r}.")
    return np.asarray(found / found.sum())


def _label_codes(labels: Any) -> tuple[IntArray, list[Any]]:
    found = _encoded(labels, "labels")
    _refuse_missing(found, "labels", "label the row or drop it")
    codes = found.indices.to_numpy(zero_copy_only=False)
    return codes.astype(np.int64), found.dictionary.to_pylist()


def group_codes(groups: Any) -> IntArray:
    """Number the groups of rows; a row whose group is missing is a group of its own."""
    found = _encoded(groups, "groups")
    codes = found.indices.fill_null(-1).to_numpy(zero_copy_only=False).astype(np.int64)
    alone = np.flatnonzero(codes < 0)
    codes[alone] = len(found.dictionary) + np.arange(len(alone))
    return np.asarray(codes)


def _encoded(values: Any, name: str) -> Any:
    """Return an Arrow column in one piece as numbers of its different values."""
    column = _column(values, name)
    if pt.is_nested(column.type):
        raise InputError(f"{name} must hold single values, got {column.type}.")
    if pt.is_dictionary(column.type):  # its dictionary may hold values that no row has
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
                f"{name} must be a column of values of one kind ({reason}): give numbers alone or "
                "text alone."
            ) from None
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _moments(times: Any) -> FloatArray | IntArray:
    """Return times as numbers that grow with them."""
    column = _column(times, "times")
    if pt.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    _refuse_missing(column, "times", "give the row a time or drop it")
    kind = column.type
    if pt.is_string(kind) or pt.is_large_string(kind) or str(kind) == "string_view":
        return _from_text(column)
    if pt.is_temporal(kind) and not pt.is_duration(kind) and not pt.is_time(kind):
        moments = column if pt.is_timestamp(kind) else column.cast(pa.timestamp("us"))
        return np.asarray(moments.cast(pa.int64()).to_numpy())
    if pt.is_integer(kind):
        return np.asarray(column.to_numpy())
    if pt.is_floating(kind):
        return np.asarray(column.to_numpy(), dtype=np.float64)
    raise InputError(f"times must be numbers, dates or ISO 8601 text, got {kind}.")


def _from_text(column: Any) -> IntArray:
    moments = _iso(column)
    if moments is not None:
        return moments
    wrong = (i for i in range(len(column)) if _iso(column.slice(i, 1)) is None)
    row = next(wrong, None)
    if row is None:
        raise InputError("times must be all with a time zone or all without: write them alike.")
    raise InputError(
        f"times row {row} is {column[row].as_py()!r}, which is no date that ISO 8601 knows: write "
        "dates like 2024-01-31 or 2024-01-31T09:30:00, or give times as numbers."
    )


def _iso(column: Any) -> IntArray | None:
    """Return texts as microseconds, or nanoseconds where they need it; None for what is no date."""
    units = [(unit, zone) for unit in ("us", "ns") for zone in (None, "UTC")]
    for kind in (pa.timestamp(*each) for each in units):
        with suppress(pa.ArrowInvalid):
            return np.asarray(column.cast(kind).cast(pa.int64()).to_numpy())
    return None


def _refuse_missing(column: Any, name: str, remedy: str) -> None:
    missing = column.is_null(nan_is_null=True)
    if missing.true_count:
        row = missing.index(True).as_py()
        raise InputError(f"{name} row {row} is missing: {remedy}.")
