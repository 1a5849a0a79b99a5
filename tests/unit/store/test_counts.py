"""Counting: every table, and only the keys that are still good."""

from tests.unit.store.rows import label, outcome, put, row

from calibrant.store import StoreCounts


def test_each_table_is_counted_and_revoked_keys_are_not(store):
    assert store.counts() == StoreCounts(predictions=0, labels=0, outcomes=0, bundles=1, keys=0)
    rows = put(store, *(row() for _ in range(5)))
    store.outcomes.add([outcome(rows[0])], [label(one) for one in rows[:3]])
    store.keys.add("shop", "predict")
    gone, _ = store.keys.add("old shop", "predict")
    store.keys.revoke(gone.id)
    assert store.counts() == StoreCounts(predictions=5, labels=3, outcomes=1, bundles=2, keys=1)
