"""Images with what is known about each of them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from calibrant.inputs import FloatArray

__all__ = ["ImageSet"]


@dataclass(frozen=True, eq=False)
class ImageSet:
    """Images of one size, with their labels where they have some.

    Parameters
    ----------
    images : (n, H, W, C) bytes; C is 1 for grey and 3 for colour
    labels : n names of classes or whole numbers; None where there are none
    names : n names by which a reader finds them: files relative to the folder, or "0", "1", ...
    weights : (n,) of the rows, or None
    classes : names of all classes, in the order in which the files have them; None without labels

    Examples
    --------
    >>> import numpy as np
    >>> found = ImageSet(np.zeros((2, 4, 4, 1), dtype=np.uint8), ["cat", "dog"], ["a.png", "b.png"])
    >>> len(found)
    2
    """

    images: NDArray[np.uint8]
    labels: list[Any] | None
    names: list[str]
    weights: FloatArray | None = None
    classes: tuple[Any, ...] | None = None

    def __len__(self) -> int:
        return len(self.names)
