"""CIFAR-10 and CIFAR-100 as papers on calibration split them."""

from __future__ import annotations

import tarfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.errors import InputError
from calibrant.inputs import IntArray
from reproductions.data_sets import find
from reproductions.image_parts import (
    check_options,
    cut,
    halves,
    made_parts,
    paper_order,
    share_of,
)
from reproductions.image_strips import read_strips
from reproductions.outside_images import outside_images
from reproductions.parts import Part, Parts
from reproductions.pickled_arrays import read_pickled

__all__ = ["cifar10", "cifar100"]

Labelled = tuple[NDArray[np.uint8], IntArray]

_CIFAR10 = (
    "airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck",
)  # fmt: skip
_CIFAR100 = (
    "apple", "aquarium_fish", "baby", "bear", "beaver", "bed", "bee", "beetle", "bicycle",
    "bottle", "bowl", "boy", "bridge", "bus", "butterfly", "camel", "can", "castle", "caterpillar",
    "cattle", "chair", "chimpanzee", "clock", "cloud", "cockroach", "couch", "crab", "crocodile",
    "cup", "dinosaur", "dolphin", "elephant", "flatfish", "forest", "fox", "girl", "hamster",
    "house", "kangaroo", "keyboard", "lamp", "lawn_mower", "leopard", "lion", "lizard", "lobster",
    "man", "maple_tree", "motorcycle", "mountain", "mouse", "mushroom", "oak_tree", "orange",
    "orchid", "otter", "palm_tree", "pear", "pickup_truck", "pine_tree", "plain", "plate", "poppy",
    "porcupine", "possum", "rabbit", "raccoon", "ray", "road", "rocket", "rose", "sea", "seal",
    "shark", "shrew", "skunk", "skyscraper", "snail", "snake", "spider", "squirrel", "streetcar",
    "sunflower", "sweet_pepper", "table", "tank", "telephone", "television", "tiger", "tractor",
    "train", "trout", "tulip", "turtle", "wardrobe", "whale", "willow_tree", "wolf", "woman",
    "worm",
)  # fmt: skip
_OPTIONS = ("rows", "outside", "made")
_NOTE = (
    "The papers steer, choose and calibrate on the same 5,000 validation images; here 2,500 of "
    "them steer and the other 2,500 calibrate."
)
_NOISE = " Gaussian noise of standard deviation 0.10 stands in for CIFAR-10-C."


def cifar10(reading: Mapping[str, Any]) -> Parts:
    """Read CIFAR-10: 45,000 images train, 2,500 steer, 2,500 calibrate and 10,000 judge.

    The 50,000 train images are shuffled with numpy seed 1 and the first tenth is held back, as in
    the papers' code; see `paper_order`.

    Parameters
    ----------
    reading : `rows`, train images at most, the other parts cut alike; `outside`, names of data
        sets of `outside_images`; `made = true` to make images up instead of reading files

    Examples
    --------
    >>> cifar10({"made": True, "rows": 40}).train.inputs.shape
    (40, 8, 8, 3)

    References
    ----------
    Krizhevsky (2009), Learning multiple layers of features from tiny images; Mukhoti et al. (2020),
    Calibrating deep neural networks using focal loss, for the split.
    """
    check_options(reading, _OPTIONS, "cifar10")
    outside = list(reading.get("outside", ()))
    if reading.get("made"):
        return made_parts(reading, outside=outside)
    files = find("cifar10")
    train, test = _from_strips(files) if len(files) > 1 else _from_tar(files[0])
    parts = _divided(reading, train, test, _CIFAR10)
    share = share_of(reading, len(train[0]) * 9 // 10)
    strange = outside_images(outside, parts.test.inputs, share=share)
    return replace(parts, outside=strange, note=_NOTE + (_NOISE if "noise" in outside else ""))


def cifar100(reading: Mapping[str, Any]) -> Parts:
    """Read CIFAR-100 with its 100 fine classes, split as `cifar10` is.

    Parameters
    ----------
    reading : `rows` and `made` as for `cifar10`

    Examples
    --------
    >>> cifar100({"made": True}).sizes()
    {'train': 240, 'steer': 120, 'calib': 120, 'test': 120}
    """
    check_options(reading, ("rows", "made"), "cifar100")
    if reading.get("made"):
        return made_parts(reading)
    files = find("cifar100")
    if len(files) > 1:
        return _divided(reading, *_from_strips(files), _CIFAR100)
    read = _members(files[0], "cifar-100-python", ["train", "test"])
    train, test = (_labelled(read[name], "fine_labels", files[0]) for name in ("train", "test"))
    return _divided(reading, train, test, _CIFAR100)


def _divided(
    reading: Mapping[str, Any], train: Labelled, test: Labelled, classes: tuple[str, ...]
) -> Parts:
    """Hold the first tenth of the shuffled train images back, and halve it."""
    order = paper_order(len(train[0]))
    held = len(order) // 10
    share = share_of(reading, len(order) - held)
    steer, calib = halves(order[:held])
    images, labels = train
    learn, steering, calibrating = (
        Part(images[places], labels[places])
        for places in (cut(each, share) for each in (order[held:], steer, calib))
    )
    judging = Part(cut(test[0], share), cut(test[1], share))
    return Parts(learn, steering, calibrating, judging, classes, note=_NOTE)


def _from_strips(files: Sequence[Path]) -> tuple[Labelled, Labelled]:
    """Read archives of strips, of which the last holds the test images."""
    *train, test = (_with_labels(file) for file in files)
    return _joined(train), test


def _with_labels(file: Path) -> Labelled:
    images, labels = read_strips(file)
    if labels is None:
        raise InputError(f"{file} holds no labels: replace the file.")
    return images, labels


def _from_tar(file: Path) -> tuple[Labelled, Labelled]:
    names = [f"data_batch_{i}" for i in range(1, 6)]
    read = _members(file, "cifar-10-batches-py", [*names, "test_batch"])
    train = _joined(_labelled(read[name], "labels", file) for name in names)
    return train, _labelled(read["test_batch"], "labels", file)


def _members(file: Path, folder: str, names: list[str]) -> dict[str, dict[str, Any]]:
    """Read pickles out of an archive, into memory: nothing is unpacked onto the disk."""
    members = {}
    try:
        with tarfile.open(file) as archive:
            for name in names:
                member = archive.extractfile(f"{folder}/{name}")
                data = b"" if member is None else member.read()
                members[name] = read_pickled(data, name=f"{folder}/{name} in {file}")
    except KeyError:
        raise InputError(f"{file} holds no {folder}/{name}: download it again.") from None
    except (tarfile.TarError, OSError, EOFError) as error:
        raise InputError(
            f"{file} is not a readable archive ({type(error).__name__}): download it again."
        ) from None
    return members


def _labelled(batch: Mapping[str, Any], labels: str, file: Path) -> Labelled:
    """Turn rows of 3,072 bytes, the red pixels first, into images."""
    rows, classes = batch.get("data"), batch.get(labels)
    if not isinstance(rows, np.ndarray) or rows.shape[1:] != (3072,) or classes is None:
        raise InputError(f"{file} holds no images with {labels}: download it again.")
    images = rows.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)
    return np.ascontiguousarray(images), np.asarray(classes, dtype=np.int64)


def _joined(batches: Iterable[Labelled]) -> Labelled:
    images, labels = zip(*batches, strict=True)
    return np.concatenate(images), np.concatenate(labels)
