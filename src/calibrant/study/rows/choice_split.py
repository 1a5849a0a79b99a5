"""Halve the steer rows: one half is followed in training, the other chooses the candidate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.splitting import group_codes, split_rows
from calibrant.errors import InputError
from calibrant.inputs import IntArray

__all__ = ["FEWEST", "halve_steer"]

FEWEST = 2
"""Rows that a temperature can be fitted to: each half needs as many."""


def halve_steer(
    labels: Sequence[str] | None,
    *,
    groups: Any = None,
    times: Any = None,
    n: int | None = None,
    seed: int = 0,
) -> tuple[IntArray, IntArray]:
    """Return the positions of the rows that steer, and of those that choose.

    A loss that follows rows, and an epoch that is chosen on them, look better there than on new
    rows. On rows that nobody followed all candidates are equal. Each class is halved by
    `split_rows`, at random but always alike; rows of one group stay together, and with times the
    later half chooses.

    A class that cannot stand on both sides stays with the steer rows: one of a single row or
    group. So does a class of which fewer than two groups are left once those of others stay.
    Where groups are too large for every class to be on both sides, they are halved without
    regard to classes.

    It says nothing about how many rows a choice takes: few of them choose almost by chance.

    Examples
    --------
    >>> steer, choice = halve_steer(["a"] * 4 + ["b"] * 2 + ["c"])
    >>> len(steer), len(choice), 6 in steer
    (4, 3, True)
    >>> halve_steer(None, times=[3, 1, 2, 4])
    (array([1, 2]), array([0, 3]))
    """
    if labels is None or times is not None:
        steer, choice = split_rows(labels, (1, 1), groups=groups, times=times, n=n, seed=seed)
        return steer, choice
    units = np.arange(len(labels)) if groups is None else group_codes(groups)
    stays = _one_sided(np.unique(list(labels), return_inverse=True)[1].reshape(-1), units)
    rest = np.flatnonzero(~stays)
    if not len(rest):
        return np.arange(len(labels)), rest
    own = None if groups is None else units[rest]
    first, second = _halves([labels[i] for i in rest.tolist()], own, seed)
    return np.sort(np.concatenate([np.flatnonzero(stays), rest[first]])), rest[second]


def _one_sided(codes: IntArray, units: IntArray) -> NDArray[np.bool_]:
    """Say which rows stay: whole units, until every class that is left has two of them."""
    stays = np.zeros(len(codes), dtype=bool)
    while True:
        pairs = np.unique(np.stack([codes[~stays], units[~stays]]), axis=1)
        spread = np.bincount(pairs[0], minlength=int(codes.max(initial=0)) + 1)
        lone = np.flatnonzero(spread == 1)
        if not len(lone):
            return stays
        stays |= np.isin(units, units[~stays & np.isin(codes, lone)])


def _halves(labels: list[str], groups: IntArray | None, seed: int) -> tuple[IntArray, IntArray]:
    try:
        first, second = split_rows(labels, (1, 1), groups=groups, n=len(labels), seed=seed)
    except InputError:  # no one group can be moved without taking another class along
        first, second = split_rows(None, (1, 1), groups=groups, n=len(labels), seed=seed)
    return first, second
