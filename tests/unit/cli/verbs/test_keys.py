"""`calibrant keys`: shown once, listed without secrets, revoked, and every way to ask wrongly."""

import json
import re
import sys
from datetime import UTC, datetime

import pytest
from tests.databases import new_store
from tests.sentences import assert_mentions

from calibrant.store import Store


@pytest.fixture
def db(tmp_path):
    with new_store("sqlite", tmp_path) as url:
        yield url


def told(result):
    assert result.exit_code == 0, result.stderr
    return json.loads(result.stdout)


def test_a_key_is_shown_once_and_works(cli, db):
    result = cli("keys", "add", "--name", "shop", "--role", "predict", "--rate", "600", "--db", db)
    assert result.exit_code == 0, result.stderr
    assert_mentions(result.stdout, "“shop”", "role predict", "600 requests")
    token = re.search(r"^cal_\w+$", result.stdout, re.MULTILINE)[0]
    with Store(db) as store:
        key = store.keys.check(token)
    assert (key.name, key.role, key.rate) == ("shop", "predict", 600.0)
    listed = cli("keys", "list", "--db", db).stdout
    assert key.id in listed
    assert token.rpartition("_")[2] not in listed + cli("keys", "list", "--db", db, "--json").stdout


def test_as_json_there_is_one_object(cli, db):
    made = told(cli("keys", "add", "--name", "shop", "--role", "label", "--db", db, "--json"))
    key = made["key"]
    assert made["token"].startswith(f"cal_{key['id']}_")
    assert (key["name"], key["role"], key["rate"], key["last_used"]) == (
        "shop",
        "label",
        None,
        None,
    )
    assert told(cli("keys", "list", "--db", db, "--json")) == {"schema": 1, "keys": [key]}
    revoked = told(cli("keys", "revoke", key["id"], "--db", db, "--json"))["key"]
    assert revoked["revoked"] is not None
    assert revoked == {**key, "revoked": revoked["revoked"]}
    assert datetime.fromisoformat(revoked["revoked"]) <= datetime.now(UTC)


def test_the_list_fits_a_terminal_and_ids_stay_whole(cli, db, monkeypatch):
    monkeypatch.setattr("calibrant.cli.verbs.keys.width", lambda: 80)
    hostile = "red\x1b[31m\nsecond line\x07" + "long_name " * 15
    with Store(db) as store:
        ids = [store.keys.add(name, "predict", rate=1e6)[0].id for name in ("shop", hostile)]
        store.keys.used({ids[0]: datetime(2026, 3, 9, 14, 20, tzinfo=UTC)})
        store.keys.revoke(ids[1])
    shown = cli("keys", "list", "--db", db).stdout
    assert all(id in shown for id in ids)
    assert max(map(len, shown.splitlines())) <= 80
    assert not set(shown) & {"\x1b", "\x07"}
    assert "1,000,000" in shown
    first = next(line for line in shown.splitlines() if ids[0] in line)
    assert "2026-03-09" in first


def test_names_that_steer_a_terminal_are_printed_harmlessly(cli, db):
    name = "red\x1b[31m\nsecond line\x07"
    result = cli("keys", "add", "--name", name, "--role", "admin", "--db", db)
    assert "“red�[31m�second line�”" in result.stdout
    (key,) = told(cli("keys", "list", "--db", db, "--json"))["keys"]
    assert key["name"] == name
    result = cli("keys", "revoke", key["id"], "--db", db)
    assert_mentions(result.stdout, "“red�[31m�second line�”", "revoked")


def test_a_store_without_keys_says_so(cli, db):
    assert_mentions(cli("keys", "list", "--db", db).stdout, "no keys", "calibrant keys add")
    assert told(cli("keys", "list", "--db", db, "--json")) == {"schema": 1, "keys": []}


