"""Load for an HTTP server: keep-alive connections, ready-made requests, one process of its own.

There are two ways to ask. *Closed*: each client sends its next request as soon as it has an answer,
which finds the throughput. *Open*: requests are due at the times of a Poisson process, whatever the
server does, and a latency counts from the time at which a request was due, also where every
connection was still busy then: a server that stalls cannot make its clients ask less and so hide
the stall (no coordinated omission).

The generator shares the cores with the server, so it does as little as it can: bytes are made
before the clock starts, and of an answer only the status and the length are read. It loads nothing
but the standard library. Timers of event loops tick in milliseconds; `select` on the selector's own
file waits in microseconds, which is what arrivals at some thousands a second take.
"""

from __future__ import annotations

import gc
import json
import math
import random
import select
import selectors
import socket
import subprocess
import sys
import time
from array import array
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

__all__ = ["ask_closed", "ask_open"]

GIVE_UP = 60.0  # seconds without any answer
END = b"\r\n\r\n"
LENGTH = b"\r\ncontent-length: "
PERCENTILES = (50.0, 90.0, 99.0, 99.9, 100.0)


class Refused(RuntimeError):
    """The server closed a connection, sent something unexpected, or sent nothing."""


def ask_closed(
    port: int,
    path: str,
    bodies: Path,
    *,
    clients: int,
    seconds: float | None = None,
    count: int | None = None,
) -> dict[str, Any]:
    """Send requests from several clients at once, for a time or up to a number of requests.

    Parameters
    ----------
    port, path : where to POST on this machine
    bodies : JSON file with a list of bodies (texts of JSON); they are sent in turns
    clients : how many connections, each with one request on its way
    seconds, count : when to stop asking; answers after `seconds` do not count for the rate
    """
    return _elsewhere(
        {"port": port, "path": path, "bodies": str(bodies), "clients": clients},
        {"kind": "closed", "seconds": seconds, "count": count},
    )


def ask_open(
    port: int, path: str, bodies: Path, *, clients: int, seconds: float, rate: float, seed: int
) -> dict[str, Any]:
    """Ask at the times of a Poisson process.

    Parameters
    ----------
    port, path, bodies : as in `ask_closed`
    clients : how many connections there are; a request that finds all of them busy waits for one
    seconds, rate : for how long, and how many requests a second on average
    seed : of the times
    """
    return _elsewhere(
        {"port": port, "path": path, "bodies": str(bodies), "clients": clients},
        {"kind": "open", "seconds": seconds, "rate": rate, "seed": seed},
    )


