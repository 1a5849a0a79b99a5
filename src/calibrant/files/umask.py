"""The umask of the process."""

from __future__ import annotations

import os
import re
from pathlib import Path

__all__ = ["umask"]

_STATUS = Path("/proc/self/status")


def umask() -> int:
    """Return the umask of this process.

    Python can only read it by setting it, which affects other threads; Linux also reports it in a
    file.

    Examples
    --------
    >>> 0 <= umask() <= 0o777
    True
    """
    try:
        match = re.search(r"^Umask:\s*([0-7]+)$", _STATUS.read_text(encoding="utf-8"), re.MULTILINE)
    except OSError:
        match = None
    if match is not None:
        return int(match[1], 8)
    mask = os.umask(0o077)  # restrictive, for files that other threads create meanwhile
    os.umask(mask)
    return mask
