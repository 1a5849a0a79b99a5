"""One thread for small linear algebra, where a second one only waits."""

from __future__ import annotations

from contextlib import AbstractContextManager
from functools import cache
from typing import Any

__all__ = ["one_blas_thread"]


def one_blas_thread() -> AbstractContextManager[Any]:
    """Keep BLAS to one thread within a `with` block.

    Fits multiply matrices with a few columns thousands of times. BLAS wakes all cores for each
    product, and on a busy machine they wait for one another: a fit of five seconds took fifty.
    """
    limited: AbstractContextManager[Any] = _controller().limit(limits=1, user_api="blas")
    return limited


@cache
def _controller() -> Any:
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()
