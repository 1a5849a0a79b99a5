"""`calibrant store`: check, export, forget and prune, and every way to ask wrongly."""

import json
import re
import sys
from datetime import UTC, datetime, timedelta

import pyarrow.parquet as pq
import pytest
from tests.databases import new_store
from tests.sentences import assert_mentions
from tests.unit.store.rows import hours, label, outcome, put, row

from calibrant.store import Store

PARTS = ("check", "export", "forget", "prune")


@pytest.fixture
def db(tmp_path):
    with new_store("sqlite", tmp_path) as url:
        yield url


@pytest.fixture
def store(db):
    with Store(db) as opened:
        yield opened


def told(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_check_counts_what_is_there(cli, db, store):
    rows = put(store, row(), row())
    store.outcomes.add([outcome(rows[0])], [label(rows[0]), label(rows[1]), label(rows[1])])
    store.keys.add("shop", "predict")
    gone, _ = store.keys.add("old shop", "predict")
    store.keys.revoke(gone.id)
    counts = {"predictions": 2, "labels": 3, "outcomes": 1, "bundles": 1, "keys": 1}
    assert told(cli("store", "check", "--db", db, "--json")) == {
        "schema": 1, "url": store.url, **counts
    }  # fmt: skip
    shown = cli("store", "check", "--db", db).stdout
    assert_mentions(shown, store.url, "reachable", "up to date")
    for name, n in counts.items():
        assert re.search(rf"^{name} +{n}$", shown, re.MULTILINE)


def test_check_shows_no_password(cli):
    with new_store("postgresql", None) as url:
        given = url.replace("postgresql://postgres:", "postgresql://postgres:hidden", 1)
        shown = cli("store", "check", "--db", given)
        assert shown.exit_code == 0, shown.stderr
        assert "***" in shown.stdout
        assert "hidden" not in shown.stdout


def test_an_export_is_a_file_that_evaluate_reads(cli, db, store, tmp_path):
    rows = put(store, *(row(at=hours(i), use_case="returns") for i in range(48)))
    put(store, row(use_case="intents"))
    store.outcomes.add([], [label(one, ("bad", "good")[i % 2]) for i, one in enumerate(rows[:40])])
    file = tmp_path / "out.parquet"
    shown = cli("store", "export", "-o", file, "--db", db)
    assert shown.stdout == f"49 predictions in {file}\n"
    day = ("--since", "2026-01-02", "--until", "2026-01-02T12:00+00:00")
    made = told(cli("store", "export", "-o", file, *day, "--db", db, "--json"))
    assert made == {"schema": 1, "n": 12, "out": str(file)}
    times = pq.read_table(file, columns=["at"])["at"].to_pylist()
    assert times == [hours(i) for i in range(24, 36)]
    only = ("--labelled", "--use-case", "returns")
    assert told(cli("store", "export", "-o", file, *only, "--db", db, "--json"))["n"] == 40
    judged = told(cli("evaluate", file, "--json"))
    assert judged["n"] == 40


def test_labels_that_are_no_class_are_counted_and_evaluate_reads_the_rest(cli, db, store, tmp_path):
    rows = put(store, *(row(at=hours(i)) for i in range(40)))
    labels = [label(one, ("bad", "good")[i % 2]) for i, one in enumerate(rows[:36])]
    labels += [label(rows[36], "Bad "), *(label(one, "x") for one in rows[37:])]
    store.outcomes.add([], labels, other=[one.id for one in labels])
    file = tmp_path / "out.parquet"
    shown = cli("store", "export", "--labelled", "-o", file, "--db", db)
    assert shown.stdout == (
        f"36 predictions in {file}\n4 more predictions are left out: their label is not a class of "
        "the bundle: “x” (3), “Bad ” (1).\n"
    )
    made = told(cli("store", "export", "--labelled", "-o", file, "--db", db, "--json"))
    assert made["left_out"] == {"x": 3, "Bad ": 1}
    assert told(cli("evaluate", file, "--json"))["n"] == 36


def test_an_empty_range_is_no_error(cli, db, tmp_path):
    file = tmp_path / "out.parquet"
    assert cli("store", "export", "-o", file, "--db", db).stdout == f"0 predictions in {file}\n"
    assert pq.read_table(file).num_rows == 0


def test_a_unit_is_forgotten_and_what_went_is_told(cli, db, store):
    rows = put(store, *(row(unit=f"customer-{i % 2}") for i in range(4)))
    store.outcomes.add([outcome(rows[0])], [label(rows[0]), label(rows[2]), label(rows[1])])
    shown = cli("store", "forget", "--unit", "customer-0", "--db", db)
    assert_mentions(shown.stdout, "“customer-0”", "2 predictions, 2 labels, 1 outcome")
    again = cli("store", "forget", "--unit", "customer-0", "--db", db)
    assert again.exit_code == 0
    assert_mentions(again.stdout, "no predictions", "“customer-0”")
    made = told(cli("store", "forget", "--unit", "customer-1", "--db", db, "--json"))
    counts = {"predictions": 2, "labels": 1, "outcomes": 0}
    assert made == {"schema": 1, "unit": "customer-1", **counts}
    hostile = cli("store", "forget", "--unit", "a\x1b[31m", "--db", db)
    assert_mentions(hostile.stdout, "no predictions", "“a�[31m”")


def test_what_is_old_is_pruned_and_told(cli, db, store):
    now = datetime.now(UTC)
    rows = put(store, *(row(at=now - timedelta(days=30 * i, hours=1)) for i in range(6)))
    store.outcomes.add([outcome(rows[5])], [label(rows[5])])
    shown = cli("store", "prune", "--older-than", "90d", "--db", db).stdout
    assert re.fullmatch(
        r"Deleted predictions older than [-\d]+ [:\d]+ UTC: 3 predictions, 1 label, 1 outcome\.\n",
        shown,
    )
    assert store.predictions.count() == 3
    made = told(cli("store", "prune", "--older-than", "4w", "--db", db, "--json"))
    assert (made["predictions"], made["labels"], made["outcomes"]) == (2, 0, 0)
    before = datetime.fromisoformat(made["before"])
    assert now - timedelta(weeks=4) <= before <= datetime.now(UTC) - timedelta(weeks=4)
    shown = cli("store", "prune", "--older-than", "2h", "--db", db).stdout
    assert_mentions(shown, "no predictions", "older than")


@pytest.mark.parametrize(
    ("words", "mentions"),
    [
        (("export", "-o", "out.csv"), ("ending in .parquet",)),
        (("export", "-o", "no_folder/out.parquet"), ("no_folder", "create")),
        (("export",), ("Missing option '--out'",)),
        (("export", "-o", "o.parquet", "--since", "yesterday"), ("--since", "date")),
        (("export", "-o", "o.parquet", "--until", "0001-01-01T00+05"), ("--until", "date")),
        (
            ("export", "-o", "o.parquet", "--since", "2026-02-01", "--until", "2026-01-01"),
            ("since", "before until"),
        ),
        (("forget",), ("Missing option '--unit'",)),
        (("forget", "--unit", ""), ("unit", "non-empty", "got ''")),
        (("prune",), ("Missing option '--older-than'",)),
        (("prune", "--older-than", "90"), ("12h, 90d or 52w", "got '90'")),
        (("prune", "--older-than", "0d"), ("12h, 90d or 52w", "got '0d'")),
        (("prune", "--older-than", "-5d"), ("12h, 90d or 52w", "got '-5d'")),
        (("prune", "--older-than", "999999d"), ("12h, 90d or 52w", "got '999999d'")),
        (("checks",), ("No such command 'checks'",)),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(
    cli, db, store, tmp_path, monkeypatch, words, mentions
):
    monkeypatch.chdir(tmp_path)
    put(store, row(at=hours(0)))
    there = sorted(tmp_path.iterdir())
    env = {"CALIBRANT_DB": db}
    result = cli("store", *words, env=env)
    assert result.exit_code == 2
    assert_mentions(result.stderr, *mentions)
    assert result.stderr.count("\n") == 1
    as_json = cli("store", *words, "--json", env=env)
    assert as_json.exit_code == 2
    assert_mentions(json.loads(as_json.stdout)["error"]["message"], *mentions)
    assert store.predictions.count() == 1
    assert sorted(tmp_path.iterdir()) == there


def test_the_longest_age_reaches_before_everything(cli, db, store):
    put(store, row())
    result = cli("store", "prune", "--older-than", "99999w", "--db", db)
    assert result.exit_code == 0, result.stderr
    assert store.predictions.count() == 1


ASKED = {
    "check": ("check",),
    "export": ("export", "-o", "out.parquet"),
    "forget": ("forget", "--unit", "customer-17"),
    "prune": ("prune", "--older-than", "90d"),
}


@pytest.mark.parametrize("part", PARTS)
def test_a_database_that_is_not_there_is_not_made(cli, tmp_path, monkeypatch, part):
    monkeypatch.chdir(tmp_path)
    result = cli("store", *ASKED[part])
    assert result.exit_code == 2
    assert "--db calibrant.db: file not found" in result.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_database_without_tables_stays_without_them(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    file = tmp_path / "calibrant.db"
    file.touch()
    with new_store("postgresql", None, migrated=False) as url:
        for db in (str(file), url):
            result = cli("store", "check", "--db", db)
            assert result.exit_code == 2
            assert_mentions(result.stderr, "version none")
    assert file.read_bytes() == b""


def test_without_a_sub_command_the_help_is_shown(cli):
    result = cli("store")
    assert result.exit_code == 2
    for word in (*PARTS, "Example: calibrant store export"):
        assert word in result.stdout


def test_a_missing_extra_is_named(cli, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "calibrant.store", None)
    for part in PARTS:
        result = cli("store", *ASKED[part], "--db", tmp_path / "calibrant.db")
        assert result.exit_code == 2
        assert_mentions(result.stderr, "extra 'serve'")


HYGIENE = """
import sys
sys.modules["torch"] = None
from calibrant.cli.main import app
from typer.testing import CliRunner
words = ([], ["check"], ["export"], ["forget"], ["prune"])
shown = [CliRunner().invoke(app, ["store", *each, "--help"]) for each in words]
heavy = {"sqlalchemy", "alembic", "psycopg", "fastapi", "numpy", "pyarrow", "pandas"}
print([each.exit_code for each in shown], ["Example" in each.stdout for each in shown])
print(sorted(heavy & set(sys.modules)))
"""


def test_help_shows_examples_and_imports_nothing_heavy(spawn):
    out, err = spawn(code=HYGIENE).communicate(timeout=60)
    assert out == f"{[0] * 5} {[True] * 5}\n[]\n"
    assert err == ""
