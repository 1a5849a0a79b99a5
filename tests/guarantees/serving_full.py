"""The serving part of `make guarantees`: many kills, every outage, stops and swaps, counted."""

import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from tests.guarantees.serving_databases import Postgres, PostgresServer, Sqlite
from tests.guarantees.serving_kills import kill_again_and_again, kill_while_starting
from tests.guarantees.serving_load import Load
from tests.guarantees.serving_outages import (
    Trouble,
    disk_full,
    files_full,
    hanging,
    locked,
    moved_away,
    outages,
    restored,
    server_full,
    small_disk,
    stopped,
)
from tests.guarantees.serving_process import Process, make_bundle, wait_until
from tests.guarantees.serving_record import FAULTS, Found, compare
from tests.guarantees.serving_stops import misattributed, stop_under_load, swap_under_load
from tests.guarantees.serving_wrong_ways import WAYS, program

KILLS = int(os.environ.get("KILLS", "20"))
STOPS = 5
_COUNTS = ("acknowledged", "rows", "retried", "unheard", "in_doubt", "in_doubt_on_record",
           "outcomes")  # fmt: skip

Row = dict[str, Any]


class World:
    """A bundle, a server and a folder for what is made anew each time.

    Parameters
    ----------
    folder : for all files
    server : of PostgreSQL
    """

    def __init__(self, folder: Path, server: PostgresServer) -> None:
        self.folder, self.server = folder, server
        self._made = 0

    def new(self) -> Path:
        """Make a new folder."""
        self._made += 1
        made = self.folder / f"run-{self._made}"
        made.mkdir()
        return made

    def databases(self) -> Iterator[tuple[str, Sqlite | Postgres]]:
        """Make a new database of each kind."""
        yield "SQLite", Sqlite(self.new() / "calibrant.db")
        yield "PostgreSQL", self.server.database()


def serving() -> dict[str, Any]:
    """Run all of it."""
    server = PostgresServer()
    try:
        with tempfile.TemporaryDirectory(prefix="calibrant-serving-") as folder:
            world = World(Path(folder), server)
            return {
                "kills": [*_kills(world), *_starts(world)],
                "outages": [*_file_outages(world), *_server_outages(world)],
                "stops": [*_stops(world), _stop_while_hanging(world)],
                "swaps": [*_swaps(world)],
                "wrong_ways": [*_wrong_ways(world)],
            }
    finally:
        server.close()


def is_kept(found: dict[str, Any]) -> bool:
    """Tell whether nothing was lost, doubled or halved, but where it should have been."""
    rows = [row for part in ("kills", "outages", "stops", "swaps") for row in found[part]]
    return all(row["kept"] for row in rows) and not any(w["kept"] for w in found["wrong_ways"])


