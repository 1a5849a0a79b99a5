"""A service that is told to stop answers first; a bundle is swapped without dropping a request."""

import pytest
from tests.guarantees.serving_databases import Sqlite
from tests.guarantees.serving_process import make_bundle
from tests.guarantees.serving_stops import misattributed, stop_under_load, swap_under_load


@pytest.fixture
def bundle(tmp_path):
    return make_bundle(tmp_path / "bundle")


@pytest.fixture
def database(tmp_path):
    return Sqlite(tmp_path / "calibrant.db")


@pytest.mark.parametrize("workers", [1, 2])
def test_a_stop_answers_every_request_that_it_took(database, bundle, tmp_path, workers):
    found = stop_under_load(database, bundle.path, tmp_path / "run", seed=4, workers=workers)
    assert found.broken == {}
    assert found.acknowledged >= 100
    # An answer that did not come is to a request that was never read: nothing of it is on record.
    assert found.in_doubt_on_record == 0


def test_a_swap_drops_nothing_and_each_answer_names_what_decided(database, bundle, tmp_path):
    found, load, bundles = swap_under_load(database, bundle, tmp_path / "run", seed=5)
    assert load.refused == 0
    assert sum(each.broken for each in load.asked) == 0
    assert found.broken == {}
    answers = [answer for each in load.asked for answer in each.answers]
    assert {answer["bundle"]["hash"] for answer in answers} == set(bundles)
    assert len(bundles) == 4
    assert misattributed(load, bundles) == []
    answers[0]["bundle"]["hash"] = next(h for h in bundles if h != answers[0]["bundle"]["hash"])
    assert len(misattributed(load, bundles)) == 1
