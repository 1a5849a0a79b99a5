"""Values of settings as JSON and TOML have them; neither has tuples, and TOML no word for None."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

__all__ = ["read_back", "written"]


def written(value: Any) -> Any:
    """Return a value with lists for tuples, and "none" for None within options.

    Examples
    --------
    >>> written({"patience": None, "hidden": (8, 4)})
    {'patience': 'none', 'hidden': [8, 4]}
    """
    if isinstance(value, Mapping):
        return {key: written(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [written(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    return "none" if value is None else value


def read_back(value: Any) -> Any:
    """Return options with None for "none".

    Examples
    --------
    >>> read_back({"patience": "none", "hidden": [8, 4]})
    {'patience': None, 'hidden': [8, 4]}
    """
    if isinstance(value, Mapping):
        return {key: read_back(part) for key, part in value.items()}
    return None if value == "none" else value
