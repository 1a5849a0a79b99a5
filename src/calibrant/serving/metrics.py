"""Figures of the running service, as Prometheus reads them."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from functools import lru_cache

from prometheus_client import (
    CONTENT_TYPE_LATEST,
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    generate_latest,
    multiprocess,
)

from calibrant.store import Prediction

__all__ = ["Metrics"]

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Counts requests, latencies, decisions and scores of one service.

    With several processes, each writes to files in the folder that `PROMETHEUS_MULTIPROC_DIR`
    names, and `text` adds them up.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter(
            "calibrant_requests",
            "Requests that were answered.",
            ["route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "calibrant_request_seconds", "Seconds until the answer.", ["route"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._decisions = Counter(
            "calibrant_decisions",
            "Predictions on record.",
            ["label", "decision"],
            registry=registry,
        )
        self._scores = Histogram(
            "calibrant_score", "Probability of the most probable class.",
            buckets=_SCORES, registry=registry,
        )  # fmt: skip
        self._batches = Histogram(
            "calibrant_batch_rows",
            "Rows that were scored together.",
            buckets=_ROWS,
            registry=registry,
        )
        self._store_seconds = Histogram(
            "calibrant_store_seconds", "Seconds to put a batch on record.",
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._depth = Gauge(
            "calibrant_queue_rows", "Rows that wait or are under way.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self._swaps = Counter(
            "calibrant_bundle_swaps", "Bundles that took the place of another.", registry=registry
        )
        self._refused = Gauge(
            "calibrant_bundle_refused", "1 while a newer bundle is refused.", registry=registry,
            multiprocess_mode="livemax",
        )  # fmt: skip

        # What `labels` looks up costs as much as counting: both are kept.
        self._of_request = lru_cache(maxsize=256)(self._requests.labels)
        self._of_route = lru_cache(maxsize=64)(self._seconds.labels)
        self._of_decision = lru_cache(maxsize=4096)(self._decisions.labels)

    def answered(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._of_request(route, str(status)).inc()
        self._of_route(route).observe(seconds)

    def decided(self, predictions: Sequence[Prediction]) -> None:
        """Count predictions that are new on record."""
        for each in predictions:
            self._of_decision(each.label, each.decision or "none").inc()
            self._scores.observe(each.score)

    def batched(self, rows: int) -> None:
        """Count a batch."""
        self._batches.observe(rows)

    def stored(self, seconds: float) -> None:
        """Count a batch that was put on record, and how long that took."""
        self._store_seconds.observe(seconds)

    def watch_queue(self, depth: Callable[[], int]) -> None:
        """Have the depth of the queue read when it is asked for."""
        self._depth_of = depth

    def note_queue(self) -> None:
        """Note the depth of the queue; any process of several may be asked for the sum."""
        self._depth.set(self._depth_of())

    def swapped(self) -> None:
        """Count a swap of the bundle."""
        self._swaps.inc()

    def refused(self, is_refused: bool) -> None:
        """Say whether a newer bundle is refused."""
        self._refused.set(float(is_refused))

    def text(self) -> bytes:
        """Return all figures in the text format."""
        self.note_queue()
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        together = CollectorRegistry()
        multiprocess.MultiProcessCollector(together)  # type: ignore[no-untyped-call]
        return generate_latest(together)