def test_only_add_makes_a_database(cli, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for words in (("list",), ("revoke", "000000000000")):
        result = cli("keys", *words)
        assert result.exit_code == 2
        assert "--db calibrant.db: file not found" in result.stderr
    refused = cli("keys", "add", "--name", "shop", "--role", "read")
    assert refused.exit_code == 2
    assert list(tmp_path.iterdir()) == []
    assert cli("keys", "add", "--name", "shop", "--role", "predict").exit_code == 0
    assert (tmp_path / "calibrant.db").exists()
    assert cli("keys", "list").exit_code == 0


def test_the_database_may_be_a_variable_and_a_postgresql(cli):
    with new_store("postgresql", None) as url:
        env = {"CALIBRANT_DB": url}
        made = told(cli("keys", "add", "--name", "shop", "--role", "predict", "--json", env=env))
        assert told(cli("keys", "list", "--json", env=env))["keys"] == [made["key"]]


@pytest.mark.parametrize(
    ("words", "mentions"),
    [
        (("add", "--name", "x", "--role", "read"), ("must be 'predict', 'label' or 'admin'",)),
        (("add", "--name", " ", "--role", "label"), ("name of a key", "1 to 200")),
        (("add", "--name", "x", "--role", "label", "--rate", "0"), ("above 0, got 0",)),
        (
            ("add", "--name", "x", "--role", "label", "--rate", "many"),
            ("Invalid value for '--rate'",),
        ),
        (("add", "--name", "x"), ("Missing option '--role'",)),
        (("revoke", "000000000000"), ("no key", "'000000000000'")),
        (("revoke", "\x1b[31m"), ("no key", r"'\x1b[31m'")),
        (("revoke",), ("Missing argument 'ID'",)),
        (("lst",), ("No such command 'lst'",)),
    ],
)
def test_what_cannot_be_done_is_told_in_a_sentence(cli, db, words, mentions):
    env = {"CALIBRANT_DB": db}
    result = cli("keys", *words, env=env)
    assert result.exit_code == 2
    assert_mentions(result.stderr, *mentions)
    assert result.stderr.count("\n") == 1
    as_json = cli("keys", *words, "--json", env=env)
    assert as_json.exit_code == 2
    assert_mentions(json.loads(as_json.stdout)["error"]["message"], *mentions)
    with Store(db) as store:
        assert store.keys.all() == []


@pytest.mark.parametrize(
    ("db", "mentions"),
    [
        ("mysql://localhost/log", ("SQLite or PostgreSQL", "'mysql'")),
        ("postgresql://me:hidden@127.0.0.1:1/log", ("cannot be reached",)),
        ("no_folder/calibrant.db", ("no_folder", "create")),
    ],
)
def test_a_store_that_cannot_be_reached(cli, tmp_path, monkeypatch, db, mentions):
    monkeypatch.chdir(tmp_path)
    result = cli("keys", "add", "--name", "shop", "--role", "predict", "--db", db)
    assert result.exit_code == 2
    assert_mentions(result.stderr, *mentions)
    assert "hidden" not in result.stderr
    assert result.stderr.count("\n") == 1


def test_a_file_that_is_no_store_is_left_as_it_is(cli, tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("my notes, which are longer than the head of a database file " * 20)
    for words in (("list",), ("add", "--name", "shop", "--role", "predict")):
        result = cli("keys", *words, "--db", file)
        assert result.exit_code == 2
        assert_mentions(result.stderr, file, "SQLite database")
    assert file.read_text().startswith("my notes")


def test_without_a_sub_command_the_help_is_shown(cli):
    result = cli("keys")
    assert result.exit_code == 2
    for word in ("add", "list", "revoke", "Example: calibrant keys add"):
        assert word in result.stdout


HYGIENE = """
import sys
sys.modules["torch"] = None
from calibrant.cli.main import app
from typer.testing import CliRunner
words = ([], ["add"], ["list"], ["revoke"])
shown = [CliRunner().invoke(app, ["keys", *each, "--help"]) for each in words]
heavy = {"sqlalchemy", "alembic", "psycopg", "fastapi", "numpy", "pyarrow", "pandas"}
print([each.exit_code for each in shown], ["Example" in each.stdout for each in shown])
print(sorted(heavy & set(sys.modules)))
"""


def test_help_shows_examples_and_imports_nothing_heavy(spawn):
    out, err = spawn(code=HYGIENE).communicate(timeout=60)
    assert out == "[0, 0, 0, 0] [True, True, True, True]\n[]\n"
    assert err == ""


def test_a_missing_extra_is_named(cli, db, monkeypatch):
    monkeypatch.setitem(sys.modules, "calibrant.store", None)
    for words in (("list",), ("add", "--name", "shop", "--role", "predict")):
        result = cli("keys", *words, "--db", db)
        assert result.exit_code == 2
        assert_mentions(result.stderr, "extra 'serve'", "pip install 'calibrant[serve]'")


@pytest.mark.parametrize(
    ("words", "page"),
    [(["add"], "keys add"), (["nothing"], "keys"), (["revoke"], "keys revoke"), (["--no"], "keys")],
)
def test_a_wrong_command_line_names_the_page_that_helps(cli, words, page):
    result = cli("keys", *words)
    assert result.exit_code == 2
    assert result.stderr.endswith(f": see 'calibrant {page} --help'.\n")
