"""Session cookies: only the service's own are accepted."""

import hashlib

import pytest

from calibrant.serving.console.shell.sessions import LIFETIME, Session, Sessions

KEY = "abcdefghijkl"


def signer(secret=b"secret"):
    def sign(data, *, purpose):
        return hashlib.blake2b(data, key=secret, digest_size=32, person=purpose).hexdigest()

    return sign


@pytest.fixture
def sessions():
    return Sessions(signer())


@pytest.mark.parametrize("key", [KEY, None])
def test_a_cookie_holds_a_session(sessions, key):
    session = sessions.create(key, now=1_000.9)
    assert session.expires == 1_000 + LIFETIME
    assert sessions.decode(sessions.encode(session)) == session


def test_a_session_ends_on_time(sessions):
    session = sessions.create(KEY, now=1_000)
    assert not session.is_expired(1_000 + LIFETIME - 0.001)
    assert session.is_expired(1_000 + LIFETIME)


def test_sessions_differ(sessions):
    assert len({sessions.create(KEY).id for _ in range(100)}) == 100


def test_another_secret_accepts_no_cookie(sessions):
    cookie = sessions.encode(sessions.create(KEY))
    assert Sessions(signer(b"another")).decode(cookie) is None


def test_a_changed_cookie_is_refused(sessions):
    cookie = sessions.encode(sessions.create(KEY, now=1_000))
    for place, char in enumerate(cookie):
        other = "1" if char != "1" else "2"
        assert sessions.decode(cookie[:place] + other + cookie[place + 1 :]) is None


@pytest.mark.parametrize(
    "cookie", ["", ".", "a.b.c.d", "0" * 200, "é" * 40, f"{'0' * 32}.{KEY}.99999999999.{'0' * 64}"]
)
def test_other_texts_are_not_cookies(sessions, cookie):
    assert sessions.decode(cookie) is None


def test_a_csrf_token_belongs_to_one_session(sessions):
    one, other = sessions.create(KEY), sessions.create(KEY)
    token = sessions.csrf(one)
    assert sessions.verify_csrf(one, token)
    for wrong in (sessions.csrf(other), "", token[:-1], token.upper(), "é"):
        assert not sessions.verify_csrf(one, wrong)


def test_a_csrf_token_does_not_sign_a_cookie(sessions):
    session = Session("0" * 32, KEY, 10)
    content = f"{session.id}.{session.key}.{session.expires}"
    forged = sessions.csrf(Session(content, None, 0))  # the same bytes, for another purpose
    assert sessions.decode(f"{content}.{forged}") is None
