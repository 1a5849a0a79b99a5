"""Which rights new files do not get."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["umask"]

_STATUS = Path("/proc/self/status")


def umask() -> int:
    """Return the mask of this process, without a moment in which another thread has none.

    Python can only read the mask by setting it. Linux also tells it in a file.

    Examples
    --------
    >>> 0 <= umask() <= 0o777
    True
    """
    try:
        told = re.search(r"^Umask:\s*([0-7]+)$", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        told = None
    if told is not None:
        return int(told[1], 8)
    mask = os.umask(0o077)  # should another thread make a file now, nobody else may read it
    os.umask(mask)
    return mask
