"""Errors of both databases: the right kind, with a remedy, without passwords and rows."""

import pytest
from sqlalchemy.engine import make_url
from tests.databases import GUEST, a_request, new_store, record_bundle
from tests.sentences import assert_mentions, refuses

from calibrant.errors import StoreError, StoreUnavailable
from calibrant.store import Store
from calibrant.store.database_errors import translate_errors


@pytest.fixture
def url(tmp_path):
    with new_store("postgresql", tmp_path) as made:
        yield make_url(made)


def refused(url):
    text = url if isinstance(url, str) else url.render_as_string(hide_password=False)
    with pytest.raises(StoreError) as caught:
        Store.open(text)
    assert str(caught.value).count(". ") == 0
    assert str(caught.value).endswith(".")
    assert caught.value.__suppress_context__
    return caught.value


def test_a_wrong_password_is_refused_and_not_shown(url):
    Store.open(url.set(username=GUEST, password=GUEST).render_as_string(False)).close()
    error = refused(url.set(username=GUEST, password="hunter2"))
    assert_mentions(error, "user", "password", "correct", "URL")
    assert "hunter2" not in str(error)
    assert isinstance(error, StoreUnavailable)  # a password can be put right while a service runs


def test_a_missing_password_is_asked_for(url):
    assert "requires a password" in str(refused(url.set(username=GUEST, password=None)))


def test_an_unknown_user_and_an_unknown_database_are_named_as_such(url):
    assert_mentions(refused(url.set(username="stranger")), "not know", "user")
    assert_mentions(refused(url.set(database="nothing")), "this database", "create it")


@pytest.mark.parametrize(
    "url", ["postgresql://u:hunter2@127.0.0.1:1/log", "postgresql://u:hunter2@host.invalid/log"]
)
def test_a_server_that_is_not_there_is_unavailable(url):
    error = refused(url)
    assert isinstance(error, StoreUnavailable)
    assert_mentions(error, "cannot be reached", "check", "server")
    assert "hunter2" not in str(error)


def test_an_option_that_postgresql_does_not_have_is_refused():
    error = refused("postgresql://u:hunter2@127.0.0.1:1/log?colour=blue")
    assert "check its URL" in str(error)
    assert not isinstance(error, StoreUnavailable)


def test_a_file_that_is_no_database_is_refused_and_left_alone(tmp_path):
    file = tmp_path / "notes.txt"
    file.write_text("not a database, but a long enough text " * 100)
    before = file.read_bytes()
    error = refused(str(file))
    assert_mentions(error, "notes.txt", "SQLite database", "another file")
    assert not isinstance(error, StoreUnavailable)
    assert file.read_bytes() == before


def test_a_damaged_file_is_named_as_such(tmp_path):
    with Store.open(tmp_path / "calibrant.db") as store:
        record_bundle(store)
        store.predictions.add([a_request(f"request-{i}") for i in range(200)])
    file = tmp_path / "calibrant.db"
    content = file.read_bytes()
    file.write_bytes(content[:4096] + b"\xff" * (len(content) - 4096))
    with (
        refuses(StoreError, "calibrant.db", "damaged", "restore", "backup") as caught,
        Store(file) as store,
    ):
        store.predictions.search()
    assert not isinstance(caught.value, StoreUnavailable)


def test_a_number_beyond_64_bits_is_refused(store):
    with pytest.raises(StoreError) as caught:
        store.predictions.add([a_request(operating_point=2**70)])
    assert not isinstance(caught.value, StoreUnavailable)
    assert store.predictions.count() == 0


def test_what_was_to_be_stored_is_not_in_the_error(store):
    with pytest.raises(StoreError) as caught:
        store.predictions.add([a_request(score=2.0, input={"text": "my secret"})])
    shown = "".join(str(part) for part in (caught.value, caught.value.args))
    assert "my secret" not in shown
    assert "customer-17" not in shown


def test_example_of_translate_errors():
    from sqlalchemy import create_engine

    unreachable = create_engine("sqlite:////nowhere/at/all")
    with (
        refuses(StoreUnavailable, "calibrant.db", "check that"),
        translate_errors("calibrant.db"),
        unreachable.connect(),
    ):
        pass
