"""Contributions for requests that ask for reasons, computed beside the scoring thread."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from calibrant.bundle.reasons import explain_rows
from calibrant.data.explanation import RowExplanation
from calibrant.serving.bundle_slot import Served
from calibrant.serving.http.problems import Problem
from calibrant.serving.scoring import collate

_BLOCK = 32  # Rows between two looks at whether the request still waits


class Explainer:
    """Explains the rows of one request at a time, in a thread of its own.

    Contributions of boosted trees take many times as long as their logits, and other requests must
    not wait for them.

    Parameters
    ----------
    max_rows : maximum number of rows that wait or are in progress
    timeout : seconds after which a request gets 503; its rows are then abandoned
    """

    def __init__(self, *, max_rows: int, timeout: float) -> None:
        self._pool = ThreadPoolExecutor(1, "calibrant-reasons")
        self._max_rows, self._timeout = max_rows, timeout
        self._depth = 0

    async def explain(self, served: Served, rows: Sequence[Any]) -> list[RowExplanation]:
        """Return what the parts of each checked row contribute to its logits."""
        if self._depth + len(rows) > self._max_rows:
            raise Problem.busy("too many requests wait for reasons: send this one again later.")
        self._depth += len(rows)
        given_up = threading.Event()
        try:
            loop = asyncio.get_running_loop()
            future = loop.run_in_executor(self._pool, _explain_blocks, served, rows, given_up)
            return await asyncio.wait_for(future, self._timeout)
        except TimeoutError:
            raise Problem.busy(
                f"the reasons of {len(rows):,} inputs were not computed within "
                f"{self._timeout:g} s: send fewer inputs, or the request again later."
            ) from None
        finally:
            given_up.set()  # also if the client is gone
            self._depth -= len(rows)

    def close(self) -> None:
        """Cancel what waits and accept no more."""
        self._pool.shutdown(wait=False, cancel_futures=True)


def _explain_blocks(
    served: Served, rows: Sequence[Any], given_up: threading.Event
) -> list[RowExplanation]:
    explained: list[RowExplanation] = []
    for start in range(0, len(rows), _BLOCK):
        if given_up.is_set():
            break
        inputs = collate(rows[start : start + _BLOCK], served)
        explained += explain_rows(served.bundle.scorer, inputs).rows
    return explained