def _elsewhere(*parts: Mapping[str, Any]) -> dict[str, Any]:
    """Run this file as a process of its own, and refuse answers that are not all 200."""
    plan = {name: value for part in parts for name, value in part.items()}
    done = subprocess.run(
        [sys.executable, "-I", "-S", __file__],
        input=json.dumps(plan),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode:
        raise Refused(f"load on port {plan['port']} failed:\n{done.stderr}")
    result: dict[str, Any] = json.loads(done.stdout)
    if set(result["statuses"]) != {"200"} or result["statuses"]["200"] != result["asked"]:
        raise Refused(
            f"{result['asked']} requests to {plan['path']} were answered with {result['statuses']}."
        )
    return result


class _Connection:
    """One keep-alive connection with at most one request on its way."""

    __slots__ = ("busy", "got", "port", "recv", "send", "since", "socket")

    def __init__(self, port: int) -> None:
        self.port = port
        self.open()

    def open(self) -> None:
        """Connect."""
        self.socket = socket.create_connection(("127.0.0.1", self.port))
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.socket.setblocking(False)
        self.recv, self.send = self.socket.recv, self.socket.send
        self.got, self.since, self.busy = b"", 0.0, False

    def ask(self, request: bytes, since: float) -> None:
        """Send a request whose latency counts from `since`."""
        self.since, self.busy = since, True
        if self.send(request) != len(request):
            raise Refused("a request did not fit into the socket at once.")

    def answer(self) -> bytes | None:
        """Return the status, or None where more of the answer is to come."""
        data = self.recv(65536)
        if not data:
            raise Refused("the server closed a connection.")
        if self.got:
            data = self.got + data
        head = data.find(END)
        place = data.find(LENGTH, 0, head)
        if head < 0 or place < 0:
            if head >= 0:
                raise Refused(f"an answer without content-length: {data[:head]!r}.")
            self.got = data
            return None
        start = place + len(LENGTH)
        missing = head + len(END) + int(data[start : data.find(b"\r", start)]) - len(data)
        if missing > 0:
            self.got = data
            return None
        if missing < 0:
            raise Refused("an answer is longer than it says.")
        self.got, self.busy = b"", False
        return data[9:12]


class _Record:
    """What came back, and when."""

    __slots__ = ("began", "busiest", "ended", "late", "spent", "statuses")

    def __init__(self) -> None:
        self.statuses: Counter[bytes] = Counter()
        self.began = time.perf_counter()
        self.ended, self.spent, self.late = array("d"), array("d"), array("d")
        self.busiest = 0

    def to_dict(self, sent: int, seconds: float | None) -> dict[str, Any]:
        """Return JSON-ready values."""
        if seconds is None:
            seconds, counted = self.ended[-1] - self.began, len(self.ended)
        else:
            counted = sum(at <= self.began + seconds for at in self.ended)
        return {
            "asked": sent,
            "statuses": {status.decode("latin-1"): n for status, n in self.statuses.items()},
            "seconds": seconds,
            "per_s": counted / seconds,
            "latency_ms": _percentiles(self.spent),
            "sent_late_ms": _percentiles(self.late),
            "most_on_their_way": self.busiest,
            "generator_cpu_s": time.process_time(),
        }


def _percentiles(seconds: Sequence[float]) -> dict[str, float]:
    ordered = sorted(seconds)
    return {
        f"p{percent:g}": round(1000 * ordered[math.ceil(percent / 100 * len(ordered)) - 1], 4)
        for percent in PERCENTILES
        if ordered
    }


def _closed(
    connections: Sequence[_Connection],
    next_request: Callable[[], bytes],
    seconds: float | None,
    count: int | None,
) -> dict[str, Any]:
    """Send the next request of each client as soon as it has its answer."""
    clock, watched = time.perf_counter, _watched(connections)
    most = math.inf if count is None else count
    record = _Record()
    until = math.inf if seconds is None else record.began + seconds
    sent = on_their_way = min(len(connections), int(min(most, len(connections))))
    for connection in connections[:sent]:
        connection.ask(next_request(), clock())
    record.busiest = sent
    while on_their_way:
        ready = watched.select(GIVE_UP)
        if not ready:
            raise Refused(f"no answer for {GIVE_UP:g} seconds.")
        for key, _ in ready:
            connection = key.data
            status = connection.answer()
            if status is None:
                continue
            now = clock()
            record.statuses[status] += 1
            record.ended.append(now)
            record.spent.append(now - connection.since)
            if now < until and sent < most:
                connection.ask(next_request(), now)
                sent += 1
            else:
                on_their_way -= 1
    return record.to_dict(sent, seconds)


def _open(
    connections: Sequence[_Connection],
    next_request: Callable[[], bytes],
    offsets: Sequence[float],
    seconds: float,
) -> dict[str, Any]:
    """Send each request when it is due, or as soon after as a connection is free."""
    clock, watched = time.perf_counter, _watched(connections)
    file = watched.fileno()  # type: ignore[attr-defined]
    idle = deque(connections)  # the longest idle one is next: servers close idle connections
    record = _Record()
    due = [record.began + offset for offset in offsets]
    sent = answered = 0
    while answered < len(due):
        now = clock()
        while sent < len(due) and due[sent] <= now and idle:
            idle.popleft().ask(next_request(), due[sent])
            record.late.append(now - due[sent])
            sent += 1
        record.busiest = max(record.busiest, len(connections) - len(idle))
        wait = due[sent] - clock() if sent < len(due) and idle else GIVE_UP
        if not select.select([file], [], [], max(0.0, wait))[0]:
            if wait == GIVE_UP:
                raise Refused(f"no answer for {GIVE_UP:g} seconds.")
            continue
        for key, _ in watched.select(0):
            connection = key.data
            if not connection.busy:
                _reopen(connection, watched)
                continue
            status = connection.answer()
            if status is None:
                continue
            now = clock()
            record.statuses[status] += 1
            record.ended.append(now)
            record.spent.append(now - connection.since)
            idle.append(connection)
            answered += 1
    return record.to_dict(sent, seconds)


def _reopen(connection: _Connection, watched: selectors.BaseSelector) -> None:
    """Reopen a connection that the server closed because it was idle."""
    if connection.recv(1):
        raise Refused("an answer that nobody asked for.")
    watched.unregister(connection.socket)
    connection.socket.close()
    connection.open()
    watched.register(connection.socket, selectors.EVENT_READ, connection)


def _watched(connections: Sequence[_Connection]) -> selectors.BaseSelector:
    selector = selectors.DefaultSelector()
    for connection in connections:
        selector.register(connection.socket, selectors.EVENT_READ, connection)
    return selector


def _arrivals(rate: float, seconds: float, seed: int) -> list[float]:
    """Return the times of a Poisson process."""
    drawn, times = random.Random(seed), []
    at = drawn.expovariate(rate)
    while at < seconds:
        times.append(at)
        at += drawn.expovariate(rate)
    return times


def _requests(path: str, port: int, bodies: Sequence[str]) -> list[bytes]:
    requests = []
    for body in bodies:
        data = body.encode()
        head = (
            f"POST {path} HTTP/1.1\r\nHost: 127.0.0.1:{port}\r\nAccept: */*\r\n"
            f"Content-Type: application/json\r\nContent-Length: {len(data)}\r\n\r\n"
        )
        requests.append(head.encode() + data)
    return requests


def _main() -> None:
    """Read the plan from standard input, send the requests, and write the result."""
    plan = json.load(sys.stdin)
    bodies = json.loads(Path(plan["bodies"]).read_text(encoding="utf-8"))
    requests = _requests(plan["path"], plan["port"], bodies)
    turns = iter(range(2**62))
    connections = [_Connection(plan["port"]) for _ in range(plan["clients"])]
    gc.disable()

    def next_request() -> bytes:
        return requests[next(turns) % len(requests)]

    if plan["kind"] == "closed":
        result = _closed(connections, next_request, plan["seconds"], plan["count"])
    else:
        offsets = _arrivals(plan["rate"], plan["seconds"], plan["seed"])
        result = _open(connections, next_request, offsets, plan["seconds"])
    json.dump(result, sys.stdout)


if __name__ == "__main__":
    _main()
