"""Pages of the console with 1,000,000 predictions in the store, over HTTP.

The service is `calibrant serve` in a process of its own, with a file of SQLite and all settings at
their defaults; the bundle has a model for texts and 3,000 calibrate rows. See `console_store` for
what is in the store. One client on a keep-alive connection asks for each page 20 times, and pages
take turns, so that none has the caches to itself. What counts is the time from the request to the
last byte of the page. Besides plain pages there are those that are hard: filters that match
nothing, or only what lies a month back, and figures over all 30 days.

The first request for a page may compute what later ones read from a cache, so it is listed
separately. It is not left out as a warm-up: for the goals it counts like all others.
"""

from __future__ import annotations

import os
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Mapping
from datetime import timedelta
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from benchmarks.console_store import CASE, Rare, fill, pack_two
from benchmarks.harness import Disagreement, Size, agree, cores
from benchmarks.outcome import Outcome, within
from benchmarks.serving_process import Server, free_port

__all__ = ["measure"]

PREDICTIONS = {"full": 1_000_000, "toy": 2_000}
ROUNDS = {"full": 20, "toy": 3}
LIMIT = 200.0
LIST = "/console/predictions"
MESSAGE = "the zip broke on the first day and i want my money back"
TARGET = "precision>=0.75"


class Visitor:
    """Someone who asks for pages, with the cookie of the first one.

    Parameters
    ----------
    port : of the service
    """

    def __init__(self, port: int) -> None:
        self._connection = HTTPConnection("127.0.0.1", port, timeout=60)
        self._cookie, self.csrf = "", ""
        self.page("/console/try")

    def page(self, path: str, fields: Mapping[str, str] | None = None) -> tuple[int, str]:
        """Ask for a page, or send a form; return the status and the page, or where it leads to."""
        headers = {"Cookie": self._cookie} if self._cookie else {}
        body = None
        if fields is not None:
            body = urlencode({"csrf": self.csrf, **fields})
            headers["Content-Type"] = "application/x-www-form-urlencoded"
        self._connection.request("GET" if body is None else "POST", path, body, headers)
        answer = self._connection.getresponse()
        text = answer.read().decode()
        if cookie := answer.getheader("Set-Cookie"):
            self._cookie = cookie.partition(";")[0]
        if token := re.search(r'name="csrf" value="([0-9a-f]+)"', text):
            self.csrf = token[1]
        return answer.status, answer.getheader("Location") or text


def measure(size: Size) -> list[Outcome]:
    """Fill a store, serve it, and ask for every page."""
    with tempfile.TemporaryDirectory(prefix="calibrant-bench-") as name:
        folder = Path(name)
        bundles = pack_two(folder)
        start = time.perf_counter()
        rare = fill(folder / "service.db", bundles, PREDICTIONS[size])
        filled = time.perf_counter() - start
        port = free_port()
        words = ["serve", str(bundles[0]), "--db", str(folder / "service.db")]
        command = [sys.executable, "-m", "calibrant", *words, "--port", str(port)]
        with Server(command, port):
            visitor = Visitor(port)
            pages = _page_requests(visitor, rare)
            load = os.getloadavg()[0]
            _check(visitor, pages, rare, PREDICTIONS[size])
            times = _times(visitor, pages, ROUNDS[size])
    details = {
        "pages": {name: _summarise_times(each) for name, each in times.items()},
        "predictions": PREDICTIONS[size],
        "filled_s": round(filled, 1),
        "cores": cores(),
        "load_average": round(load, 1),  # above 1, other work ran meanwhile
    }
    return _outcomes(times, PREDICTIONS[size], details)


def _outcomes(
    times: Mapping[str, list[float]], n: int, details: Mapping[str, Any]
) -> list[Outcome]:
    medians = {name: statistics.median(each) for name, each in times.items()}
    worst = {name: max(each) for name, each in times.items()}
    slowest, slow = (max(each, key=each.__getitem__) for each in (medians, worst))
    of = f"{len(times)} pages and filters of the console, {n:,} predictions in the store"
    goal = f"{of}: the slowest in under {LIMIT:g} ms, median of its requests"
    by_median = within(goal, medians[slowest], LIMIT, "ms", {"slowest": slowest, **details})
    goal = "the same: the slowest of all requests, the first for a page among them"
    return [by_median, within(goal, worst[slow], LIMIT, "ms", {"slowest": slow})]


