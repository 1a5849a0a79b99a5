"""A server of PostgreSQL that does not answer is given up."""

import pytest
from sqlalchemy import text
from tests.databases import new_store

from calibrant.errors import StoreUnavailable
from calibrant.store.database import Database, TimeoutConnection


@pytest.fixture
def database(tmp_path, monkeypatch):
    monkeypatch.setattr(TimeoutConnection, "limit", 0.3)
    with new_store("postgresql", tmp_path) as url:
        made = Database(url)
        yield made
        made.close()


def ask(database, question, **options):
    with database.read(**options) as connection:
        return connection.execute(text(question)).scalar_one()


def test_a_server_that_does_not_answer_is_given_up_and_asked_again(database):
    with pytest.raises(StoreUnavailable, match="cannot be reached"):
        ask(database, "SELECT count(*) FROM pg_sleep(30)")
    assert ask(database, "SELECT 17") == 17


def test_the_connection_is_closed_so_that_no_late_answer_is_taken_for_another(database):
    lent = []

    def ask_for_ever():
        with database.read() as connection:
            lent.append(connection.connection.driver_connection)
            connection.execute(text("SELECT pg_sleep(30)"))

    with pytest.raises(StoreUnavailable):
        ask_for_ever()
    assert lent[0].closed


def test_an_answer_in_time_is_taken_and_the_patient_wait(database):
    assert ask(database, "SELECT 17 FROM pg_sleep(0.05)") == 17
    assert ask(database, "SELECT 17 FROM pg_sleep(0.6)", patient=True) == 17
    with pytest.raises(StoreUnavailable):  # the next is not patient
        ask(database, "SELECT 17 FROM pg_sleep(30)")
