"""Keys, roles and rates: who may do what, how often, and how soon a revoked key is turned away."""

import asyncio
from datetime import timedelta
from types import SimpleNamespace

import pytest

from calibrant.errors import StoreUnavailable
from calibrant.serving.access import Access, TokenBucket
from calibrant.serving.http.problems import Problem
from calibrant.store import Store


@pytest.fixture
def store(tmp_path):
    with Store.open(tmp_path / "calibrant.db") as store:
        yield store


@pytest.fixture
def clock(monkeypatch):
    made = SimpleNamespace(now=1000.0)
    made.monotonic = lambda: made.now
    monkeypatch.setattr("calibrant.serving.access.time", made)
    monkeypatch.setattr("calibrant.serving.access.time", made)
    return made


def admit(access, token=None, role=None):
    header = None if token is None else f"Bearer {token}"
    return asyncio.run(access.admit(header, role))


def refused(status, access, *args):
    with pytest.raises(Problem) as caught:
        admit(access, *args)
    assert caught.value.status == status
    return caught.value


def test_where_no_key_is_needed_none_is_asked_for_but_one_that_comes_is_checked(store):
    access = Access(store.keys, needed=False)
    assert admit(access, None, "admin") is None
    key, token = store.keys.add("shop", "predict")
    assert admit(access, token, "predict") == key
    refused(401, access, token[:-1] + ("0" if token[-1] != "0" else "1"), "predict")
    refused(403, access, token, "admin")


def test_where_a_key_is_needed_it_must_come(store):
    access = Access(store.keys, needed=True)
    problem = refused(401, access, None, None)
    assert problem.headers == {"WWW-Authenticate": "Bearer"}
    assert "Authorization: Bearer cal_" in problem.detail


@pytest.mark.parametrize(
    ("own", "allowed"),
    [
        ("predict", {"predict": True, "label": False, "admin": False, None: True}),
        ("label", {"predict": False, "label": True, "admin": False, None: True}),
        ("admin", {"predict": True, "label": True, "admin": True, None: True}),
    ],
)
def test_roles(store, own, allowed):
    access = Access(store.keys, needed=True)
    key, token = store.keys.add("shop", own)
    for role, may in allowed.items():
        if may:
            assert admit(access, token, role) == key
        else:
            detail = refused(403, access, token, role).detail
            assert detail == f"the key has role '{own}', but '{role}' is required: use another key."


@pytest.mark.parametrize(
    "header",
    ["", "Bearer", "Bearer ", "Basic {}", "{}", "Bearer x{}", "Bearer {} more", "Bearer \ud800"],
)
def test_what_is_no_key_is_unknown(store, header):
    access = Access(store.keys, needed=False)
    _, token = store.keys.add("shop", "admin")
    with pytest.raises(Problem) as caught:
        asyncio.run(access.admit(header.format(token), None))
    assert caught.value.status == 401
    assert token not in caught.value.detail


def test_the_scheme_may_be_written_in_any_case(store):
    key, token = store.keys.add("shop", "admin")
    assert asyncio.run(Access(store.keys, needed=True).admit(f"bearer  {token} ", None)) == key


def test_a_revoked_key_is_turned_away_within_a_second(store, clock):
    access = Access(store.keys, needed=True)
    key, token = store.keys.add("shop", "predict")
    assert admit(access, token) == key
    store.keys.revoke(key.id)
    clock.now += 1.0
    detail = refused(401, access, token).detail
    assert detail == "the key is unknown or revoked: ask for a new one."


def test_beyond_its_rate_a_key_is_told_when_to_come_again(store, clock):
    access = Access(store.keys, needed=True)
    key, token = store.keys.add("shop", "predict", rate=30)
    for _ in range(5):  # ten seconds' worth at once
        assert admit(access, token) == key
    problem = refused(429, access, token)
    assert problem.headers == {"Retry-After": "2"}
    assert problem.detail == "the key allows 30 requests per minute: slow down."
    clock.now += 2.0
    admit(access, token)
    refused(429, access, token)
    _, other = store.keys.add("else", "predict")
    assert admit(access, other) is not None


def test_several_processes_share_a_rate(store, clock):
    access = Access(store.keys, needed=True, workers=5)
    _, token = store.keys.add("shop", "predict", rate=60)
    admit(access, token)
    admit(access, token)
    assert refused(429, access, token).headers == {"Retry-After": "5"}


def test_when_a_key_was_used_goes_on_record(store):
    access = Access(store.keys, needed=True)
    key, token = store.keys.add("shop", "predict")
    asyncio.run(access.flush())
    assert store.keys.all()[0].last_used is None
    admit(access, token)
    asyncio.run(access.flush())
    assert store.keys.all()[0].last_used >= key.created


def test_what_cannot_be_noted_is_noted_the_next_time(store, monkeypatch):
    access = Access(store.keys, needed=True)
    keys = [store.keys.add(name, "predict") for name in ("shop", "desk")]
    for _, token in keys:
        admit(access, token)
    used = access._used.copy()

    def away(ids):
        access._used[keys[0][0].id] = later  # comes while the database is asked
        raise StoreUnavailable("away.")

    later = used[keys[0][0].id] + timedelta(seconds=5)
    with monkeypatch.context() as patch:
        patch.setattr(store.keys, "used", away)
        with pytest.raises(StoreUnavailable):
            asyncio.run(access.flush())
    asyncio.run(access.flush())
    noted = {key.id: key.last_used for key in store.keys.all()}
    assert noted == {keys[0][0].id: later, keys[1][0].id: used[keys[1][0].id]}


def test_a_bucket_keeps_its_rate_over_a_long_time():
    bucket, clock, passed = TokenBucket(600, clock=0.0), 0.0, 0
    while clock < 60:
        passed += bucket.wait(clock) == 0
        clock += 0.01
    assert 695 <= passed <= 700  # 600 a minute, and once what is good for ten seconds


def test_a_slow_key_has_one_request_at_least():
    bucket = TokenBucket(1, clock=0.0)
    assert bucket.wait(0.0) == 0
    assert bucket.wait(0.0) == pytest.approx(60)
    assert bucket.wait(59.0) == pytest.approx(1)
    assert bucket.wait(60.5) == 0
