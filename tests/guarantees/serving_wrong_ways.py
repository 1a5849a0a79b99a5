"""Services that are wrong on purpose: what finds no fault with them proves nothing.

`python -m tests.guarantees.serving_wrong_ways WAY serve ...` runs the command with a fault in it.
"""

import sys
import threading
import time
from collections.abc import Sequence
from dataclasses import replace

from calibrant.cli.main import run
from calibrant.store import Logged, LoggedRequest, PredictionLog
from calibrant.store.predictions import insert_first, insert_rest
from calibrant.store.records import new_id
from calibrant.store.tallies import ClassPlaces, add_to_tallies

__all__ = ["WAYS", "program"]

_add = PredictionLog.add


def program(way: str) -> tuple[str, ...]:
    """Return what runs the command in a wrong way."""
    return (sys.executable, "-m", "tests.guarantees.serving_wrong_ways", way)


def _answer_first(self: PredictionLog, requests: Sequence[LoggedRequest]) -> list[Logged]:
    """Answer, and write a moment later."""
    threading.Timer(0.1, _add, (self, requests)).start()
    return [Logged(request.predictions) for request in requests]


def _write_again(self: PredictionLog, requests: Sequence[LoggedRequest]) -> list[Logged]:
    """Take a request that is sent again for a new one."""
    done = _add(self, requests)
    for i, request in enumerate(requests):
        if done[i].repeated:
            name = f"{request.id}~{new_id()}"
            rows = tuple(replace(each, id=new_id(), request=name) for each in request.predictions)
            done[i] = _add(self, [LoggedRequest(name, request.hash, rows)])[0]
    return done


def _write_in_two_steps(self: PredictionLog, requests: Sequence[LoggedRequest]) -> list[Logged]:
    """Write the first row of each request, and then the others."""
    given = {request.id: request for request in requests}
    with self._database.write() as connection:
        new = insert_first(connection, [(r.predictions[0], r.hash) for r in given.values()])
    time.sleep(0.05)
    with self._database.write() as connection:
        insert_rest(connection, [(p, given[i].hash) for i in new for p in given[i].predictions[1:]])
        rows = [p for i in new for p in given[i].predictions]
        add_to_tallies(connection, rows, ClassPlaces())
    found = [Logged(self.of_request(i), repeated=i not in new) for i in given]
    return [found[list(given).index(request.id)] for request in requests]


WAYS = {
    "answers before it writes": _answer_first,
    "takes what is sent again for new": _write_again,
    "writes a request in two steps": _write_in_two_steps,
}

if __name__ == "__main__":
    PredictionLog.add = WAYS[sys.argv.pop(1)]
    run()