def _kills(world: World) -> Iterator[Row]:
    bundle = make_bundle(world.new() / "bundle").path
    plans = (
        ("every process", 1, ("all",), KILLS),
        ("a worker, every process, the supervisor in turn", 2, ("worker", "all", "supervisor"),
         max(3, KILLS // 2)),
    )  # fmt: skip
    for killed, workers, how, kills in plans:
        for name, database in world.databases():
            found = kill_again_and_again(
                database, bundle, world.new(), kills=kills, seed=KILLS + workers, workers=workers,
                how=how, clients=16, own=2,
            )  # fmt: skip
            about = {"database": name, "workers": workers, "killed": killed, "kills": kills}
            yield _row(about, found)


def _starts(world: World) -> Iterator[Row]:
    bundle, draw = make_bundle(world.new() / "bundle").path, random.Random(KILLS)
    early = {"SQLite": 0, "PostgreSQL": 0}
    for _ in range(KILLS):
        for name, database in world.databases():
            early[name] += kill_while_starting(database, bundle, world.new(), draw)
    for name, count in early.items():
        killed = f"while it makes its tables (before they were there: {count})"
        yield _row({"database": name, "workers": 1, "killed": killed, "kills": KILLS}, Found())


def _file_outages(world: World) -> Iterator[Row]:
    troubles: dict[str, Callable[[Sqlite], Trouble]] = {
        "no file of the process may grow": lambda _: files_full,
        "another process holds the lock": locked,
        "the file is moved away and back": moved_away,
        "the file is deleted and restored": restored,
    }
    for name, trouble in troubles.items():
        database = Sqlite(world.new() / "calibrant.db")
        yield _outage(world, "SQLite", database, name, trouble(database))
    with small_disk(world.folder / "disk", "16m") as disk:
        if disk is not None:
            database = Sqlite(disk / "calibrant.db")
            yield _outage(world, "SQLite", database, "the disk is full", disk_full(disk))


def _server_outages(world: World) -> Iterator[Row]:
    server, kind = world.server, "PostgreSQL"
    database = server.database()
    full = server_full(database)
    yield _outage(world, kind, database, "the server says that its disk is full", full)
    yield _outage(world, kind, server.database(), "the server crashes", stopped(server))
    yield _outage(world, kind, server.database(), "the server hangs", hanging(server))
    with small_disk(server.folder / "disk", "24m") as disk:
        if disk is not None:
            (disk / "tables").mkdir()
            with server.database_on(disk / "tables") as database:
                yield _outage(world, kind, database, "the disk is full", disk_full(disk))


def _outage(
    world: World, kind: str, database: Sqlite | Postgres, name: str, trouble: Trouble
) -> Row:
    bundle = make_bundle(world.new() / "bundle").path
    found, load = outages(database, bundle, world.new(), {name: trouble}, seed=7)
    return _row({"database": kind, "trouble": name, "refused": load.refused}, found)


def _stops(world: World) -> Iterator[Row]:
    bundle = make_bundle(world.new() / "bundle").path
    for workers in (1, 2):
        for kind in ("SQLite", "PostgreSQL"):
            about = {"database": kind, "workers": workers, "stops": STOPS}
            yield _row(about, *_stop_again_and_again(world, kind, bundle, workers))


def _stop_again_and_again(world: World, kind: str, bundle: Path, workers: int) -> Iterator[Found]:
    for seed in range(STOPS):
        database = dict(world.databases())[kind]
        yield stop_under_load(database, bundle, world.new(), seed=seed, workers=workers)


def _stop_while_hanging(world: World) -> Row:
    """A service whose database hangs can be stopped, too."""
    bundle, database = make_bundle(world.new() / "bundle").path, world.server.database()
    with Process(bundle, database.url, world.new()) as service, Load(service.url, 8) as load:
        load.wait_for(30)
        with world.server.hanging():
            time.sleep(1)
            assert service.stop() == 0
            load.abandon()
    about = {"database": "PostgreSQL, hanging", "workers": 1, "stops": 1}
    return _row(about, _settled(load, database))


def _settled(load: Load, database: Postgres) -> Found:
    """Compare when the server has ended what it was told before it hung."""
    wait_until(lambda: not database.is_begun(), "the end of all transactions")
    return compare(load, database)


def _swaps(world: World) -> Iterator[Row]:
    for kind, database in world.databases():
        bundle = make_bundle(world.new() / "bundle")
        found, load, bundles = swap_under_load(database, bundle, world.new(), seed=9)
        failed = load.refused + sum(each.broken for each in load.asked) + len(load.faults)
        wrong = misattributed(load, bundles)
        about = {"database": kind, "swaps": len(bundles) - 1, "failed": failed,
                 "misattributed": len(wrong)}  # fmt: skip
        row = _row(about, found)
        yield row | {"kept": row["kept"] and not failed and not wrong}


def _wrong_ways(world: World) -> Iterator[Row]:
    bundle = make_bundle(world.new() / "bundle").path
    for way in WAYS:
        kills = max(5, KILLS // 2)
        found = kill_again_and_again(
            Sqlite(world.new() / "calibrant.db"), bundle, world.new(), kills=kills, seed=10,
            clients=16, program=program(way),
        )  # fmt: skip
        yield _row({"way": way, "kills": kills}, found)


def _row(about: Row, *found: Found) -> Row:
    """Add up what runs found."""
    counts = {name: sum(getattr(each, name) for each in found) for name in _COUNTS}
    faults = {name: sum(len(getattr(each, name)) for each in found) for name in FAULTS}
    kept = not any(faults.values())
    if "stops" in about:  # what was taken is answered
        kept = kept and counts["in_doubt_on_record"] == 0
    words = ("MISSED", "caught") if "way" in about else ("kept", "BROKEN")
    print(f"{words[not kept]:<7} {about}: {counts | faults}", flush=True)
    for each in found if not kept else ():
        print(f"        {each.broken}", flush=True)
    return {**about, **counts, **faults, "kept": kept}
