"""One thread for small linear algebra, where a second one only waits."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from threading import Lock
from typing import Any

__all__ = ["one_blas_thread"]


_lock = Lock()
_inside: list[Any] = []
"""One entry for each fit under way; the first holds the limiter, which the last takes off."""


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Keep BLAS to one thread within a `with` block.

    Fits multiply matrices with a few columns thousands of times. BLAS wakes all cores for each
    product, and on a busy machine they wait for one another: a fit of five seconds took fifty.
    """
    with _lock:
        _inside.append(_controller().limit(limits=1, user_api="blas") if not _inside else None)
    try:
        yield
    finally:
        with _lock:
            # Which fit ends first is open: the limiter goes to the ones that are still at work.
            limiter = _inside.pop(0)
            if _inside and limiter is not None:
                _inside[0] = limiter
            elif limiter is not None:
                limiter.restore_original_limits()


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
