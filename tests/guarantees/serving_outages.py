"""The database away under load: refusals while it is, nothing lost, and recovery without help."""

import os
import resource
import shutil
import subprocess
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from tests.guarantees.serving_databases import Postgres, PostgresServer, Sqlite
from tests.guarantees.serving_load import Load
from tests.guarantees.serving_process import Process, wait_until
from tests.guarantees.serving_record import Found, compare

Trouble = Callable[[Process], AbstractContextManager[None]]


def outages(
    database: Sqlite | Postgres, bundle: Path, folder: Path, troubles: Mapping[str, Trouble], *,
    seed: int,
) -> tuple[Found, Load]:  # fmt: skip
    """Take the database away under load and give it back, in several ways one after the other.

    Meanwhile requests are refused in time, the process is alive and not ready; afterwards it is
    ready again by itself, before anything is asked of it.
    """
    with Process(bundle, database.url, folder) as service:
        with Load(service.url, seed) as load:
            for name, trouble in troubles.items():
                load.wait_for(30)
                with trouble(service):
                    load.wait_for_refusals(4)
                    assert service.status("/healthz") == 200, name
                    assert_not_ready(service)
                    load.pause()
                wait_until(lambda: service.status("/readyz") == 200, f"readiness after {name}")
                load.go_on()
            load.wait_for(30)
            load.finish()
        load.ask_again()
        assert service.stop() == 0, service.said[-2000:]
    return compare(load, database), load


def assert_not_ready(service: Process) -> None:
    """See that the service says it is not ready, why, and when to ask again."""
    wait_until(lambda: service.status("/readyz") == 503, "the end of readiness")
    answer = service.get("/readyz")
    assert answer.status_code == 503
    assert answer.headers["retry-after"].isdecimal()
    assert "the database is not usable" in answer.json()["detail"]


def stopped(server: PostgresServer) -> Trouble:
    """Crash the server of the database."""

    @contextmanager
    def trouble(_: Process) -> Iterator[None]:
        server.stop()
        try:
            yield
        finally:
            server.start()

    return trouble


def hanging(server: PostgresServer) -> Trouble:
    """Let the server of the database answer nothing."""
    return lambda _: server.hanging()


def locked(database: Sqlite) -> Trouble:
    """Let another process hold the file's lock."""
    return lambda _: database.locked()


@contextmanager
def files_full(service: Process) -> Iterator[None]:
    """Let no file of the process grow any more: writes fail as on a full disk."""
    before = resource.prlimit(service.pid, resource.RLIMIT_FSIZE)
    resource.prlimit(service.pid, resource.RLIMIT_FSIZE, (4096, before[1]))
    try:
        yield
    finally:
        resource.prlimit(service.pid, resource.RLIMIT_FSIZE, before)


def disk_full(folder: Path) -> Trouble:
    """Fill a small disk to the last byte."""

    @contextmanager
    def trouble(_: Process) -> Iterator[None]:
        fill(folder / "filler")
        try:
            yield
        finally:
            (folder / "filler").unlink()

    return trouble


def fill(file: Path) -> None:
    """Write until there is no room."""
    with file.open("wb", buffering=0) as out:
        for size in (65_536, 4_096, 1):
            try:
                while out.write(b"x" * size):
                    pass
            except OSError:
                continue


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path | None]:
    """Mount a disk of a size in memory; None where this user may not."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size}", "calibrant", str(folder)]
    mounted = shutil.which("mount") and not subprocess.run(command, capture_output=True).returncode
    try:
        yield folder if mounted else None
    finally:
        if mounted:
            subprocess.run(["umount", str(folder)], check=True)
        folder.rmdir()


def server_full(database: Postgres) -> Trouble:
    """Let the server say that its disk is full, as it does where a table cannot grow."""
    refuse = """
        CREATE OR REPLACE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN
        RAISE EXCEPTION 'could not extend file: No space left on device'
        USING ERRCODE = 'disk_full'; END $$
    """

    tables = ("predictions", "settings", "labels", "outcomes")

    @contextmanager
    def trouble(_: Process) -> Iterator[None]:
        database.run(refuse)
        for table in tables:
            database.run(
                f"CREATE TRIGGER full_disk BEFORE INSERT OR UPDATE ON {table} "
                "FOR EACH ROW EXECUTE FUNCTION refuse()"
            )
        try:
            yield
        finally:
            for table in tables:  # one lock at a time: two would wait for the service crosswise
                database.run(f"DROP TRIGGER IF EXISTS full_disk ON {table}")
            database.run("DROP FUNCTION refuse")

    return trouble


def moved_away(database: Sqlite) -> Trouble:
    """Move the file away under the process, and back again."""

    @contextmanager
    def trouble(_: Process) -> Iterator[None]:
        aside = database.file.with_name("aside.db")
        os.rename(database.file, aside)
        try:
            yield
        finally:
            os.rename(aside, database.file)

    return trouble


def restored(database: Sqlite) -> Trouble:
    """Delete the file and its log, and put a copy of before back, as from a backup."""

    @contextmanager
    def trouble(_: Process) -> Iterator[None]:
        files = sorted(database.file.parent.glob(f"{database.file.name}*"))
        aside = database.file.parent / "backup"
        aside.mkdir()
        with database.locked():  # nothing is written while it is copied
            for file in files:
                shutil.copy(file, aside)
            for file in files:
                file.unlink()
        try:
            yield
        finally:
            for file in aside.iterdir():
                if not file.name.endswith("-shm"):
                    shutil.move(file, database.file.parent)
            shutil.rmtree(aside)

    return trouble
