"""Tiny-ImageNet: 200 classes of 64 x 64 images, from its published zip."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np

from calibrant.errors import InputError
from reproductions.data_sets import find
from reproductions.image_folder import ImageFolder, decoded
from reproductions.image_parts import check_options, cut, made_parts, share_of
from reproductions.parts import Part, Parts

__all__ = ["tiny_imagenet"]

_ROOT = "tiny-imagenet-200"
_SIDE = 64
_HELD = 450
"""Number of the first image of a class that is held back for validation; the last is 499."""
_CALIB = 475
_TRAIN_NAME = re.compile(r"train/(?P<wnid>[^/]+)/images/[^/]+_(?P<index>\d+)\.JPEG")
_NOTE = (
    "The paper steers, chooses and calibrates on the same 50 images of each class; here 25 of them "
    "steer and the other 25 calibrate. The published validation images judge, as in the paper."
)

Named = list[tuple[str, int]]
"""Files with their classes."""


def tiny_imagenet(reading: Mapping[str, Any]) -> Parts:
    """Read Tiny-ImageNet: of each class 450 images train, 25 steer and 25 calibrate.

    Images of a class are numbered, and the number decides. The 10,000 published validation images
    judge; those published as test have no labels.

    Parameters
    ----------
    reading : `rows`, train images at most, the other parts cut alike, with every class in each as
        far as that goes; `made = true` to make images up instead of reading files

    Examples
    --------
    >>> tiny_imagenet({"made": True, "rows": 40}).train.inputs.shape
    (40, 16, 16, 3)

    References
    ----------
    Le and Yang (2015), Tiny ImageNet visual recognition challenge.
    """
    check_options(reading, ("rows", "made"), "tiny_imagenet")
    if reading.get("made"):
        return made_parts(reading, side=16)  # its networks take no smaller ones
    files = find("tiny_imagenet")
    place = files[0].parent if len(files) > 1 else files[0]
    folder = ImageFolder(place, inside=_ROOT)
    wnids = sorted(folder.read("wnids.txt").decode().split())
    train, steer, calib = _numbered(folder, wnids)
    share = share_of(reading, len(train))
    learn, steering, calibrating, judging = (
        _part(folder, cut(files, share)) for files in (train, steer, calib, _judging(folder, wnids))
    )
    return Parts(learn, steering, calibrating, judging, _called(folder, wnids), note=_NOTE)


def _numbered(folder: ImageFolder, wnids: list[str]) -> tuple[Named, Named, Named]:
    """Return the train files by their numbers, all classes of a number together."""
    places = {wnid: place for place, wnid in enumerate(wnids)}
    files = []
    for name in folder.names:
        match = _TRAIN_NAME.fullmatch(name)
        if match and match["wnid"] in places:
            files.append((int(match["index"]), places[match["wnid"]], name))
    if not files:
        raise InputError(
            f"{folder.place} holds no train/CLASS/images/CLASS_0.JPEG: download {_ROOT}.zip again."
        )
    files.sort()
    bounds = ((0, _HELD), (_HELD, _CALIB), (_CALIB, np.inf))
    train, steer, calib = (
        [(name, label) for index, label, name in files if low <= index < high]
        for low, high in bounds
    )
    return train, steer, calib


def _judging(folder: ImageFolder, wnids: list[str]) -> Named:
    """Return the validation files in the order of their list, which is mixed."""
    places = {wnid: place for place, wnid in enumerate(wnids)}
    lines = folder.read("val/val_annotations.txt").decode().splitlines()
    entries = [line.split("\t")[:2] for line in lines if line.strip()]
    try:
        return [(f"val/images/{name}", places[wnid]) for name, wnid in entries]
    except (KeyError, ValueError):
        raise InputError(
            f"val/val_annotations.txt in {folder.place} names no file and class of wnids.txt in "
            f"some line: download {_ROOT}.zip again."
        ) from None


def _called(folder: ImageFolder, wnids: list[str]) -> tuple[str, ...]:
    """Return the words for each class, or its number in WordNet where the file of words lacks."""
    if "words.txt" not in folder.names:
        return tuple(wnids)
    lines = folder.read("words.txt").decode().splitlines()
    words = dict(line.split("\t", 1) for line in lines if "\t" in line)
    called = [words.get(wnid, wnid).split(",")[0].strip() for wnid in wnids]
    # Two classes may share their first word (a crane that flies and one that lifts).
    return tuple(
        f"{name} ({wnid})" if called.count(name) > 1 else name
        for name, wnid in zip(called, wnids, strict=True)
    )


def _part(folder: ImageFolder, files: Named) -> Part:
    labels = np.array([label for _, label in files], dtype=np.int64)
    return Part(decoded(folder, [name for name, _ in files], _SIDE), labels)
