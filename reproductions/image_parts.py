"""Helpers of the image loaders: row order of the papers, splits, synthetic images."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import IntArray
from reproductions.parts import Part, Parts

__all__ = ["check_options", "cut", "halves", "made_parts", "paper_order", "share_of"]

_CLASSES = ("red", "green", "blue", "grey")
_TINTS = np.array([[60, 0, 0], [0, 60, 0], [0, 0, 60], [20, 20, 20]])


def check_options(reading: Mapping[str, Any], known: Sequence[str], loader: str) -> None:
    """Refuse an option that a loader does not have."""
    for name in reading:
        if name not in known:
            raise InputError(
                f"the loader {loader!r} has no option {name!r}: it has {', '.join(known)}."
            )


def paper_order(n: int) -> IntArray:
    """Return 0 .. n - 1 in the order that papers on calibration shuffle rows into.

    It is numpy's legacy shuffle with seed 1, which all later versions of numpy repeat; the global
    generator is left alone.

    Examples
    --------
    >>> paper_order(10).tolist()
    [2, 9, 6, 4, 0, 3, 1, 7, 8, 5]
    """
    places = np.arange(n)
    np.random.RandomState(1).shuffle(places)
    return places


def share_of(reading: Mapping[str, Any], train: int) -> float:
    """Return the share of all rows that leaves `reading["rows"]` train rows at most.

    Examples
    --------
    >>> share_of({"rows": 4500}, 45000), share_of({}, 45000)
    (0.1, 1.0)
    """
    rows = reading.get("rows")
    if rows is None:
        return 1.0
    if not isinstance(rows, int) or isinstance(rows, bool) or rows < 1:
        raise InputError(f"rows must be a whole number of at least 1, got {rows!r}.")
    return min(1.0, rows / train)


def cut(rows: Any, share: float) -> Any:
    """Return that share of the rows, the first ones; two at least.

    Examples
    --------
    >>> cut(np.arange(10), 0.4)
    array([0, 1, 2, 3])
    """
    return rows[: max(2, round(share * len(rows)))] if share < 1 else rows


def halves(places: IntArray) -> tuple[IntArray, IntArray]:
    """Return the first and the second half of a validation split: to steer, and to calibrate."""
    middle = len(places) // 2
    return places[:middle], places[middle:]


def made_parts(
    reading: Mapping[str, Any], *, side: int = 8, outside: Sequence[str] = (), seed: int = 1
) -> Parts:
    """Make up small images of four colours, which a network learns in a few steps.

    An image is grey noise with a tint, by which its class is known, however it is moved or
    mirrored; tints overlap with the noise, so that a network is wrong at times. No files are read.

    Parameters
    ----------
    reading : options of a loader; `rows` train images, 240 where it is not given
    side : pixels on each side
    outside : names of data sets that belong to no class, made up as noise without a tint
    seed : of the draws

    Examples
    --------
    >>> made = made_parts({"rows": 40}, outside=["svhn"])
    >>> made.sizes(), made.train.inputs.shape, made.outside["svhn"].shape
    ({'train': 40, 'steer': 20, 'calib': 20, 'test': 20}, (40, 8, 8, 3), (20, 8, 8, 3))
    """
    rows = reading.get("rows", 240)
    draw = np.random.default_rng(seed)
    sizes = (rows, *(max(rows // 2, 8),) * 3)
    train, steer, calib, test = (_made_part(n, side, draw) for n in sizes)
    strange = {name: _made_images(np.full(sizes[3], -1), side, draw) for name in outside}
    return Parts(
        train, steer, calib, test, _CLASSES, strange,
        note="The images are made up, to try the code: figures mean nothing.",
    )  # fmt: skip


def _made_part(n: int, side: int, draw: np.random.Generator) -> Part:
    labels = np.arange(n) % len(_CLASSES)  # every class is in every part
    draw.shuffle(labels)
    return Part(_made_images(labels, side, draw), labels.astype(np.int64))


def _made_images(labels: IntArray, side: int, draw: np.random.Generator) -> NDArray[np.uint8]:
    shape = (len(labels), side, side, 3)
    tints = np.where(labels[:, None] >= 0, _TINTS[labels], 0) + draw.normal(0, 25, (len(labels), 3))
    pixels = 100 + tints[:, None, None, :] + draw.normal(0, 25, shape)
    return pixels.clip(0, 255).round().astype(np.uint8)
