"""Prometheus metrics of the service."""

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

_SECONDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_SCORES = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 0.99, 1.0)
_ROWS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024)


class Metrics:
    """Metrics of requests, latencies, decisions and scores.

    With several processes, each writes to files in `PROMETHEUS_MULTIPROC_DIR`, and `text` adds
    them up.
    """

    content_type = CONTENT_TYPE_LATEST

    def __init__(self) -> None:
        registry = self._registry = CollectorRegistry()
        self._requests = Counter(
            "calibrant_requests",
            "Answered requests.",
            ["route", "status"],
            registry=registry,
        )
        self._seconds = Histogram(
            "calibrant_request_seconds", "Request latency in seconds.", ["route"],
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._decisions = Counter(
            "calibrant_decisions",
            "Recorded predictions.",
            ["label", "decision"],
            registry=registry,
        )
        self._scores = Histogram(
            "calibrant_score", "Probability of the most probable class.",
            buckets=_SCORES, registry=registry,
        )  # fmt: skip
        self._batches = Histogram(
            "calibrant_batch_rows",
            "Rows per batch.",
            buckets=_ROWS,
            registry=registry,
        )
        self._store_seconds = Histogram(
            "calibrant_store_seconds", "Seconds to write a batch to the store.",
            buckets=_SECONDS, registry=registry,
        )  # fmt: skip
        self._depth = Gauge(
            "calibrant_queue_rows", "Rows waiting or in progress.", registry=registry,
            multiprocess_mode="livesum",
        )  # fmt: skip
        self._swaps = Counter("calibrant_bundle_swaps", "Bundle replacements.", registry=registry)
        self._refused = Gauge(
            "calibrant_bundle_refused", "1 while a newer bundle is refused.", registry=registry,
            multiprocess_mode="livemax",
        )  # fmt: skip

        # `labels` costs as much as the counting itself, so its results are cached.
        self._request_counter = lru_cache(maxsize=256)(self._requests.labels)
        self._route_seconds = lru_cache(maxsize=64)(self._seconds.labels)
        self._decision_counter = lru_cache(maxsize=4096)(self._decisions.labels)

    def count_request(self, route: str, status: int, seconds: float) -> None:
        """Count a request."""
        self._request_counter(route, str(status)).inc()
        self._route_seconds(route).observe(seconds)

    def count_predictions(self, predictions: Sequence[Prediction]) -> None:
        """Count newly recorded predictions."""
        for each in predictions:
            self._decision_counter(each.label, each.decision or "none").inc()
            self._scores.observe(each.score)

    def count_batch(self, rows: int) -> None:
        """Count a batch."""
        self._batches.observe(rows)

    def observe_write(self, seconds: float) -> None:
        """Observe the seconds it took to write a batch."""
        self._store_seconds.observe(seconds)

    def set_queue_depth(self, depth: Callable[[], int]) -> None:
        """Set the function that returns the depth of the queue."""
        self._read_depth = depth

    def update_queue(self) -> None:
        """Update the gauge of the queue depth; any process may report the sum."""
        self._depth.set(self._read_depth())

    def count_swap(self) -> None:
        """Count a bundle replacement."""
        self._swaps.inc()

    def set_refused(self, is_refused: bool) -> None:
        """Set whether a newer bundle is refused."""
        self._refused.set(float(is_refused))

    def text(self) -> bytes:
        """Return all metrics in the Prometheus text format."""
        self.update_queue()
        if "PROMETHEUS_MULTIPROC_DIR" not in os.environ:
            return generate_latest(self._registry)
        combined = CollectorRegistry()
        multiprocess.MultiProcessCollector(combined)  # type: ignore[no-untyped-call]
        return generate_latest(combined)
