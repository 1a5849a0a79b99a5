"""Collect training warnings for the record instead of the terminal."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from calibrant.data.encoders.column_warning import ColumnWarning

_INTERNAL_PACKAGES = frozenset({"lightning_fabric", "torch", "triton"})
"""Packages whose warnings are about themselves, not about the training."""


@contextmanager
def training_warnings() -> Iterator[list[str]]:
    """Yield a list that is filled with the distinct warnings when the block ends.

    Warnings about columns name the remedy on the command line.

    Examples
    --------
    >>> with training_warnings() as messages:
    ...     warnings.warn("no row of class 3", UserWarning, stacklevel=1)
    >>> messages
    ['no row of class 3']
    """
    messages: list[str] = []
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", UserWarning)
        yield messages
    relevant = (
        warning
        for warning in caught
        if issubclass(warning.category, UserWarning) and not _is_internal(warning.filename)
    )
    messages += sorted({_text(warning.message) for warning in relevant})


def _text(warning: Warning | str) -> str:
    return warning.command_text if isinstance(warning, ColumnWarning) else str(warning)


def _is_internal(file: str) -> bool:
    return not _INTERNAL_PACKAGES.isdisjoint(Path(file).parts)
