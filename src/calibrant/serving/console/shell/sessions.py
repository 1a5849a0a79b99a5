"""Signed session cookies and CSRF tokens."""

from __future__ import annotations

import hmac
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass

LIFETIME = 8 * 3600  # Seconds until a session expires: a working day

_COOKIE = re.compile(r"([0-9a-f]{32})\.([a-z0-9]{12}|-)\.([0-9]{1,12})\.([0-9a-f]{64})")


@dataclass(frozen=True, slots=True)
class Session:
    """One login session."""

    id: str  # 128 random bits in hex
    key: str | None  # id of the visitor's key; None for a visitor without one
    expires: int  # Unix time at which it ends

    def is_expired(self, now: float) -> bool:
        """Whether the session is over."""
        return now >= self.expires


class Sessions:
    """Create sessions, and encode and verify their cookies.

    Nothing is stored: the cookie holds the session, signed with the store's secret. It never holds
    the secret of the key.

    `sign` returns the signature of bytes for a purpose of at most 16 bytes.
    """

    def __init__(self, sign: Callable[..., str]) -> None:
        self._sign = sign

    def create(self, key: str | None, *, now: float | None = None) -> Session:
        """Return a new session."""
        start = time.time() if now is None else now
        return Session(secrets.token_hex(16), key, int(start) + LIFETIME)

    def encode(self, session: Session) -> str:
        """Return the signed cookie of a session."""
        content = f"{session.id}.{session.key or '-'}.{session.expires}"
        return f"{content}.{self._sign(content.encode(), purpose=b'console visit')}"

    def decode(self, cookie: str) -> Session | None:
        """Return the session of a cookie, expired or not, or None if it is forged."""
        match = _COOKIE.fullmatch(cookie)
        if match is None:
            return None
        id, key, expires, _ = match.groups()
        session = Session(id, None if key == "-" else key, int(expires))
        return session if hmac.compare_digest(self.encode(session), cookie) else None

    def csrf(self, session: Session) -> str:
        """Return the CSRF token of a session's forms, which no other site can know."""
        return self._sign(session.id.encode(), purpose=b"console form")

    def verify_csrf(self, session: Session, token: str) -> bool:
        """Whether a token is the session's CSRF token."""
        return hmac.compare_digest(self.csrf(session).encode(), token.encode())
