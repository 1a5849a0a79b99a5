"""Bundles that have served."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from tests.databases import ON_SQLITE

from calibrant.errors import StoreError
from calibrant.store import BundleRecord, Store

NOW = datetime(2026, 1, 31, 12, tzinfo=UTC)


@pytest.fixture
def store(database_url):
    """Give a store that knows no bundle."""
    with Store(database_url) as opened:
        yield opened


def a_bundle(hash="3f0a", **changes):
    made = {
        "name": "returns",
        "classes": ["late", "größer"],
        "manifest": {"format": 3, "metrics": {"ece": 0.0123}, "ood": None},
        "at": NOW,
    }
    return {"hash": hash, **made, **changes}


def test_a_bundle_comes_out_as_it_was_recorded(store):
    store.bundles.record(**a_bundle())
    assert store.bundles.get("3f0a") == BundleRecord(**a_bundle())
    assert store.bundles.get("nothing") is None


def test_a_bundle_that_serves_again_stays_as_it_was(store):
    store.bundles.record(**a_bundle())
    store.bundles.record(**a_bundle(name="another", at=NOW + timedelta(days=1)))
    assert store.bundles.all() == [BundleRecord(**a_bundle())]


def test_bundles_come_in_the_order_of_their_first_service(store):
    assert store.bundles.all() == []
    for hash, days in (("c", 2), ("a", 3), ("b", 1)):
        store.bundles.record(**a_bundle(hash, at=NOW + timedelta(days=days)))
    assert [bundle.hash for bundle in store.bundles.all()] == ["b", "c", "a"]
    brief = store.bundles.all(manifests=False)
    assert brief == [replace(bundle, manifest={}) for bundle in store.bundles.all()]


@pytest.mark.parametrize(
    "changes",
    [{"name": "a\0b"}, {"manifest": {"x": float("nan")}}, {"classes": ["a\0b"]}, {"name": None}],
)
@ON_SQLITE
def test_a_bundle_that_cannot_be_stored_is_refused(store, changes):
    with pytest.raises(StoreError):
        store.bundles.record(**a_bundle(**changes))
    assert store.bundles.all() == []
