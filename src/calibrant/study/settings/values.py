"""Convert settings to and from JSON and TOML values, which lack tuples and (TOML) null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np


def encode_setting(value: Any) -> Any:
    """Return a value with tuples as lists and None as "none".

    Examples
    --------
    >>> encode_setting({"patience": None, "hidden": (8, 4)})
    {'patience': 'none', 'hidden': [8, 4]}
    """
    if isinstance(value, Mapping):
        return {key: encode_setting(part) for key, part in value.items()}
    if isinstance(value, list | tuple):
        return [encode_setting(part) for part in value]
    if isinstance(value, np.generic):
        return value.item()
    return "none" if value is None else value


def decode_setting(value: Any) -> Any:
    """Return options with "none" as None.

    Examples
    --------
    >>> decode_setting({"patience": "none", "hidden": [8, 4]})
    {'patience': None, 'hidden': [8, 4]}
    """
    if isinstance(value, Mapping):
        return {key: decode_setting(part) for key, part in value.items()}
    return None if value == "none" else value
