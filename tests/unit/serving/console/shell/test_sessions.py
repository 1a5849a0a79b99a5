"""Cookies of visits: only the service's own are believed."""

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
    session = sessions.begin(key, now=1_000.9)
    assert session.expires == 1_000 + LIFETIME
    assert sessions.opened(sessions.sealed(session)) == session


def test_a_session_ends_on_time(sessions):
    session = sessions.begin(KEY, now=1_000)
    assert not session.ended(1_000 + LIFETIME - 0.001)
    assert session.ended(1_000 + LIFETIME)


def test_sessions_differ(sessions):
    assert len({sessions.begin(KEY).id for _ in range(100)}) == 100


def test_another_secret_believes_nothing(sessions):
    cookie = sessions.sealed(sessions.begin(KEY))
    assert Sessions(signer(b"another")).opened(cookie) is None


def test_nothing_in_a_cookie_can_be_changed(sessions):
    cookie = sessions.sealed(sessions.begin(KEY, now=1_000))
    for place, char in enumerate(cookie):
        other = "1" if char != "1" else "2"
        assert sessions.opened(cookie[:place] + other + cookie[place + 1 :]) is None


@pytest.mark.parametrize(
    "cookie", ["", ".", "a.b.c.d", "0" * 200, "é" * 40, f"{'0' * 32}.{KEY}.99999999999.{'0' * 64}"]
)
def test_what_is_no_cookie_of_ours(sessions, cookie):
    assert sessions.opened(cookie) is None


def test_the_token_of_forms_is_that_of_one_session(sessions):
    one, other = sessions.begin(KEY), sessions.begin(KEY)
    token = sessions.csrf(one)
    assert sessions.is_csrf(one, token)
    for wrong in (sessions.csrf(other), "", token[:-1], token.upper(), "é"):
        assert not sessions.is_csrf(one, wrong)


def test_a_token_of_forms_does_not_sign_a_cookie(sessions):
    session = Session("0" * 32, KEY, 10)
    content = f"{session.id}.{session.key}.{session.expires}"
    forged = sessions.csrf(Session(content, None, 0))  # the same bytes, for another purpose
    assert sessions.opened(f"{content}.{forged}") is None
