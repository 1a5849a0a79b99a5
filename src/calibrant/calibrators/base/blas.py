"""Context manager that limits BLAS to one thread."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["single_blas_thread"]


_lock = Lock()
_limits: list[Any] = []
"""One entry per running fit; the first holds the limiter, which the last fit restores."""


@contextmanager
def single_blas_thread() -> Iterator[None]:
    """Limit BLAS to one thread within a `with` block.

    Fits multiply matrices with a few columns thousands of times. BLAS uses all cores for each
    product, and on a busy machine they wait for one another: a five-second fit took fifty.
    """
    with _lock:
        _limits.append(_controller().limit(limits=1, user_api="blas") if not _limits else None)
    try:
        yield
    finally:
        with _lock:
            # Fits end in any order: pass the limiter to one that is still running.
            limiter = _limits.pop(0)
            if _limits and limiter is not None:
                _limits[0] = limiter
            elif limiter is not None:
                limiter.restore_original_limits()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
