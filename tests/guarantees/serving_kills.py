"""kill -9 at random moments under load, again and again."""

import os
import random
import signal
import time
from pathlib import Path

from tests.guarantees.serving_databases import Postgres, Sqlite
from tests.guarantees.serving_load import Load
from tests.guarantees.serving_process import CALIBRANT, Process, wait_until
from tests.guarantees.serving_record import Found, compare

from calibrant.errors import StoreError
from calibrant.store import Store

HOW = ("all", "worker", "supervisor")
"""What is killed: every process, one that serves, or the one that looks after those."""


def kill_again_and_again(
    database: Sqlite | Postgres, bundle: Path, folder: Path, *, kills: int, seed: int,
    workers: int = 1, how: tuple[str, ...] = ("all",), clients: int = 8, own: int = 0,
    program: tuple[str, ...] = CALIBRANT,
) -> Found:  # fmt: skip
    """Kill a service under load, start it again, and compare what it said with the store.

    Parameters
    ----------
    database : a new one
    bundle : what is served
    folder : for what the process writes
    kills : how many times
    seed : of the load and of the moments
    workers : processes that serve
    how : what is killed, in turn
    clients, own : how many ask at a time, and how many of them are Calibrant's own
    program : what runs it
    """
    draw = random.Random(seed)
    options = ("--workers", str(workers))
    with Process(bundle, database.url, folder, *options, program=program) as service:
        with Load(service.url, seed, clients=clients, own=own) as load:
            for i in range(kills):
                load.wait_for(draw.randint(1, 8 * clients))
                time.sleep(draw.uniform(0, 0.2))
                _kill(service, how[i % len(how)], draw)
            load.wait_for(20)
            load.finish()
        load.ask_again()
        assert service.stop() == 0, service.said[-2000:]
        wait_until(lambda: not service.group(), "the end of all processes")
    return compare(load, database)


def _kill(service: Process, how: str, draw: random.Random) -> None:
    if how == "worker":
        _kill_worker(service, draw)
        return
    if how == "supervisor":
        service.kill_supervisor()
        wait_until(lambda: not service.group(), "the end of the workers")
    else:
        service.kill()
    service.start()


def _kill_worker(service: Process, draw: random.Random) -> None:
    """Kill one that serves; another takes its place."""
    before = wait_until(lambda: len(service.workers()) == 2 and service.workers(), "two workers")
    os.kill(draw.choice(before), signal.SIGKILL)
    wait_until(
        lambda: len(service.workers()) == 2 and set(service.workers()) != set(before),
        "another worker",
    )


def kill_while_starting(
    database: Sqlite | Postgres, bundle: Path, folder: Path, draw: random.Random
) -> bool:
    """Kill a service while it makes its tables; the next finds them whole or not there.

    Returns whether the kill came before they were there.
    """
    service = Process(bundle, database.url, folder)
    service.begin()
    wait_until(database.is_begun, "the first sign of a store", every=0.001)
    time.sleep(draw.uniform(0, 0.05))
    service.kill()
    with Store(database.url) as store:
        try:
            store.check()
            early = False
        except StoreError:
            early = True
        store.prepare()
        store.check()
        assert store.predictions.count() == 0
    return early
