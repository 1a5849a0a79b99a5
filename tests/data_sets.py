"""Where tests find real data sets."""

from __future__ import annotations

import os
from pathlib import Path

import pytest


def data_file(folder: str, name: str) -> Path:
    """Return a file of a real data set; without the data skip the test, on CI fail it."""
    root = os.environ.get("CALIBRANT_DATA")
    if not root:
        why = f"CALIBRANT_DATA is not set, so {folder}/{name} cannot be read"
        if os.environ.get("CI") == "true":
            pytest.fail(f"{why}: CI must have the data sets.")
        pytest.skip(why)
    for each in root.split(os.pathsep):
        path = Path(each) / folder / name
        if path.is_file():
            return path
    pytest.fail(f"CALIBRANT_DATA is set, but it holds no {folder}/{name}.")
