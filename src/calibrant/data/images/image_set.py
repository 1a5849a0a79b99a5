"""A set of images with labels, names and weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray

__all__ = ["ImageSet"]


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of one size, with their labels if there are any.

    Parameters
    ----------
    images : (n, H, W, C) uint8; C is 1 for grey and 3 for colour
    labels : n class names or integers, or None
    names : n image names: paths relative to the folder, or "0", "1", ...
    weights : (n,) row weights, or None
    classes : names of all classes, in file order; None without labels

    Examples
    --------
    >>> import numpy as np
    >>> pets = ImageSet(np.zeros((2, 4, 4, 1), dtype=np.uint8), ["cat", "dog"], ["a.png", "b.png"])
    >>> len(pets)
    2
    """

    images: NDArray[np.uint8]
    labels: list[Any] | None
    names: list[str]
    weights: FloatArray | None = None
    classes: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)
