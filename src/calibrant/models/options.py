"""Checks of what a network is built from."""

from __future__ import annotations

from collections.abc import Mapping
from numbers import Integral, Real
from typing import Any

import numpy as np

from calibrant.errors import InputError


def check_counts(*, least: int = 1, **counts: int) -> None:
    """Refuse sizes that are not whole numbers of at least `least`."""
    for name, count in counts.items():
        if not isinstance(count, Integral) or isinstance(count, bool) or count < least:
            raise InputError(f"{name} must be a whole number of at least {least}, got {count!r}.")


def check_dropout(**shares: float) -> None:
    """Refuse shares that are not in [0, 1)."""
    for name, share in shares.items():
        if not isinstance(share, Real) or isinstance(share, bool) or not 0 <= share < 1:
            raise InputError(f"{name} must be at least 0 and below 1, got {share!r}.")


def plain(value: Any) -> Any:
    """Return NumPy's numbers, also those in lists and dicts, as Python's.

    Examples
    --------
    >>> import numpy as np
    >>> plain({"hidden": (np.int64(8), 4), "dropout": np.float32(0.5)})
    {'hidden': [8, 4], 'dropout': 0.5}
    """
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, list | tuple):
        return [plain(part) for part in value]
    if isinstance(value, Mapping):
        return {key: plain(part) for key, part in value.items()}
    return value