def _page_requests(visitor: Visitor, rare: Rare) -> dict[str, tuple[str, Mapping[str, str] | None]]:
    """Return the address of every page by its name, with the fields of those that are forms."""

    def filtered(**filters: str) -> tuple[str, None]:
        return f"{LIST}?{urlencode(filters)}", None

    day, next_day = (
        at.strftime("%Y-%m-%dT%H:%M") for at in (rare.day, rare.day + timedelta(days=1))
    )
    return {
        "overview, 24 hours": ("/console", None),
        "overview, 7 days": ("/console?window=7d", None),
        "overview, 30 days": ("/console?window=30d", None),
        "overview, 30 days, all versions": ("/console?window=30d&bundle=all", None),
        "live figures": ("/console/live", None),
        "model": ("/console/model", None),
        "thresholds": ("/console/thresholds", None),
        "thresholds with costs": ("/console/thresholds?fp=1&fn=4", None),
        "thresholds, a target tried": (_tried(visitor), None),
        "predictions": (LIST, None),
        "predictions, half a month back": filtered(before=rare.middle),
        "predictions of a decision": filtered(decision="act"),
        "predictions of a rare class, high scores": filtered(label=rare.label, min_score="0.99"),
        "predictions of a score that none has": filtered(min_score="0.9999999"),
        "predictions of the version before": filtered(bundle=rare.version),
        "predictions of the version before that none is": filtered(
            bundle=rare.version, decision="clear"
        ),
        "predictions of a use case of long ago": filtered(use_case=rare.use_case),
        "predictions of a use case, and none": filtered(
            use_case=rare.use_case, min_score="0.9999999"
        ),
        "predictions of a unit": filtered(unit=rare.unit),
        "predictions of a unit, by its id": filtered(search=rare.unit),
        "predictions of an id that is not there": filtered(search="no-such-id"),
        "predictions of the first day": filtered(since=day, until=next_day),
        "predictions acted on, most probably of a class that never is": filtered(
            decision="act", label=rare.label, since=day
        ),
        "predictions acted on, of a use case of long ago": filtered(
            decision="act", use_case=rare.use_case
        ),
        "predictions acted on, of the version before": filtered(
            decision="act", bundle=rare.version
        ),
        "predictions of a use case, of a score that none has": filtered(
            use_case=CASE, min_score="0.9999999"
        ),
        "prediction": (f"{LIST}/{rare.oldest}", None),
        "try it": ("/console/try", None),
        "try it, a message": ("/console/try", {"text": MESSAGE}),
    }


def _tried(visitor: Visitor) -> str:
    """Try a target, and return the address that shows it."""
    _, page = visitor.page("/console/thresholds")
    form = page[page.index('action="/console/thresholds/target') :].partition("</form>")[0]
    hidden = re.findall(r'type="hidden" name="(\w+)" value="([^"]*)"', form)
    fields = {name: value for name, value in hidden if name != "csrf"}
    status, address = visitor.page("/console/thresholds/target", {**fields, "hold": TARGET})
    agree("status of a target that is tried", status, 303, 0)
    return address.partition("#")[0]


def _times(
    visitor: Visitor, pages: Mapping[str, tuple[str, Mapping[str, str] | None]], rounds: int
) -> dict[str, list[float]]:
    """Ask for the pages in turns; return the milliseconds of each request."""
    times: dict[str, list[float]] = {name: [] for name in pages}
    for _ in range(rounds):
        for name, (path, fields) in pages.items():
            start = time.perf_counter()
            status, _ = visitor.page(path, fields)
            times[name].append(1000 * (time.perf_counter() - start))
            agree(f"status of {name}", status, 200, 0)
    return times


def _check(visitor: Visitor, pages: Mapping[str, Any], rare: Rare, n: int) -> None:
    """Refuse times of pages that do not show what they should."""
    parts = {
        "overview, 30 days, all versions": f"{n:,}",
        "predictions of a score that none has": "No predictions found",
        "predictions of a use case of long ago": rare.use_case,
        "predictions of the version before": rare.version[:12],
        "prediction": rare.oldest,
    }
    for name, part in parts.items():
        status, page = visitor.page(*pages[name])
        if status != 200 or part not in page:
            raise Disagreement(f"{name} ({pages[name][0]}): {status}, without {part!r}.")


def _summarise_times(times: list[float]) -> dict[str, float]:
    return {
        "first_ms": round(times[0], 1),
        "median_ms": round(statistics.median(times), 1),
        "worst_ms": round(max(times), 1),
    }
