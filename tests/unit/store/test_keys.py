"""Keys: shown once, kept as a hash, refused in one way whatever is wrong with them."""

import hashlib
import hmac
import re
from datetime import UTC, datetime, timedelta

import pytest
from sqlalchemy import event, select
from tests.databases import ON_SQLITE
from tests.sentences import refuses

from calibrant.errors import InputError, StoreError
from calibrant.store import keys as module
from calibrant.store.schema import keys


def test_a_key_is_shown_once_and_kept_as_a_hash(store):
    key, token = store.keys.add("shop", "predict", rate=600)
    id, secret = re.fullmatch(r"cal_([a-z0-9]{12})_([0-9a-f]{64})", token).groups()
    assert (key.id, key.name, key.role, key.rate) == (id, "shop", "predict", 600.0)
    assert (key.last_used, key.revoked) == (None, None)
    with store._database.read() as connection:
        (row,) = connection.execute(select(keys)).all()
    assert row.secret_hash == hashlib.sha256(secret.encode()).hexdigest()
    assert not any(secret in str(cell) for cell in row)
    assert store.keys.check(token) == key
    assert store.keys.all() == [key]


@ON_SQLITE
def test_names_repeat_and_ids_do_not(store):
    made = [store.keys.add("shop", "label")[0] for _ in range(5)]
    assert len({key.id for key in made}) == 5
    assert [key.id for key in store.keys.all()] == [key.id for key in made]


def wrong(token):
    """Return tokens that are nearly right, and some that are none at all."""
    id, secret = token[4:16], token[17:]
    turned = "0" if secret[-1] != "0" else "1"
    near = [f"cal_{id}_{secret[:-1]}{turned}", f"cal_{'0' * 12}_{secret}", f"cal_{id}_", token[1:]]
    near += [token.upper(), f"{token} ", f"{token}\n", f"{token}{token}"]
    return [*near, "", "cal_", "\0", "\ud800", "ключ", "' OR 1=1 --", "x" * 100_000]


@ON_SQLITE
def test_a_wrong_a_strange_and_a_revoked_key_are_all_none(store):
    key, token = store.keys.add("shop", "predict")
    assert [store.keys.check(other) for other in wrong(token)] == [None] * len(wrong(token))
    revoked = store.keys.revoke(key.id)
    assert revoked.revoked is not None
    assert store.keys.check(token) is None
    assert store.keys.all() == [revoked]


@ON_SQLITE
def test_all_keys_cost_the_same_work(store, monkeypatch):
    _, token = store.keys.add("shop", "predict")
    gone, gone_token = store.keys.add("old shop", "predict")
    store.keys.revoke(gone.id)
    seen = []
    event.listen(
        store._database.engine,
        "before_cursor_execute",
        lambda _c, _cursor, statement, *_: seen.append(statement),
    )

    real = hmac.compare_digest

    def compared(a, b):
        seen.append(("compared", len(a), len(b)))
        return real(a, b)

    monkeypatch.setattr(module.hmac, "compare_digest", compared)

    def work(given):
        seen.clear()
        store.keys.check(given)
        return [step for step in seen if "BEGIN" not in step and "ROLLBACK" not in step]

    usual = work(token)
    assert usual[-1] == ("compared", 64, 64)
    assert len([step for step in usual if "secret_hash" in step]) == 1
    for other in (*wrong(token), gone_token):
        assert work(other) == usual


@ON_SQLITE
def test_a_key_can_be_had_by_its_id_also_when_it_is_revoked(store):
    key, token = store.keys.add("shop", "predict", rate=600)
    assert store.keys.get(key.id) == key
    revoked = store.keys.revoke(key.id)
    assert store.keys.get(key.id) == revoked
    assert revoked.revoked is not None
    for id in ("0" * 12, "", token, "a\0b", "ä" * 12, key.id.upper() + "A"):
        assert store.keys.get(id) is None


@ON_SQLITE
def test_a_key_stays_revoked_since_the_first_time(store):
    key, token = store.keys.add("shop", "predict")
    first = store.keys.revoke(key.id)
    assert store.keys.revoke(key.id) == first
    assert store.keys.revoke(token) == first  # the whole key names itself


@pytest.mark.parametrize("id", ["000000000000", "", "no such id", "\0", "\x1b[31m", "x" * 1000])
@ON_SQLITE
def test_a_key_that_is_not_there_cannot_be_revoked(store, id):
    with refuses(StoreError, "no key", "id") as refused:
        store.keys.revoke(id)
    assert str(refused.value).isprintable()
    assert len(str(refused.value)) < 200


def test_last_use_only_moves_forward(store):
    now = datetime.now(UTC)
    one, two = (store.keys.add(name, "predict")[0] for name in ("one", "two"))
    store.keys.used({})
    store.keys.used({one.id: now, "not-a-key": now})
    store.keys.used({one.id: now - timedelta(hours=1), two.id: now})
    assert {key.name: key.last_used for key in store.keys.all()} == {"one": now, "two": now}
    store.keys.used({one.id: now + timedelta(hours=1)})
    assert store.keys.all()[0].last_used == now + timedelta(hours=1)


@pytest.mark.parametrize(
    ("changes", "mentions"),
    [
        ({"role": "read"}, ("'predict', 'label' or 'admin'", "got 'read'")),
        ({"role": ""}, ("'predict', 'label' or 'admin'", "got ''")),
        ({"name": " "}, ("name", "1 to 200 characters", "got ' '")),
        ({"name": "x" * 201}, ("name", "1 to 200 characters", "got 201 characters")),
        ({"name": "a\0b"}, ("name", "1 to 200 characters")),
        ({"name": "\ud800"}, ("name", "1 to 200 characters")),
        ({"rate": 0}, ("requests per minute", "above 0", "got 0")),
        ({"rate": -1.5}, ("above 0", "got -1.5")),
        ({"rate": float("nan")}, ("above 0", "got nan")),
        ({"rate": float("inf")}, ("above 0", "got inf")),
    ],
)
def test_a_key_that_cannot_be_made_is_refused_in_a_sentence(changes, mentions):
    with refuses(InputError, *mentions):
        module.check_key(**{"name": "shop", "role": "predict", "rate": None, **changes})


@ON_SQLITE
def test_nothing_is_written_of_a_key_that_is_refused(store):
    with pytest.raises(InputError):
        store.keys.add("shop", "predict", rate=-1)
    assert store.keys.all() == []
