"""Signals that are handled in another way for a while."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["handled"]


@contextmanager
def handled(handler: Any, *names: signal.Signals) -> Iterator[None]:
    """Have signals handled by `handler`, and as before afterwards."""
    before = {name: signal.signal(name, handler) for name in names}
    try:
        yield
    finally:
        for name, old in before.items():
            signal.signal(name, old)
