"""ImageNet (ILSVRC 2012): 1,000 classes, from one folder per class."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from calibrant.errors import InputError
from reproductions.data_sets import find
from reproductions.image_folder import ImageFolder, check_memory, decoded
from reproductions.image_parts import (
    check_options,
    cut,
    halves,
    made_parts,
    paper_order,
    share_of,
)
from reproductions.parts import Part, Parts

__all__ = ["imagenet"]

_SUFFIXES = (".jpeg", ".jpg", ".png")
_NOTE = (
    "The paper steers, chooses and calibrates on the same half of the validation images; here a "
    "quarter of them steers, a quarter calibrates, and the other half judges. Train images are "
    "moved by a few pixels and mirrored, where the paper cuts out a random frame of random size."
)

Named = list[tuple[str, int]]
"""Files with their classes."""


def imagenet(reading: Mapping[str, Any]) -> Parts:
    """Read ImageNet: all train images train, the validation images are shared out.

    The folders `train` and `val` hold a folder for each class. Validation images are shuffled with
    numpy seed 1 as in the paper: half of the first half steers and half calibrates, the second
    half judges.

    All images are held as bytes: 1,281,167 of 224 x 224 pixels take 180 GiB, of 64 x 64 pixels
    15 GiB. What does not fit is refused with a sentence; with a `cache` folder the array lies on
    a disk and memory holds what is in use.

    Parameters
    ----------
    reading : `image_size`, pixels on each side, 224 where it is not given; `rows`, train images at
        most, the other parts cut alike; `cache`, a folder for the arrays of pixels; `made = true`
        to make images up instead of reading files

    Examples
    --------
    >>> imagenet({"made": True, "rows": 40}).train.inputs.shape
    (40, 32, 32, 3)

    References
    ----------
    Russakovsky et al. (2015), ImageNet large scale visual recognition challenge.
    """
    check_options(reading, ("image_size", "rows", "cache", "made"), "imagenet")
    if reading.get("made"):
        return made_parts(reading, side=32)  # its networks take no smaller ones
    folders = {place.name: ImageFolder(place) for place in find("imagenet", "train", "val")}
    listed = {name: _by_class(folder) for name, folder in folders.items()}
    classes = sorted(listed["train"])
    _check_classes(classes, sorted(listed["val"]), folders["val"].place)
    train = _turn_about(listed["train"], classes)
    judged = [(name, place) for place, wnid in enumerate(classes) for name in listed["val"][wnid]]
    order = paper_order(len(judged))
    share = share_of(reading, len(train))
    middle = len(order) // 2
    steer, calib = halves(order[:middle])
    held = {
        name: [judged[place] for place in cut(places, share)]
        for name, places in (("steer", steer), ("calib", calib), ("test", order[middle:]))
    }
    named = {"train": cut(train, share), **held}
    parts = _read(folders, named, reading)
    return Parts(
        parts["train"], parts["steer"], parts["calib"], parts["test"], tuple(classes), note=_NOTE
    )


def _read(
    folders: Mapping[str, ImageFolder], named: Mapping[str, Named], reading: Mapping[str, Any]
) -> dict[str, Part]:
    side = reading.get("image_size", 224)
    if not isinstance(side, int) or isinstance(side, bool) or side < 1:
        raise InputError(f"image_size must be a whole number of pixels such as 64, got {side!r}.")
    cache = Path(reading["cache"]) if reading.get("cache") else None
    if cache is None:  # before hours of decoding
        check_memory(sum(map(len, named.values())) * 3 * side**2)
    images_by_class = {}
    for part, files in named.items():
        labels = np.array([label for _, label in files], dtype=np.int64)
        folder = folders["train" if part == "train" else "val"]
        images_by_class[part] = Part(
            decoded(folder, [name for name, _ in files], side, cache=cache), labels
        )
    return images_by_class


def _by_class(folder: ImageFolder) -> dict[str, list[str]]:
    """Return the images of each class: the files in folders of its name."""
    by_class: dict[str, list[str]] = {}
    for name in folder.names:
        wnid, slash, _ = name.partition("/")
        if slash and name.lower().endswith(_SUFFIXES):
            by_class.setdefault(wnid, []).append(name)
    if not by_class:
        raise InputError(
            f"{folder.place} holds no folder of JPEG files for a class: sort the images into one "
            "folder for each class, such as n01440764."
        )
    return by_class


def _check_classes(train: list[str], val: list[str], place: Path) -> None:
    off = Counter(train)
    off.subtract(val)
    wrong = next((name for name, count in sorted(off.items()) if count), None)
    if wrong is not None:
        raise InputError(
            f"{place} and the train images are not of the same classes, {wrong!r} is in one of "
            "them only: sort the validation images into one folder for each class."
        )


def _turn_about(listed: Mapping[str, list[str]], classes: list[str]) -> Named:
    """Return one image of each class, then another of each, so that the first rows hold all."""
    ranked = [
        (rank, place, name)
        for place, wnid in enumerate(classes)
        for rank, name in enumerate(listed[wnid])
    ]
    return [(name, place) for _, place, name in sorted(ranked)]
