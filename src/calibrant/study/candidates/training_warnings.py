"""What training warned of: for the record instead of the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["training_warnings"]

_MACHINERY = frozenset({"lightning_fabric", "torch", "triton"})
"""Packages whose warnings are about themselves, and not about what is trained."""


@contextmanager
def training_warnings() -> Iterator[list[str]]:
    """Lend a list that holds each warning of the block once, as soon as the block has ended.

    Examples
    --------
    >>> with training_warnings() as told:
    ...     warnings.warn("no row of class 3", UserWarning, stacklevel=1)
    >>> told
    ['no row of class 3']
    """
    told: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield told
    own = (one for one in caught if issubclass(one.category, UserWarning))
    told += sorted({str(one.message) for one in own if not _of_machinery(one.filename)})


def _of_machinery(file: str) -> bool:
    return not _MACHINERY.isdisjoint(Path(file).parts)
