"""Split the steer rows: one half steers training, the other chooses the candidate."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.data.splitting import group_codes, split_rows
from calibrant.errors import InputError
from calibrant.inputs import IntArray

MIN_ROWS = 2
"""Rows that each half needs to fit a temperature."""


def halve_steer(
    labels: Sequence[str] | None,
    *,
    groups: Any = None,
    times: Any = None,
    n: int | None = None,
    seed: int = 0,
) -> tuple[IntArray, IntArray]:
    """Return the positions of the steer rows and of the choice rows.

    A candidate looks better on rows that steered its loss or its best epoch than on new rows; on
    choice rows, which steered no candidate, the comparison is fair. Each class is halved by
    `split_rows`, at random with a fixed seed; rows of one group stay together, and with times the
    later half chooses.

    A class with a single row or group cannot be halved and stays with the steer rows, as does a
    class left with fewer than two groups once those stay. If groups are too large for every class
    to be in both halves, they are halved without stratification.

    No minimum number of choice rows is enforced here: with very few, the choice is mostly noise.

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
    stays = _mask_one_sided(np.unique(list(labels), return_inverse=True)[1].reshape(-1), units)
    rest = np.flatnonzero(~stays)
    if not len(rest):
        return np.arange(len(labels)), rest
    rest_groups = None if groups is None else units[rest]
    first, second = _halve_rows([labels[i] for i in rest.tolist()], rest_groups, seed)
    return np.sort(np.concatenate([np.flatnonzero(stays), rest[first]])), rest[second]


def _mask_one_sided(codes: IntArray, units: IntArray) -> NDArray[np.bool_]:
    """Return a mask of the rows that stay: whole units, until every other class has two units."""
    stays = np.zeros(len(codes), dtype=bool)
    while True:
        pairs = np.unique(np.stack([codes[~stays], units[~stays]]), axis=1)
        spread = np.bincount(pairs[0], minlength=int(codes.max(initial=0)) + 1)
        lone = np.flatnonzero(spread == 1)
        if not len(lone):
            return stays
        stays |= np.isin(units, units[~stays & np.isin(codes, lone)])


def _halve_rows(labels: list[str], groups: IntArray | None, seed: int) -> tuple[IntArray, IntArray]:
    try:
        first, second = split_rows(labels, (1, 1), groups=groups, n=len(labels), seed=seed)
    except InputError:  # no group can be moved without moving another class too
        first, second = split_rows(None, (1, 1), groups=groups, n=len(labels), seed=seed)
    return first, second
